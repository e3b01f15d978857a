"""Modules as the ways in take them: a module, its text, or the path of a file."""

import os
from dataclasses import dataclass
from pathlib import Path

from relax_mlir.bindings import ir
from relax_mlir.errors import UsageError


@dataclass(frozen=True)
class Source:
    """The text of a module and the name that diagnostics give it."""

    text: str
    name: str


def read_source(source: "ir.Module | str | os.PathLike") -> Source:
    """Returns the text of a module given in any of the accepted ways.

    A string is a path if it ends in `.mlir` and has one line, text otherwise. Raises UsageError
    if the file cannot be read.
    """
    if isinstance(source, ir.Module):
        return Source(str(source), "module")
    if isinstance(source, str) and (
        not source.rstrip().endswith(".mlir") or "\n" in source.strip()
    ):
        return Source(source, "text")
    try:
        return Source(Path(source).read_text(), str(source))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise UsageError(f"cannot read '{source}': {reason}") from None
