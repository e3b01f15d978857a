"""Diagnostics, types and facts of texts, which may be hostile."""

import json
import os
import time
from threading import Timer
from typing import BinaryIO

import pytest
from marked import CURSOR, MODULE, opened, shown

from relax_mlir.lsp import analysis
from relax_mlir.lsp.analysis import SymbolFacts, analyse
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.features.problems import Problem, problems
from relax_mlir.lsp.text import Span, Text


def told(text: str) -> list[Problem]:
    document = Document.of(text)
    return problems(document, analyse(document.text))


def test_a_right_module():
    document = Document.of(MODULE)
    result = analyse(document.text)
    assert problems(document, result) == []
    assert result.symbols == {
        ("@half", "n"): SymbolFacts((), 0, None),
        ("@main", "n"): SymbolFacts(("n <= 100", "k <= n"), 0, 100),
        ("@main", "k"): SymbolFacts(("k <= n",), 0, 100),
    }
    at_exp = MODULE.index('"graph.exp"')
    (types,) = result.values[at_exp]
    assert types.written == "tensor<?x4xf32>"
    assert types.inferred == 'tensor<?x4xf32, #graph.shape<["n", 4]>>'
    assert types.short == "tensor<n x 4 x f32>"
    assert [types.short for types in result.values[MODULE.index("scf.if")]] == [
        "tensor<n x 4 x f32>",
        "index",
    ]


def test_facts_of_branches_are_those_of_both():
    branch = """{
      %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
      "graph.require"() {any_of = ["k <= LIMIT"], by = "me"} : () -> ()
      "graph.require"() {any_of = ["k <= 9"], by = "me"} : () -> ()
    }"""
    both = branch.replace("LIMIT", "3") + " else " + branch.replace("LIMIT", "5")
    text = f"func.func @main(%x: tensor<?xf32>, %c: i1) {{\n scf.if %c {both}\n return\n}}"
    result = analyse(Text(text))
    assert result.diagnostics == ()
    assert result.symbols == {("@main", "k"): SymbolFacts(("k <= 9",), 0, 9)}


WRONG = [
    ("return %4", "return %5", "%5", "undeclared SSA value"),
    ('xf32, #graph.shape<["k"]', 'xf64, #graph.shape<["k"]', '"graph.match_cast"', "xf64"),
    ("= scf.if %c", "= scf.iff %c", "scf.iff", "'scf.iff'"),
    ('["k"]', '["k k"]', '"graph.match_cast"', "k k"),
    ("n <= 100", "n <= ", "func.func @main", "graph.facts"),
]


@pytest.mark.parametrize(("right", "wrong", "where", "message"), WRONG)
def test_errors_are_at_their_token(right, wrong, where, message):
    assert MODULE.count(right) == 1
    text = MODULE.replace(right, wrong)
    problem = told(text)[0]
    assert problem.severity == "error"
    assert message in problem.message
    assert problem.span == Span(text.index(where), text.index(where) + len(where.split()[0]))


def test_columns_after_other_scripts():
    document = Document.of('func.func @"𝄞é"() { return %5 : i1 }\n')
    (problem,) = problems(document, analyse(document.text))
    assert shown(document, problem.span) == 'func.func @"𝄞é"() { return [%5] : i1 }'
    assert document.text.position(problem.span.start) == (0, 28)


def test_notes_are_related():
    (problem,) = told(MODULE.replace("(!x, tensor<?x4xf32>) -> !x", "(!x, !x) -> !x"))
    ((span, note),) = problem.related
    assert note == "prior use here"
    assert MODULE[span.start : span.end] == "%0"


CALL = """  %5 = "graph.call"(%4) {callee = @half, sym_args = #graph.shape<[]>,
      operandSegmentSizes = #ins, resultSegmentSizes = #outs} : (!x) -> !x
"""
SEGMENTS = f"#ins = array<i32: 1{', 0' * 31}>\n#outs = array<i32: 1{', 0' * 7}>\n"
CALLING = SEGMENTS + MODULE.replace("  return %4", CALL + "  return %4")
BROKEN = [
    ("return %x : !x\n", "return %z : !x\n", "%z : !x"),
    ("return %x : !x\n}", "return %x : !x\n", "%x: !x, %y"),
    ("return %x : !x\n}", "return %x : !x\n}}", "}\nfunc.func @main"),
    ("@half(%x: !x)", "@half(%x: !x, %q)", ") -> !x"),
    ("@half(%x: !x)", "@half(%x: !z)", ") -> !x"),
    ('"graph.exp"(%x)', '"graph.exp"(%x', " : (!x)"),
]
LATE = """func.func @late(%x: tensor<3xi32>) -> tensor<3xi32> {
  %0 = "graph.exp"(%x) : (tensor<3xi32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}
"""


@pytest.mark.parametrize(("right", "wrong", "where"), BROKEN)
def test_other_functions_of_a_broken_one_are_checked(right, wrong, where):
    """The two errors are that of the broken function and one that a pass reports elsewhere."""
    assert told(CALLING) == []
    text = CALLING.replace(right, wrong) + LATE
    document = Document.of(text)
    result = analyse(document.text)
    first, second = problems(document, result)
    assert text.startswith(where, first.span.start)
    assert "'graph.exp' op expects a float" in second.message
    assert second.span.start > text.index("@late")
    (types,) = result.values.get(text.index('"graph.add"'), (None,))
    assert (types is None) == ("exp" in right)


def test_errors_of_many_functions():
    text = "".join(f"func.func @f{i}() {{\n  return %x : i1\n}}\n" for i in range(20))
    assert 5 < len(told(text)) < 20


def test_each_module_of_a_text():
    text = "func.func @f() {\n  return %a\n}\n// -----\n\n" + MODULE + "// -----\nfunc.func @g("
    document = Document.of(text)
    result = analyse(document.text)
    lines = [document.text.position(each.span.start)[0] for each in problems(document, result)]
    assert lines == [1, text.count("\n")]
    assert text.index('"graph.exp"') in result.values


HOSTILE = [
    *("", "\n", "\0", "ML\xefR\0\0\0", "\ud800", "x" * 100, "{" * 2000, '"' * 99, "\r\r\n\r"),
    *("!a = !a\n", "#a = #a", "module {" * 300, "// -----\n" * 50),
    'func.func @f(%x: tensor<?xf32, #graph.shape<["n n"]>>) { return }',
    "func.func @f(%x: tensor<4xf32, #graph.shape<[-1]>>) { return }",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_is_checked_and_the_server_lives(text):
    for problem in told(text):
        assert problem.message
        assert 0 <= problem.span.start <= problem.span.end <= len(text)


def test_many_errors_are_cut():
    line = '  "graph.require"() {any_of = ["k <= n"], by = "me"} : () -> ()\n'
    text = "func.func @main() {\n" + line * 500 + "  return\n}\n"
    assert 0 < len(told(text)) <= 100


def hang(text: Text, result: BinaryIO) -> int:
    time.sleep(60)
    return 0


def crash(text: Text, result: BinaryIO) -> int:
    diagnostic = {"severity": "error", "message": "first", "file": "-", "line": 1, "column": 1}
    fields = {"diagnostics": [{**diagnostic, "notes": []}], "values": [], "symbols": []}
    result.write(json.dumps(fields).encode() + b'\n{"diagn')
    result.flush()
    os.abort()


def fail(text: Text, result: BinaryIO) -> int:
    raise MemoryError


@pytest.mark.parametrize(
    ("reader", "messages"),
    [
        (hang, ["takes more than 1 s"]),
        (crash, ["first", "ends with SIGABRT"]),
        (fail, ["checking the text fails"]),
    ],
)
def test_a_child_that_ends_is_reported(monkeypatch, reader, messages):
    monkeypatch.setattr(analysis, "_write", reader)
    document = Document.of("module {}")
    result = problems(document, analyse(document.text, seconds=1))
    assert [problem.span.start for problem in result] == [0] * len(messages)
    for problem, message in zip(result, messages, strict=True):
        assert message in problem.message


DAMAGED = [
    b"[]", b"1", b"{}", b'{"diagnostics": 1, "values": [], "symbols": []}', b"[" * 5000,
    b'{"diagnostics": [{"notes": []}], "values": [], "symbols": []}',
    b'{"diagnostics": [], "values": [[1, 1, [["a"]]]], "symbols": []}',
    b'{"diagnostics": [], "values": [[1]], "symbols": []}', b"\xff\xfe",
    b'{"diagnostics": [], "values": [], "symbols": [["f", "n", 1, 2, 3]]}',
]  # fmt: skip


@pytest.mark.parametrize("data", DAMAGED, ids=range(len(DAMAGED)))
def test_what_a_child_wrote_may_be_damaged(monkeypatch, data):
    def write(text: Text, result: BinaryIO) -> int:
        result.write(data)
        return 0

    monkeypatch.setattr(analysis, "_write", write)
    assert analyse(Text("module {}")) == analysis.Analysis()


def test_an_analysis_is_stopped(monkeypatch):
    monkeypatch.setattr(analysis, "_write", hang)
    stop, start = analysis.Stop(), time.monotonic()
    timer = Timer(0.2, stop.now)
    timer.start()
    assert "SIGKILL" in analyse(Text("module {}"), stop).ended
    stop.now()
    assert "SIGKILL" in analyse(Text("module {}"), stop).ended
    assert time.monotonic() - start < 10


def test_a_long_text_says_what_is_missing():
    document = Document.of("module {}" + " " * 500_000)
    (problem,) = problems(document, analyse(document.text))
    assert problem.severity == "remark"
    assert problem.span == Span(0, 0)


def test_types_of_an_earlier_version():
    document, _ = opened(MODULE + CURSOR, check=True)
    later = document.changed(MODULE.replace('  "graph.require"', "  %bad = \n  new"))
    later = later.changed(MODULE.replace('  "graph.require"', "  %bad = \n  newer"))
    syntax = later.syntax_at(0)
    (value,) = syntax.values["%4"]
    types = later.types_of(value)
    assert types is not None
    assert types.short == "tensor<n x 4 x f32>"
    assert later.symbol_facts("@main", "n") == SymbolFacts(("n <= 100", "k <= n"), 0, 100)
    assert later.symbol_facts("@main", "other") is None


def test_expected_diagnostics_are_hints():
    run = "// RUN: relax-opt %s --verify-diagnostics --relax-verify\n"
    text = LATE.replace("  %0", "  // expected-error @below {{expects a float}}\n  %0")
    (problem,) = told(text)
    assert problem.severity == "error"
    (problem,) = told(run + text)
    assert problem.severity == "expected"
    (problem,) = told(run + text.replace("a float}}", "an integer}}"))
    assert problem.severity == "error"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("// RUN: relax-opt %s --relax-fuse-opps", "relax-fuse-opps"),
        (
            "// RUN: relax-opt %s --pass-pipeline='builtin.module(cse,relax-verfy{x=1})'",
            "relax-verfy",
        ),
        ("// RUN: relax-opt %s --mlir-print-ir-after=relax-nothing", "relax-nothing"),
        ("// RUN: relax-opt %s --load-passes=%S/a.py --relax-nothing", None),
        ("// RUN: relax-opt %s --relax-fuse-ops=max-size=4 --cse | relax-run %t", None),
        ("// see relax-opt --relax-nothing", None),
    ],
)
def test_unknown_passes(line, wanted):
    text = "module {}\n" + line + "\n"
    told_ = told(text)
    assert [text[each.span.start : each.span.end] for each in told_] == [wanted] * (
        wanted is not None
    )
    for problem in told_:
        assert problem.severity == "warning"
        assert problem.message.startswith(f"unknown pass '{wanted}'")
        assert "did you mean" in problem.message or wanted == "relax-nothing"
