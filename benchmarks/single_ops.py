"""Operators compared with other programs: one table for each thread count.

    python benchmarks/single_ops.py --suite sorting,scans --threads 1,2 --peers-python PYTHON
    python benchmarks/single_ops.py --only lstm --peers onnxruntime

README.md says what is compared and how.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

import comparison
import numpy as np
import single_op_cases
from comparison import Comparison
from interleaved import OURS

from relax_mlir.machine.limits import Limits
from relax_mlir.tools.cli import described, guard

PEERS = {
    "numpy": "peers.single_op_numpy:Operators",
    "torch": "peers.single_op_torch:Operators",
    "onnxruntime": "peers.single_op_onnxruntime:Operators",
}


class Operators(Comparison):
    """Milliseconds of operators."""

    heading = ("case, ms",)
    limit = "of memory"
    tolerance = single_op_cases.TOLERANCE

    def label(self, case: dict) -> str:
        """See `Comparison`."""
        return single_op_cases.label(case)

    def begin(self, case: dict) -> list[str]:
        """See `Comparison`."""
        return [single_op_cases.label(case)]

    def figure(self, case: dict, seconds: float) -> str:
        """See `Comparison`."""
        return f"{seconds * 1e3:.3f}"

    def reference(self, case: dict) -> np.ndarray:
        """See `Comparison`."""
        return single_op_cases.reference(case)

    def floor(self, case: dict, limits: Limits) -> float | None:
        """See `Comparison`: the arguments and the result, read and written once."""
        return limits.bandwidth and single_op_cases.traffic(case) / limits.bandwidth

    def groups(self, cases: Sequence[dict]) -> Iterator[list[dict]]:
        """See `Comparison`: one by one."""
        yield from ([case] for case in cases)


def main() -> int:
    """Runs the command; 1 if an answer of ours is wrong or missing."""
    parser = described(__doc__)
    known = ",".join(single_op_cases.SUITES)
    parser.add_argument("--suite", default=known, metavar="NAME,...",
                        help=f"some of {known} (default: all)")  # fmt: skip
    comparison.add_options(parser, PEERS, seconds=0.05)
    options = _checked(parser)
    peers = {name: PEERS[name] for name in options.peers}
    return Operators().main({OURS: "peers.single_op_relax:Operators", **peers}, options)


def _checked(parser: argparse.ArgumentParser) -> argparse.Namespace:
    options = parser.parse_args()
    options.peers = comparison.chosen(parser, "peer", options.peers, PEERS)
    suites = comparison.chosen(parser, "suite", options.suite, single_op_cases.SUITES)
    wanted = [single_op_cases.SUITES[name] for name in suites]
    options.cases = comparison.of_suites(parser, wanted, options.only, single_op_cases.label)
    return options


if __name__ == "__main__":
    sys.exit(guard("single_ops.py", main))
