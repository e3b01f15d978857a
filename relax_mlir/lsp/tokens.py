"""The tokens of MLIR text, whatever the text is: each character is in one, or is white space."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from relax_mlir.lsp.text import Span

_NAME = r"[A-Za-z_][\w$.]*"
_STRING = r'"(?:[^"\\\n]|\\[^\n])*"?'
_TOKEN = re.compile(
    rf"""
    (?P<mark>->|[^\s\w/"%@!#^])
    | (?P<word>{_NAME})
    | (?P<comment>//[^\n]*)
    | (?P<string>{_STRING})
    | (?P<value>%[\w$.-]*(?:\#\d+)?)
    | (?P<symbol>@(?:{_STRING}|{_NAME})?)
    | (?P<type>!(?:{_NAME})?)
    | (?P<attribute>\#(?:{_NAME})?)
    | (?P<block>\^[\w$.-]*)
    | (?P<numeral>0x[0-9A-Fa-f]+|\d+(?:\.\d*(?:[eE][-+]?\d+)?)?)
    | (?P<other>\S)
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A token: its kind is the name of a group of the pattern."""

    kind: str
    text: str
    start: int
    is_first: bool
    """Whether it is the first of its line."""

    @property
    def end(self) -> int:
        """The offset after it."""
        return self.start + len(self.text)

    @property
    def span(self) -> Span:
        """Where it is."""
        return Span(self.start, self.end)

    @property
    def name(self) -> str:
        """The name of a value without the index of a result, of a symbol without quotes."""
        if self.kind == "value":
            return self.text.partition("#")[0]
        if self.kind == "symbol" and self.text.startswith('@"'):
            return "@" + self.text[2:].removesuffix('"')
        if self.kind == "string":
            return self.text[1:].removesuffix('"')
        return self.text

    @property
    def result(self) -> int:
        """The index of the result that a value names: 1 for `%0#1`."""
        digits = self.text.partition("#")[2]
        return int(digits) if 0 < len(digits) < 10 else 0


def tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """The tokens of a part of a text, in order."""
    previous = start
    for match in _TOKEN.finditer(text, start, len(text) if end is None else end):
        kind = match.lastgroup
        assert kind is not None
        first = previous == start or "\n" in text[previous : match.start()]
        yield Token(kind, match[0], match.start(), first)
        previous = match.end()
