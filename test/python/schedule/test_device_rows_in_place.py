"""Rows whose threads store to what others of them read, on devices, against NumPy."""

import numpy as np
import pytest
from device_modules import built

ADDED = """
!x = tensor<5xLENGTHxf32>
!s = tensor<5xf32>
func.func private @f(%x: !x, %out: !s) -> !s attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]} ins(%x : !x) outs(%out : !s) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> !s
  return %0 : !s
}
func.func @main(%x: !x, %y: !s {graph.inout = 0 : i64}) -> !s {
  %0 = "graph.call_tir_inplace"(%x, %y) {callee = @f, inplace_indices = array<i64: 1>,
      sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 1, SEGMENTS>,
      resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!x, !s) -> !s
  return %0 : !s
}
""".replace("SEGMENTS", ", ".join(["0"] * 30))

ZERO = """
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !s
  %z = linalg.fill ins(%zero : f32) outs(%e : !s) -> !s
"""
DOUBLED = (
    ADDED.replace("outs(%out : !s) {", "outs(%z : !s) {")
    .replace("  %0 = linalg", f"{ZERO}  %0 = linalg")
    .replace(
        "  return %0 : !s\n}\nfunc.func @main",
        """  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]} ins(%0 : !s) outs(%out : !s) {
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %b, %b : f32
    %s = arith.addf %a, %t : f32
    linalg.yield %s : f32
  } -> !s
  return %1 : !s
}
func.func @main""",
    )
)

CENTRED = """
!x = tensor<5xLENGTHxLENGTHxf32>
!s = tensor<5xf32>
func.func private @f(%out: !x) -> !x attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  ZERO
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, READ)>,
                                        affine_map<(i, j, k) -> (i)>],
                       iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%out : !x) outs(%z : !s) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> !s
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : !s) outs(%out : !x) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %b, %a : f32
    linalg.yield %s : f32
  } -> !x
  return %1 : !x
}
func.func @main(%y: !x {graph.inout = 0 : i64}) -> !x {
  %0 = "graph.call_tir_inplace"(%y) {callee = @f, inplace_indices = array<i64: 0>,
      sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, SEGMENTS>,
      resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!x) -> !x
  return %0 : !x
}
""".replace("SEGMENTS", ", ".join(["0"] * 31)).replace("ZERO", ZERO)

TARGETS = pytest.mark.parametrize("target", ["gpu", "webgpu"])
"""With warps, and without."""


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(shape).astype(np.float32)


@TARGETS
@pytest.mark.parametrize("length", [32, 200])
@pytest.mark.parametrize(("text", "factor"), [(ADDED, 1), (DOUBLED, 2)])
def test_totals_that_are_added_to(target: str, length: int, text: str, factor: int) -> None:
    """All threads of a row read what its first one stores to."""
    module, _, _ = built(text.replace("LENGTH", str(length)), target, 2)
    x, y = normal(5, length), normal(5)
    wanted = factor * y + x.sum(1, dtype=np.float64)
    np.testing.assert_allclose(module["main"](x, y.copy()), wanted, rtol=1e-4, atol=1e-4)


@TARGETS
@pytest.mark.parametrize("read", ["j, k", "k, j"])
@pytest.mark.parametrize("length", [5, 12])
def test_elements_that_another_thread_reads(target: str, read: str, length: int) -> None:
    """Threads add up rows of a matrix, or its columns, and store to its rows."""
    text = CENTRED.replace("LENGTH", str(length)).replace("READ", read)
    module, kernels, _ = built(text, target, 2)
    assert len(kernels) == 1
    x = normal(5, length, length)
    wanted = x - x.sum((1, 2), dtype=np.float64, keepdims=True)
    np.testing.assert_allclose(module["main"](x.copy()), wanted, rtol=1e-4, atol=1e-4)
