"""What SentencePiece does to a text before it looks for pieces.

The longest prefix of the rest that a table has is replaced, again and again; then runs of spaces
become one, a space is put in front, and spaces are written as U+2581.

Source: SentencePiece `normalizer.cc`; darts-clone `darts.h` (the table's trie).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from relax_mlir.errors import ModelError

Split = Callable[[str], Iterable[tuple[str, int | None]]]
"""From a text to its parts, with the ids of those that are symbols."""
SPACE = "\u2581"
MAX_TABLE_BYTES = 16 << 20
"""Far above the tables of Unicode's normal forms (300 KB)."""

LONGEST_PREFIX = 64
"""In bytes; a damaged trie may have longer ones, or cycles."""
LONGEST_TEXT = 256
"""In bytes: a text becomes that many times longer at most. Unicode's normal forms have up to 33."""


class CharacterTable:
    """Prefixes of UTF-8 texts and what replaces them; raises ModelError if it is damaged.

    The bytes are the size of a trie, the trie, and texts that end with NUL.
    """

    def __init__(self, data: bytes, where: str) -> None:
        self.data, self._where = data, where
        size = int.from_bytes(data[:4], "little")
        if (
            len(data) > MAX_TABLE_BYTES
            or len(data) < 4
            or size % 4
            or not 0 < size <= len(data) - 4
        ):
            raise self._damaged(f"{len(data)} bytes with a trie of {size}")
        self._units = np.frombuffer(data, "<u4", size // 4, 4).tolist()
        self._texts = data[4 + size :]

    def replaced(self, text: str) -> Iterator[str]:
        """What the parts of a text become, in order."""
        data, at = text.encode(), 0
        while at < len(data):
            value, length = self._longest(data, at)
            if length:
                yield value
            else:
                length = _length_of(data[at])
                yield data[at : at + length].decode()
            at += length

    def _longest(self, data: bytes, at: int) -> tuple[str, int]:
        """The replacement of the longest known prefix, and the bytes of that; 0 if none is."""
        units, value, length = self._units, -1, 0
        node = _offset(units[0])
        for i in range(at, min(at + LONGEST_PREFIX, len(data))):
            node ^= data[i]
            unit = units[node] if node < len(units) else 0
            if unit & 0x800000FF != data[i]:
                break
            node ^= _offset(unit)
            if unit & 0x100:
                leaf = units[node] if node < len(units) else len(self._texts)
                value, length = leaf & 0x7FFFFFFF, i + 1 - at
        if not length:
            return "", 0
        end = self._texts.find(b"\0", value, value + LONGEST_TEXT + 1)
        if end < 0:
            raise self._damaged(f"a text at byte {value} of {len(self._texts)} does not end")
        return self._texts[value:end].decode("utf-8", "replace"), _whole(data, at, length)

    def _damaged(self, what: str) -> ModelError:
        return ModelError(f"{self._where}: has a damaged table of characters: {what}")


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)


def _length_of(first: int) -> int:
    """The bytes of a character."""
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _whole(data: bytes, at: int, length: int) -> int:
    """The length, up to the end of a character."""
    while at + length < len(data) and data[at + length] & 0xC0 == 0x80:
        length += 1
    return length


@dataclass(frozen=True, eq=False)
class TextRules:
    """With `prefix`, a space is put before texts; with `trims`, spaces are removed.

    If it `is_first`, texts after a control token have no prefix.
    """

    prefix: bool = True
    trims: bool = False
    table: CharacterTable | None = None
    is_first: bool = False

    def apply(self, text: str, split: Split, begins: bool = True) -> str:
        """The text as pieces spell it; `begins` says whether nothing is before it.

        Symbols, which `split` finds, are not looked up in the table.
        """
        if not text:
            return ""
        parts = self._parts(text, split)
        joined = "".join(_without_runs(parts) if self.trims else parts)
        prefix = " " if self.prefix and (begins or not self.is_first) else ""
        spelt = (prefix + joined).replace(" ", SPACE)
        return spelt.rstrip(SPACE) if self.trims else spelt

    def _parts(self, text: str, split: Split) -> Iterator[str]:
        if self.table is None:
            yield from text if self.trims else [text]
            return
        for part, symbol in split(text):
            yield from self.table.replaced(part) if symbol is None else [part]


def _without_runs(parts: Iterable[str]) -> Iterator[str]:
    """The parts, of which none begins with a space after one that ends with a space."""
    is_space = True
    for part in parts:
        rest = part.lstrip(" ") if is_space else part
        if rest:
            yield rest
            is_space = rest.endswith(" ")
