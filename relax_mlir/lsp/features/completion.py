"""What may be written at a position: operators, attributes, values, functions, aliases, symbols."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from relax_mlir.lsp import catalogue, dims
from relax_mlir.lsp.context import context, in_braces
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.features.hover import head
from relax_mlir.lsp.features.run_lines import complete_run_line
from relax_mlir.lsp.function_attributes import Entry, attributes_at
from relax_mlir.lsp.syntax import Statement, Syntax
from relax_mlir.lsp.text import Span
from relax_mlir.lsp.tokens import Token

_OP = re.compile(r'(?:^|\{)\s*(?P<results>%[^=(){]*=\s*)?(?P<name>"?[A-Za-z_]?[\w.]*)$')
_NAME = re.compile(r"[%@!#][\w$.-]*$")
_WORD = re.compile(r"[\w.]*$")
_REST_OF_NAME = re.compile(r'[\w.]*"?')
_SAMPLE = re.compile(r"\$(?:\{([^}]*)\})?")
MAX_BEFORE = 500
"""How many characters of a line are read before the cursor."""
_TYPES = (
    *("tensor", "!graph.shape_value", "!graph.object", "!graph.storage"),
    *("!graph.any_tuple", "!graph.callable", "!graph.any_element"),
)


@dataclass(frozen=True)
class Completion:
    """A text that may replace a part of the document.

    `snippet` is the text with fields `$1`, `${2:default}` to fill in; `plain` is without them.
    """

    label: str
    kind: str
    span: Span
    snippet: str
    detail: str = ""
    documentation: str = ""

    @property
    def plain(self) -> str:
        """The text, for editors without snippets."""
        text = re.sub(
            r"\$\{\d+:((?:[^}\\]|\\.)*)\}|\$\d+", lambda match: match[1] or "", self.snippet
        )
        return re.sub(r"\\(.)", r"\1", text)


def complete(document: Document, offset: int) -> list[Completion]:
    """The completions at an offset, in a useful order; the editor selects among them."""
    before = document.text.line_before(offset)[-MAX_BEFORE:]
    syntax = document.syntax_at(offset)
    if _in_comment(syntax, offset):
        return [
            Completion(label, kind, span, escaped(text), detail, documentation)
            for label, kind, span, text, detail, documentation in complete_run_line(before, offset)
        ]
    if (string := _string_at(syntax, offset)) is not None and dims.is_text_of_dims(syntax, string):
        return list(_symbols(syntax, before, offset))
    if match := _NAME.search(before):
        return list(_names(document, syntax, match[0][0], Span(offset - len(match[0]), offset)))
    statement = syntax.statement_at(offset)
    if string is None and statement is not None and (known := _attributes_of(syntax, statement)):
        if in_braces(syntax, context(syntax, statement, offset), 1):
            return list(_attributes(syntax, statement, known, before, offset))
    function = syntax.function_at(offset) if string is None else None
    if function is not None and (entries := attributes_at(syntax, function, offset)):
        return list(_of_function(entries, before, offset))
    if match := _OP.search(before):
        return list(_operators(document, match, offset))
    return []


def escaped(text: str) -> str:
    """A text as a snippet without fields."""
    return re.sub(r"[\\$}]", r"\\\g<0>", text)


def _in_comment(syntax: Syntax, offset: int) -> bool:
    return any(token.start < offset <= token.end for token in syntax.comments)


def _string_at(syntax: Syntax, offset: int) -> int | None:
    """The index of the string that an offset is in."""
    for at, token in enumerate(syntax.tokens):
        if token.kind == "string" and token.start < offset:
            closed = len(token.text) > 1 and token.text.endswith('"')
            if offset < token.end or (offset == token.end and not closed):
                return at
    return None


def _symbols(syntax: Syntax, before: str, offset: int) -> Iterator[Completion]:
    """The symbols of the function; of the module in an alias."""
    match = _WORD.search(before)
    span = Span(offset - len(match[0] if match else ""), offset)
    function = syntax.function_at(offset)
    names = {each.name: None for each in dims.occurrences(syntax) if each.span.end != offset}
    if function is not None:
        spans = dims.symbols_in(syntax, function)
        names = {name: None for name in spans if any(each.end != offset for each in spans[name])}
    for name in names:
        yield Completion(name, "symbol", span, escaped(name), "a dim's symbol")


def _names(document: Document, syntax: Syntax, mark: str, span: Span) -> Iterator[Completion]:
    """Values, functions, or aliases, by their first character."""
    if mark == "%":
        yield from _values(document, syntax, span)
    elif mark == "@":
        for name, (_, statement) in syntax.functions.items():
            detail = head(document, syntax, statement)
            yield Completion(name, "function", span, escaped(name), detail)
    else:
        for name in syntax.aliases:
            if name.startswith(mark):
                detail = _alias(document, syntax, name)
                yield Completion(name, "alias", span, escaped(name), detail)
        if mark == "#":
            yield Completion("#graph.shape", "alias", span, '#graph.shape<["$1"]>', "dims")
        for name in _TYPES:
            if mark == "!" and name.startswith(mark):
                yield Completion(name, "alias", span, escaped(name), "a type")


def _alias(document: Document, syntax: Syntax, name: str) -> str:
    first, last = dims.alias_range(syntax, name)
    if first >= last:
        return ""
    return document.text.text[syntax.tokens[first].start : syntax.tokens[last - 1].end]


def _values(document: Document, syntax: Syntax, span: Span) -> Iterator[Completion]:
    """The values that are visible, the latest first."""
    latest = []
    for name in syntax.values:
        use = Token("value", name, span.start, False)
        value = syntax.definition(use)
        if value is None or value.token.start >= span.start:
            continue
        if not (value.is_result and span.start in value.statement):
            latest.append(value)
    for value in sorted(latest, key=lambda each: -each.token.start):
        types = document.types_of(value)
        detail = types.short if types else dims.type_text(syntax, document.text.text, value)
        name = value.token.name
        yield Completion(name, "value", span, escaped(name), detail)


def _attributes_of(syntax: Syntax, statement: Statement) -> dict[str, str]:
    operator = catalogue.operators().get(syntax.op_name(statement))
    return {} if operator is None else operator.attributes


def _of_function(known: dict[str, Entry], before: str, offset: int) -> Iterator[Completion]:
    """The attributes of a function or argument."""
    match = _WORD.search(before)
    span = Span(offset - len(match[0] if match else ""), offset)
    for name, (sample, meaning) in known.items():
        text = f"{name} = {_fields(sample, 1)[0]}" if sample else name
        yield Completion(name, "attribute", span, text, meaning)


def _attributes(
    syntax: Syntax, statement: Statement, known: dict[str, str], before: str, offset: int
) -> Iterator[Completion]:
    """The attributes of an operator that are not written yet."""
    operator = catalogue.operators()[syntax.op_name(statement)]
    match = _WORD.search(before)
    span = Span(offset - len(match[0] if match else ""), offset)
    there = {
        token.text
        for at, token in enumerate(syntax.tokens[statement.op : statement.last], statement.op)
        if at + 1 < len(syntax.tokens) and syntax.tokens[at + 1].text == "="
    }
    for name, kind in known.items():
        if name not in there:
            text = f"{name} = {_fields(catalogue.sample(kind), 1)[0]}"
            documentation = operator.documentation
            yield Completion(
                name, "attribute", span, text, catalogue.kind_text(kind), documentation
            )
    for name, sizes in operator.segments.items():
        if name not in there:
            yield Completion(
                name, "attribute", span, f"{name} = {escaped(sizes)}", "which are there"
            )


def _fields(sample: str, first: int) -> tuple[str, int]:
    """A sample as a snippet whose fields are numbered from `first`, and the next index."""
    index = first

    def field(match: re.Match[str]) -> str:
        nonlocal index
        index += 1
        return f"${{{index - 1}:{escaped(match[1])}}}" if match[1] else f"${index - 1}"

    return _SAMPLE.sub(field, sample), index


def _operators(document: Document, match: re.Match[str], offset: int) -> Iterator[Completion]:
    """Our operators, with operands, attributes and types to fill in."""
    start = offset - len(match["name"])
    rest = _REST_OF_NAME.match(document.text.text, offset)
    end = rest.end() if rest else offset
    is_called = document.text.text[end : end + 1] == "("
    for name, operator in catalogue.operators().items():
        snippet = f'"{name}"' if is_called else op_snippet(operator, match["results"] is None)
        yield Completion(
            name, "operator", Span(start, end), snippet, operator.signature, operator.documentation
        )


def op_snippet(operator: catalogue.Operator, with_results: bool) -> str:
    """An op in generic form, with fields for results, operands, attributes and types."""
    operands, results = operator.needed()
    index = 1
    names: list[str] = []
    if with_results:
        names, index = _numbered([f"%{name}" for name in results], index)
    ins, index = _numbered([f"%{name}" for name in operands], index)
    attributes = []
    for name, kind in operator.attributes.items():
        text, index = _fields(catalogue.sample(kind), index)
        attributes.append(f"{name} = {text}")
    attributes += [f"{name} = {escaped(sizes)}" for name, sizes in operator.segments.items()]
    types, index = _numbered(["type"] * len(operands), index)
    results_types, index = _numbered(["type"] * len(results), index)
    outs = ", ".join(results_types)
    return (
        (", ".join(names) + " = " if names else "")
        + f'"{operator.name}"({", ".join(ins)})'
        + (" {" + ", ".join(attributes) + "\\}" if attributes else "")
        + f" : ({', '.join(types)}) -> {outs if len(results) == 1 else f'({outs})'}"
    )


def _numbered(defaults: list[str], first: int) -> tuple[list[str], int]:
    fields = [f"${{{index}:{text}}}" for index, text in enumerate(defaults, first)]
    return fields, first + len(fields)
