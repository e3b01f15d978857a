"""Corrections of misspelt names, and the operands of the operator that is being written."""

import pytest
from marked import CURSOR, MODULE, at, opened

from relax_mlir.lsp.analysis import analyse
from relax_mlir.lsp.features.quick_fixes import quick_fixes
from relax_mlir.lsp.features.signature_help import signature
from relax_mlir.lsp.text import Span, Text


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"graph.match_cast"', '"graph.match_cost"'),
        ("%x: !x, %y", "%x: !xs, %y"),
    ],
)
def test_a_fix_makes_the_module_right(right, wrong):
    text = MODULE.replace(right, wrong)
    document, _ = opened(text + CURSOR)
    start = text.index(wrong) + (4 if wrong.startswith("%") else 1)
    fix = quick_fixes(document, Span(start, start))[0]
    fixed = text[: fix.span.start] + fix.text + text[fix.span.end :]
    assert fixed == MODULE
    assert analyse(Text(fixed)).diagnostics == ()


def test_values_and_functions():
    names = """func.func @first(%left: i1, %right: i1) {
  "a.b"(%rihgt, %left, %lef#0) {f = @frist} : X
}
"""
    document, _ = opened(names + CURSOR)
    fixes = quick_fixes(document, Span(0, len(names)))
    assert [(names[fix.span.start : fix.span.end], fix.text) for fix in fixes] == [
        ("%rihgt", "%right"),
        ("%lef#0", "%left#0"),
        ("@frist", "@first"),
    ]


def test_passes():
    text = "// RUN: relax-opt %s --relax-fuse-opps\nmodule {}\n"
    document, _ = opened(text + CURSOR)
    fix = quick_fixes(document, Span(30, 30))[0]
    assert text[: fix.span.start] + fix.text + text[fix.span.end :] == text.replace("opps", "ops")


def test_right_text_has_no_fixes():
    document, _ = opened(MODULE + CURSOR)
    assert quick_fixes(document, Span(0, len(MODULE))) == []


@pytest.mark.parametrize(
    ("operands", "active"),
    [("", 0), ("%x", 0), ("%x,", 1), ("%x, ", 1), ("%x, %y", 1), ("%x, %y, %z", 1)],
)
def test_signature(operands, active):
    marked = MODULE.replace("  return %4", f'  %5 = "graph.matmul"({operands}{CURSOR}\n  return %4')
    result = signature(*opened(marked))
    assert result is not None
    assert result.label == '"graph.matmul"(lhs, rhs) -> result'
    assert [result.label[span.start : span.end] for span in result.operands] == ["lhs", "rhs"]
    assert result.active == active
    assert "**C1**" in result.documentation


def test_signature_before_the_next_operation():
    marked = MODULE.replace("  %4 = ", f'  %5 = "graph.matmul"(%0, {CURSOR}\n  %4 = ')
    result = signature(*opened(marked))
    assert result is not None
    assert result.active == 1


def test_signature_of_many_operands():
    marked = MODULE.replace(
        "  return %4", f'  %5 = "graph.concat"(%0, %1, %2, {CURSOR})\n  return %4'
    )
    result = signature(*opened(marked))
    assert result is not None
    assert [result.label[span.start : span.end] for span in result.operands] == [
        *("in0", "...", "in31"),
    ]
    assert result.active == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"graph.add"(%2#0, %0)', " : (!x"),
        ("graph.ad", 'd"(%2'),
        ("scf.if ", "%c"),
        ("any_of = [", '"k'),
    ],
)
def test_no_signature(before, after):
    assert signature(*opened(at(before, after))) is None
