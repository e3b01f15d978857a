"""Parallel loops run every iteration once, with what they capture, whatever the thread count."""

import ctypes
import threading
from functools import cache

import numpy as np
import pytest
from small_kernels import build, call

from relax_mlir.bindings import ir
from relax_mlir.codegen.parallel import outline_parallel
from relax_mlir.errors import CompileError

COUNT = """
func.func @count(%x: memref<?xi32>, %lb: index, %ub: index, %step: index)
    attributes {tir.scheduled} {
  %one = arith.constant 1 : i32
  scf.parallel (%i) = (%lb) to (%ub) step (%step) {
    %v = memref.load %x[%i] : memref<?xi32>
    %w = arith.addi %v, %one : i32
    memref.store %w, %x[%i] : memref<?xi32>
    scf.reduce
  } {tir.grain = 1 : i64}
  return
}
"""


@cache
def count_library() -> ctypes.CDLL:
    return build(COUNT, "count")


@pytest.mark.parametrize("bounds", [(0, 0, 1), (5, 3, 2), (0, 1, 1), (3, 100, 7), (0, 1000, 1)])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_iteration_runs_once(bounds: tuple[int, int, int], threads: int) -> None:
    library = count_library()
    library.rx_set_threads(threads)
    x = np.zeros(1000, np.int32)
    call(library.count, x, *bounds)
    expected = np.zeros(1000, np.int32)
    expected[slice(*bounds)] = 1
    np.testing.assert_array_equal(x, expected)


def test_calls_from_several_threads() -> None:
    library = count_library()
    library.rx_set_threads(2)
    arrays = [np.zeros(1000, np.int32) for _ in range(4)]

    def work(x: np.ndarray) -> None:
        for _ in range(50):
            call(library.count, x, 0, 1000, 1)

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x in arrays:
        np.testing.assert_array_equal(x, 50)


CAPTURES = """
func.func @captures(%x: memref<?x4xf32>, %scalar: memref<f32>, %a: f32, %n: index)
    attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %half = arith.constant 0.5 : f32
  %v = vector.broadcast %a : f32 to vector<2x4xf32>
  %w = vector.broadcast %n : index to vector<4xindex>
  %big = arith.cmpf ogt, %a, %half : f32
  %view = memref.subview %x[0, 0] [%n, 4] [1, 1]
    : memref<?x4xf32> to memref<?x4xf32, strided<[4, 1]>>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %s = memref.load %scalar[] : memref<f32>
    %0 = vector.extract %v[1] : vector<4xf32> from vector<2x4xf32>
    %1 = vector.broadcast %s : f32 to vector<4xf32>
    %2 = arith.addf %0, %1 : vector<4xf32>
    %3 = arith.index_cast %w : vector<4xindex> to vector<4xi64>
    %4 = arith.sitofp %3 : vector<4xi64> to vector<4xf32>
    %5 = arith.addf %2, %4 : vector<4xf32>
    scf.if %big {
      vector.store %5, %view[%i, %c0] : memref<?x4xf32, strided<[4, 1]>>, vector<4xf32>
    }
    scf.reduce
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c2) {
    scf.parallel (%j) = (%c0) to (%c2) step (%c1) {
      %f = memref.load %x[%i, %j] : memref<?x4xf32>
      %g = arith.mulf %f, %half : f32
      memref.store %g, %x[%i, %j] : memref<?x4xf32>
      scf.reduce
    }
    scf.reduce
  }
  return
}
"""


@pytest.mark.parametrize("a", [0.25, 2.0])
def test_captured_values_of_every_kind(a: float) -> None:
    library = build(CAPTURES, "captures")
    n = 9
    x, scalar = np.full((n, 4), 8, np.float32), np.array(3, np.float32)
    before = library.rx_counter(2)
    call(library.captures, x, scalar, a, n)
    expected = np.full((n, 4), a + 3 + n if a > 0.5 else 8, np.float32)
    expected[::2, :2] *= 0.5
    np.testing.assert_array_equal(x, expected)
    assert library.rx_counter(2) == before + 2


def outlined(text: str) -> str:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        outline_parallel(module)
        assert module.operation.verify()
        return str(module)


def test_constants_are_copied_and_buffers_are_arguments() -> None:
    text = outlined(COUNT)
    assert "scf.parallel" not in text
    body = text[text.index("func.func private @count_parallel0(") :]
    head = body[: body.index("\n")]
    assert head.count("index") == 4  # lower bound, step, begin, end
    assert "memref<?xi32>" in head
    assert "i32," not in head.replace("memref<?xi32>", "")
    assert "arith.constant 1 : i32" in body


def test_views_of_buffers_may_overlap() -> None:
    text = outlined(CAPTURES)
    heads = [line for line in text.splitlines() if "func.func private @captures_parallel" in line]
    assert ["tir.scheduled" in head for head in heads] == [False, True]


@pytest.mark.parametrize(
    ("loop", "operands"),
    [
        ("scf.parallel (%i, %j) = (%n, %n) to (%n, %n) step (%n, %n) { scf.reduce }", 6),
        (
            "%r = scf.parallel (%i) = (%n) to (%n) step (%n) init (%n) -> index {"
            " scf.reduce(%i : index)"
            " { ^bb0(%a: index, %b: index): scf.reduce.return %a : index } }",
            4,
        ),
    ],
)
def test_other_loops_are_refused_at_their_place(loop: str, operands: int) -> None:
    text = f"func.func @f(%n: index) {{\n  {loop}\n  return\n}}"
    with pytest.raises(CompileError, match=rf"2:\d+: .*'scf.parallel' op has {operands} bounds"):
        outlined(text)
