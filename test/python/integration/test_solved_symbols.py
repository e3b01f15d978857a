"""Symbols that only products with others tell, at entries and casts, interpreted and compiled."""

from typing import Any

import numpy as np
import pytest
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError
from relax_mlir.symbolic import parse, solve, solve_by_symbols

WAYS = [*LEVELS, "interpreted"]


def tensor(*dims: str) -> str:
    named = ", ".join(f'"{dim}"' for dim in dims)
    return f"tensor<{'?x' * len(dims)}f32, #graph.shape<[{named}]>>"


FLAT, ROWS, GRID = tensor("m*n + n"), tensor("n"), tensor("n", "m + 1")
SEGMENTS = (
    f"operandSegmentSizes = array<i32: 1, 1{', 0' * 30}>, "
    f"resultSegmentSizes = array<i32: 1{', 0' * 7}>"
)
RESHAPE = f"""
  %0 = "graph.reshape"(%x) {{shape = #graph.shape<["n", "m + 1"]>}} : ({FLAT}) -> {GRID}
  %1 = "graph.exp"(%0) : ({GRID}) -> {GRID}
  return %1 : {GRID}
"""
TEXT = f"""
func.func private @inner(%x: {FLAT}, %y: {ROWS}) -> {GRID} {{{RESHAPE}}}
func.func @entry(%x: {FLAT}, %y: {ROWS}) -> {GRID} {{{RESHAPE}}}
func.func @cast(%a: tensor<?xf32>, %y: {ROWS}) -> {GRID} {{
  %x = "graph.match_cast"(%a) : (tensor<?xf32>) -> {FLAT}
{RESHAPE}}}
func.func @call(%a: tensor<?xf32>, %y: {tensor("k")}) -> tensor<?x?xf32> {{
  %0 = "graph.call"(%a, %y) {{callee = @inner, {SEGMENTS}}}
      : (tensor<?xf32>, {tensor("k")}) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}}
"""


@pytest.fixture(scope="module")
def modules() -> dict[Any, Any]:
    """The module at every level, and interpreted."""
    built = {level: relax_mlir.compile(TEXT, opt_level=level) for level in LEVELS}
    return {**built, "interpreted": relax_mlir.interpret(TEXT)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["entry", "cast", "call"])
@pytest.mark.parametrize(("n", "m"), [(1, 0), (1, 6), (5, 0), (7, 12), (64, 1)])
def test_products_are_divided(modules: dict[Any, Any], way: Any, name: str, n: int, m: int) -> None:
    x = np.random.default_rng(n).random(n * (m + 1), np.float32)
    result = modules[way][name](x, np.zeros(n, np.float32))
    np.testing.assert_allclose(result, np.exp(x).reshape(n, m + 1), rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["entry", "cast", "call"])
@pytest.mark.parametrize(("length", "n"), [(0, 0), (5, 0), (7, 3), (2, 3), (0, 3)])
def test_what_nothing_determines_is_refused(
    modules: dict[Any, Any], way: Any, name: str, length: int, n: int
) -> None:
    told = r"dim 0 is \d, but (nothing determines m|'(m\*n \+ n|k\*m \+ k)')"
    with pytest.raises(ExecutionError, match=told):
        modules[way][name](np.zeros(length, np.float32), np.zeros(n, np.float32))


@pytest.mark.parametrize(
    "dims",
    [
        *(["n floordiv 2"], ["m*n"], ["m*n", "m + n"], ["n*n"], ["n mod 4"]),
        *(["m + n"], ["m + n", "2*m + 2*n"], ["k + n", "k + m"], ["m + n", "n floordiv 2"]),
    ],
)
def test_what_no_call_determines_is_refused(dims: list[str]) -> None:
    arguments = ", ".join(f"%a{i}: {tensor(dim)}" for i, dim in enumerate(dims))
    text = f"func.func @main({arguments}) {{ return }}"
    with pytest.raises(CompileError, match=r"has the symbol '[kmn]', which no argument binds"):
        relax_mlir.compile(text)


def test_solutions() -> None:
    assert solve(parse("2*n + m"), "n") == (2, parse("m"))
    assert solve(parse("m*n"), "n") is None
    assert solve_by_symbols(parse("3*m*n + n + k"), "n") == (parse("3*m + 1"), parse("k"))
    for text in ("n*n", "n - m*n", "(m floordiv 2)*n", "n*(n floordiv 2)", "n floordiv 2", "m"):
        assert solve_by_symbols(parse(text), "n") is None
