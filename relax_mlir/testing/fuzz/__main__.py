"""The command line: reads it, and leaves the rest to `command.py`.

What needs MLIR is imported behind the options, so that --help needs nothing.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from relax_mlir.testing.fuzz import PROG

DESCRIPTION = "Random programs over all operators, held against the interpreter."


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; 1 if a program failed."""
    options = _parser().parse_args(arguments)
    from relax_mlir.testing.fuzz import command

    return command.run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROG, description=DESCRIPTION)
    parser.add_argument("--programs", type=int, default=640, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of the first one (default: of the day)")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--sizes", type=int, default=3, help="sizes of each program")
    parser.add_argument("--levels", default="0,1,2,3", help="levels of optimisation")
    parser.add_argument(
        "--compiled",
        type=int,
        default=1,
        help="levels of which machine code is made, a batch (default: %(default)s); -1: all",
    )
    parser.add_argument("--target", help="the only target, else some that run here")
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="a folder")
    parser.add_argument("--no-shrink", action="store_true", help="leave failures as they are")
    parser.add_argument("--replay", type=Path, help="a file of that folder, to be checked again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
