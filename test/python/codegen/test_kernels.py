"""Kernels of memrefs, vectors and loops compute what NumPy computes, at every level and target."""

import ctypes
from functools import cache

import numpy as np
import pytest
from small_kernels import NATIVE, build, call

from relax_mlir.target import Target

SIZES = [0, 1, 2, 7, 15, 16, 17, 31, 33, 127, 128, 1009]
LEVELS = [0, 1, 2, 3]
FMA_KERNEL = """
func.func @fma(%x: memref<?xf32>, %y: memref<?xf32>, %out: memref<?xf32>, %a: f32)
    attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %n = memref.dim %x, %c0 : memref<?xf32>
  %av = vector.broadcast %a : f32 to vector<16xf32>
  scf.for %i = %c0 to %n step %c16 {
    %left = arith.subi %n, %i : index
    %m = vector.create_mask %left : vector<16xi1>
    %0 = vector.maskedload %x[%i], %m, %zero
      : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %1 = vector.maskedload %y[%i], %m, %zero
      : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %2 = arith.mulf %0, %av : vector<16xf32>
    %3 = arith.addf %2, %1 : vector<16xf32>
    vector.maskedstore %out[%i], %m, %3 : memref<?xf32>, vector<16xi1>, vector<16xf32>
  }
  return
}
"""


def runs_here(name: str) -> bool:
    return {f for f in Target.parse(name).host.features if f[0] == "+"} <= set(NATIVE.host.features)


def native_and_below() -> list[str]:
    levels = [
        "x86-64",
        "x86-64-v2",
        "x86-64-v3",
        "x86-64-v4",
        "aarch64",
        "aarch64-v8.2",
        "aarch64-v8.6",
    ]
    return ["native", *(name for name in levels if runs_here(name))]


@cache
def fma_library(target: str, level: int) -> ctypes.CDLL:
    return build(FMA_KERNEL, "fma", target=Target.parse(target), opt_level=level)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("level", LEVELS)
def test_masked_tail(n: int, level: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    guarded = np.full(n + 32, 7, np.float32)
    call(fma_library("native", level).fma, x, y, guarded[16 : 16 + n], 3.5)
    np.testing.assert_allclose(guarded[16 : 16 + n], x * 3.5 + y, rtol=1e-6, atol=1e-6)
    assert (guarded[:16] == 7).all()
    assert (guarded[16 + n :] == 7).all()


@pytest.mark.parametrize("target", native_and_below())
def test_targets_agree(target: str) -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 1009)).astype(np.float32)
    out = np.zeros(1009, np.float32)
    call(fma_library(target, 3).fma, x, y, out, -0.25)
    np.testing.assert_allclose(out, x * -0.25 + y, rtol=1e-6, atol=1e-6)


MATMUL = """
func.func @matmul(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>)
    attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %z = arith.constant 0.0 : f32
  %acc0 = arith.constant dense<0.0> : vector<4x16xf32>
  %m = memref.dim %a, %c0 : memref<?x?xf32>
  %k = memref.dim %a, %c1 : memref<?x?xf32>
  %n = memref.dim %b, %c1 : memref<?x?xf32>
  %packed = memref.alloc(%k) {alignment = 64 : i64} : memref<?x16xf32>
  scf.for %j = %c0 to %n step %c16 {
    scf.for %p = %c0 to %k step %c1 {
      %v = vector.transfer_read %b[%p, %j], %z : memref<?x?xf32>, vector<16xf32>
      vector.transfer_write %v, %packed[%p, %c0] {in_bounds = [true]}
        : vector<16xf32>, memref<?x16xf32>
    }
    scf.for %i = %c0 to %m step %c4 {
      %r = scf.for %p = %c0 to %k step %c1 iter_args(%acc = %acc0) -> vector<4x16xf32> {
        %av = vector.transfer_read %a[%i, %p], %z : memref<?x?xf32>, vector<4x1xf32>
        %bv = vector.transfer_read %packed[%p, %c0], %z {in_bounds = [true, true]}
          : memref<?x16xf32>, vector<1x16xf32>
        %d = vector.contract {
          indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                           affine_map<(i, j, k) -> (i, j)>],
          iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
          %av, %bv, %acc : vector<4x1xf32>, vector<1x16xf32> into vector<4x16xf32>
        scf.yield %d : vector<4x16xf32>
      }
      vector.transfer_write %r, %c[%i, %j] : vector<4x16xf32>, memref<?x?xf32>
    }
  }
  memref.dealloc %packed : memref<?x16xf32>
  return
}
"""


@cache
def matmul_library() -> ctypes.CDLL:
    return build(MATMUL, "matmul")


@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (4, 8, 16), (5, 7, 17), (3, 0, 5), (0, 3, 3), (31, 127, 33)]
)
def test_contraction_with_scratch(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(m)
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    call(matmul_library().matmul, a, b, c)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)


GATHER = """
func.func @take(%table: memref<?x?xf32>, %rows: memref<?xi64>, %out: memref<?x?xf32>)
    attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zi = arith.constant dense<0> : vector<8xi64>
  %zf = arith.constant dense<0.0> : vector<8xf32>
  %n = memref.dim %rows, %c0 : memref<?xi64>
  %d = memref.dim %table, %c1 : memref<?x?xf32>
  %wide = arith.index_cast %d : index to i64
  %width = vector.broadcast %wide : i64 to vector<8xi64>
  scf.for %i = %c0 to %n step %c8 {
    %left = arith.subi %n, %i : index
    %m = vector.create_mask %left : vector<8xi1>
    %r = vector.maskedload %rows[%i], %m, %zi
      : memref<?xi64>, vector<8xi1>, vector<8xi64> into vector<8xi64>
    %offsets = arith.muli %r, %width : vector<8xi64>
    %steps = vector.step : vector<8xindex>
    scf.for %j = %c0 to %d step %c1 {
      %v = vector.gather %table[%c0, %j][%offsets], %m, %zf
        : memref<?x?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      %to = vector.broadcast %d : index to vector<8xindex>
      %at = arith.muli %steps, %to : vector<8xindex>
      vector.scatter %out[%i, %j][%at], %m, %v
        : memref<?x?xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32>
    }
  }
  return
}
"""


@cache
def gather_library() -> ctypes.CDLL:
    return build(GATHER, "take")


@pytest.mark.parametrize("n", [0, 1, 8, 13])
def test_gather_and_scatter(n: int) -> None:
    rng = np.random.default_rng(n)
    table = rng.standard_normal((11, 5)).astype(np.float32)
    rows = rng.integers(0, 11, n)
    out = np.zeros((n, 5), np.float32)
    call(gather_library().take, table, rows, out)
    np.testing.assert_array_equal(out, table[rows])


FUSED = """
func.func @fused(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>, %out: memref<?xf32>)
    attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %z = arith.constant 0.0 : f32
  %n = memref.dim %a, %c0 : memref<?xf32>
  scf.for %i = %c0 to %n step %c8 {
    %0 = vector.transfer_read %a[%i], %z : memref<?xf32>, vector<8xf32>
    %1 = vector.transfer_read %b[%i], %z : memref<?xf32>, vector<8xf32>
    %2 = vector.transfer_read %c[%i], %z : memref<?xf32>, vector<8xf32>
    %3 = math.fma %0, %1, %2 : vector<8xf32>
    vector.transfer_write %3, %out[%i] : vector<8xf32>, memref<?xf32>
  }
  return
}
"""


@pytest.mark.parametrize("target", native_and_below())
def test_multiply_adds_are_fused_on_every_target(target: str) -> None:
    library = build(FUSED, "fused", target=Target.parse(target))
    a, b = np.random.default_rng(5).standard_normal((2, 1009)).astype(np.float32)
    c = -(a * b)  # cancels all that is not lost in rounding
    out = np.zeros(1009, np.float32)
    call(library.fused, a, b, c, out)
    exact = a.astype(np.float64) * b + c
    assert np.count_nonzero(exact) > 500
    np.testing.assert_array_equal(out, exact.astype(np.float32))


SOFTMAX = """
func.func @softmax(%x: memref<?x?xf32>, %out: memref<?x?xf32>) attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %low = arith.constant dense<0xFF800000> : vector<16xf32>
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%r) = (%c0) to (%rows) step (%c1) {
    %row = memref.alloc(%n) : memref<?xf32>
    %mv = scf.for %i = %c0 to %n step %c16 iter_args(%acc = %low) -> vector<16xf32> {
      %left = arith.subi %n, %i : index
      %m = vector.create_mask %left : vector<16xi1>
      %v = vector.maskedload %x[%r, %i], %m, %low
        : memref<?x?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      %w = arith.maximumf %v, %acc : vector<16xf32>
      scf.yield %w : vector<16xf32>
    }
    %max = vector.reduction <maximumf>, %mv : vector<16xf32> into f32
    %maxv = vector.broadcast %max : f32 to vector<16xf32>
    %sv = scf.for %i = %c0 to %n step %c16 iter_args(%acc = %zero) -> vector<16xf32> {
      %left = arith.subi %n, %i : index
      %m = vector.create_mask %left : vector<16xi1>
      %v = vector.maskedload %x[%r, %i], %m, %low
        : memref<?x?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      %c = arith.subf %v, %maxv : vector<16xf32>
      %e = math.exp %c : vector<16xf32>
      vector.maskedstore %row[%i], %m, %e : memref<?xf32>, vector<16xi1>, vector<16xf32>
      %w = arith.addf %acc, %e : vector<16xf32>
      scf.yield %w : vector<16xf32>
    }
    %sum = vector.reduction <add>, %sv : vector<16xf32> into f32
    %sumv = vector.broadcast %sum : f32 to vector<16xf32>
    scf.for %i = %c0 to %n step %c16 {
      %left = arith.subi %n, %i : index
      %m = vector.create_mask %left : vector<16xi1>
      %v = vector.maskedload %row[%i], %m, %zero
        : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      %q = arith.divf %v, %sumv : vector<16xf32>
      vector.maskedstore %out[%r, %i], %m, %q : memref<?x?xf32>, vector<16xi1>, vector<16xf32>
    }
    memref.dealloc %row : memref<?xf32>
    scf.reduce
  } {tir.grain = 2 : i64}
  return
}
"""


@cache
def softmax_library() -> ctypes.CDLL:
    return build(SOFTMAX, "softmax")


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (3, 17), (64, 127), (257, 33)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_parallel_rows_with_scratch(shape: tuple[int, int], threads: int) -> None:
    library = softmax_library()
    library.rx_set_threads(threads)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32) * 5
    out = np.full(shape, np.nan, np.float32)
    call(library.softmax, x, out)
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True, initial=-np.inf))
    np.testing.assert_allclose(out, exact / exact.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7)


NARROW = """
func.func @narrow(%h: memref<?xf16>, %b: memref<?xbf16>, %flags: memref<?xi8>,
                  %oh: memref<?xf16>, %ob: memref<?xbf16>) attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zh = arith.constant 0.0 : f16
  %zb = arith.constant 0.0 : bf16
  %zi = arith.constant 0 : i8
  %zv = arith.constant dense<0> : vector<8xi8>
  %n = memref.dim %h, %c0 : memref<?xf16>
  scf.for %i = %c0 to %n step %c8 {
    %0 = vector.transfer_read %h[%i], %zh : memref<?xf16>, vector<8xf16>
    %1 = vector.transfer_read %b[%i], %zb : memref<?xbf16>, vector<8xbf16>
    %2 = vector.transfer_read %flags[%i], %zi : memref<?xi8>, vector<8xi8>
    %3 = arith.extf %0 : vector<8xf16> to vector<8xf32>
    %4 = arith.extf %1 : vector<8xbf16> to vector<8xf32>
    %5 = arith.addf %3, %4 : vector<8xf32>
    %6 = arith.cmpi ne, %2, %zv : vector<8xi8>
    %7 = arith.select %6, %5, %3 : vector<8xi1>, vector<8xf32>
    %8 = arith.truncf %7 : vector<8xf32> to vector<8xf16>
    %9 = arith.truncf %7 : vector<8xf32> to vector<8xbf16>
    vector.transfer_write %8, %oh[%i] : vector<8xf16>, memref<?xf16>
    vector.transfer_write %9, %ob[%i] : vector<8xbf16>, memref<?xbf16>
  }
  return
}
"""


def to_bf16(x: np.ndarray) -> np.ndarray:
    """Rounds to nearest even, as bits."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


@pytest.mark.parametrize("target", native_and_below())
@pytest.mark.parametrize("n", [0, 1, 8, 29])
def test_narrow_floats_and_booleans(target: str, n: int) -> None:
    library = build(NARROW, "narrow", target=Target.parse(target))
    rng = np.random.default_rng(n)
    h = rng.standard_normal(n).astype(np.float16)
    b = to_bf16(rng.standard_normal(n))
    flags = rng.integers(0, 2, n).astype(np.int8)
    oh, ob = np.zeros(n, np.float16), np.zeros(n, np.uint16)
    call(library.narrow, h, b, flags, oh, ob)
    wide = (b.astype(np.uint32) << 16).view(np.float32)
    expected = np.where(flags != 0, h.astype(np.float32) + wide, h.astype(np.float32))
    np.testing.assert_array_equal(oh, expected.astype(np.float16))
    np.testing.assert_array_equal(ob, to_bf16(expected))


def test_transposes_reductions_and_views() -> None:
    library = build(
        """
        func.func @f(%x: memref<8x8xf32>, %sums: memref<8xf32>, %t: memref<8x8xf32>)
            attributes {tir.scheduled} {
          %c0 = arith.constant 0 : index
          %c4 = arith.constant 4 : index
          %z = arith.constant 0.0 : f32
          %zv = arith.constant dense<0.0> : vector<8xf32>
          %v = vector.transfer_read %x[%c0, %c0], %z {in_bounds = [true, true]}
            : memref<8x8xf32>, vector<8x8xf32>
          %s = vector.multi_reduction <add>, %v, %zv [1] : vector<8x8xf32> to vector<8xf32>
          vector.store %s, %sums[%c0] : memref<8xf32>, vector<8xf32>
          %w = vector.transpose %v, [1, 0] : vector<8x8xf32> to vector<8x8xf32>
          vector.transfer_write %w, %t[%c0, %c0] {in_bounds = [true, true]}
            : vector<8x8xf32>, memref<8x8xf32>
          %view = memref.subview %t[4, 4] [4, 4] [1, 1]
            : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1], offset: 36>>
          %q = vector.load %x[%c0, %c4] : memref<8x8xf32>, vector<4xf32>
          vector.store %q, %view[%c0, %c0]
            : memref<4x4xf32, strided<[8, 1], offset: 36>>, vector<4xf32>
          return
        }
        """,
        "f",
    )
    x = np.random.default_rng(3).standard_normal((8, 8)).astype(np.float32)
    sums, t = np.zeros(8, np.float32), np.zeros((8, 8), np.float32)
    call(library.f, x, sums, t)
    expected = x.T.copy()
    expected[4, 4:] = x[0, 4:]
    np.testing.assert_allclose(sums, x.astype(np.float64).sum(axis=1), rtol=1e-5)
    np.testing.assert_array_equal(t, expected)


def test_rounding_divisions() -> None:
    library = build(
        """
        func.func @f(%a: memref<?xi64>, %b: memref<?xi64>, %out: memref<?x3xi64>)
            attributes {tir.scheduled} {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c2 = arith.constant 2 : index
          %n = memref.dim %a, %c0 : memref<?xi64>
          scf.for %i = %c0 to %n step %c1 {
            %x = memref.load %a[%i] : memref<?xi64>
            %y = memref.load %b[%i] : memref<?xi64>
            %0 = arith.floordivsi %x, %y : i64
            %1 = arith.ceildivsi %x, %y : i64
            %2 = arith.remsi %x, %y : i64
            memref.store %0, %out[%i, %c0] : memref<?x3xi64>
            memref.store %1, %out[%i, %c1] : memref<?x3xi64>
            memref.store %2, %out[%i, %c2] : memref<?x3xi64>
          }
          return
        }
        """,
        "f",
    )
    a, b = (v.ravel().astype(np.int64) for v in np.meshgrid(range(-9, 10), [-4, -3, -1, 1, 2, 5]))
    out = np.zeros((a.size, 3), np.int64)
    call(library.f, a.copy(), b.copy(), out)
    np.testing.assert_array_equal(out[:, 0], a // b)
    np.testing.assert_array_equal(out[:, 1], -(-a // b))
    np.testing.assert_array_equal(out[:, 2], np.fmod(a, b))
