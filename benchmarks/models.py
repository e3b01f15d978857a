"""Models compared with other programs: one table for each thread count.

    python benchmarks/models.py --model minilm --threads 1,2 --peers-python PYTHON
    python benchmarks/models.py --model resnet --only bottleneck --peers openvino
    python benchmarks/models.py --model resnet --fast-math
    python benchmarks/models.py --specialised

README.md says what is compared and how.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence

import comparison
import model_cases
import numpy as np
from comparison import Comparison
from interleaved import OURS

from relax_mlir.machine.limits import Limits
from relax_mlir.tools.cli import described, guard

PEERS = {
    "torch": "peers.model_torch:Eager",
    "torch-compile": "peers.model_torch:Compiled",
    "onnxruntime": "peers.model_onnxruntime:Models",
    "openvino": "peers.model_openvino:Models",
}
DYNAMIC = {OURS: "peers.model_relax:Models"}
FAST_MATH = {OURS: "peers.model_relax:FastMath"}
SPECIALISED = {f"{OURS} static": "peers.model_relax:Specialised"}


class Models(Comparison):
    """Milliseconds of models."""

    heading = ("case, ms",)
    limit = "of peak"
    tolerance = model_cases.TOLERANCE

    def label(self, case: dict) -> str:
        """See `Comparison`."""
        return model_cases.label(case)

    def begin(self, case: dict) -> list[str]:
        """See `Comparison`."""
        return [model_cases.label(case)]

    def figure(self, case: dict, seconds: float) -> str:
        """See `Comparison`."""
        return f"{seconds * 1e3:.3f}"

    def reference(self, case: dict) -> np.ndarray:
        """See `Comparison`."""
        return model_cases.reference(case)

    def floor(self, case: dict, limits: Limits) -> float | None:
        """See `Comparison`: the products, as fast as the machine multiplies and adds."""
        peak = limits.peak(case["dtype"])
        return peak and model_cases.model(case).flops(case["sizes"]) / peak

    def groups(self, cases: Sequence[dict]) -> Iterator[list[dict]]:
        """See `Comparison`: those of one model."""
        for _, group in itertools.groupby(cases, model_cases.key):
            yield list(group)


def main() -> int:
    """Runs the command; 1 if an answer of ours is wrong or missing."""
    options = _options()
    others = SPECIALISED if options.specialised else {name: PEERS[name] for name in options.peers}
    ours = FAST_MATH if options.fast_math else DYNAMIC
    return Models().main({**ours, **others}, options)


def _options() -> argparse.Namespace:
    parser = described(__doc__)
    add = parser.add_argument
    known = ",".join(model_cases.CASES)
    add("--model", default=known, metavar="NAME,...", help=f"some of {known} (default: all)")
    comparison.add_options(parser, PEERS, seconds=0.1)
    add("--fast-math", action="store_true", help="convolutions of ours take equal expressions")
    add("--specialised", action="store_true", help="ours against ours for each size")
    options = parser.parse_args()
    options.peers = comparison.chosen(parser, "peer", options.peers, PEERS)
    names = comparison.chosen(parser, "model", options.model, model_cases.CASES)
    wanted = [model_cases.CASES[name] for name in names]
    options.cases = comparison.of_suites(parser, wanted, options.only, model_cases.label)
    return options


if __name__ == "__main__":
    sys.exit(guard("models.py", main))
