"""Diagnostics as values, and the comments that expect them."""

import pytest

from relax_mlir.diagnostics import MAX_COLUMNS, MAX_LINES, Diagnostic, cut, parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError
from relax_mlir.testing.expectations import expectations, unmet


def test_cut_bounds_lines_and_columns():
    assert cut("") == ""
    assert cut("x" * MAX_COLUMNS) == "x" * MAX_COLUMNS
    assert cut("x" * (MAX_COLUMNS + 1)) == "x" * MAX_COLUMNS + " ..."
    full = "\n".join(map(str, range(MAX_LINES)))
    assert cut(full) == full
    assert cut(full + "\nx\ny") == full + "\n... (2 more lines)"


def test_wrong_text_is_a_located_error():
    with make_context(), pytest.raises(CompileError, match=r"^-:2:3: error: ") as caught:
        parse_module("module {\n  nonsense\n}")
    assert (caught.value.diagnostics[0].line, caught.value.diagnostics[0].column) == (2, 3)


@pytest.mark.parametrize(
    ("comment", "line"),
    [
        ("// expected-error {{x}}", 2),
        ("// expected-error @below {{x}}", 4),
        ("// expected-error@below {{x}}", 4),
        ("// expected-error @above {{x}}", 1),
        ("// expected-error @+5 {{x}}", 7),
        ("// expected-error @-1 {{x}}", 1),
        ("// expected-error @unknown {{x}}", 0),
    ],
)
def test_place_of_an_expectation(comment, line):
    (wanted,) = expectations(["", comment, "// expected-note @below {}", "", ""])[:1]
    assert (wanted.severity, wanted.line, wanted.text) == ("error", line, "x")


def test_several_expectations_on_a_line():
    found = expectations(["// expected-error {{a}} expected-note @+1 {{b}}"])
    assert [(one.severity, one.line, one.text) for one in found] == [
        ("error", 1, "a"),
        ("note", 2, "b"),
    ]


def test_braces_in_an_expectation():
    (wanted,) = expectations(["// expected-error {{got {x} and {{y}}}}"])
    assert wanted.text == "got {x} and {{y}}"


def error(message, line=1, **kwargs):
    return Diagnostic("error", message, "-", line, 1, **kwargs)


def test_each_expectation_stands_for_one_diagnostic():
    lines = ["// expected-error {{wrong}}"]
    assert unmet(lines, [error("very wrong")]) == []
    assert [d.message for d in unmet(lines, [error("wrong"), error("wrong")])] == [
        "unexpected error: wrong"
    ]
    assert [d.message for d in unmet(lines, [])] == ['expected error "wrong" was not produced']


def test_notes_count_but_dumps_do_not():
    dump = Diagnostic("note", "see current operation: x", "-", 1, 1)
    note = Diagnostic("note", "made here", "-", 1, 1)
    lines = ["// expected-error {{wrong}}"]
    assert unmet(lines, [error("wrong", notes=(dump,))]) == []
    assert [d.message for d in unmet(lines, [error("wrong", notes=(note,))])] == [
        "unexpected note: made here"
    ]


def test_pattern_expectation():
    lines = ["// expected-error-re {{dim {{[0-9]+}} (of x)}}"]
    assert unmet(lines, [error("dim 17 (of x)")]) == []
    assert len(unmet(lines, [error("dim n (of x)")])) == 2


def test_diagnostic_of_another_file_is_without_a_line():
    other = Diagnostic("error", "wrong", "model.py", 1, 1)
    assert len(unmet(["// expected-error {{wrong}}"], [other])) == 2
    assert unmet(["// expected-error @unknown {{wrong}}"], [other]) == []
