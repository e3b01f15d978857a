"""Casts of tuples bind the symbols of all their elements, interpreted and compiled."""

from typing import Any

import numpy as np
import pytest
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError

COARSE = 'tuple<tensor<?xf32>, tuple<tensor<?x?xf32>, index, !graph.shape_value<["?"]>>>'
PRODUCT = 'tensor<?xf32, #graph.shape<["m*n"]>>'
PAIR = 'tuple<tensor<?x?xf32, #graph.shape<["m", "n"]>>, index, !graph.shape_value<["n + 1"]>>'
FINE = f"tuple<{PRODUCT}, {PAIR}>"
TEXT = f"""
func.func @main(%t: {COARSE}, %again: i1) -> ({FINE}, {PRODUCT}) {{
  %0 = "graph.match_cast"(%t) : ({COARSE}) -> {FINE}
  %1 = scf.if %again -> {FINE} {{
    %c = "graph.match_cast"(%0) : ({FINE}) -> {COARSE}
    %f = "graph.match_cast"(%c) : ({COARSE}) -> {FINE}
    scf.yield %f : {FINE}
  }} else {{
    scf.yield %0 : {FINE}
  }}
  %p = "graph.tuple_get"(%1) {{index = 1 : i64}} : ({FINE}) -> {PAIR}
  %m = "graph.tuple_get"(%p) {{index = 0 : i64}} : ({PAIR})
      -> tensor<?x?xf32, #graph.shape<["m", "n"]>>
  %r = "graph.reshape"(%m) {{shape = #graph.shape<["m*n"]>}}
      : (tensor<?x?xf32, #graph.shape<["m", "n"]>>) -> {PRODUCT}
  %x = "graph.tuple_get"(%1) {{index = 0 : i64}} : ({FINE}) -> {PRODUCT}
  %s = "graph.add"(%x, %r) : ({PRODUCT}, {PRODUCT}) -> {PRODUCT}
  return %1, %s : {FINE}, {PRODUCT}
}}
"""
WAYS = [*LEVELS, "interpreted"]


@pytest.fixture(scope="module")
def main() -> dict[Any, Any]:
    """The function at every level, and interpreted."""
    built = {level: relax_mlir.compile(TEXT, opt_level=level)["main"] for level in LEVELS}
    return {**built, "interpreted": relax_mlir.interpret(TEXT)["main"]}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("m", "n"), [(0, 0), (1, 5), (3, 1), (7, 13)])
@pytest.mark.parametrize("again", [False, True])
def test_elements_bind_symbols(main: dict[Any, Any], way: Any, m: int, n: int, again: bool) -> None:
    random = np.random.default_rng(m)
    x, y = random.random(m * n, np.float32), random.random((m, n), np.float32)
    (first, (second, third, fourth)), total = main[way]((x, (y, 5, (n + 1,))), again)
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, y)
    assert (third, fourth) == (5, (n + 1,))
    np.testing.assert_array_equal(total, x + y.reshape(-1))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("length", "last"), [(5, 4), (6, 3), (6, 0), (0, 4)])
def test_elements_have_to_agree(main: dict[Any, Any], way: Any, length: int, last: int) -> None:
    x, y = np.zeros(length, np.float32), np.zeros((2, 3), np.float32)
    with pytest.raises(ExecutionError, match=r"match_cast|requires"):
        main[way]((x, (y, 5, (last,))), True)


@pytest.mark.parametrize(
    "target",
    ["tuple<tensor<?xf32>>", "tensor<?xf32>", COARSE.replace("tensor<?x?xf32>", "tensor<?xf32>")],
)
def test_other_tuples_are_refused(target: str) -> None:
    text = f"""
    func.func @main(%t: {COARSE}) -> {target} {{
      %0 = "graph.match_cast"(%t) : ({COARSE}) -> {target}
      return %0 : {target}
    }}"""
    with pytest.raises(CompileError, match=r":3:\d+: error: 'graph.match_cast' op asserts .*never"):
        relax_mlir.compile(text)
