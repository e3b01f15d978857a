"""Short rows of which several share a group of threads, on devices, against NumPy."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from device_modules import as_ptx, built

import relax_mlir
from relax_mlir.bindings import gpu, ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.rewriting import walk_ops
from relax_mlir.schedule.gpu.rows import FEWEST_ELEMENTS, MOST_THREADS
from relax_mlir.target import Device
from relax_mlir.testing.outlined import outlined
from relax_mlir.testing.ptx import on_ptx

SOFTMAX = """
!x = tensor<?xLENGTHxf32, #graph.shape<["n", LENGTH]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.nn_softmax"(%x) {axis = -1 : i64} : (!x) -> !x
  return %0 : !x
}
"""
LARGEST = """
!x = tensor<?xLENGTHxTYPE, #graph.shape<["n", LENGTH]>>
!s = tensor<?xTYPE, #graph.shape<["n"]>>
!i = tensor<?xi64, #graph.shape<["n"]>>
func.func @main(%x: !x) -> (!s, !i) {
  %0 = "graph.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (!x) -> !s
  %1 = "graph.argmax"(%x) {axis = 1 : i64, keepdims = false} : (!x) -> !i
  return %0, %1 : !s, !i
}
"""


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(1, keepdims=True)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("length", "threads"),
    [(FEWEST_ELEMENTS - 1, 0), (FEWEST_ELEMENTS, 4), (31, 8), (64, 16), (65, 16), (257, 64),
     (509, MOST_THREADS)],
)  # fmt: skip
def test_softmax(length: int, threads: int) -> None:
    """Threads for each row, and the rows that are left."""
    module, kernels, _ = built(SOFTMAX.replace("LENGTH", str(length)), "gpu", 2)
    rows = MOST_THREADS // threads if threads else 0
    sizes = [kernel.block[0] for kernel in kernels]
    assert sizes == ([256] if not rows else [MOST_THREADS] if rows == 1 else [128, threads])
    for n in (0, 1, rows - 1, rows, rows + 1, 2 * rows + 3):
        x = normal(max(n, 0), length)
        np.testing.assert_allclose(module["main"](x), softmax(x), rtol=2e-5, err_msg=f"{n} rows")


@pytest.mark.parametrize(
    ("target", "element"), [("gpu", "i64"), ("vulkan", "f32"), ("x86-64-v3@webgpu", "i32")]
)
def test_sums_and_positions(target: str, element: str) -> None:
    """Integers wrap around; of equal elements, the first one is the largest."""
    text = LARGEST.replace("LENGTH", "100").replace("TYPE", element)
    module, _, _ = built(text, target, 2)
    dtype = {"i64": "int64", "f32": "float32", "i32": "int32"}[element]
    for n in (3, 4, 9):
        x = np.random.default_rng().integers(-9, 9, (n, 100)).astype(dtype)
        total, position = module["main"](x)
        np.testing.assert_array_equal(total, x.sum(1, dtype=dtype))
        np.testing.assert_array_equal(position, x.argmax(1))


MAIN = """
func.func @main(%x: !x) -> !x {
  %0 = "graph.call_tir"(%x) {callee = @f, sym_args = #graph.shape<[]>,
      operandSegmentSizes = array<i32: 1, SEGMENTS>,
      resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!x) -> !x
  return %0 : !x
}
""".replace("SEGMENTS", ", ".join(["0"] * 31))
EXTREMUM = (
    """
!x = tensor<?xLENGTHxf32, #graph.shape<["n", LENGTH]>>
func.func private @f(%x: !x, %y: !x) -> !x attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0 : index
  %lowest = arith.constant 0xFF800000 : f32
  %in = tensor.cast %x : !x to tensor<?xLENGTHxf32>
  %out = tensor.cast %y : !x to tensor<?xLENGTHxf32>
  %n = tensor.dim %in, %zero : tensor<?xLENGTHxf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %i = linalg.fill ins(%lowest : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%in : tensor<?xLENGTHxf32>) outs(%i : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf ogt, %a, %b : f32
    %s = arith.select %c, %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<?xf32>) outs(%out : tensor<?xLENGTHxf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?xLENGTHxf32>
  %2 = tensor.cast %1 : tensor<?xLENGTHxf32> to !x
  return %2 : !x
}
"""
    + MAIN
)


@pytest.mark.parametrize("length", [33, 65, 200, 1000])
def test_threads_get_the_same_bits(length: int) -> None:
    """Of zeros of both signs, which are equal, each thread of a row stores the same one."""
    module, _, _ = built(EXTREMUM.replace("LENGTH", str(length)), "gpu", 2)
    zeros = np.random.default_rng().choice(np.float32([0.0, -0.0]), (41, length))
    signs = np.signbit(module["main"](zeros))
    assert (signs == signs[:, :1]).all()
    x = normal(19, length)
    np.testing.assert_array_equal(module["main"](x), np.broadcast_to(x.max(1)[:, None], x.shape))


@cache
def lowered(target: str, text: str = SOFTMAX.replace("LENGTH", "33")) -> str:
    with make_context(), ir.Location.unknown():
        module = outlined(text, target)
        return str(module)


@pytest.mark.parametrize("length", [33, 129, 1000])
def test_as_ptx(length: int) -> None:
    """Rows of a part of a warp, of half of one that is alone, and of four warps."""
    text = SOFTMAX.replace("LENGTH", str(length))
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(lowered("cuda:sm_75", text))
        main: Any = on_ptx(module, Device.parse("cuda:sm_75"))
    for n in (1, 16, 37):
        x = normal(n, length)
        np.testing.assert_allclose(main(x), softmax(x), rtol=2e-5)


def barriers(module: ir.Module) -> list[gpu.BarrierOp]:
    return walk_ops(module.operation, gpu.BarrierOp)


@pytest.mark.parametrize(
    ("target", "length", "count", "needed"),
    [("webgpu", 33, 12, 5), ("gpu", 33, 2, 0), ("gpu", 1000, 3, 2)],
)
def test_missing_barriers_are_errors(target: str, length: int, count: int, needed: int) -> None:
    """Each of the launch for several rows, but the last one.

    That one is between threads that read what they have stored themselves.
    """
    text = lowered(target, SOFTMAX.replace("LENGTH", str(length)))
    with make_context(), ir.Location.unknown():
        assert len(barriers(ir.Module.parse(text))) == count
        for index in range(needed):
            module = ir.Module.parse(text)
            barriers(module)[index].operation.erase()
            with pytest.raises(ExecutionError, match="without a barrier"):
                relax_mlir.interpret(module)["main"](normal(32, length))


TWO_SUMS = (
    """
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
!in = tensor<?x1000xf32>
!s = tensor<?xf32>
!x = tensor<?x1000xf32, #graph.shape<["n", 1000]>>
func.func private @f(%x: !x, %y: !x) -> !x attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0 : index
  %c0 = arith.constant 0.0 : f32
  %in = tensor.cast %x : !x to !in
  %out = tensor.cast %y : !x to !in
  %n = tensor.dim %in, %zero : !in
  %e = tensor.empty(%n) : !s
  %i = linalg.fill ins(%c0 : f32) outs(%e : !s) -> !s
  %e2 = tensor.empty(%n) : !s
  %i2 = linalg.fill ins(%c0 : f32) outs(%e2 : !s) -> !s
  %e3 = tensor.empty(%n) : !s
  %i3 = linalg.fill ins(%c0 : f32) outs(%e3 : !s) -> !s
  %0:2 = linalg.generic {indexing_maps = [#ij, #i, #i],
                       iterator_types = ["parallel", "reduction"]}
      ins(%in : !in) outs(%i, %i2 : !s, !s) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    %q = arith.mulf %a, %a : f32
    %t = arith.addf %q, %c : f32
    linalg.yield %s, %t : f32, f32
  } -> (!s, !s)
  %3 = linalg.generic {indexing_maps = [#ij, #i, #i, #i],
                       iterator_types = ["parallel", "reduction"]}
      ins(%in, %0#0, %0#1 : !in, !s, !s) outs(%i3 : !s) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %s = arith.subf %a, %b : f32
    %q = arith.mulf %s, %c : f32
    %t = arith.addf %q, %d : f32
    linalg.yield %t : f32
  } -> !s
  %1 = linalg.generic {indexing_maps = [#i, #ij],
                       iterator_types = ["parallel", "parallel"]}
      ins(%3 : !s) outs(%out : !in) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> !in
  %2 = tensor.cast %1 : !in to !x
  return %2 : !x
}
"""
    + MAIN
)


def test_sums_that_are_two_and_one_share_no_memory() -> None:
    """The second one begins while others may still read what the first one left."""
    x = np.random.default_rng().standard_normal((5, 1000)).astype(np.float32)
    y = x.astype(np.float64)
    total, squares = y.sum(1, keepdims=True), (y**2).sum(1, keepdims=True)
    exact = ((y - total) * squares).sum(1, keepdims=True) + np.zeros_like(y)
    size = (np.abs(y) + np.abs(total)).sum(1, keepdims=True) * squares
    module, _, _ = built(TWO_SUMS, "gpu", 2)
    for main in (module["main"], as_ptx(TWO_SUMS, "cuda:sm_80")):
        assert (np.abs(main(x) - exact) <= 1e-5 * size).all()
