"""Random symbolic dims: the runtime evaluates them as Python does, and solves what is linear."""

import ast
import operator
import re
from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from c_module import CFunction, Output, build_module, postfix, shape
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_mlir.errors import ExecutionError
from relax_mlir.executable import Executable, load
from relax_mlir.host.tables import program as table_program
from relax_mlir.symbolic import Expr, parse

# Evaluates a program that comes as an argument: no table of the compiler has one, but a test can
# then try many expressions with one shared object.
EVALUATE = """
  const RxDim dims[] = {{2, (const int64_t[]){RX_SYMBOL, 0}}, {2, (const int64_t[]){RX_SYMBOL, 1}},
                        {2, (const int64_t[]){RX_SYMBOL, 2}},
                        {args[1].shape[0], (const int64_t *)args[1].data}};
  const RxArg table[] = {{"values", RX_SHAPE, RX_INT, 64, 4, dims}};
  const char *const names[] = {"a", "b", "c"};
  const RxFunction info = {"inner", 1, 0, 3, 0, table, names, NULL};
  int64_t inner[3];
  if (rx_bind(context, &info, args, 1, 0, inner)) return 1;
  int64_t *out = rx_result(context, results, 0, RX_INT, 64, 1, (int64_t[]){3});
  if (!out) return 1;
  memcpy(out, inner, sizeof inner);
"""

# A fact whose sides come as arguments.
FACT = """
  const RxDim dims[] = {{2, (const int64_t[]){RX_SYMBOL, 0}}, {2, (const int64_t[]){RX_SYMBOL, 1}},
                        {2, (const int64_t[]){RX_SYMBOL, 2}}};
  const RxArg table[] = {{"values", RX_SHAPE, RX_INT, 64, 3, dims}};
  const char *const names[] = {"a", "b", "c"};
  const RxFact fact = {{args[1].shape[0], (const int64_t *)args[1].data},
                       {args[2].shape[0], (const int64_t *)args[2].data},
                       *(const int32_t *)args[3].data, 0, "the fact"};
  const RxFunction info = {"inner", 1, 0, 3, 1, table, names, &fact};
  int64_t inner[3];
  if (rx_bind(context, &info, args, 1, 0, inner)) return 1;
"""

FUNCTIONS = [
    CFunction(
        "check",
        [shape("values", None), shape("program", None)],
        [Output("i64", [3])],
        body=EVALUATE,
    ),
    CFunction(
        "fact",
        [shape("values", None), shape("lhs", None), shape("rhs", None), shape("relation", None)],
        body=FACT,
    ),
]

leaves = st.one_of(st.sampled_from("abc"), st.integers(0, 50).map(str))


def compound(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(children, children)
    return st.one_of(
        st.tuples(pairs, st.sampled_from("+-*")).map(lambda t: f"({t[0][0]} {t[1]} {t[0][1]})"),
        st.tuples(pairs, st.sampled_from(("min", "max"))).map(
            lambda t: f"{t[1]}({t[0][0]}, {t[0][1]})"
        ),
        st.tuples(children, st.sampled_from(("//", "%")), st.integers(1, 17)).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
    )


expressions = st.recursive(leaves, compound, max_leaves=8)


@pytest.fixture(scope="module")
def exe(tmp_path_factory) -> Executable:
    return load(build_module(FUNCTIONS, tmp_path_factory.mktemp("dims")))


def program(expression: str) -> list[int]:
    return postfix(expression, ["a", "b", "c"])


@settings(max_examples=300, deadline=None)
@given(expressions, st.tuples(*[st.integers(0, 100)] * 3))
def test_evaluates_as_python_does(exe, expression, values):
    expected = eval(expression, {}, dict(zip("abc", values, strict=True)))
    got = exe["check"]((*values, expected), program(expression))
    np.testing.assert_array_equal(got, values)
    with pytest.raises(ExecutionError, match=rf"value 3 is {expected + 1}, but .*{expected}"):
        exe["check"]((*values, expected + 1), program(expression))


# Symbols and numbers near every power of two up to 2^63, and divisors of any sign.
EDGES = {(1 << bits) + delta for bits in range(64) for delta in (-1, 0, 1)}
huge = st.sampled_from(sorted(edge for edge in EDGES if edge < 1 << 63))
hostile_leaves = st.one_of(st.sampled_from("abc"), huge.map(str))
hostile = st.recursive(
    hostile_leaves,
    lambda children: st.one_of(
        st.tuples(children, st.sampled_from(("+", "-", "*", "//", "%")), children).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(("min", "max")), children, children).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
    ),
    max_leaves=8,
)
STEPS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def exact(node: ast.expr, symbols: Mapping[str, int]) -> int | str:
    """The value of an expression, or why the runtime has none: the fault it meets first."""
    if isinstance(node, ast.Name):
        return symbols[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    x, y = (
        exact(operand, symbols)
        for operand in (node.args if isinstance(node, ast.Call) else (node.left, node.right))
    )
    if isinstance(x, str) or isinstance(y, str):
        return x if isinstance(x, str) else y
    if isinstance(node, ast.Call):
        return {"min": min, "max": max}[node.func.id](x, y)
    if isinstance(node.op, ast.FloorDiv | ast.Mod) and y <= 0:
        return "divides by a number that is not positive"
    value = STEPS[type(node.op)](x, y)
    return value if -(1 << 127) <= value < 1 << 127 else "is beyond 2^127"


@settings(max_examples=400, deadline=None)
@given(hostile, st.tuples(huge, huge, huge))
def test_nothing_wraps(exe, expression, values):
    want = exact(ast.parse(expression, mode="eval").body, dict(zip("abc", values, strict=True)))
    fits = isinstance(want, int) and -(1 << 63) <= want < 1 << 63
    if fits:
        got = exe["check"]((*values, want), program(expression))
        np.testing.assert_array_equal(got, values)
    # Equal modulo 2^64 is not equal.
    near = (want + (1 << 63)) % (1 << 64) - (1 << 63) if isinstance(want, int) else 0
    with pytest.raises(ExecutionError) as error:
        exe["check"]((*values, (near ^ 1) if fits else near), program(expression))
    text = str(error.value)
    if isinstance(want, str):
        assert text.endswith(want)
    elif expression not in "abc" and not expression.isdigit():
        assert f"' is {want}" in text
        assert fits or text.endswith(", beyond 2^63 - 1" if want > 0 else ", below -2^63")


RELATIONS = (operator.eq, operator.le, operator.lt, operator.ge, operator.gt, operator.ne)


@settings(max_examples=400, deadline=None)
@given(hostile, hostile, st.integers(0, 5), st.tuples(huge, huge, huge))
def test_facts_are_exact(exe, lhs, rhs, relation, values):
    symbols = dict(zip("abc", values, strict=True))
    sides = [exact(ast.parse(side, mode="eval").body, symbols) for side in (lhs, rhs)]
    faults = [side for side in sides if isinstance(side, str)]
    arguments = (values, program(lhs), program(rhs), (relation,))
    if not faults and RELATIONS[relation](*sides):
        exe["fact"](*arguments)
        return
    with pytest.raises(ExecutionError, match=r"^'inner' requires the fact") as error:
        exe["fact"](*arguments)
    assert not faults or str(error.value).endswith(faults[-1])


# `c` is bound by division only: the plain dim that binds it in the other test is left unchecked.
SOLVE = EVALUATE.replace("{2, (const int64_t[]){RX_SYMBOL, 2}}", "{0, 0}")


@pytest.fixture(scope="module")
def solver(tmp_path_factory) -> Executable:
    arguments = [shape("values", None), shape("program", None)]
    function = CFunction("solve", arguments, [Output("i64", [3])], body=SOLVE)
    return load(build_module([function], tmp_path_factory.mktemp("solve")))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(0, 60), st.tuples(*[st.integers(0, 100)] * 3))
def test_solves_what_is_linear(solver, factor, offset, values):
    a, b, c = values
    solvable = f"{factor}*c + a*{offset} - min(a, b) + c"
    total = eval(solvable, {}, {"a": a, "b": b, "c": c})
    got = solver["solve"]((a, b, 0, total), program(solvable))
    np.testing.assert_array_equal(got, values)
    with pytest.raises(ExecutionError, match=r"cannot be -?\d+ for any integer c >= 0"):
        solver["solve"]((a, b, 0, total + 1), program(solvable))


@settings(max_examples=200, deadline=None)
@given(huge, huge, huge, st.tuples(huge, huge, huge))
def test_solves_near_the_bounds(solver, factor, offset, total, values):
    a, b, _ = values
    solvable = f"c*{max(factor, 1)} + {offset} - a*b"
    c, rest = divmod(total - offset + a * b, max(factor, 1))
    if not rest and 0 <= c < 1 << 63:
        np.testing.assert_array_equal(
            solver["solve"]((a, b, 0, total), program(solvable)), (a, b, c)
        )
        return
    text = rf"needs c = {c}, beyond 2\^63 - 1$" if not rest and c > 0 else rf"cannot be {total} for"
    with pytest.raises(ExecutionError, match=text):
        solver["solve"]((a, b, 0, total), program(solvable))


def strip(text: str) -> str:
    """Without parentheses, of which messages have fewer."""
    return text.translate({ord("("): None, ord(")"): None})


def has_long_extremum(expr: Expr) -> bool:
    """Whether a minimum or maximum in it has more than two operands."""
    atoms = [atom for monomial, _ in expr.terms for atom in monomial]
    is_long = any(atom.kind in ("min", "max") and len(atom.operands) > 2 for atom in atoms)
    return is_long or any(has_long_extremum(inner) for atom in atoms for inner in atom.operands)


@settings(max_examples=200, deadline=None)
@given(expressions, st.tuples(*[st.integers(0, 100)] * 3))
def test_messages_show_expressions_as_the_compiler_does(exe, expression, values):
    canonical = parse(expression.replace("//", " floordiv ").replace("%", " mod "))
    wrong = eval(expression, {}, dict(zip("abc", values, strict=True))) + 1
    lowered = table_program(canonical, ["a", "b", "c"])
    with pytest.raises(ExecutionError) as error:
        exe["check"]((*values, wrong), lowered)
    if canonical.symbols and str(canonical) not in "abc":
        shown = re.search(r"but '(.*)' is", str(error.value))[1]
        if not {"min", "max"} & set(re.split(r"\W", shown)):  # they take two each
            assert strip(shown) == strip(str(canonical))
        # Two and two of three operands may have another canonical form than all of them.
        assert parse(shown) == canonical or has_long_extremum(canonical)
        for at in product((0, 1, 2, 7), repeat=3):
            symbols = dict(zip("abc", at, strict=True))
            assert parse(shown).evaluate(symbols) == canonical.evaluate(symbols)
