"""Finds edges in frames of a video: a dataflow graph as a stream of six stages, and its trace.

python examples/dataflow_pipeline.py [TRACE.json [TARGET]]

For a target with a device, as `vulkan`, each stage is compiled for the device and for the CPU, and
an item goes to the one with fewer calls in progress.
"""

import sys
from typing import Any

import numpy as np

import relax_mlir
from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Scheduler,
    Stream,
    Tensor,
    Timeline,
    each,
    graph,
    leaf,
    maximum,
    module,
    sqrt,
    stages_of,
    streamed,
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
def edges(image: Port) -> Any:
    """How many edges each row has; each node is a stage of a stream."""
    smooth = along_rows.over("h", "w")(whole(image))
    smooth = along_columns.over("h", "w")(streamed(whole(smooth)))
    steep = steepness.over("h", "w")(streamed(whole(smooth)))
    thin = ridge.over("h", "w")(streamed(whole(steep)))
    marked = above.over("h", "w")(streamed(each(thin)))
    return total.over("h")(streamed(each(marked)))


def stages_for(target: str) -> list[Any]:
    """The stages, compiled for the CPU, or for both sides of a target with a device."""
    passes = f"relax-split-streams,relax-map-nodes{{policy=greedy target={target}}}"
    compiled = relax_mlir.compile(
        module(edges, passes=passes if target else ""), target or "native"
    )
    compiled.threads = 1
    return stages_of(Scheduler(compiled) if target else compiled, "edges")


def main() -> None:
    """Frames of any size pass through the same stages."""
    stages, timeline = stages_for("".join(sys.argv[2:])), Timeline()
    with Stream(stages, depth=2, timeline=timeline) as stream:
        for size in (16, 33, 64):
            frame = np.zeros((size, size), np.float32)
            frame[size // 4 : size // 2, size // 4 : size // 2] = 4  # a square
            stream.push(frame)
        rows = stream.wait(timeout=60)
    for counts in map(np.asarray, rows):
        print(f"{len(counts)} rows, {int(np.count_nonzero(counts))} of them with edges")
    if len(sys.argv) > 1:
        timeline.write(sys.argv[1])
    print(f"{len(timeline.spans)} spans in {len(stages)} tracks")


if __name__ == "__main__":
    main()
