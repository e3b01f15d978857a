"""Sizes that depend on data: in branches, loops and called functions, at every level."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError

V, M = (f'tensor<?xf32, #graph.shape<["{dim}"]>>' for dim in "nm")
CALL = "operandSegmentSizes = array<i32: 1{}>, resultSegmentSizes = array<i32: 1{}>".format(
    ", 0" * 31, ", 0" * 7
)
SELECT = f"""
  %positive = "graph.greater"(%x, %zero) : ({V}, tensor<f32>) -> tensor<?xi1>
  %at = "graph.nonzero"(%positive) : (tensor<?xi1>) -> tensor<1x?xi64>
  %row = "graph.squeeze"(%at) {{axes = array<i64: 0>}} : (tensor<1x?xi64>) -> tensor<?xi64>
  %there = "graph.take"(%x, %row) {{axis = 0 : i64}} : ({V}, tensor<?xi64>) -> tensor<?xf32>
"""
ZERO = "  %zero = arith.constant dense<0.0> : tensor<f32>\n"
MODULE = f"""
func.func @select(%x: {V}) -> tensor<?xf32> {{
{ZERO}{SELECT}
  return %there : tensor<?xf32>
}}

func.func @select_or_all(%x: {V}, %selects: i1) -> (tensor<?xf32>, tensor<f32>) {{
{ZERO}
  %r = scf.if %selects -> tensor<?xf32> {{
{SELECT}
    scf.yield %there : tensor<?xf32>
  }} else {{
    %0 = "graph.match_cast"(%x) : ({V}) -> tensor<?xf32>
    scf.yield %0 : tensor<?xf32>
  }}
  %sum = "graph.sum"(%r) {{axes = array<i64: 0>, keepdims = false}} : (tensor<?xf32>) -> tensor<f32>
  return %r, %sum : tensor<?xf32>, tensor<f32>
}}

// Each round keeps what is positive, and subtracts one.
func.func @shrink(%x: {V}, %rounds: index) -> tensor<?xf32> {{
{ZERO}
  %first = arith.constant 0 : index
  %step = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<f32>
  %start = "graph.match_cast"(%x) : ({V}) -> tensor<?xf32>
  %r = scf.for %i = %first to %rounds step %step iter_args(%carried = %start) -> tensor<?xf32> {{
    %x1 = "graph.match_cast"(%carried) : (tensor<?xf32>) -> {M}
{SELECT.replace("(%x,", "(%x1,").replace(V, M)}
    %less = "graph.subtract"(%there, %one) : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
    scf.yield %less : tensor<?xf32>
  }}
  return %r : tensor<?xf32>
}}

// Halves what there is until one distinct element is left.
func.func @until_same(%x: tensor<?xi32>) -> (tensor<?xi32>, index) {{
  %none = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant dense<2> : tensor<i32>
  %r:2 = scf.while (%a = %x, %count = %none) : (tensor<?xi32>, index) -> (tensor<?xi32>, index) {{
    %size = tensor.dim %a, %none : tensor<?xi32>
    %more = arith.cmpi ugt, %size, %one : index
    scf.condition(%more) %a, %count : tensor<?xi32>, index
  }} do {{
  ^body(%a: tensor<?xi32>, %count: index):
    %half = "graph.floor_divide"(%a, %two) : (tensor<?xi32>, tensor<i32>) -> tensor<?xi32>
    %u:4 = "graph.unique"(%half) {{axes = array<i64>, sorted = true}}
        : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>)
    %next = arith.addi %count, %one : index
    scf.yield %u#0, %next : tensor<?xi32>, index
  }}
  return %r#0, %r#1 : tensor<?xi32>, index
}}

func.func private @selected(%x: {V}) -> tensor<?xf32> attributes {{graph.noinline}} {{
{ZERO}{SELECT}
  return %there : tensor<?xf32>
}}

func.func private @sum_of_selected(%x: {V}) -> tensor<f32> attributes {{graph.noinline}} {{
{ZERO}{SELECT}
  %sum = "graph.sum"(%there) {{axes = array<i64: 0>, keepdims = false}}
      : (tensor<?xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}}

func.func @calls(%x: {V}) -> (tensor<?xf32>, tensor<f32>, tensor<?xf32>) {{
  %0 = "graph.call"(%x) {{callee = @selected, {CALL}}} : ({V}) -> tensor<?xf32>
  %1 = "graph.call"(%x) {{callee = @sum_of_selected, {CALL}}} : ({V}) -> tensor<f32>
  %named = "graph.match_cast"(%0) : (tensor<?xf32>) -> {M}
  %2 = "graph.exp"(%named) : ({M}) -> {M}
  %3 = "graph.match_cast"(%2) : ({M}) -> tensor<?xf32>
  return %0, %1, %3 : tensor<?xf32>, tensor<f32>, tensor<?xf32>
}}

// Two masks of which there must be as many.
func.func @pairs(%x: {V}, %y: {V}) -> tensor<1x?xi64> {{
  %0 = "graph.nonzero"(%x) : ({V}) -> tensor<1x?xi64>
  %1 = "graph.nonzero"(%y) : ({V}) -> tensor<1x?xi64>
  %2 = "graph.subtract"(%0, %1) : (tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<1x?xi64>
  return %2 : tensor<1x?xi64>
}}

// As many as a tensor says, with one more than there are zeros.
func.func @greatest(%x: {V}, %k: tensor<1xi64>) -> tensor<?xf32> {{
  %0 = "graph.tensor_to_shape"(%k) : (tensor<1xi64>) -> !graph.shape_value<["?"]>
  %1 = "graph.match_cast"(%0) : (!graph.shape_value<["?"]>) -> !graph.shape_value<["k"]>
  %2:2 = "graph.topk"(%x) {{k = #graph.shape<["k"]>, axis = 0 : i64, largest = true}}
      : ({V}) -> (tensor<?xf32>, tensor<?xi64>)
  return %2#0 : tensor<?xf32>
}}
"""


@pytest.fixture(scope="module", params=["interpreted", *LEVELS])
def run(request: pytest.FixtureRequest) -> Mapping[str, Callable[..., Any]]:
    if request.param == "interpreted":
        return relax_mlir.interpret(MODULE)
    return relax_mlir.compile(MODULE, opt_level=request.param)


def _numbers(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(-3, 9, n).astype(np.float32)


VECTORS = [*map(_numbers, (0, 1, 2, 7, 64, 129)), -np.ones(5, np.float32), np.ones(9, np.float32)]
Run = Mapping[str, Callable[..., Any]]


@pytest.mark.parametrize("x", VECTORS, ids=len)
def test_selections(run: Run, x: np.ndarray) -> None:
    there = x[x > 0]
    np.testing.assert_array_equal(run["select"](x), there)
    for selects in (True, False):
        found, total = run["select_or_all"](x, selects)
        np.testing.assert_array_equal(found, there if selects else x)
        assert total == found.sum()
    found, total, powers = run["calls"](x)
    np.testing.assert_array_equal(found, there)
    assert total == there.sum()
    np.testing.assert_allclose(powers, np.exp(there), rtol=1e-6)


@pytest.mark.parametrize("x", VECTORS, ids=len)
def test_loops(run: Run, x: np.ndarray) -> None:
    wanted = x
    for rounds in range(6):
        np.testing.assert_array_equal(run["shrink"](x, rounds), wanted)
        wanted = wanted[wanted > 0] - 1
    given = np.abs(x).astype(np.int32)
    wanted, count = given, 0
    while len(wanted) > 1:
        wanted, count = np.unique(wanted // 2), count + 1
    found, rounds = run["until_same"](given)
    np.testing.assert_array_equal(found, wanted)
    assert rounds == count


def test_sizes_that_differ_are_refused(run: Run) -> None:
    x, y = np.array([0, 1, 1, 0, 1], np.float32), np.array([1, 1, 0, 1, 0], np.float32)
    np.testing.assert_array_equal(run["pairs"](x, y), [[1, 1, 1]])
    with pytest.raises(ExecutionError):
        run["pairs"](x, np.array([1, 1, 0, 0, 0], np.float32))


def test_topk_of_a_computed_count(run: Run) -> None:
    x = _numbers(17)
    for k in (0, 1, 16, 17):
        np.testing.assert_array_equal(run["greatest"](x, np.array([k])), np.sort(x)[::-1][:k])
    for k in (18, -1, 2**40):
        with pytest.raises(ExecutionError):
            run["greatest"](x, np.array([k]))


def test_a_declared_size_is_checked() -> None:
    text = f"""
    func.func @main(%x: {V}) -> tensor<1x?xi64, #graph.shape<[1, "n"]>> {{
      %0 = "graph.nonzero"(%x) : ({V}) -> tensor<1x?xi64, #graph.shape<[1, "n"]>>
      return %0 : tensor<1x?xi64, #graph.shape<[1, "n"]>>
    }}"""
    for main in (relax_mlir.interpret(text)["main"], relax_mlir.compile(text)["main"]):
        np.testing.assert_array_equal(main(np.ones(3, np.float32)), [[0, 1, 2]])
        with pytest.raises(ExecutionError):
            main(np.array([1, 0, 1], np.float32))


def test_a_recursive_function_returns_no_size_of_its_own() -> None:
    text = f"""
    func.func private @again(%x: {V}) -> tensor<1x?xi64> {{
      %0 = "graph.nonzero"(%x) : ({V}) -> tensor<1x?xi64>
      %1 = "graph.call"(%x) {{callee = @again, {CALL}}} : ({V}) -> tensor<1x?xi64>
      return %0 : tensor<1x?xi64>
    }}
    func.func @main(%x: {V}) -> tensor<1x?xi64> {{
      %0 = "graph.call"(%x) {{callee = @again, {CALL}}} : ({V}) -> tensor<1x?xi64>
      return %0 : tensor<1x?xi64>
    }}"""
    with pytest.raises(CompileError, match="again"):
        relax_mlir.compile(text)
