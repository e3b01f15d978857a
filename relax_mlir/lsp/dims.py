"""The symbols of dims, which are words in strings: where they occur, and what binds them.

tensor<?x4xf32, #graph.shape<["n", 4]>>     graph.facts = ["n <= 100"]     any_of = ["n == k"]
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from relax_mlir.lsp.syntax import Definition, Statement, Syntax
from relax_mlir.lsp.text import Span
from relax_mlir.lsp.tokens import Token

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_STRING = re.compile(r'"([^"]*)"')
_OPERATORS = {"ceildiv", "floordiv", "max", "min", "mod"}
_SHAPES = ("#graph.shape", "!graph.shape_value")
_FACTS = ("graph.facts", "any_of")
MATCH_CAST = "graph.match_cast"


@dataclass(frozen=True)
class Occurrence:
    """A symbol in a string; `is_dim` if the string is nothing else, and no fact."""

    name: str
    span: Span
    is_dim: bool


@dataclass(frozen=True)
class Binding:
    """What binds a symbol: the value whose type has it as a dim, and that dim's axis."""

    value: Definition
    axis: int


def occurrences(syntax: Syntax, first: int = 0, last: int | None = None) -> Iterator[Occurrence]:
    """The symbols in a range of tokens, given by index."""
    for at in range(first, len(syntax.tokens) if last is None else last):
        token = syntax.tokens[at]
        if token.kind == "string" and (owner := _owner(syntax, at)):
            for match in _WORD.finditer(token.name):
                if match[0] not in _OPERATORS:
                    start = token.start + 1 + match.start()
                    is_dim = owner in _SHAPES and match[0] == token.name.strip()
                    yield Occurrence(match[0], Span(start, start + len(match[0])), is_dim)


def symbol_at(syntax: Syntax, offset: int) -> Occurrence | None:
    """The symbol that an offset is in."""
    for at, token in enumerate(syntax.tokens):
        if token.kind == "string" and token.start < offset <= token.end:
            for each in occurrences(syntax, at, at + 1):
                if each.span.start <= offset <= each.span.end:
                    return each
    return None


def words(text: str) -> dict[str, None]:
    """The symbols in a type's text, in order."""
    strings = _STRING.findall(text)
    names = (name for string in strings for name in _WORD.findall(string))
    return dict.fromkeys(name for name in names if name not in _OPERATORS)


def is_text_of_dims(syntax: Syntax, at: int) -> bool:
    """Whether the string with that index is a dim or a fact."""
    return _owner(syntax, at) is not None


def _owner(syntax: Syntax, at: int) -> str | None:
    """What the list that a string is in belongs to, if it is a list of dims or facts."""
    owner = syntax.lists.get(at)
    return owner if owner in (*_SHAPES, *_FACTS) else None


def symbols_in(syntax: Syntax, function: Statement) -> dict[str, list[Span]]:
    """The symbols of a function and where they occur, in it and in the aliases that it uses."""
    spans: dict[str, list[Span]] = {}
    ranges = [(function.first, function.last), *_alias_ranges(syntax, function)]
    for first, last in ranges:
        for each in occurrences(syntax, first, last):
            spans.setdefault(each.name, []).append(each.span)
    return spans


def _alias_ranges(syntax: Syntax, function: Statement) -> list[tuple[int, int]]:
    waiting, ranges = [(function.first, function.last)], {}
    while waiting:
        first, last = waiting.pop()
        for token in syntax.tokens[first:last]:
            if token.text in syntax.aliases and token.text not in ranges:
                ranges[token.text] = alias_range(syntax, token.text)
                waiting.append(ranges[token.text])
    return list(ranges.values())


def alias_range(syntax: Syntax, name: str) -> tuple[int, int]:
    """The indices of the tokens of an alias's definition."""
    first = syntax.aliases[name][1]
    depth, last = 0, first
    while last < len(syntax.tokens):
        token = syntax.tokens[last]
        if token.is_first and last > first and depth <= 0:
            break
        depth += (token.text in "<([{") - (token.text in ">)]}")
        last += 1
    return first, last


def binding(syntax: Syntax, function: Statement, name: str, offset: int) -> Binding | None:
    """The argument, or the last cast before an offset, or else the first, that binds a symbol.

    A dim that is the symbol alone binds it rather than one that it is a part of.
    """
    values = [each for group in syntax.values.values() for each in group]
    values = [each for each in values if each.statement.start in function]
    arguments = [each for each in values if each.statement is function]
    casts = [each for each in values if each.is_result and _is_cast(syntax, each)]
    casts.sort(key=lambda each: (each.token.start > offset, abs(each.token.start - offset)))
    for group in (arguments, casts):
        for alone in (True, False):
            for value in group:
                axis = _axis(syntax, type_range(syntax, value), name, alone)
                if axis is not None:
                    return Binding(value, axis)
    return None


def _is_cast(syntax: Syntax, value: Definition) -> bool:
    return syntax.op_name(value.statement) == MATCH_CAST


def type_range(syntax: Syntax, value: Definition) -> tuple[int, int]:
    """The indices of the tokens of a value's type as written; of all results, if it is one.

    The range is empty if there is no type.
    """
    if value.is_result:
        statement = value.statement
        arrow = _first(syntax, ("->",), statement.op, statement.last)
        return arrow + 1, _first(syntax, ("{",), arrow + 1, statement.last)
    first = value.position + 2
    if first > len(syntax.tokens) or syntax.tokens[first - 1].text != ":":
        return first, first
    return first, _first(syntax, (",", ")", "{", "="), first, len(syntax.tokens))


def _first(syntax: Syntax, marks: tuple[str, ...], first: int, last: int) -> int:
    """The index of the first of the marks in a range that is outside of brackets, or its end."""
    depth = 0
    for at in range(first, last):
        text = syntax.tokens[at].text
        if depth == 0 and text in marks:
            return at
        depth += (text in "<([{") - (text in ">)]}")
    return last


def type_text(syntax: Syntax, text: str, value: Definition) -> str:
    """A value's type as written; empty if there is none."""
    first, last = type_range(syntax, value)
    if first >= last:
        return ""
    return text[syntax.tokens[first].start : syntax.tokens[last - 1].end]


def _axis(syntax: Syntax, tokens: tuple[int, int], name: str, alone: bool) -> int | None:
    """The axis of the dim with a symbol in a type, whose aliases are expanded."""
    for at in _expanded(syntax, tokens):
        for each in occurrences(syntax, at, at + 1):
            if each.name == name and (each.is_dim or not alone):
                return _position_in_list(syntax.tokens, at)
    return None


def _expanded(syntax: Syntax, tokens: tuple[int, int]) -> Iterator[int]:
    """The indices of the strings in a range of tokens, and of those in aliases that they use.

    Each alias is expanded once, so that aliases of themselves end.
    """
    ranges, seen = [tokens], set()
    while ranges:
        first, last = ranges.pop()
        for at in range(first, last):
            token = syntax.tokens[at]
            if token.kind == "string":
                yield at
            elif token.text in syntax.aliases and token.text not in seen:
                seen.add(token.text)
                ranges += [(at + 1, last), alias_range(syntax, token.text)]
                break


def _position_in_list(tokens: list[Token], at: int) -> int:
    commas = 0
    while at > 0 and tokens[at].text != "[":
        commas += tokens[at].text == ","
        at -= 1
    return commas
