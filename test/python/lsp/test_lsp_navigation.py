"""Definitions, references and renaming."""

import pytest
from marked import MODULE, at, opened, shown

from relax_mlir import dialects
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.lsp.features.navigation import can_rename, definition, references, rename
from relax_mlir.lsp.features.outline import outline

HEAD = "func.func @main("
TAIL = '-> !x attributes {graph.facts = ["n <= 100"]} {'
MAIN = {
    "x": f"{HEAD}[%x]: !x, %y: tensor<?xf32>, %c: i1) {TAIL}",
    "c": f"{HEAD}%x: !x, %y: tensor<?xf32>, [%c]: i1) {TAIL}",
}
CAST = '[%1] = "graph.match_cast"(%y) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>'


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ('"graph.exp"(%', "x)", MAIN["x"]),
        ("scf.if %c", " ->", MAIN["c"]),
        ("%2", "#0", "[%2]:2 = scf.if %c -> (!x, index) {"),
        ("return %", "4", '[%4] = "graph.add"(%2#0, %0) : (!x, tensor<?x4xf32>) -> !x'),
        ("return %", "x", "func.func private @half([%x]: !x) -> !x {"),
        ("!", "x = tensor", '[!x] = tensor<?x4xf32, #graph.shape<["n", 4]>>'),
        ("return %4 : ", "!x", '[!x] = tensor<?x4xf32, #graph.shape<["n", 4]>>'),
        ("func.func @m", "ain", MAIN["x"].replace("@main", "[@main]").replace("[%x]", "%x")),
        ('graph.facts = ["', "n <=", MAIN["x"]),
        ('any_of = ["k', " <= n", CAST),
        ('["k <= n', '"]', MAIN["x"]),
        ('#graph.shape<["k', '"]>', CAST),
        ('shape<["', "n", None),
        ("%2#0, %0) : (!x, ten", "sor", None),
        ("func.f", "unc @main", None),
    ],
)
def test_definition(before, after, wanted):
    document, offset = opened(at(before, after))
    assert shown(document, definition(document, offset)) == wanted


@pytest.mark.parametrize(
    ("line", "wanted"),
    [("scf.yield %x, %3‸ : !x, index\n  } else", "3"), ("4 : index\n    scf.yield %x, ‸%3", "4")],
)
def test_equal_names_in_two_regions(line, wanted):
    module = MODULE.replace(line.replace("‸", ""), line)
    document, offset = opened(module)
    span = definition(document, offset)
    assert shown(document, span) == f"[%3] = arith.constant {wanted} : index"


LOOPS = """\
func.func @loops(%n: index, %x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> tensor<4xf32> {
    %s = "graph.add"(%a, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  %w = scf.while (%a = %r) : (tensor<4xf32>) -> tensor<4xf32> {
    scf.condition(%c) %a : tensor<4xf32>
  } do {
  ^body(%a: tensor<4xf32>):
    scf.yield %a : tensor<4xf32>
  }
  return %w : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("before", "after", "start"),
    [
        ('add"(%', "a", "%r = scf.for %i = %n to %n step %n iter_args([%a] ="),
        ("%c) %", "a", "%w = scf.while ([%a] ="),
        ("yield %", "a", "^body([%a]:"),
        ("do {\n  ^bo", "dy", "[^body]"),
        ("(%a = %", "r)", "[%r] ="),
    ],
)
def test_definition_in_loops(before, after, start):
    document, offset = opened(at(before, after, LOOPS))
    line = shown(document, definition(document, offset))
    assert line is not None
    assert line.startswith(start)


def texts(marked):
    document, offset = opened(marked)
    lines = document.text.text.split("\n")
    return [
        lines[document.text.position(span.start)[0]].strip()[:24]
        for span in references(document, offset)
    ]


def test_references():
    assert texts(at('"graph.exp"(%', "x)")) == [
        "func.func @main(%x: !x, ",
        '%0 = "graph.exp"(%x) : (',
        "scf.yield %x, %3 : !x, i",
        "scf.yield %x, %3 : !x, i",
    ]
    assert texts(at('any_of = ["', "k")) == ['%1 = "graph.match_cast"(', '"graph.require"() {any_o']
    assert len(texts(at('facts = ["', "n"))) == 3
    assert len(texts(at("!", "x = "))) == MODULE.count("!x")
    assert texts(at("i", "1) ->")) == []


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ('"graph.exp"(%', "x)", "%input"),
        ('"graph.exp"(%', "x)", "input"),
        ("%2", "#0", "both"),
        ("@ha", "lf", "@third"),
        ("!x", " = tensor", "!matrix"),
        ("%", "y:", "%y2"),
    ],
)
def test_renamed_modules_mean_the_same(before, after, name):
    document, offset = opened(at(before, after))
    assert can_rename(document, offset) is not None
    changes = rename(document, offset, name)
    assert changes
    text = document.text.text
    for span in sorted(changes, key=lambda span: -span.start):
        text = text[: span.start] + changes[span] + text[span.end :]
    assert text != document.text.text
    wanted = printed(document.text.text)
    assert printed(text) == (wanted.replace("@half", name) if name.startswith("@") else wanted)


def printed(text: str) -> str:
    with dialects.make_context(), ir.Location.unknown():
        return str(parse_module(text))


@pytest.mark.parametrize("name", ["", "%", "%a b", "@x", "a}", "%1a", "%y", "4"])
def test_names_that_are_none_or_taken_are_refused(name):
    document, offset = opened(at('"graph.exp"(%', "x)"))
    assert rename(document, offset, name) is None


@pytest.mark.parametrize(
    ("before", "after"), [("func.f", "unc @main"), ("i", "1) ->"), ('["', "k <")]
)
def test_what_has_no_name_is_not_renamed(before, after):
    document, offset = opened(at(before, after))
    assert can_rename(document, offset) is None
    assert rename(document, offset, "x") is None


def test_libraries_are_functions():
    module = """\
"lib.function"() {sym_name = "sgemm", c_symbol = "c", convention = "x", libraries = []} : () -> ()
func.func @f(%x: f32) {
  "graph.call_dps_library"() {callee = @sg‸emm} : () -> ()
}
"""
    document, offset = opened(module)
    line = shown(document, definition(document, offset))
    assert line is not None
    assert '{sym_name = ["sgemm"],' in line
    assert len(references(document, offset)) == 2
    assert set((rename(document, offset, "@f2") or {}).values()) == {'"f2"', "@f2"}


def test_outline():
    document, _ = opened(MODULE + "// -----\n!y = i1\nfunc.func @main() {\n  return\n}‸\n")
    entries = outline(document)
    assert [entry.name for entry in entries] == ["!x", "@half", "@main", "!y", "@main"]
    assert [entry.is_function for entry in entries] == [False, True, True, False, True]
    text = document.text.text
    for entry in entries:
        assert text[entry.name_span.start : entry.name_span.end] == entry.name
    assert text[entries[2].span.start : entries[2].span.end].endswith("return %4 : !x\n}")
    assert (
        text[entries[0].span.start : entries[0].span.end]
        == '!x = tensor<?x4xf32, #graph.shape<["n", 4]>>'
    )
