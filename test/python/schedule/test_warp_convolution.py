"""Convolutions that warps multiply, as PTX and thread by thread, against float64."""

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_device_convolution import RESIDUAL, channels_last

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu.ptx.assembler import assemble, assembler
from relax_mlir.dialects import make_context
from relax_mlir.interpreter.module import Interpreted
from relax_mlir.target import Device
from relax_mlir.testing.outlined import outlined
from relax_mlir.testing.ptx import PtxKernels

DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
POINTWISE = """
!x = tensor<?x?x?x?xf16, #graph.shape<["n", "c", "h", "w"]>>
!w = tensor<20x?x1x1xf16, #graph.shape<[20, "c", 1, 1]>>
!y = tensor<?x20x?x?xf16, #graph.shape<["n", 20, "h", "w"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, !w) -> !y
  return %0 : !y
}
"""


@cache
def built(text: str, arch: str = "sm_80") -> tuple[Any, Any, PtxKernels]:
    """The function whose kernels are interpreted as PTX, by threads, and the PTX."""
    with make_context(), ir.Location.unknown():
        module = outlined(text, f"native@cuda:{arch}")
        rules = [op.attributes["tir.schedule"].value for op in module.body.operations
                 if "tir.schedule" in op.attributes]  # fmt: skip
        assert "warp_convolution" in rules
        kernels = PtxKernels(module, Device.parse(f"cuda:{arch}"))
        by_threads = relax_mlir.interpret(module)["main"]
        return Interpreted(module, launch=kernels.launch)["main"], by_threads, kernels


def check(actual: np.ndarray, exact: np.ndarray, size: np.ndarray, depth: int) -> None:
    """Sums of `depth` in f32, of terms whose sizes sum up to `size`, rounded once."""
    ulp = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[actual.dtype.name]
    bound = 1.01 * ulp * np.abs(exact) + (depth + 2) * 2.0**-24 * size + 1e-7
    assert actual.shape == exact.shape
    error = np.abs(actual.astype(np.float64) - exact)
    assert (error <= bound).all(), (error / bound).max()


def residual(*given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The results of RESIDUAL."""
    x, w, b, r = (each.astype(np.float64) for each in given)
    sums = np.zeros(r.shape)
    if r.shape[-1]:
        x = np.pad(x, ((0, 0), (0, 0), (2, 0), (0, 0)))
        view = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (2, 3))
        sums = np.concatenate([
            np.einsum("ncyxuv,fcuv->nfyx", view[:, 3 * g :][:, :3], w[20 * g :][:20])
            for g in range(2)
        ], 1)  # fmt: skip
    return np.maximum(r - (sums + b), 0), sums + b


@pytest.mark.parametrize("type_", DTYPES)
def test_groups_with_an_epilogue(type_: str) -> None:
    """Windows by element: filters of two groups, each of 20, whose rows are not of 16 bytes."""
    run, threads, kernels = built(RESIDUAL.replace("f32", type_))
    assert any("mma.sync.aligned.m16n8k16" in text for text in kernels.texts.values())
    generator = np.random.default_rng()
    for n, h, width in ((1, 5, 9), (3, 1, 2), (2, 8, 5), (0, 4, 4), (2, 7, 1)):
        shapes = (n, 6, h, width), (40, 3, 3, 2), (40, 1, 1), (n, 40, h, width - 1)
        given = [generator.integers(-3, 4, shape).astype(DTYPES[type_]) for shape in shapes]
        exact = residual(*given)
        for run_one in (run, threads):
            for actual, expected in zip(run_one(*given), exact, strict=True):
                np.testing.assert_array_equal(actual, expected)  # integers below 2^8


def last(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The result of `channels_last`."""
    channels = w.shape[2] - x.shape[3]
    padded = np.pad(x.astype(np.int64), ((0, 0), (0, 1), (1, 1), (channels, 0)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (2, 5), (1, 2))
    view = view[:, ::2, :, :, :, ::2]
    return 2 + np.einsum("nyxcuv,uvcf->nyxf", view, w.astype(np.int64))


@pytest.mark.parametrize(
    ("side", "total", "channels", "filters"),
    [("f16", "f32", (3, 4), 17), ("f16", "f32", (8, 8), 24), ("i8", "i32", (3, 4), 17),
     ("i8", "i32", (16, 16), 32)],
)  # fmt: skip
def test_channels_and_filters_last(
    side: str, total: str, channels: tuple[int, int], filters: int
) -> None:
    """By element, and by 16 bytes: with zeros next to rows, columns and, or not, channels."""
    text = channels_last(side, total, "extsi" if side == "i8" else "extf", channels, filters)
    run, threads, kernels = built(text)
    own, every = channels
    (ptx,) = kernels.texts.values()
    assert ("cp.async" in ptx) == (own == every)
    generator = np.random.default_rng()
    dtype = np.int8 if side == "i8" else np.float16
    for n, h, width in ((2, 5, 7), (1, 1, 3), (3, 4, 23), (0, 2, 3)):
        x = generator.integers(-9, 10, (n, h, width, own)).astype(dtype)
        w = generator.integers(-9, 10, (2, 3, every, filters)).astype(dtype)
        exact = last(x, w)
        np.testing.assert_array_equal(run(x, w), exact)
        np.testing.assert_array_equal(threads(x, w), exact)


def test_pixels_in_a_row() -> None:
    """The host finds out whether images are of units of 16 bytes, and so are filters."""
    run, threads, kernels = built(POINTWISE)
    assert any("cp.async" in text for text in kernels.texts.values())
    generator = np.random.default_rng()
    for n, c, h, width in ((2, 40, 4, 6), (3, 33, 3, 5), (2, 8, 7, 8), (1, 16, 1, 1)):
        x = generator.standard_normal((n, c, h, width)).astype(np.float16)
        w = generator.standard_normal((20, c, 1, 1)).astype(np.float16)
        a, b = x.astype(np.float64), w.astype(np.float64)[:, :, 0, 0]
        exact, size = (np.einsum("nchw,fc->nfhw", *s) for s in ((a, b), (np.abs(a), np.abs(b))))
        for run_one in (run, threads):
            check(run_one(x, w), exact, size, c)


@pytest.mark.rotate(3)
@pytest.mark.skipif(assembler() is None, reason="no ptxas: nvidia-cuda-nvcc has it")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_the_assembler_spills_nothing(arch: str) -> None:
    texts = (
        RESIDUAL.replace("f32", "bf16"),
        POINTWISE,
        channels_last("f16", "f32", "extf", (64, 64), 64),
        channels_last("i8", "i32", "extsi", (64, 64), 64),
    )
    for text in texts:
        for ptx in built(text, arch)[2].texts.values():
            usage = assemble(ptx, arch)
            assert usage.spilled_bytes == 0
            assert usage.registers <= 176
