"""The option `--adapter` of commands whose requests choose one of several adapters."""

import argparse


def add_adapters(parser: argparse.ArgumentParser, how: str) -> None:
    """Adds the option; `how` says how one of them is chosen."""
    parser.add_argument(
        "--adapter",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help=f"a LoRA adapter in a folder of PEFT, which {how}; may be given several times",
    )
