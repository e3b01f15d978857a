"""Kernels as PTX: the text for each architecture, what it computes, what is refused.

Each operator is run so by its own tests, as the route `ptx`.
"""

import re
from functools import cache

import numpy as np
import pytest

from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu import device_kernels
from relax_mlir.codegen.gpu.ptx import compile_ptx
from relax_mlir.codegen.gpu.ptx.assembler import assemble, assembler
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, ExecutionError
from relax_mlir.interpreter.module import Interpreted
from relax_mlir.interpreter.ptx import parse
from relax_mlir.target import Device
from relax_mlir.testing.outlined import outlined
from relax_mlir.testing.ptx import PtxKernels

ARCHES = {
    **{"sm_75": "6.3", "sm_80": "7.0", "sm_86": "7.1", "sm_87": "7.4", "sm_89": "7.8"},
    **{"sm_90": "7.8", "sm_90a": "8.0", "sm_100": "8.6", "sm_100a": "8.6", "sm_120": "8.7"},
}
SOFTMAX = """
!x = tensor<?x?xTYPE, #graph.shape<["m", "n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.nn_softmax"(%x) {axis = -1 : i64} : (!x) -> !x
  return %0 : !x
}"""
MATMUL = """
!x = tensor<?x?xTYPE, #graph.shape<["m", "k"]>>
!w = tensor<?x?xTYPE, #graph.shape<["k", "n"]>>
!y = tensor<?x?xTYPE, #graph.shape<["m", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  return %0 : !y
}"""
ATTENTION = """
!q = tensor<?x2x8xTYPE, #graph.shape<["n", 2, 8]>>
!c = tensor<1x?x8xTYPE, #graph.shape<[1, "c", 8]>>
func.func @main(%q: !q, %k: !c, %v: !c) -> !q {
  %0 = "graph.nn_attention"(%q, %k, %v)
      {position = #graph.shape<[40]>, scale = 0.3 : f64, causal = true} : (!q, !c, !c) -> !q
  return %0 : !q
}"""
SCAN = """
!x = tensor<?xCOUNTxTYPE>
func.func @main(%x: !x) -> !x {
  %0 = "graph.cumsum"(%x) {axis = 1 : i64, exclusive = false, reverse = false} : (!x) -> !x
  return %0 : !x
}"""
REMAINDER = """
!x = tensor<?xTYPE, #graph.shape<["n"]>>
func.func @main(%x: !x, %y: !x) -> !x {
  %0 = "graph.call_tir"(%x, %y) {callee = @rest, operandSegmentSizes = array<i32: 1, 1ZEROS>,
    resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, sym_args = #graph.shape<[]>}
    : (!x, !x) -> !x
  return %0 : !x
}
func.func private @rest(%x: tensor<?xTYPE>, %y: tensor<?xTYPE>, %out: tensor<?xTYPE>)
    -> tensor<?xTYPE> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
      affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<?xTYPE>, tensor<?xTYPE>) outs(%out : tensor<?xTYPE>) {
  ^bb0(%a: TYPE, %b: TYPE, %old: TYPE):
    %1 = arith.remf %a, %b : TYPE
    linalg.yield %1 : TYPE
  } -> tensor<?xTYPE>
  return %0 : tensor<?xTYPE>
}""".replace("ZEROS", ", 0" * 30)


@cache
def built(text: str, type_: str = "f32", arch: str = "sm_90a") -> tuple[Interpreted, PtxKernels]:
    """A module whose kernels are interpreted as PTX, and these."""
    target = f"native@cuda:{arch}"
    with make_context(), ir.Location.unknown():
        module = outlined(text.replace("TYPE", type_), target)
        kernels = PtxKernels(module, Device.parse(f"cuda:{arch}"))
        return Interpreted(module, launch=kernels.launch), kernels


def softmax(x: np.ndarray) -> np.ndarray:
    power = np.exp(x - x.max(1, keepdims=True))
    return power / power.sum(1, keepdims=True)


@pytest.mark.parametrize("arch", ARCHES)
def test_texts_are_of_the_oldest_version_that_has_the_architecture(arch: str) -> None:
    _, kernels = built(SOFTMAX, "f32", arch)
    (text,) = kernels.texts.values()
    program = parse(text)
    assert (program.target, program.version) == (arch, ARCHES[arch])
    (kernel,) = program.kernels.values()
    assert kernel.name == "softmax_kernel"
    assert kernel.most_threads == 128
    assert {kind for _, kind in kernel.parameters} == {"u64"}
    assert ".func" not in text


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_small_floats_on_each_architecture(arch: str, type_: str) -> None:
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16 if type_ == "bf16" else np.float16)
    module, _ = built(SOFTMAX, type_, arch)
    x = np.random.default_rng(3).standard_normal((5, 131)).astype(dtype)
    np.testing.assert_allclose(
        module["main"](x).astype("f8"), softmax(x.astype("f8")), rtol=2e-2, atol=1e-6
    )


@pytest.mark.parametrize(
    ("text", "shapes", "has_unneeded"),
    [
        (SOFTMAX, [(3, 5000)], True),
        (MATMUL, [(70, 50), (50, 67)], False),
        (MATMUL, [(1, 50), (50, 67)], False),
        (MATMUL, [(3, 50), (50, 67)], False),
        (ATTENTION, [(9, 2, 8), (1, 60, 8), (1, 60, 8)], False),
        (ATTENTION, [(1, 2, 8), (1, 60, 8), (1, 60, 8)], False),
        (SCAN.replace("COUNT", "257"), [(3, 257)], False),
        (SCAN.replace("COUNT", "?"), [(3, 5000)], False),
        (SCAN.replace("?xCOUNT", "1xCOUNT").replace("COUNT", "8193"), [(1, 8193)], False),
    ],
)
def test_each_barrier_is_needed(
    text: str, shapes: list[tuple[int, ...]], has_unneeded: bool
) -> None:
    """All but the last one of softmax, after which threads read what they stored themselves."""
    module, kernels = built(text)
    arrays = [
        np.random.default_rng(i).standard_normal(s).astype("f4") for i, s in enumerate(shapes)
    ]
    module["main"](*arrays)
    checked = 0
    for name, original in kernels.texts.items():
        if not _fails(module, kernels, name, original.replace("bar.sync", "//"), arrays):
            continue  # it does not run for these shapes
        barriers = [at.start() for at in re.finditer("bar.sync", original)]
        checked += len(barriers)
        for at in barriers:
            text = f"{original[:at]}//{original[at:]}"
            is_needed = at != barriers[-1] or not has_unneeded
            assert _fails(module, kernels, name, text, arrays) == is_needed
    assert checked > 0


def _fails(
    module: Interpreted, kernels: PtxKernels, name: str, text: str, arrays: list[np.ndarray]
) -> bool:
    """Whether threads race with another text of a kernel."""
    kernel, program = kernels._kernels[name]
    kernels._kernels[name] = kernel, parse(text)
    try:
        module["main"](*arrays)
    except ExecutionError as error:
        return "without a barrier between them" in str(error)
    finally:
        kernels._kernels[name] = kernel, program
    return False


@pytest.mark.parametrize(("type_", "dtype"), [("f32", "f4"), ("f64", "f8"), ("f16", "f2")])
def test_remainders_are_exact(type_: str, dtype: str) -> None:
    module, _ = built(REMAINDER, type_)
    generator, size = np.random.default_rng(), np.dtype(dtype).itemsize
    bits = [generator.integers(0, 1 << 8 * size, 3001, np.uint64).astype(f"u{size}") for _ in "xy"]
    x, y = (b.view(dtype) for b in bits)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-5, 7.5], dtype)
    x[:81], y[:81] = np.repeat(special, 9), np.tile(special, 9)
    x[81:90] = y[81:90]
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    actual = module["main"](x, y)
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[numbers], np.signbit(expected)[numbers])


def compiled(body: str) -> str:
    """The PTX of a kernel with a buffer of f32 and an index."""
    text = f"""
module attributes {{gpu.container_module}} {{
gpu.module @k {{ llvm.func @other(f32) -> f32\n gpu.func @k(%x: memref<?xf32>, %n: index) kernel
    attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
  %a = memref.load %x[%n] : memref<?xf32>
  {body}
  memref.store %b, %x[%n] : memref<?xf32>
  gpu.return
}} }} }}"""
    with make_context() as context, ir.Location.unknown():
        context.dialects["gpu"]
        (kernel,) = device_kernels(ir.Module.parse(text).operation)
        return compile_ptx(kernel, Device.parse("cuda:sm_80"))


def test_calls_are_refused() -> None:
    """As LLVM makes of intrinsics that it does not know."""
    with pytest.raises(CompileError, match="PTX of kernel 'k' would call 'other'"):
        compiled("%b = llvm.call @other(%a) : (f32) -> f32")


def test_ops_without_a_lowering_are_refused() -> None:
    with pytest.raises(CompileError, match=r"op has no lowering to PTX"):
        compiled("%t = tensor.empty() : tensor<1xf32>\n%b = tensor.extract %t[%n] : tensor<1xf32>")


@pytest.mark.skipif(assembler() is None, reason="no ptxas: nvidia-cuda-nvcc has it")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
@pytest.mark.parametrize("text", [SOFTMAX, MATMUL])
def test_the_assembler_takes_kernels(text: str, arch: str) -> None:
    _, kernels = built(text, "f32", arch)
    assert all(assemble(ptx, arch).spilled_bytes == 0 for ptx in kernels.texts.values())
