"""Finds edges in frames of a video: a dataflow graph as a stream of six stages, and its trace.

python examples/dataflow_pipeline.py [TRACE.json [TARGET]]

For a target with a device, as `vulkan`, each stage is compiled for the device and for the CPU, and
the stream runs twice: mapped to the CPU alone, and with the stages of pixels on the device.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import relax_mlir
from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Scheduler,
    Span,
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


@leaf("device", "cpu", image="f32[h, w]")
def along_rows(at: Instance, image: Tensor) -> Scalar:
    """Smooths a pixel with its neighbours; indices outside are clamped."""
    i, j = at.ids(2)
    return 0.25 * image[i, j - 1] + 0.5 * image[i, j] + 0.25 * image[i, j + 1]


@leaf("device", "cpu", image="f32[h, w]")
def along_columns(at: Instance, image: Tensor) -> Scalar:
    """Smooths it with those above and below."""
    i, j = at.ids(2)
    return 0.25 * image[i - 1, j] + 0.5 * image[i, j] + 0.25 * image[i + 1, j]


@leaf("device", "cpu", image="f32[h, w]")
def steepness(at: Instance, image: Tensor) -> Scalar:
    """The length of the gradient."""
    i, j = at.ids(2)
    dx = image[i, j + 1] - image[i, j - 1]
    dy = image[i + 1, j] - image[i - 1, j]
    return sqrt(dx * dx + dy * dy)


@leaf("device", "cpu", image="f32[h, w]")
def ridge(at: Instance, image: Tensor) -> Scalar:
    """A pixel, if neither neighbour of its row is steeper."""
    i, j = at.ids(2)
    return where(image[i, j] >= maximum(image[i, j - 1], image[i, j + 1]), image[i, j], 0.0)


@leaf("device", "cpu", pixel="f32")
def above(at: Instance, pixel: Scalar) -> Scalar:
    """1 for what is an edge, 0 for the rest."""
    return (pixel > 0.5).astype("f32")


@leaf("cpu", "device", row="f32[w]")
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


STAGES = {
    f"edges_stage_{index}": node.name
    for index, node in enumerate((along_rows, along_columns, steepness, ridge, above, total))
}


def mappings(target: str) -> dict[str, list[Any]]:
    """The stages by where they run: on the CPU alone, and on both sides of a target, if any."""
    passes = f"relax-split-streams,relax-map-nodes{{policy=greedy target={target}}}"
    compiled = relax_mlir.compile(
        module(edges, passes=passes if target else ""), target or "native"
    )
    compiled.threads = 1
    if not target:
        return {"cpu": stages_of(compiled, "edges")}
    *pixels, rows = STAGES
    placed = {
        "cpu": dict.fromkeys(STAGES, "cpu"),
        f"{target} and cpu": dict.fromkeys(pixels, "device") | {rows: "cpu"},
    }
    return {
        mapping: stages_of(Scheduler(compiled, "static", sides), "edges")
        for mapping, sides in placed.items()
    }


def run(stages: Sequence[Any], timeline: Timeline) -> list[np.ndarray]:
    """Frames of any size pass through the same stages."""
    with Stream(stages, depth=2, timeline=timeline) as stream:
        for size in (16, 33, 64):
            frame = np.zeros((size, size), np.float32)
            frame[size // 4 : size // 2, size // 4 : size // 2] = 4  # a square
            stream.push(frame)
        return [np.asarray(rows) for rows in stream.wait(timeout=60)]


def main() -> None:
    """Runs each mapping, and says where its time went."""
    spans: list[Span] = []
    for mapping, stages in mappings("".join(sys.argv[2:])).items():
        timeline = Timeline()
        for counts in run(stages, timeline):
            print(f"{len(counts)} rows, {np.count_nonzero(counts)} of them with edges")
        times = timeline.medians()
        nodes = [f"{node} {1000 * times[stage]:.2f}" for stage, node in STAGES.items()]
        print(f"{mapping}, in ms: {', '.join(nodes)}")
        spans += timeline.spans
    if len(sys.argv) > 1:
        Timeline(spans).write(sys.argv[1])
    print(f"{len(spans)} spans in {len(STAGES)} tracks")


if __name__ == "__main__":
    main()
