"""Kernels that are written by hand: vectors, masks, memory; nothing may leave the end of it."""

import numpy as np
import pytest

from relax_mlir.errors import ExecutionError
from relax_mlir.interpreter import interpret

N = 13
TYPES = """
!x = tensor<13xf32>
!m = memref<13xf32>
!v = vector<4xf32>
!b = vector<4xi1>
"""


def kernel(body: str, symbols: str = ""):
    """A function of two arrays, the second of which the kernel's body writes to."""
    call = "operandSegmentSizes = array<i32: 1, 1" + ", 0" * 30 + ">, resultSegmentSizes = "
    call += "array<i32: 0" + ", 0" * 7 + ">, num_outs = 1 : i64, updates = array<i64>"
    call += ", sym_args = #graph.shape<[]>"
    text = f"""{TYPES}
func.func private @kernel(%x: !m, %y: !m) attributes {{tir.prim_func, tir.scheduled,
    tir.num_outs = 1 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c10 = arith.constant 10 : index
  %c13 = arith.constant 13 : index
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : !v
{body}
  return
}}
func.func @main(%x: !x, %y: !x {{graph.inout = 0 : i64}}) -> !x {{
  "graph.call_dps"(%x, %y) {{callee = @kernel, {call}}} : (!x, !x) -> ()
  return %y : !x
}}"""
    return interpret(text)["main"]


X = np.arange(1, N + 1, dtype=np.float32)


def run(body: str) -> np.ndarray:
    return kernel(body)(X, np.zeros(N, np.float32))


def test_loops_with_a_masked_tail() -> None:
    found = run("""
  scf.parallel (%i) = (%c0) to (%c13) step (%c4) {
    %left = arith.subi %c13, %i : index
    %mask = vector.create_mask %left : !b
    %a = vector.maskedload %x[%i], %mask, %zeros : !m, !b, !v into !v
    %s = arith.addf %a, %a : !v
    vector.maskedstore %y[%i], %mask, %s : !m, !b, !v
    scf.reduce
  }""")
    np.testing.assert_array_equal(found, 2 * X)


def test_vectors_are_taken_apart_and_put_together() -> None:
    found = run("""
  %a = vector.load %x[%c0] : !m, !v
  %r = vector.shuffle %a, %a [3, 2, 5, 4] : !v, !v
  vector.store %r, %y[%c0] : !m, !v
  %e = vector.extract %a[2] : f32 from !v
  memref.store %e, %y[%c4] : !m
  %total = vector.reduction <add>, %a, %e : !v into f32
  %all = vector.broadcast %total : f32 to !v
  %half = vector.extract_strided_slice %all {offsets = [1], sizes = [2], strides = [1]}
      : !v to vector<2xf32>
  %both = vector.insert_strided_slice %half, %a {offsets = [1], strides = [1]}
      : vector<2xf32> into !v
  %f = vector.fma %both, %both, %a : !v
  %c5 = arith.constant 5 : index
  vector.store %f, %y[%c5] : !m, !v""")
    total = 1 + 2 + 3 + 4 + 3
    expected = [4, 3, 2, 1, 3, 2, total**2 + 2, total**2 + 3, 20, 0, 0, 0, 0]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


def test_lanes_by_index() -> None:
    found = run("""
  %at = arith.constant dense<[9, 0, 4, 77]> : vector<4xindex>
  %mask = vector.constant_mask [3] : !b
  %a = vector.gather %x[%c1] [%at], %mask, %zeros : !m, vector<4xindex>, !b, !v into !v
  vector.scatter %y[%c0] [%at], %mask, %a : !m, vector<4xindex>, !b, !v""")
    expected = np.zeros(N)
    expected[[9, 0, 4]] = X[[10, 1, 5]]
    np.testing.assert_array_equal(found, expected)


def test_masks_are_bits() -> None:
    found = run("""
  %a = vector.load %x[%c0] : !m, !v
  %two = arith.constant dense<2.5> : !v
  %more = arith.cmpf ogt, %a, %two : !v
  %bits = vector.bitcast %more : !b to vector<1xi4>
  %number = vector.extract %bits[0] : i4 from vector<1xi4>
  %first = math.cttz %number : i4
  %i = arith.index_castui %first : i4 to index
  %e = memref.load %x[%i] : !m
  memref.store %e, %y[%c0] : !m""")
    assert found[0] == 3


def test_memory_of_its_own_is_garbage_at_first() -> None:
    found = run("""
  %room = memref.alloc() : memref<2x4xf32>
  %a = vector.load %x[%c0] : !m, !v
  vector.store %a, %room[%c1, %c0] : memref<2x4xf32>, !v
  %flat = memref.collapse_shape %room [[0, 1]] : memref<2x4xf32> into memref<8xf32>
  %b = vector.load %flat[%c4] : memref<8xf32>, !v
  vector.store %b, %y[%c0] : !m, !v
  %g = memref.load %flat[%c0] : memref<8xf32>
  memref.store %g, %y[%c4] : !m
  memref.dealloc %room : memref<2x4xf32>""")
    np.testing.assert_array_equal(found[:4], X[:4])
    assert found[4] > 1e12


OUTSIDE = {
    "load": ("%a = vector.load %x[%c10] : !m, !v", "'vector.load' op loads elements 10 to 13"),
    "store": ("vector.store %zeros, %y[%c10] : !m, !v", "'vector.store' op stores elements 10 to"),
    "masked": (
        "%mask = vector.create_mask %c4 : !b\n"
        "vector.maskedstore %y[%c10], %mask, %zeros : !m, !b, !v",
        "'vector.maskedstore' op stores elements 10 to 13 of memory of 13",
    ),
    "single": ("memref.store %zero, %y[%c13] : !m", "op has the index 13 outside of dim 0 of 13"),
    "gather": (
        "%at = arith.constant dense<[9, 0, 4, 12]> : vector<4xindex>\n"
        "%mask = vector.constant_mask [4] : !b\n"
        "%a = vector.gather %x[%c1] [%at], %mask, %zeros : !m, vector<4xindex>, !b, !v into !v",
        "'vector.gather' op loads elements 1 to 13 of memory of 13",
    ),
    "input": ("memref.store %zero, %x[%c0] : !m", "read-only"),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_what_is_outside_is_refused(case: str) -> None:
    body, message = OUTSIDE[case]
    with pytest.raises(ExecutionError, match=message):
        run(body)
