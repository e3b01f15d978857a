"""Products, attention and a step of Llama 3 8B on a device, compared with PyTorch.

    python benchmarks/gpu.py --peers-python PYTHON
    python benchmarks/gpu.py --target vulkan --small

Results are checked first. `of memory` is the share of what a copy of 1 GiB reads and writes in a
second, in the same minutes. README.md says what is compared and how.
"""

import argparse
import ctypes
import sys
from collections.abc import Iterator, Sequence

import comparison
import gpu_cases
import numpy as np
from comparison import Comparison, Row
from interleaved import OURS, Contender

from relax_mlir.errors import UsageError
from relax_mlir.machine.limits import Limits
from relax_mlir.target import Target
from relax_mlir.tools.cli import described, guard

PROGRAMS = {
    OURS: "peers.gpu_relax:Kernels",
    f"{OURS}, no graphs": "peers.gpu_relax:WithoutGraphs",
}
PEERS = {"torch": "peers.gpu_torch:Kernels"}


class OnDevice(Comparison):
    """Milliseconds of calls, after which the device has finished."""

    heading = ("case, ms",)
    limit = "of memory"
    tolerance = gpu_cases.TOLERANCE
    bandwidth: float | None = None
    """Bytes that the device copies in a second."""

    def label(self, case: dict) -> str:
        """See `Comparison`."""
        return gpu_cases.label(case)

    def begin(self, case: dict) -> list[str]:
        """See `Comparison`."""
        return [gpu_cases.label(case)]

    def figure(self, case: dict, seconds: float) -> str:
        """See `Comparison`."""
        return f"{seconds * 1e3:.3f}"

    def reference(self, case: dict) -> np.ndarray:
        """See `Comparison`."""
        return gpu_cases.reference(case)

    def floor(self, case: dict, limits: Limits) -> float | None:
        """See `Comparison`: what has to be read and written, as fast as a copy."""
        traffic = gpu_cases.traffic(case)
        return traffic / self.bandwidth if traffic and self.bandwidth else None

    def groups(self, cases: Sequence[dict]) -> Iterator[list[dict]]:
        """See `Comparison`: one by one, since decoders take most of the memory."""
        yield from ([case] for case in cases)

    def run(
        self, contenders: Sequence[Contender], options: argparse.Namespace, threads: int
    ) -> list[Row]:
        """See `Comparison`: a copy is measured first, by any program."""
        copied = argparse.Namespace(**{**vars(options), "cases": [options.copy]})
        rows = super().run(contenders, copied, threads)
        medians = [outcome.median for outcome in rows[0].outcomes.values() if outcome.median]
        traffic = gpu_cases.traffic(options.copy)
        self.bandwidth = traffic / min(medians) if traffic and medians else None
        if self.bandwidth:
            print(f"a copy moves {self.bandwidth / 1e9:.0f} GB a second")
        return super().run(contenders, options, threads)


def main() -> int:
    """Runs the command; 1 if an answer of ours is wrong or missing."""
    parser = described(__doc__)
    parser.add_argument("--target", help="default: CUDA, for the first device of its driver")
    parser.add_argument("--small", action="store_true", help="sizes for drivers that run on CPUs")
    comparison.add_options(parser, PEERS, seconds=0.3)
    options = parser.parse_args()
    names = comparison.chosen(parser, "peer", options.peers, PEERS)
    target = options.target or f"native@cuda:{_architecture()}"
    if not Target.parse(target).devices:
        raise UsageError(f"target '{target}' has no device; accepted are such as vulkan")
    options.copy, *rest = gpu_cases.cases(target, options.small)
    options.cases = comparison.of_suites(parser, [rest], options.only, gpu_cases.label)
    programs = {**PROGRAMS} if "cuda" in target else {OURS: PROGRAMS[OURS]}
    return OnDevice().main({**programs, **{name: PEERS[name] for name in names}}, options)


def _architecture() -> str:
    """The newest architecture that the compiler has and the first device runs."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise UsageError(f"no NVIDIA driver: {error}; --target names another device") from error
    device, digits = ctypes.c_int(), [ctypes.c_int(), ctypes.c_int()]
    failed = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0)
    for attribute, digit in zip((75, 76), digits):  # of the compute capability
        failed = failed or driver.cuDeviceGetAttribute(ctypes.byref(digit), attribute, device)
    if failed:
        raise UsageError(f"the NVIDIA driver has no device, and says {failed}")
    has = 10 * digits[0].value + digits[1].value
    return "sm_90a" if has == 90 else f"sm_{has}"


if __name__ == "__main__":
    sys.exit(guard("gpu.py", main))
