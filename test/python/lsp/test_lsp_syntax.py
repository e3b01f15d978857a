"""Names in text against MLIR: what it says of each value that text defines or uses."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marked import MODULE, at, opened

from relax_mlir import dialects
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import Diagnostic, parse_module
from relax_mlir.errors import CompileError
from relax_mlir.lsp.analysis import Analysis
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.features import completion, hover, navigation, outline
from relax_mlir.lsp.features.problems import problems
from relax_mlir.lsp.features.quick_fixes import quick_fixes
from relax_mlir.lsp.features.signature_help import signature
from relax_mlir.lsp.syntax import Definition, Syntax
from relax_mlir.lsp.text import Span, Text

TESTS = Path(__file__).resolve().parents[3] / "test"
FILES = [
    *sorted((TESTS / "Integration").glob("*.mlir")),
    *(TESTS / "Transforms" / f"{name}.mlir" for name in ("lower_calls_loops", "double_buffer")),
    *(TESTS / "Transforms" / f"{name}.mlir" for name in ("verify", "schedule_scalar")),
    TESTS / "Tools" / "relax-opt" / "verify_remarks.mlir",
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_definitions_and_uses_are_those_of_mlir(file):
    text = Text(file.read_text())
    checked = 0
    for chunk in text.chunks():
        lines = text.text.count("\n", 0, chunk.start)
        with dialects.make_context(upstream=None), ir.Location.unknown():
            try:
                module = parse_module("\n" * lines + text.text[chunk.start : chunk.end])
            except CompileError:
                continue  # a negative test
            syntax = Syntax.of(text.text, chunk)
            for op in operations(module.operation):
                checked += check(op, text, syntax)
    assert checked > 0


def operations(op: ir.Operation) -> Iterator[ir.Operation]:
    yield op
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield from operations(child.operation)


def check(op: ir.Operation, text: Text, syntax: Syntax) -> int:
    """Compares an op's results, arguments and operands with the text; returns how many."""
    count = 0
    known = {
        offset_of(syntax, each) for definitions in syntax.values.values() for each in definitions
    }
    for region in op.regions:
        for argument in (argument for block in region.blocks for argument in block.arguments):
            offset = offset_in(text, argument.location)
            if offset is not None and text.text[offset] == "%":
                assert offset in known, text.position(offset)
                count += 1
    offset = offset_in(text, op.location)
    if offset is None:
        return count
    if "=" in text.line_before(offset) and len(op.results):
        assert offset in known, text.position(offset)
    if text.text[offset] == '"':
        count += check_operands(op, offset, text, syntax)
    return count


def check_operands(op: ir.Operation, offset: int, text: Text, syntax: Syntax) -> int:
    """Compares the operands of an op in generic form."""
    first = next(i for i, token in enumerate(syntax.tokens) if token.start == offset) + 2
    last = next(i for i in range(first, len(syntax.tokens)) if syntax.tokens[i].text == ")")
    uses = [token for token in syntax.tokens[first:last] if token.kind == "value"]
    for token, operand in zip(uses, op.operands, strict=True):
        definition = syntax.definition(token)
        assert definition is not None, text.position(token.start)
        is_argument = isinstance(operand.owner, ir.Block)
        location = operand.location if is_argument else operand.owner.location
        assert offset_of(syntax, definition) == offset_in(text, location), token
        if not is_argument:
            assert ir.OpResult(operand).result_number == definition.index + token.result
    return len(uses)


def offset_of(syntax: Syntax, definition: Definition) -> int:
    if not definition.is_result:
        return definition.token.start
    return syntax.tokens[definition.statement.op].start


def offset_in(text: Text, location: ir.Location) -> int | None:
    position = Diagnostic.at(location, "note", "")
    if position.file != "-" or not position.line:
        return None
    return text.offset_in_mlir(position.line, position.column)


BROKEN = ["(", "{", "[", '"', "}", ")", "%0 =", '%9 = "graph.add"(%x, ', "^bb0(%a", "-> !x {{"]


@pytest.mark.parametrize("broken", BROKEN)
def test_lines_after_a_broken_one_have_their_definitions(broken):
    text = MODULE.replace('  "graph.require"', f'  {broken}\n  "graph.require"')
    syntax = Syntax.of(text, Span(0, len(text)))
    (use,) = (token for token in syntax.tokens if token.text == "%2#0")
    definition = syntax.definition(use)
    assert definition is not None
    assert text[definition.token.start :].startswith("%2:2 = scf.if")
    assert list(syntax.functions) == ["@half", "@main"]


@pytest.mark.parametrize("broken", BROKEN)
def test_functions_after_a_broken_one_are_their_own(broken):
    text = MODULE.replace("  return %x : !x", f"  {broken}")
    syntax = Syntax.of(text, Span(0, len(text)))
    assert list(syntax.functions) == ["@half", "@main"]
    (use,) = (token for token in syntax.tokens if token.text == "%2#0")
    assert syntax.function_name(use.start) == "@main"
    exp = text.index('"graph.exp"')
    (x,) = (token for token in syntax.tokens if token.text == "%x" and 0 < token.start - exp < 20)
    definition = syntax.definition(x)
    assert definition is not None
    assert definition.token.start > text.index("@main")


MARKS = ["(", ")", "{", "}", "[", "]", "<", ">", '"', "->", ":", ",", "=", "#", " ", "\n", "\0"]
WORDS = [
    "%x",
    "%0 = ",
    "@main",
    "!x",
    "#graph.shape<[",
    "^bb0(",
    "func.func ",
    "module {",
    "é",
    "𝄞",
]
LONGER = [
    "// RUN: --relax-",
    "// -----\n",
    '"graph.add"(',
    "{axes = ",
    "%1#99999999999",
    "!a = !a\n",
]
SNIPPETS = st.sampled_from([*MARKS, *WORDS, *LONGER, "%2:99999999999 = "])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(MODULE)), SNIPPETS), max_size=6), st.data())
def test_no_text_is_refused(inserted, data):
    text = MODULE
    for offset, snippet in inserted:
        text = text[:offset] + snippet + text[offset:]
    text = text[: data.draw(st.integers(0, len(text)))]
    document = Document.of(text)
    outline.outline(document)
    for offset in data.draw(st.lists(st.integers(0, len(text)), min_size=3, max_size=3)):
        hover.hover(document, offset)
        spans = [navigation.definition(document, offset), *navigation.references(document, offset)]
        completions = completion.complete(document, offset)
        spans += [each.span for each in completions]
        assert all(0 <= span.start <= span.end <= len(text) for span in spans if span is not None)
        assert all(each.span.start <= offset for each in completions)
        navigation.rename(document, offset, "other")
        signature(document, offset)
        quick_fixes(document, Span(min(offset, 10), offset))


def test_texts_that_are_too_long_have_no_names():
    document, offset = opened(at("%", "4 : !x") + " " * 500_000)
    assert hover.hover(document, offset) is None
    assert navigation.definition(document, offset) is None
    assert completion.complete(document, offset) == []
    assert outline.outline(document) == []


N = 100_000
LONG = {
    "facts": "func.func @f() attributes {graph.facts = [" + '"a",' * (N // 4) + '"a"]} {}',
    "word": "// RUN: " + "a" * N,
    "call": "a" * N + "(",
    "expectations": "// RUN: --verify-diagnostics" + "expected-error {{" * (N // 17),
    "open": "{" * N,
    "close": "}" * N,
    "quotes": '"' * N,
    "one name": "func.func @f() {\n" + '%0 = "a.b"(%0) : (i1) -> i1\n' * (N // 28) + "}",
    "functions": "func.func @f() { return }\n" * (N // 26),
    "modules": "// -----\n" * (N // 9),
    "chain": "".join(f"!a{i} = !a{i + 1}\n" for i in range(N // 16))
    + 'func.func @f(%x: !a0) { "a.b"() {s = #graph.shape<["n"]>} }',
    "tree": "".join(f"!a{i} = tuple<!a{i + 1}, !a{i + 1}>\n" for i in range(99))
    + 'func.func @f(%x: !a0) { "a.b"() {s = #graph.shape<["n"]>} }',
    "casts": "func.func @f() {\n"
    + '%0 = "graph.match_cast"(%0)\n' * (N // 28)
    + '"a.b"() {s = #graph.shape<["n"]>} }',
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_texts_take_linear_time(text):
    start = time.process_time()
    document = Document.of(text)
    for offset in (len(text) // 2, len(text) - len('n"]>} }'), len(text)):
        hover.hover(document, offset)
        navigation.definition(document, offset)
        navigation.references(document, offset)
        completion.complete(document, offset)
        signature(document, offset)
        quick_fixes(document, Span(0, offset))
    outline.outline(document)
    problems(document, Analysis((Diagnostic("error", "x", "-", 1, 1),) * 100))
    assert time.process_time() - start < 10  # it takes two at most; a quadratic one, minutes
