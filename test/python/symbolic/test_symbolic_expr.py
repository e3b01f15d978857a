"""Canonical form: value kept, text stable, and the identities of floor division."""

import pickle

import pytest
from expression_trees import assignments, defined_values, spell, trees
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from relax_mlir.symbolic import (
    Expr,
    SymbolicError,
    as_expr,
    const,
    maximum,
    minimum,
    parse,
    solve,
    sym,
)

EVERYWHERE = assignments()


def parse_or_reject(tree) -> Expr:
    try:
        return parse(spell(tree))
    except SymbolicError as error:
        # Only a division that is never defined may be refused.
        assert "a divisor is positive" in str(error)  # noqa: PT017
        assume(False)
        raise


@settings(max_examples=150, deadline=None)
@given(trees)
def test_canonical_form_keeps_the_value(tree):
    expr = parse_or_reject(tree)
    low, high = expr.range
    for values, value in defined_values(tree, EVERYWHERE):
        assert expr.evaluate(values) == value
        assert low is None or low <= value
        assert high is None or value <= high


@settings(max_examples=150, deadline=None)
@given(trees)
def test_text_parses_to_the_same_expression(tree):
    expr = parse_or_reject(tree)
    again = parse(str(expr))
    assert again == expr
    assert hash(again) == hash(expr)
    assert str(again) == str(expr)


@settings(max_examples=100, deadline=None)
@given(trees, trees)
def test_substitute_then_evaluate_is_evaluate(tree, replacement):
    expr, inner = parse_or_reject(tree), parse_or_reject(replacement)
    try:
        replaced = expr.substitute({"n": inner, "m": 5})
    except SymbolicError:
        assume(False)
    for values, value in defined_values(replacement, EVERYWHERE[::7]):
        if value < 0:
            continue
        try:
            expected = expr.evaluate({**values, "n": value, "m": 5})
        except SymbolicError:
            continue
        assert replaced.evaluate(values) == expected


@settings(max_examples=100, deadline=None)
@given(trees)
def test_lower_agrees_with_evaluate(tree):
    expr = parse_or_reject(tree)
    for values, _ in defined_values(tree, EVERYWHERE[::11]):
        folded = expr.lower(
            const=lambda value: value,
            symbol=lambda name, values=values: values[name],
            add=lambda a, b: a + b,
            mul=lambda a, b: a * b,
            floordiv=lambda a, b: a // b,
            mod=lambda a, b: a % b,
            min=min,
            max=max,
        )
        assert folded == expr.evaluate(values)


def test_lower_makes_each_atom_once():
    made = []

    def binary(word):
        return lambda a, b: f"{word}({a}, {b})"

    text = parse("(n floordiv 4)*(n floordiv 4) + n floordiv 4 - 2").lower(
        const=str,
        symbol=lambda name: made.append(name) or name,
        add=binary("add"),
        mul=binary("mul"),
        floordiv=lambda a, b: made.append("floordiv") or f"div({a}, {b})",
        mod=binary("mod"),
        min=binary("min"),
        max=binary("max"),
    )
    assert made == ["n", "floordiv"]
    assert text == "add(add(mul(div(n, 4), div(n, 4)), div(n, 4)), -2)"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("n*2", "2*n"),
        ("1 + m*n", "m*n + 1"),
        ("n*m + n*m", "2*m*n"),
        ("n - n", "0"),
        ("n - 2", "n - 2"),
        ("2 - n", "-n + 2"),
        ("(n + 1)*(n - 1)", "n*n - 1"),
        ("(4*n) floordiv 2", "2*n"),
        ("(4*n + 3) floordiv 2", "2*n + 1"),
        ("(n + 5) floordiv 4", "(n + 1) floordiv 4 + 1"),
        ("(n - 1) floordiv 4", "(n + 3) floordiv 4 - 1"),
        ("(4*n + 63) floordiv 64 * 64", "64*((n + 15) floordiv 16)"),
        ("n floordiv 4 floordiv 8", "n floordiv 32"),
        ("(n floordiv 4 + 3) floordiv 2", "(n + 4) floordiv 8 + 1"),
        ("(n*k) mod k", "0"),
        ("(n*k + m) mod k", "m mod k"),
        ("(n*k) floordiv (k*m)", "n floordiv m"),
        ("(k*n + k*m) floordiv (2*k)", "(m + n) floordiv 2"),
        ("(n*n - 1) floordiv (n + 1)", "n - 1"),
        ("k floordiv k", "1"),
        ("n mod 16 mod 4", "n mod 4"),
        ("(4*n + 6) mod 16", "4*((n + 1) mod 4) + 2"),
        ("n mod k mod k", "n mod k"),
        ("n mod 16 floordiv 16", "0"),
        ("n mod k floordiv k", "0"),
        ("-(n floordiv 2)", "-(n floordiv 2)"),
        ("3*(n floordiv 2)*m", "3*m*(n floordiv 2)"),
        ("n ceildiv 4", "(n + 3) floordiv 4"),
        ("n // 4 + n % 4", "n floordiv 4 + n mod 4"),
        ("min(8, n)", "min(n, 8)"),
        ("min(n, min(8, m), n)", "min(m, n, 8)"),
        ("min(n, n + 1)", "n"),
        ("max(n, 0)", "n"),
        ("max(n, -1)", "n"),
        ("min(2*n + 2, 2*m + 2)", "2*min(m, n) + 2"),
        ("max(max(m, n) + 2, 0)", "max(m, n) + 2"),
        ("min(7, 3)", "3"),
        ("0*n", "0"),
    ],
)
def test_canonical_text(text, canonical):
    assert str(parse(text)) == canonical
    assert parse(text) == parse(canonical)


def test_arithmetic_takes_integers_on_both_sides():
    n = sym("n")
    assert str(2 - n) == "-n + 2"
    assert str(2 + n) == str(n + 2) == "n + 2"
    assert str(3 * n) == "3*n"
    assert str(17 // n) == "17 floordiv n"
    assert str(17 % n) == "17 mod n"
    assert str(-n) == "-n"
    assert minimum(n, 4) == parse("min(n, 4)")
    assert maximum(n, sym("m"), 4) == parse("max(m, n, 4)")


def test_constants_equal_integers():
    assert const(4) == 4
    assert hash(const(4)) == hash(4)
    assert sym("n") != 4
    assert sym("n") != "n"
    assert (sym("n") - sym("n")).value == 0
    assert sym("n").value is None
    assert as_expr("n + 1") == sym("n") + 1


def test_symbols_are_those_that_matter():
    assert parse("n*m + k floordiv 2").symbols == {"k", "m", "n"}
    assert parse("n - n").symbols == frozenset()


def test_substitution_is_simultaneous():
    n, m = sym("n"), sym("m")
    assert (n + 2 * m).substitute({"n": m, "m": n}) == m + 2 * n
    assert parse("k*m").substitute({"k": 2, "m": 3}) == 6
    assert parse("n + n mod k").substitute({"k": 1}) == n


def test_pickle_keeps_equality_and_hash():
    expr = parse("2*min(m, n floordiv 3) + 1")
    hash(expr)
    again = pickle.loads(pickle.dumps(expr))
    assert again == expr
    assert hash(again) == hash(expr)


def test_integers_beyond_64_bits_stay_exact():
    n = sym("n")
    assert (n * 2**70 + 1).evaluate({"n": 3}) == 3 * 2**70 + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n floordiv 0", "'n floordiv 0' divides by 0; a divisor is positive"),
        ("n mod (2 - 4)", "'n mod (-2)' divides by -2; a divisor is positive"),
    ],
)
def test_a_constant_divisor_is_positive(text, message):
    with pytest.raises(SymbolicError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_evaluate_names_what_is_missing_or_undefined():
    with pytest.raises(SymbolicError, match=r"^symbol 'm' has no value$"):
        parse("n + m").evaluate({"n": 1})
    with pytest.raises(SymbolicError, match=r"^divisor of 'n mod k' is 0, not positive$"):
        parse("n mod k").evaluate({"n": 1, "k": 0})


def test_as_expr_refuses_what_is_no_integer():
    with pytest.raises(TypeError, match="float is not an expression"):
        as_expr(1.5)
    with pytest.raises(TypeError):
        sym("n") + 1.5


def test_a_product_with_too_many_terms_is_refused():
    wide = sum((sym(f"a{i}") for i in range(100)), const(0))
    with pytest.raises(SymbolicError, match="more than 4096 terms"):
        wide * wide


@pytest.mark.parametrize(
    ("step", "match"),
    [
        (lambda a, b: (a * a, b), "degree over 1024"),
        (lambda a, b: (maximum(a, b) + a, minimum(a, b) * b), "longer than 16384 characters"),
        (lambda a, b: (a // (a + 1) + a % (b + a + 2), b), "longer than 16384 characters"),
    ],
)
def test_what_doubles_again_and_again_is_refused(step, match):
    def repeated(a, b):
        for _ in range(50):
            a, b = step(a, b)

    with pytest.raises(SymbolicError, match=match):
        repeated(sym("n"), sym("m"))


@given(st.integers(1, 9), st.integers(-9, 9))
def test_solve_returns_the_line(factor, offset):
    expr = sym("n") * factor + sym("m") * 3 + offset
    assert solve(expr, "n") == (const(factor), sym("m") * 3 + offset)


@pytest.mark.parametrize("text", ["-n + 2", "n*n", "n*m", "n floordiv 2", "n + n mod 3", "m", "4"])
def test_solve_refuses_what_is_no_rising_line(text):
    assert solve(text, "n") is None
