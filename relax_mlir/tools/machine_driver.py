"""The implementation of `relax-bench-machine`, after its command line is parsed."""

import argparse

from relax_mlir.errors import UsageError
from relax_mlir.machine.limits import save, table
from relax_mlir.machine.measure import measure_machine


def run(args: argparse.Namespace) -> int:
    """Measures and prints."""
    for threads in args.threads:
        if threads < 1:
            raise UsageError(f"--threads is {threads}; expects 1 or more")
    if not args.seconds > 0:
        raise UsageError(f"--seconds is {args.seconds}; expects more than 0")
    machine = measure_machine(args.threads, args.seconds)
    if args.keep:
        save(machine)
    print(machine.to_json() if args.json else table(machine))
    return 0
