"""Kernels beside other programs: one table for each number of threads.

    python benchmarks/kernels.py --suite gemm,gemv,rows --threads 1,2 --peers-python PYTHON
    python benchmarks/kernels.py --suite rows --dynamic
    python benchmarks/kernels.py --suite curve --shape 576x1536 --dtype bf16

README.md says what is compared and how.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence

import cases
import comparison
import numpy as np
from comparison import Comparison, Row
from turns import OURS

from relax_mlir.limits import Limits
from relax_mlir.tools.cli import guard

PEERS = {
    "numpy": "peers.numpy_peer:Kernels",
    "torch": "peers.torch_peer:Eager",
    "torch-compile": "peers.torch_peer:Compiled",
    "onnxruntime": "peers.onnxruntime_peer:Kernels",
    "openvino": "peers.openvino_peer:Kernels",
    "onednn": "peers.onednn_peer:Kernels",
}
DYNAMIC = {OURS: "peers.ours:Kernels"}
SPECIALISED = {f"{OURS} static": "peers.ours:Specialised"}
GROUP_BYTES = 300 << 20
GROUP_CASES = 8
FLAT = 0.85


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
            limit = limits.peak({"q8_0": "int8"}.get(case["dtype"], case["dtype"]))
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
    """Our own rate over the number of rows, and the points where it falls off."""

    def table(self, rows: Sequence[Row], names: Sequence[str]) -> str:
        """See `Comparison`; a point has to reach `FLAT` of the better neighbour.

        Neighbours are the powers of two on either side.
        """
        done = [row for row in rows if row.ours.median]
        flops = {row.case["m"]: _flops(row) for row in done}
        lines = [["m", "rate", "unit", "of limit", "of the better neighbour"]]
        below = []
        for row in done:
            m, share, median = row.case["m"], row.share(), row.ours.median
            exponents = {math.floor(math.log2(m)), math.ceil(math.log2(m))}
            near = [flops[1 << e] for e in exponents if 1 << e in flops]
            flat = flops[m] / max(near, default=flops[m])
            below += [m] if flat < FLAT else []
            lines.append([str(m), self.figure(row.case, median or 0), cases.work(row.case).unit,
                          f"{share:.0%}" if share else "-",
                          f"{flat:.2f}{' <-' if flat < FLAT else ''}"])  # fmt: skip
        verdict = f"below {FLAT} at m = {below}" if below else f"flat: every point reaches {FLAT}"
        notes = [f"{self.label(row.case)}: {row.ours.why_not}" for row in rows if row not in done]
        title = f"{self.label(rows[0].case)}: ours over m"
        return "\n".join([title, comparison.aligned(lines), verdict, *notes])


def _flops(row: Row) -> float:
    return 2.0 * row.case["m"] * row.case["n"] * row.case["k"] / (row.ours.median or math.inf)


def main() -> int:
    """Runs the command; 1 if an answer of ours is wrong or missing."""
    options = _options()
    if options.curve:
        return Curve().main(DYNAMIC, options)
    others = SPECIALISED if options.dynamic else {name: PEERS[name] for name in options.peers}
    return Kernels().main({**DYNAMIC, **others}, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    suites = {**cases.SUITES, "curve": ()}
    add("--suite", default="gemm,gemv,rows", metavar="NAME,...",
        help=f"some of {','.join(cases.SUITES)}, or curve (default: gemm,gemv,rows)")  # fmt: skip
    comparison.add_options(parser, PEERS, seconds=0.05)
    add("--dynamic", action="store_true", help="ours against ours for each size")
    add("--shape", type=_shape, default="1536x576", metavar="NxK",
        help="columns x contracted, of the curve (default: 1536x576)")  # fmt: skip
    add("--dtype", default="f32", choices=sorted(cases.TOLERANCE), help="of the curve")
    options = parser.parse_args()
    options.peers = comparison.chosen(parser, "peer", options.peers, PEERS)
    chosen = comparison.chosen(parser, "suite", options.suite, suites)
    options.curve = chosen == ["curve"]
    if options.curve:
        options.cases = [cases.matmul(m, *options.shape, options.dtype) for m in cases.CURVE]
    elif "curve" in chosen:
        parser.error("the curve is a suite of its own")
    else:
        options.cases = [case for suite in chosen for case in cases.SUITES[suite]]
    options.cases = [case for case in options.cases if options.only in cases.label(case)]
    if not options.cases:
        parser.error(f"no case has '{options.only}' in its name")
    return options


def _shape(text: str) -> tuple[int, int]:
    n, times, k = text.partition("x")
    if not (times and n.isdecimal() and k.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected two numbers as in 1536x576, but got '{text}'")
    return int(n), int(k)


if __name__ == "__main__":
    sys.exit(guard("kernels.py", main))
