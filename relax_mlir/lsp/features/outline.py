"""The functions and aliases of a text, as a list for navigation, and types at values."""

from collections.abc import Iterator
from dataclasses import dataclass

from relax_mlir.lsp import dims
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.text import Span


@dataclass(frozen=True)
class Entry:
    """A function or alias: the text of it all, and of its name."""

    name: str
    is_function: bool
    span: Span
    name_span: Span


def outline(document: Document) -> list[Entry]:
    """The functions and aliases of all modules, in order."""
    return sorted(_entries(document), key=lambda entry: entry.span.start)


def _entries(document: Document) -> Iterator[Entry]:
    for syntax in document.syntaxes():
        for name, (token, statement) in syntax.functions.items():
            end = max(statement.end, token.end)
            yield Entry(name, True, Span(statement.start, end), token.span)
        for name, (token, _) in syntax.aliases.items():
            first, last = dims.alias_range(syntax, name)
            end = syntax.tokens[last - 1].end if last > first else token.end
            yield Entry(name, False, Span(token.start, end), token.span)


@dataclass(frozen=True)
class Hint:
    """A type that the passes infer, to show after a value's definition."""

    offset: int
    text: str


def hints(document: Document, span: Span) -> list[Hint]:
    """The types of results in a part of the text that are more precise than what is written."""
    if document.analysis is None:
        return []
    hints = []
    for syntax in document.syntaxes():
        for definitions in syntax.values.values():
            for value in definitions:
                if not value.is_result or not span.start <= value.token.start <= span.end:
                    continue
                types = document.types_of(value)
                if types is not None and types.inferred != types.written:
                    hints.append(Hint(value.token.end, f": {types.short}"))
    return sorted(hints, key=lambda hint: hint.offset)
