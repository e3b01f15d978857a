"""Finds edges in frames of a video: six dataflow graphs as the stages of a stream, and their trace.

python examples/dataflow_pipeline.py [TRACE.json]
"""

import sys
from typing import Any

import numpy as np

import relax_mlir
from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Stream,
    Tensor,
    Timeline,
    each,
    graph,
    leaf,
    maximum,
    module,
    sqrt,
    where,
    whole,
)


@leaf(image="f32[h, w]")
def along_rows(at: Instance, image: Tensor) -> Scalar:
    """Smooths a pixel with its neighbours; indices outside are clamped."""
    i, j = at.ids(2)
    return 0.25 * image[i, j - 1] + 0.5 * image[i, j] + 0.25 * image[i, j + 1]


@leaf(image="f32[h, w]")
def along_columns(at: Instance, image: Tensor) -> Scalar:
    """Smooths it with those above and below."""
    i, j = at.ids(2)
    return 0.25 * image[i - 1, j] + 0.5 * image[i, j] + 0.25 * image[i + 1, j]


@leaf(image="f32[h, w]")
def steepness(at: Instance, image: Tensor) -> Scalar:
    """The length of the gradient."""
    i, j = at.ids(2)
    dx = image[i, j + 1] - image[i, j - 1]
    dy = image[i + 1, j] - image[i - 1, j]
    return sqrt(dx * dx + dy * dy)


@leaf(image="f32[h, w]")
def ridge(at: Instance, image: Tensor) -> Scalar:
    """A pixel, if neither neighbour of its row is steeper."""
    i, j = at.ids(2)
    return where(image[i, j] >= maximum(image[i, j - 1], image[i, j + 1]), image[i, j], 0.0)


@leaf(pixel="f32")
def above(at: Instance, pixel: Scalar) -> Scalar:
    """1 for what is an edge, 0 for the rest."""
    return where(pixel > 0.5, pixel / pixel, 0.0)


@leaf(row="f32[w]")
def total(at: Instance, row: Tensor) -> Scalar:
    """The edges of a row."""
    return at.loop(row.extent(0), 0.0, lambda j, count: count + row[j])


@graph(image="f32[h, w]")
def smooth_rows(image: Port) -> Any:
    """Stage 1."""
    return along_rows.over("h", "w")(whole(image))


@graph(image="f32[h, w]")
def smooth_columns(image: Port) -> Any:
    """Stage 2."""
    return along_columns.over("h", "w")(whole(image))


@graph(image="f32[h, w]")
def gradient(image: Port) -> Any:
    """Stage 3."""
    return steepness.over("h", "w")(whole(image))


@graph(image="f32[h, w]")
def thin(image: Port) -> Any:
    """Stage 4."""
    return ridge.over("h", "w")(whole(image))


@graph(image="f32[h, w]")
def threshold(image: Port) -> Any:
    """Stage 5."""
    return above.over("h", "w")(each(image))


@graph(image="f32[h, w]")
def count(image: Port) -> Any:
    """Stage 6: how many edges each row has."""
    return total.over("h")(each(image))


STAGES = (smooth_rows, smooth_columns, gradient, thin, threshold, count)


def main() -> None:
    """Frames of any size pass through the same stages."""
    compiled = relax_mlir.compile(module(*STAGES))
    compiled.threads = 1
    stages, timeline = [compiled[stage.name] for stage in STAGES], Timeline()
    with Stream(stages, depth=2, timeline=timeline) as stream:
        for size in (16, 33, 64):
            frame = np.zeros((size, size), np.float32)
            frame[size // 4 : size // 2, size // 4 : size // 2] = 4  # a square
            stream.push(frame)
        rows = stream.wait(timeout=60)
    for edges in rows:
        print(f"{edges.shape[0]} rows, {int(np.count_nonzero(edges))} of them with edges")
    if len(sys.argv) > 1:
        timeline.write(sys.argv[1])
    print(f"{len(timeline.spans)} spans in {len(STAGES)} tracks")


if __name__ == "__main__":
    main()
