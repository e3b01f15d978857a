"""Scalars of graph functions: arguments, results, arithmetic, elements of tensors."""

from typing import Any

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import ExecutionError

SCALARS = """
func.func @sums(%a: i32, %b: f32, %c: index, %d: i1, %e: f64, %f: i8)
    -> (i32, f32, index, i1, f64, i8) {
  %0 = arith.addi %a, %a : i32
  %1 = arith.mulf %b, %b : f32
  %2 = arith.subi %c, %c : index
  %true = arith.constant true
  %3 = arith.xori %d, %true : i1
  %4 = arith.divf %e, %e : f64
  %5 = arith.muli %f, %f : i8
  return %0, %1, %2, %3, %4, %5 : i32, f32, index, i1, f64, i8
}
func.func @halves(%h: f16, %b: bf16) -> (f16, bf16, f32) {
  %0 = arith.addf %h, %h : f16
  %1 = arith.mulf %b, %b : bf16
  %2 = arith.extf %1 : bf16 to f32
  return %0, %1, %2 : f16, bf16, f32
}
func.func @quotients(%a: i32, %b: i32) -> (i32, i32, i32, i32) {
  %0 = arith.divsi %a, %b : i32
  %1 = arith.remsi %a, %b : i32
  %2 = arith.floordivsi %a, %b : i32
  %3 = arith.ceildivsi %a, %b : i32
  return %0, %1, %2, %3 : i32, i32, i32, i32
}
func.func @wrapped(%a: index) -> (index, i32, i64) {
  %0 = arith.muli %a, %a : index
  %1 = arith.index_cast %0 : index to i32
  %2 = arith.index_cast %0 : index to i64
  return %0, %1, %2 : index, i32, i64
}
func.func @truncated(%a: f32) -> (i32, i8) {
  %0 = arith.fptosi %a : f32 to i32
  %1 = arith.fptosi %a : f32 to i8
  return %0, %1 : i32, i8
}
func.func @element(%x: tensor<?x2xf32>, %i: index, %j: index) -> f32 {
  %0 = tensor.extract %x[%i, %j] : tensor<?x2xf32>
  return %0 : f32
}
func.func @as_shape(%x: tensor<2xi64>) -> tensor<?x?xf32> {
  %0 = "graph.tensor_to_shape"(%x) : (tensor<2xi64>) -> !graph.shape_value<["?", "?"]>
  %1 = "graph.match_cast"(%0) :
      (!graph.shape_value<["?", "?"]>) -> !graph.shape_value<["a", "b"]>
  %one = arith.constant dense<1.0> : tensor<f32>
  %2 = "graph.full"(%one) {shape = #graph.shape<["a", "b"]>} :
      (tensor<f32>) -> tensor<?x?xf32, #graph.shape<["a", "b"]>>
  %3 = "graph.match_cast"(%2) : (tensor<?x?xf32, #graph.shape<["a", "b"]>>) -> tensor<?x?xf32>
  return %3 : tensor<?x?xf32>
}""" + "".join(
    f"""
func.func @{sign}(%a: i8, %b: i8, %s: i8) -> (index, i8) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for {word} %i = %a to %b step %s
      iter_args(%n = %zero, %last = %a) -> (index, i8) : i8 {{
    %m = arith.addi %n, %one : index
    scf.yield %m, %i : index, i8
  }}
  return %r#0, %r#1 : index, i8
}}"""
    for sign, word in (("signed", ""), ("unsigned", "unsigned"))
)


@pytest.fixture(scope="module", params=("interpreted", 0, 2))
def scalars(request: pytest.FixtureRequest) -> Any:
    if request.param == "interpreted":
        return relax_mlir.interpret(SCALARS)
    return relax_mlir.compile(SCALARS, opt_level=request.param)


def test_scalars_are_numbers_of_python(scalars: Any) -> None:
    got = scalars["sums"](3, 1.5, 7, True, 4.0, -12)
    assert got == (6, 2.25, 0, False, 1.0, -112)
    assert list(map(type, got)) == [int, float, int, bool, float, int]
    assert scalars["sums"](2**31 - 1, np.float32(2), np.int64(1), np.bool_(0), 1.0, 0)[0] == -2
    assert str(scalars["truncated"]) == "truncated(arg0: f32) -> (i32, i8)"
    assert scalars["halves"](np.float16(0.5), np.array(0x3FA0, np.uint16)) == (1.0, 1.5625, 1.5625)


def test_what_is_no_such_scalar_is_refused(scalars: Any) -> None:
    for wrong, why in (
        (
            (1.5, 1.0, 1, True, 1.0, 1),
            r"argument 0 'arg0': i32 is expected, but got the number 1.5",
        ),
        ((1, 1.0, 1, 1, 1.0, 1), "argument 3 'arg3': i1 is expected, but got the number 1"),
        ((1, 1.0, 2**63, True, 1.0, 1), "is out of the range of index"),
        ((1, 1.0, np.ones(1, np.int64), True, 1.0, 1), "rank is 1, but 0 is expected"),
        ((1, np.float64(1), 1, True, 1.0, 1), "dtype is float64, but float32 is expected"),
    ):
        with pytest.raises(ExecutionError, match=why):
            scalars["sums"](*wrong)


def test_arithmetic_wraps_and_clamps(scalars: Any) -> None:
    assert scalars["quotients"](-7, 2) == (-3, -1, -4, -3)
    assert scalars["wrapped"](2**32 + 3) == (6 * 2**32 + 9, 9, 6 * 2**32 + 9)
    assert scalars["truncated"](-3e9) == (-(2**31), -128)
    assert scalars["truncated"](float("nan")) == (0, 0)


@pytest.mark.parametrize(
    ("function", "bounds", "rounds", "last"),
    [
        ("signed", (-128, 127, 100), 3, 72),
        ("signed", (3, 0, 1), 0, 3),
        ("unsigned", (0, -1, 100), 3, -56),
        ("unsigned", (3, -1, -100), 2, -97),
    ],
)
def test_loops_count_in_integers_of_any_width(
    scalars: Any, function: str, bounds: tuple[int, ...], rounds: int, last: int
) -> None:
    assert scalars[function](*bounds) == (rounds, last)


def test_what_has_no_value_ends_the_call(scalars: Any) -> None:
    for function, arguments, why in (
        ("quotients", (1, 0), r"-:\d+:8: error: 'arith.divsi' op divides by zero"),
        ("quotients", (-(2**31), -1), "'arith.divsi' op has a quotient that 32 bits do not hold"),
        ("signed", (0, 3, 0), "'scf.for' op has a step that is not positive"),
        ("signed", (0, 3, -1), "'scf.for' op has a step that is not positive"),
        ("unsigned", (0, 3, 0), "'scf.for' op has a step that is not positive"),
        ("as_shape", (np.array([3, -1]),), "'graph.tensor_to_shape' op has a negative dim"),
        ("element", (np.ones((3, 2), np.float32), 1, 2), "has the index 2 outside of dim 1 of 2"),
        ("element", (np.ones((3, 2), np.float32), -1, 0), "has the index -1 outside of dim 0 of 3"),
    ):
        with pytest.raises(ExecutionError, match=why):
            scalars[function](*arguments)
