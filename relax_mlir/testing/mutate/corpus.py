"""Modules to mutate: the test files of a checkout, split."""

import re
from collections.abc import Iterator
from pathlib import Path

from relax_mlir import dialects
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.errors import CompileError

ROOT = Path(__file__).parents[3]
MAX_CHARACTERS = 6000
_SEPARATOR = re.compile(r"^// -----[^\n]*\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*//[^\n]*\n", re.MULTILINE)


def corpus(folder: Path = ROOT / "test") -> list[str]:
    """The small modules in the `.mlir` files of a folder that parse and verify, sorted by file."""
    chunks = dict.fromkeys(_chunks(folder))
    return [text for text in chunks if _parses(text)]


def _chunks(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.mlir")):
        for chunk in _SEPARATOR.split(path.read_text(encoding="utf-8")):
            text = _COMMENT.sub("", chunk).strip() + "\n"
            if 1 < len(text) <= MAX_CHARACTERS:
                yield text


def _parses(text: str) -> bool:
    with dialects.make_context(upstream=None), ir.Location.unknown():
        try:
            parse_module(text)
        except CompileError:
            return False
    return True
