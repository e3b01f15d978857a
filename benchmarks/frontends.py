"""Models imported from ONNX and PyTorch compared with the programs that read them too.

    python benchmarks/frontends.py --model minilm,resnet18 --threads 1,2 --peers-python PYTHON
    python benchmarks/frontends.py --file model.onnx --sizes batch=1,N=16000 --peers onnxruntime

Each program compiles a model once for all sizes. The second table has the seconds from the file, or
the module, to the first result, with an empty cache of ours. README.md says how it is measured.
"""

import argparse
import itertools
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence

import comparison
import frontend_cases
import numpy as np
from comparison import Comparison, Row
from interleaved import OURS

from relax_mlir.machine.limits import Limits
from relax_mlir.tools.cli import described, guard

FROM_TORCH = f"{OURS} torch"
SPECS = {OURS: "peers.frontend_relax:FromOnnx", FROM_TORCH: "peers.frontend_relax:FromTorch"}
PEERS = {
    "onnxruntime": "peers.frontend_onnxruntime:Models",
    "openvino": "peers.frontend_openvino:Models",
    "torch-compile": "peers.frontend_torch:Compiled",
}


class Frontends(Comparison):
    """Milliseconds of models."""

    heading = ("case, ms",)
    tolerance = frontend_cases.TOLERANCE

    def label(self, case: dict) -> str:
        """See `Comparison`."""
        return frontend_cases.label(case)

    def begin(self, case: dict) -> list[str]:
        """See `Comparison`."""
        return [frontend_cases.label(case)]

    def figure(self, case: dict, seconds: float) -> str:
        """See `Comparison`."""
        return f"{seconds * 1e3:.3f}"

    def reference(self, case: dict) -> np.ndarray:
        """See `Comparison`."""
        return frontend_cases.reference(case)

    def floor(self, case: dict, limits: Limits) -> float | None:
        """See `Comparison`: nothing is known of the models."""
        return None

    def groups(self, cases: Sequence[dict]) -> Iterator[list[dict]]:
        """See `Comparison`: those of one model."""
        for _, group in itertools.groupby(cases, lambda case: case["model"]):
            yield list(group)

    def table(self, rows: Sequence[Row], names: Sequence[str]) -> str:
        """See `Comparison`; and how long it takes until a model can be called."""
        lines = [["first result, s", *names]]
        for group in self.groups([row.case for row in rows]):
            row = next(row for row in rows if row.case is group[0])
            first = [row.outcomes[name].prepared for name in names]
            cells = ["-" if each is None else f"{each:.1f}" for each in first]
            lines.append([frontend_cases.label(row.case), *cells])
        return f"{super().table(rows, names)}\n\n{comparison.aligned(lines)}"


def main() -> int:
    """Runs the command; 1 if an answer of ours is wrong or missing."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="relax-frontends-") as folder:
        os.environ["RELAX_CACHE_DIR"] = os.environ["RELAX_BENCH_MODELS"] = folder
        ours = {OURS: SPECS[OURS]} if options.file else SPECS
        return Frontends().main({**ours, **{n: PEERS[n] for n in options.peers}}, options)


def _options() -> argparse.Namespace:
    parser = described(__doc__)
    add = parser.add_argument
    known = ",".join(frontend_cases.SWEEPS)
    add("--model", default=known, metavar="NAME,...", help=f"some of {known} (default: all)")
    add("--file", metavar="FILE", help="an ONNX file instead")
    add("--sizes", default="", metavar="NAME=N,...", help="the symbolic dims of the file")
    comparison.add_options(parser, PEERS, seconds=0.1)
    options = parser.parse_args()
    options.peers = comparison.chosen(parser, "peer", options.peers, PEERS)
    if options.file:
        pairs = [each.partition("=") for each in options.sizes.split(",") if each]
        sizes = {name: int(extent) for name, _, extent in pairs}
        options.cases = frontend_cases.cases(options.file, [sizes])
        return options
    names = comparison.chosen(parser, "model", options.model, frontend_cases.SWEEPS)
    wanted = [frontend_cases.cases(name) for name in names]
    options.cases = comparison.of_suites(parser, wanted, options.only, frontend_cases.label)
    return options


if __name__ == "__main__":
    sys.exit(guard("frontends.py", main))
