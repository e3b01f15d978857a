"""Kernels compared with other programs: one table for each thread count.

    python benchmarks/kernels.py --suite gemm,gemv,rows --threads 1,2 --peers-python PYTHON
    python benchmarks/kernels.py --suite curve --shape 576x1536 --dtype bf16

README.md says what is compared and how.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cases
import comparison
import numpy as np
from comparison import Comparison, Row
from interleaved import OURS, Contender

from relax_mlir.machine.limits import Limits
from relax_mlir.tools.cli import described, guard

PEERS = {
    "numpy": "peers.numpy_peer:Kernels",
    "torch": "peers.torch_peer:Eager",
    "torch-compile": "peers.torch_peer:Compiled",
    "onnxruntime": "peers.onnxruntime_peer:Kernels",
    "openvino": "peers.openvino_peer:Kernels",
    "onednn": "peers.onednn_peer:Kernels",
}
OURS_ALONE = {OURS: "peers.ours:Kernels"}
GROUP_BYTES = 300 << 20
GROUP_CASES = 8
FLAT = 0.85
"""What a point of the curve has to reach of its better neighbour's rate."""
REPEATS = 2
"""How often points that do not are measured again."""


class Kernels(Comparison):
    """Rates of kernels, in billions per second of what a case counts."""

    heading = ("case", "unit")
    tolerance = cases.TOLERANCE

    def label(self, case: dict) -> str:
        """See `Comparison`."""
        return cases.label(case)

    def begin(self, case: dict) -> list[str]:
        """See `Comparison`."""
        return [cases.label(case), cases.work(case).unit]

    def figure(self, case: dict, seconds: float) -> str:
        """See `Comparison`."""
        return f"{cases.work(case).amount / seconds / 1e9:.1f}"

    def reference(self, case: dict) -> np.ndarray:
        """See `Comparison`."""
        return cases.reference(case)

    def floor(self, case: dict, limits: Limits) -> float | None:
        """See `Comparison`: arithmetic limits products of several rows, memory all else."""
        work = cases.work(case)
        if work.is_compute:
            limit = limits.peak(
                {"q8_0": "int8", "q4_0": "f32", "q4_by_hand": "f32"}.get(
                    case["dtype"], case["dtype"]
                )
            )
        else:
            limit = limits.bandwidth
        return limit and work.amount / limit

    def groups(self, cases: Sequence[dict]) -> Iterator[list[dict]]:
        """See `Comparison`: few cases, and small enough for memory."""
        group: list[dict] = []
        size = 0.0
        for case in cases:
            arrays = case["n"] * case.get("k", 3 * case["m"]) * 4
            if group and (len(group) == GROUP_CASES or size + arrays > GROUP_BYTES):
                yield group
                group, size = [], 0.0
            group.append(case)
            size += arrays
        if group:
            yield group


class Curve(Kernels):
    """Our own rate by the count of rows, and the points where it drops."""

    def run(
        self, contenders: Sequence[Contender], options: argparse.Namespace, threads: int
    ) -> list[Row]:
        """See `Comparison`; where the rate drops, it is measured again with its neighbours.

        The machine may have been disturbed at a single point; the last measurement counts.
        """
        rows = super().run(contenders, options, threads)
        for _ in range(REPEATS):
            below = [point.m for point in _points(rows) if point.rate < FLAT]
            doubtful = {*below, *(near for m in below for near in _neighbours(m))}
            cases_ = [case for case in options.cases if case["m"] in doubtful]
            if not cases_:
                break
            options_ = argparse.Namespace(**{**vars(options), "cases": cases_})
            repeated = {row.case["m"]: row for row in super().run(contenders, options_, threads)}
            rows = [repeated.get(row.case["m"], row) for row in rows]
        return rows

    def table(self, rows: Sequence[Row], names: Sequence[str]) -> str:
        """What ours does at each point, which of them fall off, and whose time does not."""
        done, points = [row for row in rows if row.ours.median], _points(rows)
        lines = [["m", "rate", "unit", "of limit", "of the better neighbour", "of the line", ""]]
        for row, point in zip(done, points, strict=True):
            share, rate = row.share(), self.figure(row.case, row.ours.median or 0)
            lines.append([str(point.m), rate, cases.work(row.case).unit,
                          f"{share:.0%}" if share else "-", f"{point.rate:.2f}",
                          f"{point.line:.2f}", "<-" if point.rate < FLAT else ""])  # fmt: skip
        below = [point.m for point in points if point.rate < FLAT]
        verdict = f"below {FLAT} at m = {below}" if below else f"flat: every point reaches {FLAT}"
        if in_time := [point.m for point in points if point.rate < FLAT <= point.line]:
            verdict += f"; of these, in time with the line between their neighbours: {in_time}"
        notes = [f"{self.label(row.case)}: {row.ours.why_not}" for row in rows if row not in done]
        title = f"{self.label(rows[0].case)}: ours over m"
        return "\n".join([title, comparison.aligned(lines), verdict, *notes])


@dataclass(frozen=True)
class _Point:
    """A count of rows compared with the adjacent powers of two.

    `rate` is a share of the better one's rate; `line` is the time on the straight line between
    theirs as a share of the point's: what waits for its weights takes as long for fewer rows.
    """

    m: int
    rate: float
    line: float


def _neighbours(m: int) -> list[int]:
    """The adjacent powers of two; a power of two itself."""
    exponent = math.log2(m)
    return [1 << math.floor(exponent), 1 << math.ceil(exponent)]


def _points(rows: Sequence[Row]) -> list[_Point]:
    """All that were measured; without neighbours, a point is its own."""
    seconds = {row.case["m"]: row.ours.median for row in rows if row.ours.median}
    points = []
    for m, own in seconds.items():
        near = [each for each in _neighbours(m) if each in seconds]
        rate = min((seconds[each] / each * m / own for each in near), default=1.0)
        if len(near) == 2 and near[0] < near[1]:
            (a, b), (first, last) = near, (seconds[each] for each in near)
            line = (first + (last - first) * (m - a) / (b - a)) / own
        else:
            line = rate
        points.append(_Point(m, rate, line))
    return points


def main() -> int:
    """Runs the command; 1 if an answer of ours is wrong or missing."""
    options = _options()
    if options.curve:
        return Curve().main(OURS_ALONE, options)
    return Kernels().main({**OURS_ALONE, **{name: PEERS[name] for name in options.peers}}, options)


def _options() -> argparse.Namespace:
    parser = described(__doc__)
    add = parser.add_argument
    add("--suite", default="gemm,gemv,rows", metavar="NAME,...",
        help=f"{','.join(cases.suites(0))} or curve (default: gemm,gemv,rows)")  # fmt: skip
    comparison.add_seed(parser)
    comparison.add_options(parser, PEERS, seconds=0.05)
    add("--shape", type=_shape, default="1536x576", metavar="NxK",
        help="columns x contracted, of the curve (default: 1536x576)")  # fmt: skip
    add("--dtype", default="f32", choices=sorted(cases.TOLERANCE), help="of the curve")
    options = parser.parse_args()
    options.peers = comparison.chosen(parser, "peer", options.peers, PEERS)
    suites = {**cases.suites(options.seed), "curve": ()}
    chosen = comparison.chosen(parser, "suite", options.suite, suites)
    options.curve = chosen == ["curve"]
    if "curve" in chosen and not options.curve:
        parser.error("the curve is a suite of its own")
    n, k = options.shape
    suites["curve"] = [cases.matmul(m, n, k, options.dtype) for m in cases.CURVE]
    wanted = [suites[name] for name in chosen]
    options.cases = comparison.of_suites(parser, wanted, options.only, cases.label)
    return options


def _shape(text: str) -> tuple[int, int]:
    n, times, k = text.partition("x")
    if not (times and n.isdecimal() and k.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected two numbers as in 1536x576, but got '{text}'")
    return int(n), int(k)


if __name__ == "__main__":
    sys.exit(guard("kernels.py", main))
