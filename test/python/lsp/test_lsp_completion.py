"""What is offered where, and that what is offered is right."""

import re

import pytest
from marked import CURSOR, MODULE, at, opened

from relax_mlir import dialects
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.lsp import catalogue
from relax_mlir.lsp.features.completion import Completion, complete, op_snippet


def offered(marked: str, check: bool = False) -> dict[str, Completion]:
    return {each.label: each for each in complete(*opened(marked, check))}


def after(line: str) -> str:
    """The module with an incomplete line before its last."""
    return MODULE.replace("  return %4", f"  {line}{CURSOR}\n  return %4")


def replaced(marked: str, label: str) -> str:
    """The line of the mark, once the completion is taken."""
    document, _ = opened(marked)
    each = offered(marked)[label]
    text = document.text.text
    text = text[: each.span.start] + each.plain + text[each.span.end :]
    return text[text.rfind("\n", 0, each.span.start) + 1 :].partition("\n")[0].strip()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("%5 = graph.ma", '%5 = "graph.matmul"(%lhs, %rhs) : (type, type) -> type'),
        ('%5 = "graph.ma', '%5 = "graph.matmul"(%lhs, %rhs) : (type, type) -> type'),
        ("mat", '%result = "graph.matmul"(%lhs, %rhs) : (type, type) -> type'),
        ("", '%result = "graph.matmul"(%lhs, %rhs) : (type, type) -> type'),
        (f'%5 = "graph.{CURSOR}add"(%0)', '%5 = "graph.matmul"(%0)'),
        (f'%5 = "graph.{CURSOR}"', '%5 = "graph.matmul"(%lhs, %rhs) : (type, type) -> type'),
    ],
)
def test_operators(line, wanted):
    marked = after(line) if CURSOR not in line else after(line).replace(CURSOR + "\n", "\n", 1)
    if CURSOR in line:
        marked = MODULE.replace("  return %4", f"  {line}\n  return %4")
    assert set(offered(marked)) == set(catalogue.operators())
    assert replaced(marked, "graph.matmul") == wanted


def test_attributes():
    marked = after('%5 = "graph.sum"(%4) {')
    assert set(offered(marked)) == {"axes", "keepdims"}
    assert replaced(marked, "axes") == '%5 = "graph.sum"(%4) {axes = array<i64: 0>'
    marked = after('%5 = "graph.sum"(%4) {axes = array<i64: 0>,\n    ke')
    assert replaced(marked, "keepdims") == "keepdims = false"
    assert set(offered(marked)) == {"keepdims"}
    assert set(offered(after('%5 = "graph.call_tir"(%4) {'))) == {
        *("callee", "sym_args", "operandSegmentSizes", "resultSegmentSizes"),
    }
    assert offered(after('%5 = "graph.sum"(%4) {axes = ')) == {}
    assert offered(after('%5 = "graph.sum"(%4) {axes = array<i64: ')) == {}
    assert offered(after('%5 = "graph.sum"(')) == {}


def test_values():
    values = offered(after('%5 = "graph.add"(%'), check=False)
    assert list(values) == ["%4", "%2", "%1", "%0", "%c", "%y", "%x"]
    assert values["%4"].detail == "!x"
    assert values["%y"].detail == "tensor<?xf32>"
    marked = MODULE.replace(
        "scf.yield %x, %3 : !x, index\n  } else", f"scf.yield %{CURSOR}\n  }} else"
    )
    assert list(offered(marked))[:2] == ["%3", "%1"]
    assert replaced(marked, "%3") == "scf.yield %3"
    document, _ = opened(MODULE + CURSOR, check=True)
    marked = at("return %", "4 : !x")
    _, offset = opened(marked)
    details = {each.label: each.detail for each in complete(document, offset)}
    assert details["%0"] == "tensor<n x 4 x f32>"


def test_functions_and_aliases():
    functions = offered(after('%5 = "graph.call"(%4) {callee = @h'))
    assert {name: each.detail for name, each in functions.items()} == {
        "@half": "func.func private @half(%x: !x) -> !x",
        "@main": functions["@main"].detail,
    }
    aliases = offered(after('%5 = "graph.add"(%4, %4) : (!'))
    assert aliases["!x"].detail == 'tensor<?x4xf32, #graph.shape<["n", 4]>>'
    assert "!graph.shape_value" in aliases
    assert replaced(after("#gra"), "#graph.shape") == '#graph.shape<[""]>'


def test_symbols():
    marked = after('%5 = "graph.reshape"(%4) {shape = #graph.shape<["')
    assert set(offered(marked)) == {"n", "k"}
    marked = MODULE.replace("n <= 100", f"n <= 100 * {CURSOR}")
    assert set(offered(marked)) == {"n", "k"}
    assert offered(after('%5 = "graph.quantize"(%4) {scheme = "')) == {}


RUN = "// RUN: relax-opt %s "


@pytest.mark.parametrize(
    ("line", "label", "wanted"),
    [
        ("--relax-fu", "relax-fuse-ops", "--relax-fuse-ops"),
        ("--", "canonicalize", "--canonicalize"),
        ("--pass-pipeline='builtin.module(", "cse", "--pass-pipeline='builtin.module(cse"),
        ("--pass-pipeline='cse,relax-", "relax-verify", "--pass-pipeline='cse,relax-verify"),
        ("--relax-fuse-ops='m", "max-size", "--relax-fuse-ops='max-size="),
        ("--pass-pipeline='relax-fuse-ops{", "max-size", None),
        ("--pass-pipeline='cse,relax-fuse-ops{max", "max-size", None),
    ],
)
def test_run_lines(line, label, wanted):
    marked = RUN + line + CURSOR
    wanted = wanted or line.removesuffix("max") + "max-size="
    assert replaced(marked, label) == RUN + wanted


def test_no_passes_in_other_comments():
    assert offered("// a comment --relax-fu" + CURSOR) == {}
    assert offered("// RUN: relax-opt" + CURSOR) == {}


@pytest.mark.parametrize("line", ["%5 = arith.constant ", "func.func @f(", '%5 = "text" '])
def test_nothing_where_nothing_is_known(line):
    assert offered(after(line)) == {}


@pytest.fixture(scope="module")
def context() -> ir.Context:
    return dialects.make_context()


@pytest.mark.parametrize("name", sorted(catalogue.operators()))
def test_what_is_offered_parses(name, context):
    """Each field filled in, the text of an operator is one that MLIR reads."""
    operator = catalogue.operators()[name]
    each = Completion(name, "operator", opened(CURSOR)[0].chunks[0], op_snippet(operator, True))
    type_ = "!graph.storage" if "alloc" in name else "f32"
    text = re.sub(r"\btype\b", type_, each.plain).replace("callee = @", "callee = @f")
    body, types = operator.needed()
    arguments = ", ".join(f"%{operand}: {type_}" for operand in body)
    module = f"func.func @f({arguments}) {{\n  {text}\n  return\n}}"
    with context, ir.Location.unknown():
        parse_module(module)
    assert len(re.findall(r"\$\{?\d+", each.snippet)) >= len(body) + len(types)


@pytest.mark.parametrize(
    ("before", "labels", "line"),
    [
        (
            "func.func @f(%x: !x {gr",
            {"graph.name", "graph.inout", "graph.no_lift", "graph.device", "tir.sym"},
            'func.func @f(%x: !x {graph.name = ""',
        ),
        (
            "func.func @f(%x: !x {graph.inout = 0 : i64, ",
            {"graph.name", "graph.inout", "graph.no_lift", "graph.device", "tir.sym"},
            'func.func @f(%x: !x {graph.inout = 0 : i64, graph.name = ""',
        ),
        (
            "func.func @f(%x: !x) attributes {",
            {
                *("graph.facts", "graph.num_inputs", "graph.noinline", "graph.device"),
                *("tir.prim_func", "tir.num_outs"),
            },
            'func.func @f(%x: !x) attributes {graph.facts = [""]',
        ),
    ],
)
@pytest.mark.parametrize("rest", ["", "})", "\n  return %x : !x\n}\n"])
def test_attributes_of_functions(before, labels, line, rest):
    marked = "!x = tensor<4xf32>\n" + before + CURSOR + rest
    assert set(offered(marked)) == labels
    label = "graph.name" if "graph.name" in labels else "graph.facts"
    assert replaced(marked, label) == line + rest.partition("\n")[0]
