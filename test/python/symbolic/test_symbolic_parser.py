"""Grammar: precedence, and messages that name the place."""

import pytest

from relax_mlir.symbolic import Fact, SymbolicError, parse, sym


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("2 + 3*4", {}, 14),
        ("7 floordiv 2 * 2", {}, 6),
        ("7 * 2 floordiv 4", {}, 3),
        ("20 mod 7 * 2", {}, 12),
        ("10 - 3 - 2", {}, 5),
        ("-7 floordiv 2", {}, -4),
        ("-(7 floordiv 2)", {}, -3),
        ("--7", {}, 7),
        ("-7 mod 4", {}, 1),
        ("2*(n + 1)", {"n": 3}, 8),
        ("min(max(n, 2), 5) ceildiv 2", {"n": 9}, 3),
        ("_n1", {"_n1": 3}, 3),
        (" n\t+\n1 ", {"n": 3}, 4),
    ],
)
def test_precedence(text, values, expected):
    assert parse(text).evaluate(values) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'': column 1: an expression expected, not the end"),
        ("n +", "'n +': column 4: an expression expected, not the end"),
        ("n m", "'n m': column 3: an operator or the end expected, not 'm'"),
        ("1.5", "'1.5': column 2: an operator or the end expected, not '.'"),
        ("(n", "'(n': column 3: ')' expected, not the end"),
        ("min()", "'min()': column 5: an expression expected, not ')'"),
        ("min n", "'min n': column 5: '(' expected, not 'n'"),
        ("floordiv", "'floordiv': column 1: an expression expected, not 'floordiv'"),
        ("n @ m", "'n @ m': column 3: an operator or the end expected, not '@'"),
        ("n <= 4", "'n <= 4': column 3: an operator or the end expected, not '<='"),
    ],
)
def test_errors_name_the_place(text, message):
    with pytest.raises(SymbolicError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_integers_and_nesting_are_limited():
    assert parse("9" * 19).value == 10**19 - 1
    with pytest.raises(SymbolicError, match="an integer of at most 19 digits expected"):
        parse("9" * 20)
    assert parse("(" * 40 + "n" + ")" * 40) == sym("n")
    with pytest.raises(SymbolicError, match="nested more than 64 deep"):
        parse("(" * 100 + "n" + ")" * 100)


@pytest.mark.parametrize("name", ["", "2n", "n-m", "min", "floordiv", "é", "n m"])
def test_symbol_names(name):
    with pytest.raises(SymbolicError, match="is not a symbol name"):
        sym(name)


@pytest.mark.parametrize("text", ["n <= 2048", "n mod 16 == 0", "m + n < c", "n != 0", "n >= 1"])
def test_facts_print_as_they_are_written(text):
    assert str(Fact.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n", "'n': column 2: one of == <= < >= > != expected, not the end"),
        ("n = 4", "'n = 4': column 3: one of == <= < >= > != expected, not '='"),
        ("n <= 4 <= 5", "'n <= 4 <= 5': column 8: an operator or the end expected, not '<='"),
    ],
)
def test_fact_errors_name_the_place(text, message):
    with pytest.raises(SymbolicError) as caught:
        Fact.parse(text)
    assert str(caught.value) == message
