"""Positions in a text: offsets, lines with columns of the protocol, and MLIR's lines with bytes."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field

_LINE_END = re.compile(r"\r\n|\n|\r")
_SEPARATOR = re.compile(r"^// -----[ \t]*\r?$", re.MULTILINE)

MAX_LENGTH = 500_000
"""Longer texts are checked, but have no other features: reading their tokens takes seconds."""

Position = tuple[int, int]
"""A line and a column, as the protocol counts them: from 0, columns in units of the encoding."""


@dataclass(frozen=True)
class Span:
    """A part of a text, as offsets; `end` is after the last character."""

    start: int
    end: int


@dataclass(frozen=True)
class Text:
    """A text with its lines; `encoding` is that of columns: utf-8, utf-16 or utf-32."""

    text: str
    encoding: str = "utf-16"
    _starts: list[int] = field(init=False, repr=False, compare=False)
    _mlir_starts: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ends = [match.end() for match in _LINE_END.finditer(self.text)]
        object.__setattr__(self, "_starts", [0, *ends])
        only = [match.end() for match in re.finditer("\n", self.text)]
        object.__setattr__(self, "_mlir_starts", [0, *only])

    def offset(self, position: Position) -> int:
        """The offset of a position; one outside of the text is the nearest one inside."""
        line, column = position
        if line < 0:
            return 0
        if line >= len(self._starts):
            return len(self.text)
        start = self._starts[line]
        content = self.text[start : self._end(line)].rstrip("\r\n")
        return start + _characters(content, column, self.encoding)

    def position(self, offset: int) -> Position:
        """The position of an offset."""
        line = bisect_right(self._starts, offset) - 1
        return line, _units(self.text[self._starts[line] : offset], self.encoding)

    def offset_in_mlir(self, line: int, column: int) -> int:
        """The offset of MLIR's line and column, which count from 1, columns in bytes of UTF-8."""
        if not 0 < line <= len(self._mlir_starts):
            return len(self.text) if line > 0 else 0
        start = self._mlir_starts[line - 1]
        end = self._mlir_starts[line] if line < len(self._mlir_starts) else len(self.text)
        return start + _characters(self.text[start:end], column - 1, "utf-8")

    def line_before(self, offset: int) -> str:
        """What precedes an offset in its line."""
        line = bisect_right(self._starts, offset) - 1
        return self.text[self._starts[line] : offset]

    def chunks(self) -> list[Span]:
        """The modules of the text, which lines `// -----` separate."""
        marks = [(match.start(), match.end()) for match in _SEPARATOR.finditer(self.text)]
        starts = [0, *(end for _, end in marks)]
        ends = [*(start for start, _ in marks), len(self.text)]
        return [Span(start, end) for start, end in zip(starts, ends)]

    def _end(self, line: int) -> int:
        return self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)


def _units(text: str, encoding: str) -> int:
    """The length of a text in units of an encoding; half a surrogate pair is one character."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _characters(text: str, units: int, encoding: str) -> int:
    """The count of characters before a column; the character is the one that the column is in."""
    if encoding == "utf-32" or text.isascii():
        return max(0, min(units, len(text)))
    done = 0
    for index, character in enumerate(text):
        done += _units(character, encoding)
        if done > units:
            return index
    return len(text)
