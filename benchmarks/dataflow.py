"""Dataflow graphs compared with other programs: one table for each thread count.

    python benchmarks/dataflow.py --threads 1,2 --peers-python PYTHON
    python benchmarks/dataflow.py --only stencil --peers c

README.md says what is compared and how.
"""

import sys
from collections.abc import Iterator, Sequence

import comparison
import dataflow_cases
import numpy as np
from comparison import Comparison
from interleaved import OURS

from relax_mlir.machine.limits import Limits
from relax_mlir.tools.cli import described, guard

PEERS = {
    "c": "peers.dataflow_c:Loops",
    "numpy": "peers.dataflow_numpy:Arrays",
    "numba": "peers.dataflow_numba:Loops",
    "torch": "peers.dataflow_torch:Operators",
}


class Graphs(Comparison):
    """Milliseconds of graphs."""

    heading = ("case, ms",)
    limit = "of memory"
    tolerance = dataflow_cases.TOLERANCE

    def label(self, case: dict) -> str:
        """See `Comparison`."""
        return dataflow_cases.label(case)

    def begin(self, case: dict) -> list[str]:
        """See `Comparison`."""
        return [self.label(case)]

    def figure(self, case: dict, seconds: float) -> str:
        """See `Comparison`."""
        return f"{seconds * 1e3:.3f}"

    def reference(self, case: dict) -> np.ndarray:
        """See `Comparison`."""
        return dataflow_cases.reference(case)

    def floor(self, case: dict, limits: Limits) -> float | None:
        """See `Comparison`: the arguments and the result, read and written once."""
        return limits.bandwidth and dataflow_cases.traffic(case) / limits.bandwidth

    def groups(self, cases: Sequence[dict]) -> Iterator[list[dict]]:
        """See `Comparison`: one by one."""
        yield from ([case] for case in cases)


def main() -> int:
    """Runs the command; 1 if an answer of ours is wrong or missing."""
    parser = described(__doc__)
    comparison.add_options(parser, PEERS, seconds=0.1)
    options = parser.parse_args()
    peers = comparison.chosen(parser, "peer", options.peers, PEERS)
    options.cases = comparison.of_suites(
        parser, [dataflow_cases.CASES], options.only, dataflow_cases.label
    )
    specs = {OURS: "peers.dataflow_relax:Graphs", **{name: PEERS[name] for name in peers}}
    return Graphs().main(specs, options)


if __name__ == "__main__":
    sys.exit(guard("dataflow.py", main))
