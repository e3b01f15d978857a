"""Facts as a collection, and what is drawn from them before a proof."""

import pytest

from relax_mlir.symbolic import Fact, Facts, SymbolicError, parse, simplify, sym
from relax_mlir.symbolic.domain import domain_of


def test_facts_are_an_ordered_set():
    facts = Facts.parse(["n <= 8", "m >= 2", "n <= 8"])
    assert [str(fact) for fact in facts] == ["n <= 8", "m >= 2"]
    assert len(facts) == 2
    assert facts.items[0] == Fact(sym("n"), "<=", parse("8"))
    assert facts.symbols == {"m", "n"}
    assert facts == Facts.parse(["n <= 8"]) + Facts.parse(["m >= 2"])
    assert hash(facts) == hash(Facts.parse(["n <= 8", "m >= 2"]))
    assert list(Facts()) == []


def test_facts_evaluate_and_substitute():
    facts = Facts.parse(["n < m", "n mod 4 == 0"])
    assert facts.evaluate({"n": 4, "m": 5})
    assert not facts.evaluate({"n": 4, "m": 4})
    assert not facts.evaluate({"n": 5, "m": 7})
    assert [str(fact) for fact in facts.substitute({"n": sym("k") * 2})] == [
        "2*k < m",
        "2*(k mod 2) == 0",
    ]


def test_facts_refuse_one_text_and_unknown_relations():
    with pytest.raises(TypeError, match="a list of texts"):
        Facts.parse("n <= 8")
    with pytest.raises(SymbolicError, match="'=' is not a relation"):
        Fact(sym("n"), "=", sym("m"))


@pytest.mark.parametrize(
    ("facts", "symbol", "expected"),
    [
        (["n <= 8"], "n", (0, 8)),
        (["n < 8", "n > 2"], "n", (3, 7)),
        (["2*n <= 9"], "n", (0, 4)),
        (["3*n >= 7"], "n", (3, None)),
        (["m + n <= c", "c <= 10", "m >= 4"], "n", (0, 6)),
        (["m*n <= 100", "m >= 3"], "n", (0, 33)),
        (["m*n >= 100", "m <= 3"], "n", (34, None)),
        (["n mod k == 3"], "k", (1, None)),
    ],
)
def test_ranges_of_symbols(facts, symbol, expected):
    assert domain_of(Facts.parse(facts)).ranges[symbol] == expected


@pytest.mark.parametrize(
    "facts",
    [
        ["n <= 2", "n >= 5"],
        ["n == n + 1"],
        ["2*n == 3"],
        ["m == 16", "n == 32", "m == n"],
        ["n mod 4 == 1", "n mod 2 == 0", "n <= 1"],
        ["k == 0", "n mod k == 1"],
    ],
)
def test_contradictions_leave_nothing(facts):
    assert domain_of(Facts.parse(facts)).empty


@pytest.mark.parametrize(
    ("text", "facts", "expected"),
    [
        ("m + n", ["m == 2*n"], "3*n"),
        ("o*p", ["o == m", "p == n"], "m*n"),
        ("c - m", ["m + n == c"], "n"),
        ("n floordiv 16 * 16", ["n mod 16 == 0"], "n"),
        ("n floordiv 2", ["n mod 16 == 0"], "n floordiv 2"),
        ("2*(n floordiv 4)", ["n mod 4 == 0"], "n floordiv 2"),
        ("(n + 5) mod 8", ["n mod 16 == 0"], "5"),
        ("(n + 5) mod 8", ["n mod 4 == 0", "n mod 6 == 0"], "4*((n floordiv 12 + 1) mod 2) + 1"),
        ("k*(n floordiv k)", ["n mod k == 0"], "n"),
        ("min(n, 8)", ["n <= 8"], "n"),
        ("min(m, n)", ["m <= n"], "m"),
        ("max(n - 4, 0) + m", ["n >= 4", "m == 7"], "n + 3"),
        ("n mod 16", ["n < 16"], "n"),
        ("n mod k", ["n < k"], "n"),
        ("n floordiv k", ["n < k"], "0"),
        ("n mod 16", ["n < 17"], "n mod 16"),
        ("n + 1", [], "n + 1"),
        ("n + 1", ["n <= 2", "n >= 5"], "n + 1"),
    ],
)
def test_simplify(text, facts, expected):
    assert str(simplify(text, Facts.parse(facts))) == expected
