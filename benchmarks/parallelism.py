"""What a stream, tasks at the same time, and tiles of nodes gain: ratios of medians of rounds.

    python benchmarks/parallelism.py
    python benchmarks/parallelism.py --rounds 9 --size 1024

Both sides of a ratio are measured in turn. The process is limited to two cores, and each call to
one thread. README.md says more.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
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
    module,
    together,
    whole,
)
from relax_mlir.tools.cli import described, guard

CORES, STAGES, DEGREE = 2, 4, 400
TILE = "relax-tile-node{sizes=64,64}"


@leaf(x="f32", table="f32[k]")
def polynomial(at: Instance, x: Scalar, table: Tensor) -> Scalar:
    """Horner's rule: bound by computation, so that cores are what stages share."""
    return at.loop(table.extent(0), 0.0, lambda i, y: y * x + table[i])


@leaf(x="f32[n]", table="f32[k, m]")
def polynomials(at: Instance, x: Tensor, table: Tensor) -> Scalar:
    """One of many, whose coefficients are columns: each round needs the one before."""
    i, j = at.ids(2)
    return at.loop(table.extent(0), 0.0, lambda k, y: y * x[i] + table[k, j])


@graph(x="f32[n]", table="f32[k]")
def stage(x: Port, table: Port) -> Any:
    """A stage, of as much work as each other."""
    return polynomial.over("n")(each(x), whole(table))


@graph(x="f32[n]", table="f32[k, m]")
def evaluated(x: Port, table: Port) -> Any:
    """All polynomials at all points."""
    return polynomials.over("n", "m")(whole(x), whole(table))


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def compared(name: str, goal: str, rounds: int, sides: Sequence[Callable[[], object]]) -> str:
    """The row of a table: one side, another one, and how many times the time of it the first is."""
    for side in sides:
        side()
    times = [[seconds(side) for side in sides] for _ in range(rounds)]
    plain, better = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
    ratios = sorted(a / b for a, b in times)
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    median = statistics.median(ratios)
    return f"| {name} | {plain:.1f} | {better:.1f} | {median:.2f} | {spread} | {goal} |"


def streamed(compute: Callable[[Any], Any], items: Sequence[np.ndarray]) -> None:
    """All items through stages that run at once."""
    with Stream([compute] * STAGES, depth=2) as stream:
        results = []
        for index, item in enumerate(items):
            stream.push(item)
            if index >= STAGES:
                results.append(stream.pop())
        results += stream.wait()
    assert len(results) == len(items)


def serial(compute: Callable[[Any], Any], items: Sequence[np.ndarray]) -> None:
    """All items, one stage after the other."""
    for item in items:
        for _ in range(STAGES):
            item = compute(item)


def rows(rounds: int, size: int) -> list[str]:
    """The rows of the table."""
    draw = np.random.default_rng()
    stages = relax_mlir.compile(module(stage))
    stages.threads = 1
    table = draw.uniform(-1, 1, DEGREE).astype(np.float32)
    items = list(draw.uniform(-1, 1, (16, 16384)).astype(np.float32))
    want = np.polyval(table.astype(float), items[0].astype(float))
    np.testing.assert_allclose(stages["stage"](items[0], table), want, rtol=1e-3, atol=1e-3)

    def compute(x: np.ndarray) -> Any:
        return stages["stage"](x, table)

    long = [np.concatenate(items[:8]), np.concatenate(items[8:])]
    timeline = Timeline()
    ways = []
    for passes in ("", TILE):
        ways.append(relax_mlir.compile(module(evaluated, passes=passes)))
        ways[-1].threads = 1
    points = draw.uniform(-1, 1, size).astype(np.float32)
    columns = draw.standard_normal((size, size)).astype(np.float32)
    want = np.vander(points.astype(float), size) @ columns
    for way in ways:
        np.testing.assert_allclose(way["evaluated"](points, columns), want, rtol=1e-2, atol=1e-2)
    made = [
        compared(
            f"{STAGES} equal stages, one after the other and as a stream", "1.5", rounds,
            [lambda: serial(compute, items), lambda: streamed(compute, items)],
        ),
        compared(
            "2 nodes, one after the other and together", f"{1 / 0.75:.2f}", rounds,
            [
                lambda: [compute(x) for x in long],
                lambda: together([partial(compute, x) for x in long], timeline=timeline),
            ],
        ),
        compared(
            f"{size} polynomials at {size} points, untiled and in tiles of 64", "above 1", rounds,
            [partial(way["evaluated"], points, columns) for way in ways],
        ),
    ]  # fmt: skip
    assert timeline.overlap() > 0, "no two nodes were computed at the same time"
    return made


def main() -> int:
    """Runs the command."""
    parser = described(__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="(default: 5)")
    parser.add_argument("--size", type=int, default=512, metavar="N", help="(default: 512)")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])

    def body() -> int:
        print("| case | ms | ms | ratio | least to most | goal |\n|---|---|---|---|---|---|")
        for row in rows(max(1, options.rounds), max(1, options.size)):
            print(row)
        return 0

    return guard("parallelism", body)


if __name__ == "__main__":
    sys.exit(main())
