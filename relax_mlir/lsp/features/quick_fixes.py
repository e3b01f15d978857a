"""Corrections of misspelt names: of operators, values, functions, aliases and passes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from relax_mlir.lsp import catalogue
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.features.run_lines import unknown_passes
from relax_mlir.lsp.syntax import Syntax
from relax_mlir.lsp.text import Span
from relax_mlir.lsp.tokens import Token

MAX_FIXES = 3
MAX_TOKENS = 200
"""How many tokens of a selection are looked at."""


@dataclass(frozen=True)
class Fix:
    """A text that should replace a part of the document."""

    span: Span
    text: str


def quick_fixes(document: Document, span: Span) -> list[Fix]:
    """Corrections of the names in a part of the text, the closest first."""
    syntax = document.syntax_at(span.start)
    touched = [
        token
        for token in (*syntax.tokens, *syntax.comments)
        if token.start <= span.end and token.end >= span.start
    ]
    return [fix for token in touched[:MAX_TOKENS] for fix in _fixes(syntax, token)]


def _fixes(syntax: Syntax, token: Token) -> Iterator[Fix]:
    if token.kind == "comment":
        for part, _ in unknown_passes(token.text):
            span = Span(token.start + part.start, token.start + part.end)
            name = token.text[part.start : part.end]
            yield from (Fix(span, near) for near in _near(name, catalogue.passes()))
    elif token.kind == "string" and _is_unknown_op(syntax, token):
        for near in _near(token.name, catalogue.operators()):
            yield Fix(token.span, f'"{near}"')
    elif token.kind == "value" and syntax.definition(token) is None:
        function = syntax.function_at(token.start)
        known = [
            name
            for name, definitions in syntax.values.items()
            if any(syntax.function_at(each.token.start) is function for each in definitions)
        ]
        index = token.text[len(token.name) :]
        yield from (Fix(token.span, near + index) for near in _near(token.name, known))
    elif token.kind == "symbol" and token.name not in syntax.functions:
        yield from (Fix(token.span, near) for near in _near(token.name, syntax.functions))
    elif token.kind in ("type", "attribute") and "." not in token.text:
        if token.text not in syntax.aliases:
            known = [name for name in syntax.aliases if name[0] == token.text[0]]
            yield from (Fix(token.span, near) for near in _near(token.text, known))


def _is_unknown_op(syntax: Syntax, token: Token) -> bool:
    """Whether a string is the name of an op that a dialect of ours does not have."""
    statement = syntax.statement_at(token.start)
    if statement is None or statement.op >= len(syntax.tokens):
        return False
    is_ours = token.name.partition(".")[0] in catalogue.namespaces()
    is_op = syntax.tokens[statement.op] is token
    return is_op and is_ours and token.name not in catalogue.operators()


def _near(name: str, known: Iterable[str]) -> list[str]:
    return get_close_matches(name[:100], list(known), n=MAX_FIXES)
