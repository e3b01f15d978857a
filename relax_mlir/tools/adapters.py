"""The option `--adapter` of commands whose requests choose one of several adapters."""

import argparse
from collections.abc import Sequence

from relax_mlir.errors import UsageError


def add_adapters(parser: argparse.ArgumentParser, how: str) -> None:
    """Adds the option; `how` says how one of them is chosen."""
    parser.add_argument(
        "--adapter",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help=f"a LoRA adapter in a folder of PEFT, which {how}; may be given several times",
    )


def named_adapters(texts: Sequence[str]) -> dict[str, str]:
    """Folders by names; raises UsageError for other texts, and for two of one name."""
    named: dict[str, str] = {}
    for text in texts:
        name, _, folder = text.partition("=")
        if not name or not folder:
            raise UsageError(f"--adapter is '{text}'; expects NAME=FOLDER")
        if name in named:
            raise UsageError(f"two adapters have the name '{name}'; expects names of their own")
        named[name] = folder
    return named
