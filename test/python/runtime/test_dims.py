"""Random symbolic dims: the runtime evaluates them as Python does, and solves what is linear."""

import re
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

FUNCTIONS = [
    CFunction(
        "check",
        [shape("values", None), shape("program", None)],
        [Output("i64", [3])],
        body=EVALUATE,
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
