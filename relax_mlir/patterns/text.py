"""The textual form of patterns, as options of passes have it.

    nn_relu(add(matmul(%x: f32[..., k], %w: [k, n]), const))
    permute_dims(%w){axes = [1, 0]}      split(_)#1      (matmul >> add) | matmul

    pattern  = both {"|" both}
    both     = sequence {"&" sequence}
    sequence = typed {(">>" | "^") typed}
    typed    = ["~"] primary {"{" name "=" value {"," name "=" value} "}"} [":" type]
    primary  = "_" | "const" | "argument" | "%" name ["=" typed] | "(" pattern ")"
             | op ["(" [pattern {"," pattern}] ")"] ["#" integer]
    type     = element ["[" dims "]"] | "[" dims "]"

`str` of a pattern is such a text, unless a Python function takes part in it.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from relax_mlir.errors import UsageError
from relax_mlir.symbolic import SymbolicError

from .pattern import (
    Argument,
    Both,
    Capture,
    Constant,
    Either,
    HasAttributes,
    HasType,
    Not,
    Pattern,
    Used,
    Wildcard,
    is_op,
)

MAX_DEPTH, MAX_TOKENS = 64, 512

_TOKEN = re.compile(
    r"\s*(?:(>>|[|&^~(){}\[\]:,=#%])|([A-Za-z_][\w.]*)|(-?\d[\w.+-]*|\.\.\.)|(\"[^\"]*\")|(\S))",
    re.ASCII,
)
_LEAVES: dict[str, Callable[[], Pattern]] = {
    "_": Wildcard,
    "const": Constant,
    "argument": Argument,
}


def parse(text: str) -> Pattern:
    """Reads a pattern; `parse(str(p)) == p`.

    Raises UsageError, with the column, for what is no pattern.
    """
    reader = _Reader(text)
    try:
        pattern = reader.choice()
        if reader.peek():
            raise reader.error("the end")
    except SymbolicError as error:
        raise UsageError(f"pattern '{text}': {error}") from None
    return pattern


def parse_list(text: str) -> list[tuple[str, Pattern]]:
    """Reads patterns with names: `dense = matmul(_, _); norm = nn_rms_norm`.

    Raises UsageError for what is no such list.
    """
    patterns = []
    for part in filter(str.strip, text.split(";")):
        name, equals, pattern = part.partition("=")
        if not equals or not re.fullmatch(r"\s*[\w.]+\s*", name):
            raise UsageError(f"expects 'name = pattern', but got '{part.strip()}'")
        patterns.append((name.strip(), parse(pattern)))
    return patterns


class _Reader:
    """A cursor over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        if len(self.tokens) > MAX_TOKENS:
            raise UsageError(f"pattern '{text[:40]}...' has more than {MAX_TOKENS} words and signs")
        self.position = 0
        self.depth = 0

    def peek(self) -> str:
        return self.tokens[self.position][0]

    def take(self) -> str:
        token = self.peek()
        if token:
            self.position += 1
        return token

    def accept(self, *tokens: str) -> str:
        """The next token, if it is one of these; else none."""
        return self.take() if self.peek() in tokens and self.peek() else ""

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.error(f"'{token}'")

    def error(self, expected: str) -> UsageError:
        token, column = self.tokens[self.position]
        what = f"'{token}'" if token else "the end"
        return UsageError(
            f"pattern '{self.text}': expects {expected} at column {column + 1}, but got {what}"
        )

    def choice(self) -> Pattern:
        pattern = self.both()
        while self.accept("|"):
            pattern = Either(pattern, self.both())
        return pattern

    def both(self) -> Pattern:
        pattern = self.sequence()
        while self.accept("&"):
            pattern = Both(pattern, self.sequence())
        return pattern

    def sequence(self) -> Pattern:
        pattern = self.typed()
        while arrow := self.accept(">>", "^"):
            pattern = Used(pattern, self.typed(), only=arrow == ">>")
        return pattern

    def typed(self) -> Pattern:
        if self.accept("~"):
            return Not(self._nested(self.typed))
        pattern = self._nested(self.primary)
        while self.accept("{"):
            attributes = sorted(self.listed("}", self.attribute), key=lambda each: each[0])
            pattern = HasAttributes(pattern, tuple(attributes))
        return self.type_of(pattern) if self.accept(":") else pattern

    def _nested(self, read: Callable[[], Pattern]) -> Pattern:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UsageError(f"pattern '{self.text[:40]}...' is nested more than {MAX_DEPTH} deep")
        pattern = read()
        self.depth -= 1
        return pattern

    def primary(self) -> Pattern:
        if self.accept("("):
            pattern = self.choice()
            self.expect(")")
            return pattern
        if self.accept("%"):
            name = self.name("a name")
            return Capture(name, self.typed() if self.accept("=") else Wildcard())
        if self.peek() in _LEAVES:
            return _LEAVES[self.take()]()
        op = is_op(self.name("a pattern"))
        if self.accept("("):
            op = op(*self.listed(")", self.choice))
        return op.result(self.integer()) if self.accept("#") else op

    def listed(self, end: str, read: Callable[[], Any]) -> list[Any]:
        """Items that commas separate, up to a closing token."""
        items: list[Any] = []
        while not self.accept(end):
            if items:
                self.expect(",")
            items.append(read())
        return items

    def name(self, expected: str) -> str:
        if not re.fullmatch(r"[A-Za-z_][\w.]*", self.peek(), re.ASCII):
            raise self.error(expected)
        return self.take()

    def integer(self) -> int:
        if not re.fullmatch(r"\d{1,9}", self.peek()):
            raise self.error("an index")
        return int(self.take())

    def attribute(self) -> tuple[str, Any]:
        name = self.name("the name of an attribute")
        self.expect("=")
        return name, self.value()

    def value(self) -> Any:
        if self.accept("["):
            return tuple(self.listed("]", self.value))
        token = self.peek()
        if token in ("true", "false"):
            return self.take() == "true"
        if token.startswith('"'):
            return self.take()[1:-1]
        for read in (int, float):
            try:
                value = read(token)
            except ValueError:
                continue
            self.take()
            return value
        raise self.error("a value")

    def type_of(self, pattern: Pattern) -> Pattern:
        element = None if self.peek() == "[" else self.name("an element type or '['")
        return HasType(pattern, element, self.shape())

    def shape(self) -> tuple[str, ...] | None:
        """Dims as texts, up to the closing bracket."""
        if not self.accept("["):
            return None
        start, depth, dims = self.tokens[self.position][1], 0, list[str]()
        while self.peek() and (depth or self.peek() != "]"):
            depth += {"(": 1, ")": -1}.get(self.peek(), 0)
            end = self.tokens[self.position][1]
            if self.take() == "," and not depth:
                dims.append(self.text[start:end].strip())
                start = end + 1
        last = self.text[start : self.tokens[self.position][1]].strip()
        self.expect("]")
        return (*dims, last) if last or dims else ()


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Each token and its column, and an empty one at the end."""
    for token in _TOKEN.finditer(text):
        yield token.group().strip(), token.start(token.lastindex or 0)
    yield "", len(text)
