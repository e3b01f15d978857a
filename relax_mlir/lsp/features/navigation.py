"""Definitions, references and renaming of what has a name."""

import re

from relax_mlir.lsp import dims
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.syntax import Syntax
from relax_mlir.lsp.text import Span
from relax_mlir.lsp.tokens import Token

_VALID = {
    "value": re.compile(r"%(?:\d+|[A-Za-z_$.-][\w$.-]*)\Z", re.ASCII),
    "symbol": re.compile(r"@[A-Za-z_][\w$.]*\Z", re.ASCII),
    "type": re.compile(r"![A-Za-z_]\w*\Z", re.ASCII),
    "attribute": re.compile(r"#[A-Za-z_]\w*\Z", re.ASCII),
    "block": re.compile(r"\^[\w$.-]+\Z", re.ASCII),
}


def definition(document: Document, offset: int) -> Span | None:
    """Where what is at an offset is defined: a value, function, alias or dim's symbol."""
    syntax, token = document.syntax_at(offset), document.token_at(offset)
    if token is None:
        return None
    if (symbol := dims.symbol_at(syntax, offset)) is not None:
        function = syntax.function_at(offset)
        if function is None:
            return None
        binding = dims.binding(syntax, function, symbol.name, offset)
        return None if binding is None else binding.value.token.span
    if token.kind == "value":
        value = syntax.definition(token)
        return None if value is None else value.token.span
    if token.kind == "symbol" and token.name in syntax.functions:
        return syntax.functions[token.name][0].span
    if token.text in syntax.aliases:
        return syntax.aliases[token.text][0].span
    if token.kind == "block":
        return _label(syntax, token)
    return None


def _label(syntax: Syntax, block: Token) -> Span | None:
    """Where a block of the same function begins."""
    function = syntax.function_at(block.start)
    for token in syntax.tokens:
        if token.text == block.text and token.is_first:
            if syntax.function_at(token.start) is function:
                return token.span
    return None


def references(document: Document, offset: int) -> list[Span]:
    """All that names what is at an offset, its definition included, in the same module."""
    syntax, token = document.syntax_at(offset), document.token_at(offset)
    if token is None:
        return []
    if (symbol := dims.symbol_at(syntax, offset)) is not None:
        function = syntax.function_at(offset)
        known = {} if function is None else dims.symbols_in(syntax, function)
        return sorted(known.get(symbol.name, [symbol.span]), key=lambda span: span.start)
    if token.kind == "value":
        value = syntax.definition(token)
        return [] if value is None else [use.span for use in syntax.uses(value)]
    name = _function_name(syntax, token)
    if name is not None:
        return [each.span for each in syntax.tokens if _function_name(syntax, each) == name]
    if token.text in syntax.aliases:
        return [each.span for each in syntax.tokens if each.text == token.text]
    return []


def _function_name(syntax: Syntax, token: Token) -> str | None:
    """The function that a token names; that of a generic declaration is a string."""
    if token.kind == "symbol":
        return token.name
    if token.kind == "string" and f"@{token.name}" in syntax.functions:
        name = f"@{token.name}"
        return name if syntax.functions[name][0] is token else None
    return None


def can_rename(document: Document, offset: int) -> Span | None:
    """The name at an offset, if it can be changed: of a value, function or alias."""
    token = document.token_at(offset)
    if token is None or token.kind not in _VALID or not references(document, offset):
        return None
    if definition(document, offset) is None:
        return None
    return Span(token.start, token.start + len(token.text.partition("#")[0] or token.text))


def rename(document: Document, offset: int, name: str) -> dict[Span, str] | None:
    """The changes that give a value, function or alias another name; None if it is none or taken.

    The name may be written without its first character, such as `%`.
    """
    token = document.token_at(offset)
    if token is None or can_rename(document, offset) is None:
        return None
    name = name if name.startswith(token.text[0]) else token.text[0] + name
    if not _VALID[token.kind].match(name) or _is_taken(document.syntax_at(offset), token, name):
        return None
    changes = {}
    for span in references(document, offset):
        old = document.text.text[span.start : span.end]
        if old.startswith('"'):
            changes[span] = f'"{name[1:]}"'
        else:
            index = old.find("#", 1)
            changes[span] = name + (old[index:] if token.kind == "value" and index > 0 else "")
    return changes


def _is_taken(syntax: Syntax, token: Token, name: str) -> bool:
    """Whether a name is another's already: a value's in the same function."""
    function = syntax.function_at(token.start)
    values = (each.token for each in syntax.values.get(name, ()))
    if any(syntax.function_at(value.start) is function for value in values):
        return True
    return name in syntax.functions or name in syntax.aliases
