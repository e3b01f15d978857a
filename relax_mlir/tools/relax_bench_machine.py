"""`relax-bench-machine`: measures the peak bandwidth and arithmetic of this machine."""

import argparse
import sys

from relax_mlir.tools.cli import described, guard, integers


def arguments() -> argparse.ArgumentParser:
    """The command line; built without importing NumPy or MLIR, so that `--help` is quick."""
    parser = described(
        "Measures the limits of this machine: bytes read and operations per second.",
        "relax-bench-machine",
        "Exit status: 0 success, 2 wrong usage.",
    )
    add = parser.add_argument
    add("--threads", type=integers, default=[], metavar="N,...", help="default: 1 and all CPUs")
    add("--seconds", type=float, default=0.2, metavar="S", help="for each figure (default: 0.2)")
    add("--keep", action="store_true", help="use these figures in later profiles")
    add("--json", action="store_true", help="print JSON")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs the tool on a command line; returns its exit status."""
    args = arguments().parse_args(argv)

    def body() -> int:
        # NumPy and MLIR take 0.4 s to import, so they wait until the command line is right.
        from relax_mlir.tools import machine_driver

        return machine_driver.run(args)

    return guard("relax-bench-machine", body)


if __name__ == "__main__":
    sys.exit(main())
