"""The command line: reads it, and leaves the rest to `command.py`.

What needs MLIR is imported behind the options, so that --help needs nothing.
"""

import argparse
import os
import sys
from pathlib import Path

DESCRIPTION = "Damages modules, and keeps the inputs that the compiler fails on."


def main() -> int:
    """Reads the command line; returns 1 if anything failed."""
    parser = argparse.ArgumentParser(
        prog="python -m relax_mlir.testing.mutate", description=DESCRIPTION
    )
    add = parser.add_argument
    add("--inputs", type=int, default=1000, help="how many inputs (default: 1000)")
    add("--seed", type=int, default=0, help="another seed, other inputs")
    add("--first", type=int, default=0, metavar="N", help="the number of the first input")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    add("--save", type=Path, default=Path("mutants"), metavar="DIR", help="where failures go")
    args = parser.parse_args()
    from relax_mlir.testing.mutate.command import run

    args.save.mkdir(parents=True, exist_ok=True)
    numbers = range(args.first, args.first + args.inputs)
    found = run(numbers, args.seed, args.jobs, args.save)
    print(
        f"{args.inputs} inputs, seed {args.seed}: {sum(found.values())} failures, {len(found)} ways"
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
