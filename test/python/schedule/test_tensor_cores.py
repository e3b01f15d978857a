"""Products that warps multiply, as PTX and thread by thread, against float64."""

import re
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu.ptx.assembler import assemble, assembler
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.interpreter.module import Interpreted
from relax_mlir.interpreter.ptx import parse
from relax_mlir.target import Device
from relax_mlir.testing.outlined import outlined
from relax_mlir.testing.ptx import PtxKernels

ARCH, WARPGROUPS = "sm_80", "sm_90a"
BYTES = "i8"
DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
PLAIN = """
!x = tensor<?x?xTYPE, #graph.shape<["m", "k"]>>
!w = tensor<?x?xTYPE, #graph.shape<["k", "n"]>>
!y = tensor<?x?xTYPE, #graph.shape<["m", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  return %0 : !y
}"""
TRANSPOSED = """
!x = tensor<?x?xTYPE, #graph.shape<["k", "m"]>>
!t = tensor<?x?xTYPE, #graph.shape<["m", "k"]>>
!w = tensor<?x?xTYPE, #graph.shape<["k", "n"]>>
!y = tensor<?x?xTYPE, #graph.shape<["m", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (!x) -> !t
  %1 = "graph.matmul"(%0, %w) : (!t, !w) -> !y
  return %1 : !y
}"""
BATCHED = """
!x = tensor<3x?x?xTYPE, #graph.shape<[3, "m", "k"]>>
!w = tensor<3x?x?xTYPE, #graph.shape<[3, "n", "k"]>>
!t = tensor<3x?x?xTYPE, #graph.shape<[3, "k", "n"]>>
!y = tensor<3x?x?xTYPE, #graph.shape<[3, "m", "n"]>>
func.func @main(%x: !x, %w: !w, %r: !y) -> !y {
  %0 = "graph.permute_dims"(%w) {axes = array<i64: 0, 2, 1>} : (!w) -> !t
  %1 = "graph.matmul"(%x, %0) : (!x, !t) -> !y
  %2 = "graph.subtract"(%r, %1) : (!y, !y) -> !y
  return %2 : !y
}"""
STATIC = """
func.func @main(%x: tensor<MxKxTYPE>, %w: tensor<KxNxTYPE>, %b: tensor<NxTYPE>)
    -> tensor<MxNxTYPE> {
  %0 = "graph.matmul"(%x, %w) : (tensor<MxKxTYPE>, tensor<KxNxTYPE>) -> tensor<MxNxTYPE>
  %1 = "graph.add"(%0, %b) : (tensor<MxNxTYPE>, tensor<NxTYPE>) -> tensor<MxNxTYPE>
  %2 = "graph.nn_relu"(%1) : (tensor<MxNxTYPE>) -> tensor<MxNxTYPE>
  return %2 : tensor<MxNxTYPE>
}"""
PRODUCT = """
  %NAME = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
      affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %wNAME : !x, !x) outs(%zeros : !y) {
  ^bb0(%a: TYPE, %b: TYPE, %s: f32):
    %1 = arith.extf %a : TYPE to f32
    %2 = arith.extf %b : TYPE to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %s, %3 : f32
    linalg.yield %4 : f32
  } -> !y"""
TWO = f"""
!x = tensor<?x?xTYPE>
!y = tensor<?x?xf32>
!gx = tensor<?x?xTYPE, #graph.shape<["m", "k"]>>
!gw = tensor<?x?xTYPE, #graph.shape<["n", "k"]>>
!gy = tensor<?x?xf32, #graph.shape<["m", "n"]>>
func.func private @two(%x: !x, %wp: !x, %wq: !x, %out: !y) -> !y
    attributes {{tir.prim_func, tir.num_outs = 1 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %out, %c0 : !y
  %n = tensor.dim %out, %c1 : !y
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%m, %n) : !y
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : !y) -> !y
  {PRODUCT.replace("NAME", "p")}
  {PRODUCT.replace("NAME", "q")}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%p, %q : !y, !y) outs(%out : !y) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  }} -> !y
  return %r : !y
}}
func.func @main(%x: !gx, %p: !gw, %q: !gw) -> !gy {{
  %0 = "graph.call_tir"(%x, %p, %q) {{callee = @two, sym_args = #graph.shape<[]>,
      operandSegmentSizes = array<i32: 1, 1, 1{", 0" * 29}>,
      resultSegmentSizes = array<i32: 1{", 0" * 7}>}} : (!gx, !gw, !gw) -> !gy
  return %0 : !gy
}}"""


def lowered(text: str, type_: str, arch: str) -> ir.Module:
    """A module whose launches are outlined; its products of more than four rows are of warps."""
    with ir.Location.unknown():
        module = outlined(text.replace("TYPE", type_), f"native@cuda:{arch}")
        return module


@cache
def built(text: str, type_: str = "f16", arch: str = ARCH) -> tuple[Any, PtxKernels]:
    """A module whose kernels are interpreted as PTX, and these."""
    with make_context():
        module = lowered(text, type_, arch)
        kernels = PtxKernels(module, Device.parse(f"cuda:{arch}"))
        known = f"wgmma.mma_async.sync.aligned.m64n128k16.f32.{type_}.{type_}"
        if arch != WARPGROUPS or text is TWO:
            known = f"mma.sync.aligned.m16n8k16.row.col.f32.{type_}.{type_}.f32"
        if type_ == BYTES:
            known = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
        assert any(known in ptx for ptx in kernels.texts.values())
        return Interpreted(module, launch=kernels.launch)["main"], kernels


@cache
def by_threads(text: str, type_: str, arch: str) -> Any:
    """The same, interpreted thread by thread."""
    with make_context():
        return relax_mlir.interpret(lowered(text, type_, arch))["main"]


def normal(type_: str, *shape: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(shape).astype(DTYPES[type_])


def check(actual: np.ndarray, exact: np.ndarray, size: np.ndarray, depth: int) -> None:
    """Sums of `depth` in f32, of terms whose sizes sum up to `size`, rounded once."""
    ulp = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}[actual.dtype.name]
    error = np.abs(actual.astype(np.float64) - exact)
    bound = 1.01 * ulp * np.abs(exact) + (depth + 2) * 2.0**-24 * size + 1e-7
    assert actual.shape == exact.shape
    assert (error <= bound).all(), (error / bound).max()


def exact_of(*arrays: np.ndarray) -> list[np.ndarray]:
    return [array.astype(np.float64) for array in arrays]


BOTH = pytest.mark.parametrize("arch", [ARCH, WARPGROUPS])
"""Products of warps, and those of warpgroups."""
SIZES = [(1, 1, 1), (0, 3, 4), (3, 0, 5), (7, 40, 0), (17, 31, 63), (64, 32, 64), (65, 33, 72),
         (129, 104, 8), (128, 65, 127), (65, 129, 8)]  # fmt: skip


@pytest.mark.rotate(6)
@BOTH
@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.parametrize("text", [PLAIN, TRANSPOSED], ids=["plain", "transposed"])
def test_sizes(text: str, type_: str, arch: str) -> None:
    run, _ = built(text, type_, arch)
    for m, k, n in SIZES:
        x, w = normal(type_, m, k), normal(type_, k, n)
        a, b = exact_of(x, w)
        given = x if text is PLAIN else np.ascontiguousarray(x.T)
        check(run(given, w), a @ b, np.abs(a) @ np.abs(b), k)


@pytest.mark.rotate(2)
@BOTH
def test_batches_with_an_epilogue(arch: str) -> None:
    run, _ = built(BATCHED, "bf16", arch)
    for m, k, n in ((5, 24, 9), (66, 33, 65)):
        x, w, r = (normal("bf16", 3, *shape) for shape in ((m, k), (n, k), (m, n)))
        a, b, c = exact_of(x, w.swapaxes(1, 2), r)
        rounded = (a @ b).astype(DTYPES["bf16"]).astype(float)
        check(run(x, w, r), c - rounded, 2 * np.abs(a @ b), 1 << 16)


@pytest.mark.rotate(4)
@pytest.mark.parametrize(
    ("m", "k", "n", "arch"),
    [(5, 32, 24, ARCH), (33, 48, 65, ARCH), (64, 7, 64, ARCH), (70, 33, 35, ARCH),
     (70, 33, 35, WARPGROUPS), (150, 64, 128, ARCH),
     (128, 320, 128, WARPGROUPS), (200, 72, 24, WARPGROUPS)],
)  # fmt: skip
def test_static_sizes(m: int, k: int, n: int, arch: str) -> None:
    """With tiles of one, two and four matrices for a warp, and copies that need no bounds."""
    text = STATIC.replace("M", str(m)).replace("K", str(k)).replace("N", str(n))
    run, _ = built(text, "f16", arch)
    x, w = (np.round(2 * normal("f16", *shape)) for shape in ((m, k), (k, n)))
    bias = np.round(normal("f16", n))
    exact = np.maximum(x.astype(np.float64) @ w.astype(np.float64) + bias, 0)
    np.testing.assert_array_equal(run(x, w, bias), exact)  # integers below 2^11


def check_integers(text: str, *runs: Any) -> None:
    """Products of 8 bits, modulo 2^8."""
    for m, k, n in ((5, 1, 7), (6, 0, 5), (17, 31, 63), (65, 80, 72), (130, 129, 40)):
        batch = (3,) if text is BATCHED else ()
        shapes = [(*batch, m, k), (*batch, n, k) if batch else (k, n), (*batch, m, n)]
        x, w, r = (np.random.default_rng().integers(-128, 128, s, np.int8) for s in shapes)
        if text is BATCHED:
            exact, given = r - x.astype("i8") @ w.astype("i8").swapaxes(1, 2), (x, w, r)
        else:
            exact, given = x.astype("i8") @ w.astype("i8"), (x, w)
        if text is TRANSPOSED:
            given = (np.ascontiguousarray(x.T), w)
        for run in runs:
            np.testing.assert_array_equal(run(*given), exact.astype(np.int8))


@pytest.mark.rotate(3)
@pytest.mark.parametrize("text", [PLAIN, TRANSPOSED, BATCHED], ids=["plain", "transposed", "both"])
def test_integers(text: str) -> None:
    """Of which sides that are not along k are copied by element."""
    check_integers(text, built(text, BYTES)[0], by_threads(text, BYTES, ARCH))


def test_two_products_of_one_left_side() -> None:
    run, kernels = built(TWO, "bf16")
    counts = {text.count("mma.sync") for text in kernels.texts.values()}
    assert counts == {0, 2 * 2 * 2 * 4}  # of few rows, and a step: products, halves, rows, columns
    for m, k, n in ((3, 5, 7), (6, 5, 7), (70, 96, 66)):
        x, p, q = (normal("bf16", *shape) for shape in ((m, k), (n, k), (n, k)))
        a, b, c = exact_of(x, p, q)
        check(run(x, p, q), a @ (b - c).T, np.abs(a) @ (np.abs(b) + np.abs(c)).T, k)


@BOTH
def test_arrays_that_are_not_aligned(arch: str) -> None:
    """Copies of 16 bytes would fail."""
    run, _ = built(PLAIN, "f16", arch)
    for shift in (1, 4):
        x, w = (normal("f16", count + 8)[shift : count + shift] for count in (40 * 64, 64 * 24))
        x, w = x.reshape(40, 64), w.reshape(64, 24)
        assert x.ctypes.data % 16
        assert w.ctypes.data % 16
        a, b = exact_of(x, w)
        check(run(x, w), a @ b, np.abs(a) @ np.abs(b), 64)


@pytest.mark.parametrize("type_", ["f16", BYTES])
def test_long_sums_are_divided(type_: str) -> None:
    """Several groups for a tile: the last part is shorter, or there is one."""
    run, _ = built(PLAIN, type_)
    rng = np.random.default_rng()
    for m, k, n in ((9, 520, 40), (65, 1031, 7), (5, 511, 8)):
        x, w = (rng.integers(-1, 2, shape) for shape in ((m, k), (k, n)))
        dtype = np.dtype(np.int8) if type_ == BYTES else DTYPES[type_]
        exact = (x @ w).astype(dtype)  # bytes wrap around
        np.testing.assert_array_equal(run(x.astype(dtype), w.astype(dtype)), exact)


def test_long_sums_of_known_length_are_divided() -> None:
    """Of 1344 products: four parts of 288, and 192."""
    text = STATIC.replace("M", "9").replace("K", "1344").replace("N", "40")
    run, threads = built(text)[0], by_threads(text, "f16", ARCH)
    rng = np.random.default_rng()
    x, w, bias = (rng.integers(-1, 2, s).astype(np.float16) for s in ((9, 1344), (1344, 40), 40))
    exact = np.maximum(x.astype(np.float64) @ w + bias, 0)  # integers below 2^11
    for result in (run(x, w, bias), threads(x, w, bias)):
        np.testing.assert_array_equal(result, exact)


def test_infinities_stay_in_their_rows() -> None:
    run, _ = built(PLAIN)
    x, w = normal("f16", 20, 33), normal("f16", 33, 10)
    x[3, 32], x[5, 0] = np.inf, np.nan
    y = run(x, w)
    assert np.isinf(y[3]).all()
    assert np.isnan(y[5]).all()
    assert np.isfinite(np.delete(y, [3, 5], 0)).all()


@pytest.mark.rotate(4)
@BOTH
@pytest.mark.parametrize("type_", DTYPES)
def test_threads_compute_what_their_ptx_does(type_: str, arch: str) -> None:
    run, threads = built(PLAIN, type_, arch)[0], by_threads(PLAIN, type_, arch)
    for m, k, n in ((70, 40, 72), (5, 33, 65)):
        x, w = normal(type_, m, k), normal(type_, k, n)
        np.testing.assert_array_equal(threads(x, w).view("u2"), run(x, w).view("u2"))


ORDER = {
    "bar.sync": "without a barrier between them",
    "cp.async.wait_group": "before a copy to it is complete",
    "bar.warp.sync": "threads of a warp",
    "fence.proxy.async": r"without fence\.proxy\.async",
    "wgmma.fence": r"without wgmma\.fence before",
    "wgmma.wait_group.sync.aligned \t0": "",
    "wgmma.wait_group.sync.aligned \t1": "writes what a product of a warpgroup still reads",
}
"""What orders threads, and how a kernel without it fails; the last one gives NaN."""


@pytest.mark.rotate(4)
@pytest.mark.parametrize("instruction", ORDER)
def test_what_orders_threads_is_needed(instruction: str) -> None:
    """With one of them left out; that of warps is needed where copies are by element."""
    run, kernels = built(PLAIN, "f16", WARPGROUPS if "wgmma" in instruction else ARCH)
    if instruction == "fence.proxy.async":
        run, kernels = built(PLAIN, "f16", WARPGROUPS)
    texts = kernels.texts.items()
    ((name, text),) = (x for x in texts if "mma" in x[1] and "cp.async.bulk" not in x[1])
    kernel, program = kernels._kernels[name]
    k = 161 if instruction == "bar.warp.sync" else 320
    n = 64 if kernels is built(PLAIN, "f16", ARCH)[1] else 65  # else the device copies both sides
    x, w = normal("f16", 130, k), normal("f16", k, n)
    assert np.isfinite(run(x, w)).all()
    positions = [match.start() for match in re.finditer(re.escape(instruction), text)]
    assert positions
    for at in positions:
        kernels._kernels[name] = kernel, parse(f"{text[:at]}//{text[at:]}")
        if ORDER[instruction]:
            with pytest.raises(ExecutionError, match=ORDER[instruction]):
                run(x, w)
        else:
            assert not np.isfinite(run(x, w)).any()
    kernels._kernels[name] = kernel, program


@pytest.mark.rotate(3)
@pytest.mark.skipif(assembler() is None, reason="no ptxas: nvidia-cuda-nvcc has it")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_the_assembler_spills_nothing(arch: str) -> None:
    for text, type_ in ((PLAIN, "f16"), (BATCHED, "bf16"), (TWO, "bf16"), (BATCHED, BYTES)):
        for ptx in built(text, type_, arch)[1].texts.values():
            usage = assemble(ptx, arch)
            assert usage.spilled_bytes == 0
            assert usage.registers <= 176
            assert not usage.serializes_products
            if "cp.async.bulk" in ptx:  # else it may see what is waited for
                bad = re.sub(r"wgmma\.wait_group\S*\s+\d;", "", ptx)
                assert assemble(bad, arch).serializes_products
