"""The options `--context-shift` and `--keep`."""

import argparse

from relax_mlir.errors import UsageError


def add_context_shift(parser: argparse.ArgumentParser) -> None:
    """Adds both."""
    add = parser.add_argument
    add(
        "--context-shift",
        action="store_true",
        help="go on in a full context, with its first tokens and the last half of the others",
    )
    add("--keep", type=int, metavar="N", help="the first tokens that stay then (default: 4)")


def keep_of(args: argparse.Namespace) -> int | None:
    """How many tokens stay in a full context; None ends there. Raises UsageError."""
    from relax_mlir.llm.generation.context_shift import KEEP  # imports NumPy

    if not args.context_shift:
        if args.keep is not None:
            raise UsageError("--keep needs --context-shift")
        return None
    return KEEP if args.keep is None else int(args.keep)
