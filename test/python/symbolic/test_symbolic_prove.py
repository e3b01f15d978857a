"""Verdicts: never against an enumeration, and strong enough for shapes and storage plans."""

import operator
from unittest.mock import patch

import pytest
from expression_trees import NAMES, assignments, spell, trees
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from relax_mlir.symbolic import (
    Fact,
    Facts,
    SymbolicError,
    Verdict,
    at_most,
    bounds,
    differ,
    equal,
    exceed,
    holds,
    parse,
    prove,
    simplify,
)

RELATIONS = {equal: operator.eq, at_most: operator.le, differ: operator.ne}
EVERYWHERE = assignments((0, 1, 2, 3, 4, 6, 7, 8, 12, 16))

numbers = st.integers(0, 8)
symbols = st.sampled_from(NAMES)
fact_texts = st.one_of(
    st.builds("{} <= {}".format, symbols, numbers),
    st.builds("{} >= {}".format, symbols, numbers),
    st.builds("{} mod {} == {}".format, symbols, st.sampled_from((2, 3, 4)), st.integers(0, 1)),
    st.builds("{} {} {}".format, symbols, st.sampled_from(("<", "<=", "!=", "==")), symbols),
    st.sampled_from(
        (
            "m == 2*n",
            "2*m == 3*n",
            "m + n <= k",
            "k == m + n",
            "m*n <= 12",
            "n*k >= 4",
            "n mod k == 0",
            "n == m*k",
            "min(m, n) >= 2",
            "max(m, n) <= 7",
            "n floordiv 3 <= 2",
            "(m + 3*n) mod 4 == 2",
        )
    ),
)
fact_sets = st.lists(fact_texts, max_size=3).map(Facts.parse)


def is_allowed(facts, values):
    try:
        return facts.evaluate(values)
    except SymbolicError:
        return False


def values_under(facts, *sides):
    """The assignments that the facts allow and where all sides have a value, with the values."""
    rows = []
    for values in EVERYWHERE:
        if not is_allowed(facts, values):
            continue
        try:
            rows.append((values, *(side.evaluate(values) for side in sides)))
        except SymbolicError:
            continue
    return rows


def parse_or_reject(tree):
    try:
        return parse(spell(tree))
    except SymbolicError:
        assume(False)


@settings(max_examples=200, deadline=None)
@given(trees, trees, fact_sets)
def test_verdicts_never_contradict_enumeration(left, right, facts):
    lhs, rhs = parse_or_reject(left), parse_or_reject(right)
    rows = values_under(facts, lhs, rhs)
    for question, relation in RELATIONS.items():
        verdict = question(lhs, rhs, facts)
        assert [verdict.proved, verdict.refuted, verdict.unknown].count(True) == 1
        if verdict.proved:
            assert all(relation(a, b) for _, a, b in rows)
        if verdict.refuted:
            found = verdict.counterexample
            assert min(found.values(), default=0) >= 0
            assert facts.evaluate(found)
            assert not relation(lhs.evaluate(found), rhs.evaluate(found))
    if (found := exceed(lhs, rhs, facts)) is not None:
        assert facts.evaluate(found)
        assert lhs.evaluate(found) > rhs.evaluate(found)


@settings(max_examples=60, deadline=None)
@given(trees, trees, fact_sets)
@example(1, ("mod", "n", 4), Facts())
@example(("mod", "n", 6), 4, Facts())
def test_proofs_are_right_where_nothing_is_searched(left, right, facts):
    """A counterexample that is found in time would hide a proof that is wrong."""
    lhs, rhs = parse_or_reject(left), parse_or_reject(right)
    rows = values_under(facts, lhs, rhs)
    nothing = {name: lambda *arguments: None for name in ("find", "assignments")}
    prove._decide.cache_clear()
    with patch.multiple(prove.search, **nothing):
        proved = [question for question in RELATIONS if question(lhs, rhs, facts).proved]
    prove._decide.cache_clear()
    for question in proved:
        assert all(RELATIONS[question](a, b) for _, a, b in rows)


@settings(max_examples=200, deadline=None)
@given(trees, fact_sets)
def test_bounds_and_simplify_never_contradict_enumeration(tree, facts):
    expr = parse_or_reject(tree)
    low, high = bounds(expr, facts)
    simpler = simplify(expr, facts)
    for values, value in values_under(facts, expr):
        assert low is None or low <= value
        assert high is None or value <= high
        assert simpler.evaluate(values) == value


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from((16, 32, 64)), st.integers(1, 3))
def test_sums_of_rounded_sizes_are_ordered_term_by_term(small, more, unit, count):
    def total(factor):
        return " + ".join(
            f"({factor}*{name} + {unit - 1}) floordiv {unit} * {unit}" for name in NAMES[:count]
        )

    assert at_most(total(small), total(small + more)).proved
    assert at_most(total(small + more), total(small)).refuted


def test_offset_of_many_sizes_grows_with_a_dim():
    sizes = [f"({factor}*n + 63) floordiv 64 * 64" for factor in (4, 36, 9216, 768, 100, 3)]
    sizes += [f"(4*n*(p + n)*{heads} + 63) floordiv 64 * 64" for heads in (1, 9, 18)]
    offset = parse(" + ".join([*sizes, "4*h*n", "36*n*m", "4*(n + 1)*m"]))
    larger = offset.substitute({"n": parse("m")})
    facts = Facts.parse(["n <= m", "m <= 8192", "p <= 6144"])
    assert at_most(offset, larger, facts).proved
    assert at_most(larger, offset, facts).refuted


PROVED = [
    (equal, "n*k floordiv k", "n", []),
    (equal, "a*b*c*d", "c*(a*d)*b", []),
    (equal, "a*b*c*d floordiv (2*a)", "b*c*d floordiv 2", []),
    (equal, "n floordiv 16 * 16 + n mod 16", "n", []),
    (equal, "n mod 16 floordiv 4", "n floordiv 4 mod 4", []),
    (equal, "(n + 1) floordiv 2 + n floordiv 2", "n", []),
    (equal, "(n + 2) floordiv 3 + (n + 1) floordiv 3 + n floordiv 3", "n", []),
    (equal, "n ceildiv 4", "-(-n floordiv 4)", []),
    (equal, "min(n + 1, 8)", "min(n, 7) + 1", []),
    (equal, "min(m, n) + max(m, n)", "m + n", []),
    (equal, "n floordiv 16 * 16", "n", ["n mod 16 == 0"]),
    (equal, "n floordiv k * k", "n", ["n mod k == 0"]),
    (equal, "min(n, 2048)", "n", ["n <= 2048"]),
    (equal, "max(n - 4, 0)", "n - 4", ["n >= 4"]),
    (equal, "n mod k", "n", ["n < k"]),
    (equal, "m", "n", ["m == 2*k", "n == 2*k"]),
    (equal, "o*p", "m*n", ["o == m", "p == n"]),
    (equal, "n*n", "n", ["n <= 1"]),
    (equal, "n", "3", ["2*n >= 5", "3*n <= 11"]),
    (at_most, "4*n", "4*n + 2", []),
    (at_most, "n", "2048", ["n <= 2048"]),
    (at_most, "(n + 127) floordiv 128", "16", ["n <= 2048"]),
    (at_most, "m", "c", ["m + n <= c"]),
    (at_most, "4*m*h", "4*n*h", ["m <= n"]),
    (at_most, "a*d", "c*d", ["a + b <= c"]),
    (at_most, "n", "n*m", ["m >= 1"]),
    (at_most, "n", "n*n", []),
    (at_most, "n*n", "n*m", ["n <= m"]),
    (at_most, "b*s", "8192", ["b <= 8", "s <= 1024"]),
    (at_most, "n floordiv k * k", "n", []),
    (at_most, "n mod k + 1", "k", []),
    (at_most, "h*(n floordiv 16)*16", "h*n", []),
    (at_most, "(m + n + 15) floordiv 16", "(m + 15) floordiv 16 + (n + 15) floordiv 16", []),
    (at_most, "(4*n + 63) floordiv 64 * 64", "(8*n + 63) floordiv 64 * 64", []),
    (at_most, "4*min(m, n)", "(4*n + 63) floordiv 64 * 64", []),
    (differ, "n", "n + 1", []),
    (differ, "2*n", "2*m + 1", []),
    (differ, "n", "m", ["n < m"]),
    (differ, "n", "m", ["n != m"]),
    (differ, "m", "n", ["m == 16", "n == 32"]),
    (differ, "n", "0", ["n >= 1"]),
    (differ, "n", "7", ["n mod 16 == 0"]),
]


@pytest.mark.parametrize(("question", "lhs", "rhs", "facts"), PROVED)
def test_proved(question, lhs, rhs, facts):
    assert question(lhs, rhs, Facts.parse(facts)).proved


REFUTED = [
    (equal, "n", "m", []),
    (equal, "n floordiv 16 * 16", "n", []),
    (equal, "n", "2048", ["n <= 2048"]),
    (equal, "2*n + 2", "2*n", ["n >= 2"]),
    (equal, "n mod 4", "n mod 6 mod 4", []),
    (at_most, "n", "2048", []),
    (at_most, "m + n", "c - 1", ["m + n <= c"]),
    (at_most, "n", "n*m", []),
    (at_most, "b*s", "8191", ["b <= 8", "s <= 1024"]),
    (at_most, "(n + 127) floordiv 128", "15", ["n <= 2048"]),
    (differ, "n", "2*m", []),
    (differ, "3*n + 2", "7*m + 1", []),
    (differ, "n", "m", ["n <= m", "m mod 32 == 5"]),
]


@pytest.mark.parametrize(("question", "lhs", "rhs", "facts"), REFUTED)
def test_refuted(question, lhs, rhs, facts):
    verdict = question(lhs, rhs, Facts.parse(facts))
    assert verdict.refuted
    found = verdict.counterexample
    assert Facts.parse(facts).evaluate(found)
    assert not RELATIONS[question](parse(lhs).evaluate(found), parse(rhs).evaluate(found))
    assert question is not at_most or exceed(lhs, rhs, Facts.parse(facts)) is not None


@pytest.mark.parametrize(
    ("text", "facts", "expected"),
    [
        ("4*n + 2", [], (2, None)),
        ("n - m", [], (None, None)),
        ("10 - n", [], (None, 10)),
        ("2*n + m", ["n <= 8", "m <= 3"], (0, 19)),
        ("m + n", ["m + n <= c", "c <= 10"], (0, 10)),
        ("c - m", ["m + n <= c"], (0, None)),
        ("n - m", ["m < n", "n <= 7"], (1, 7)),
        ("n mod 16", [], (0, 15)),
        ("n floordiv k * k", ["n <= 100"], (0, 100)),
        ("(n + 63) floordiv 64 * 64", ["n <= 100"], (0, 128)),
        ("n", ["n mod 16 == 0", "n <= 100", "n >= 1"], (16, 96)),
        ("min(n, 8) + max(n, 2)", ["n <= 5"], (2, 10)),
        ("7", [], (7, 7)),
    ],
)
def test_bounds(text, facts, expected):
    assert bounds(text, Facts.parse(facts)) == expected


def test_bounds_of_nothing_are_reversed():
    low, high = bounds("n", Facts.parse(["n <= 2", "n >= 5"]))
    assert low > high


def test_a_verdict_is_not_a_boolean():
    with pytest.raises(TypeError, match="three values"):
        bool(equal("n", "n"))
    with pytest.raises(TypeError, match="three values"):
        assert not equal("n", "m")


def test_hard_claims_stay_unknown():
    # Fermat's last theorem for cubes: no counterexample exists, and no proof is found.
    verdict = differ("(a + 1)*(a + 1)*(a + 1) + (b + 1)*(b + 1)*(b + 1)", "c*c*c")
    assert verdict.unknown
    assert verdict == Verdict()


def test_counterexamples_are_not_shared():
    equal("n", "m").counterexample.clear()
    assert equal("n", "m").counterexample


def test_counterexamples_name_symbols_of_facts():
    verdict = at_most("n", 3, Facts.parse(["m == 2*n", "k mod 8 == 5"]))
    assert verdict.counterexample.keys() == {"k", "m", "n"}


@pytest.mark.parametrize(
    ("fact", "facts", "state"),
    [
        ("n <= 4096", ["n <= 2048"], "proved"),
        ("n < 2049", ["n <= 2048"], "proved"),
        ("n < 2048", ["n <= 2048"], "refuted"),
        ("n >= 0", [], "proved"),
        ("n > 0", [], "refuted"),
        ("n mod 8 == 0", ["n mod 16 == 0"], "proved"),
        ("n mod 16 == 0", ["n mod 8 == 0"], "refuted"),
        ("n != 5", ["n mod 2 == 0"], "proved"),
        ("n != 5", [], "refuted"),
    ],
)
def test_facts_that_follow_from_facts(fact, facts, state):
    assert getattr(holds(Fact.parse(fact), Facts.parse(facts)), state)


def test_contradictory_facts_prove_everything():
    facts = Facts.parse(["n <= 2", "n >= 5"])
    assert equal("n", "m", facts).proved
    assert differ("n", "n", facts).proved


def test_storage_sizes_of_a_chain_on_two_by_n():
    # float32 tensors of (2, n), 2*n and 2*n + 2 elements: the first two may share a storage.
    matrix, flat, padded = parse("4*(2*n)"), parse("4*2*n"), parse("4*(2*n + 2)")
    assert equal(matrix, flat).proved
    assert equal(matrix, padded).refuted
    assert at_most(matrix, padded, Facts.parse(["n >= 2"])).proved
    bounded = Facts.parse(["n <= 4"])
    assert bounds(matrix, bounded)[1] == 32
    assert bounds(padded, bounded)[1] == 40


def test_signature_with_bound_symbols_folds():
    values = {"batch": 1, "k": 2, "m": 3}
    texts = ("batch", "m - 1", "m", "k*m", "m + n")
    assert [str(parse(text).substitute(values)) for text in texts] == ["1", "2", "3", "6", "n + 3"]
