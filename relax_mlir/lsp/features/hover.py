"""What is told of the text under the mouse, as Markdown."""

import re
from dataclasses import dataclass

from relax_mlir.lsp import catalogue, dims
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.function_attributes import OF_ARGUMENTS, OF_FUNCTIONS
from relax_mlir.lsp.syntax import Definition, Statement, Syntax, body_of
from relax_mlir.lsp.text import Span
from relax_mlir.lsp.tokens import Token

MAX_LENGTH = 2000
MAX_RESULTS = 8
"""How many results of one name are shown."""
_PASS = re.compile(r"[a-z][\w-]*")


@dataclass(frozen=True)
class Hover:
    """A text and what it is about."""

    markdown: str
    span: Span


def hover(document: Document, offset: int) -> Hover | None:
    """The documentation of what is at an offset; None if there is none."""
    token = document.token_at(offset)
    if token is None:
        return None
    syntax = document.syntax_at(offset)
    if token.kind == "comment":
        return _pass(token, offset)
    if (symbol := dims.symbol_at(syntax, offset)) is not None:
        return Hover(_symbol(document, syntax, symbol.name, offset), symbol.span)
    text = ""
    if token.kind == "value":
        definition = syntax.definition(token)
        text = "" if definition is None else _value(document, syntax, definition, token)
    elif token.kind == "symbol":
        text = _function(document, syntax, token)
    elif token.text in syntax.aliases:
        body = _part(document, syntax, *dims.alias_range(syntax, token.text))
        text = code(f"{token.text} = {body}")
    elif token.kind in ("word", "string"):
        text = _word(document, syntax, token)
    return Hover(text, token.span) if text else None


def code(text: str) -> str:
    """A text of MLIR as a block of code, cut if it is long."""
    shown = text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH] + " ..."
    return f"```mlir\n{shown}\n```"


def _part(document: Document, syntax: Syntax, first: int, last: int) -> str:
    """The text of a range of tokens."""
    if first >= last:
        return ""
    return document.text.text[syntax.tokens[first].start : syntax.tokens[last - 1].end]


def _pass(token: Token, offset: int) -> Hover | None:
    """A pass that a comment names."""
    for match in _PASS.finditer(token.text):
        start = token.start + match.start()
        if start <= offset <= start + len(match[0]):
            entry = catalogue.passes().get(match[0])
            if entry is None:
                return None
            return Hover(pass_text(entry), Span(start, start + len(match[0])))
    return None


def pass_text(entry: catalogue.PassEntry) -> str:
    """The documentation of a pass and its options."""
    options = "\n".join(f"- `{option}`" for option in entry.options)
    return f"**{entry.name}**\n\n{entry.documentation}" + (f"\n\n{options}" if options else "")


def _symbol(document: Document, syntax: Syntax, name: str, offset: int) -> str:
    function = syntax.function_at(offset)
    if function is None:
        return f"**{name}**: a dim's symbol, which each function that uses the type binds"
    owner = syntax.function_name(offset)
    lines = [f"**{name}**: a dim's symbol in `{owner}`"]
    binding = dims.binding(syntax, function, name, offset)
    if binding is None:
        lines.append("Nothing binds it.")
    else:
        kind = "the result" if binding.value.is_result else "the argument"
        value = binding.value.token.name
        lines.append(f"It is bound by dim {binding.axis} of {kind} `{value}`.")
    return "\n\n".join([*lines, *_known(document, owner, [name])])


def _known(document: Document, function: str, names: list[str]) -> list[str]:
    """The bounds of symbols, and facts on them."""
    lines: dict[str, None] = {}
    for name in names:
        known = document.symbol_facts(function, name)
        if known is not None:
            end = "" if known.greatest is None else f" <= {known.greatest}"
            start = f"{known.least} <= " if known.least is not None else ""
            lines[f"`{start}{name}{end}`"] = None
            lines |= dict.fromkeys(f"`{fact}`" for fact in known.facts)
    return ["Facts: " + ", ".join(lines)] if lines else []


def _value(document: Document, syntax: Syntax, value: Definition, token: Token) -> str:
    """The type of a value, and what is known of its symbols."""
    indices = [token.result]
    if value.count > 1 and "#" not in token.text:
        indices = list(range(min(value.count, MAX_RESULTS)))
    known = [types for index in indices if (types := document.types_of(value, index)) is not None]
    if len(known) == len(indices):
        named = [f"{value.token.name}#{index}" for index in indices]
        names = named if value.count > 1 else [value.token.name]
        parts = [_typed(names, [types.written for types in known])]
        if any(types.inferred != types.written for types in known):
            parts.append("inferred:\n" + _typed(names, [types.inferred for types in known]))
        shape = " ".join(types.inferred for types in known)
    else:
        shape = dims.type_text(syntax, document.text.text, value)
        parts = [_typed([token.text], [shape])]
    names = list(dims.words(shape))
    parts += _known(document, syntax.function_name(value.token.start), names)
    if value.is_result:
        parts.append(f"result of `{syntax.op_name(value.statement)}`")
    return "\n\n".join(parts)


def _typed(names: list[str], types: list[str]) -> str:
    lines = (f"{name}: {type_}" if type_ else name for name, type_ in zip(names, types))
    return code("\n".join(lines))


def _function(document: Document, syntax: Syntax, token: Token) -> str:
    """The head of the function that a symbol names."""
    if token.name not in syntax.functions:
        return ""
    _, statement = syntax.functions[token.name]
    return code(head(document, syntax, statement))


def head(document: Document, syntax: Syntax, statement: Statement) -> str:
    """A function without its body."""
    return _part(document, syntax, statement.first, body_of(syntax, statement))


def _word(document: Document, syntax: Syntax, token: Token) -> str:
    """An operation's name, or one of its attributes."""
    entry = (OF_FUNCTIONS | OF_ARGUMENTS).get(token.text)
    if entry is not None and syntax.function_at(token.start) is not None:
        return f"**{token.text}**: {entry[1]}"
    statement = syntax.statement_at(token.start)
    if statement is None or statement.op >= len(syntax.tokens):
        return ""
    name = syntax.op_name(statement)
    operator = catalogue.operators().get(name)
    if syntax.tokens[statement.op] is token:
        return _operation(document, syntax, statement, operator)
    if operator is not None and token.name in operator.attributes:
        kind = catalogue.kind_text(operator.attributes[token.name])
        return f"**{token.name}**: {kind}, an attribute of `{name}`\n\n{operator.documentation}"
    return ""


def _operation(
    document: Document, syntax: Syntax, statement: Statement, operator: catalogue.Operator | None
) -> str:
    parts = []
    if operator is not None:
        parts += [code(operator.signature), operator.documentation]
    lines = []
    for token in syntax.tokens[statement.op : statement.last]:
        if token.kind == "value" and (value := syntax.definition(token)) is not None:
            if value.token.start < statement.start and (types := document.types_of(value)):
                lines.append(f"{token.text}: {types.inferred}")
    for token in syntax.tokens[statement.first : statement.op]:
        if token.kind == "value" and (value := syntax.definition(token)) is not None:
            if types := document.types_of(value):
                lines.append(f"{token.text} = {types.inferred}")
    if lines:
        parts.append(code("\n".join(dict.fromkeys(lines))))
    return "\n\n".join(parts)
