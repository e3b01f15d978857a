"""Attention of 16 bits by products of warps, as PTX and thread by thread, against float64."""

import re
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_device_attention import CACHE

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

DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
UNIT = {"f16": 2.0**-11, "bf16": 2.0**-8}
"""The error of rounding to a type, at most."""
BATCH = """
!q = tensor<?x?x4x32xbf16, #graph.shape<["b", "n", 4, 32]>>
!k = tensor<?x?x2x32xbf16, #graph.shape<["b", "m", 2, 32]>>
!v = tensor<?x?x2x48xbf16, #graph.shape<["b", "m", 2, 48]>>
!y = tensor<?x?x4x48xbf16, #graph.shape<["b", "n", 4, 48]>>
!m = tensor<?x1x?x?xbf16, #graph.shape<["b", 1, "n", "m"]>>
func.func @main(%q: !q, %k: !k, %v: !v, %mask: !m) -> !y {
  %0 = "graph.nn_batched_attention"(%q, %k, %v, %mask) {scale = 0.25 : f64, causal = false,
       operandSegmentSizes = array<i32: 1, 1, 1, 1>}
      : (!q, !k, !v, !m) -> !y
  return %0 : !y
}
"""


def cache_of(type_: str, heads: int, kv_heads: int, width: int, causal: bool = True) -> str:
    """The text of attention over a cache."""
    text = CACHE.replace("f32", type_).replace("HEADS", str(heads)).replace("KV", str(kv_heads))
    return text.replace("WIDTH", str(width)).replace("CAUSAL", str(causal).lower())


@cache
def built(text: str, arch: str = "sm_80") -> tuple[Any, Any, PtxKernels]:
    """The function whose kernels are interpreted as PTX, by threads, and the PTX."""
    with make_context(), ir.Location.unknown():
        module = outlined(text, f"native@cuda:{arch}")
        kernels = PtxKernels(module, Device.parse(f"cuda:{arch}"))
        assert any("mma.sync" in ptx for ptx in kernels.texts.values())
        by_threads = relax_mlir.interpret(module)["main"]
        return Interpreted(module, launch=kernels.launch)["main"], by_threads, kernels


def normal(type_: str, *shape: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(shape).astype(DTYPES[type_])


def attended(scores: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The result of a head in float64, and the size of its terms."""
    weights = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
    weights /= weights.sum(1, keepdims=True)
    return weights @ values, weights @ np.abs(values) + 1e-4 * np.abs(values).max(initial=0)


def check(type_: str, actual: np.ndarray, exact: np.ndarray, size: np.ndarray) -> None:
    """Exponentials are rounded once, and so is the result; all else is of f32."""
    error = np.abs(actual.astype(np.float64) - exact)
    bound = 1.02 * UNIT[type_] * (np.abs(exact) + size) + 2e-5 * size
    assert actual.shape == exact.shape
    assert (error <= bound).all(), (error / bound).max()


def of_cache(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, position: int, causal: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """What attention over a cache computes, as `attended`."""
    n, heads, _ = q.shape
    exact, size = np.zeros(q.shape), np.zeros(q.shape)
    for h in range(heads):
        at = h // (heads // len(k))
        keys, values = (x[at, : position + n].astype(np.float64) for x in (k, v))
        scores = 0.25 * (q[:, h].astype(np.float64) @ keys.T)
        if causal:
            scores[np.arange(position + n) > position + np.arange(n)[:, None]] = -np.inf
        exact[:, h], size[:, h] = attended(scores, values)
    return exact, size


@pytest.mark.rotate(5)
@pytest.mark.parametrize(
    ("type_", "heads", "kv_heads", "width", "causal"),
    [("f16", 6, 2, 64, True), ("bf16", 4, 4, 128, True), ("f16", 20, 1, 16, True),
     ("bf16", 3, 1, 80, False), ("bf16", 2, 1, 64, True)],
)  # fmt: skip
def test_a_cache(type_: str, heads: int, kv_heads: int, width: int, causal: bool) -> None:
    """With and without parts of keys; one token is of few rows, unless it has many heads."""
    run, threads, _ = built(cache_of(type_, heads, kv_heads, width, causal))
    for n, m in ((0, 3), (1, 0), (2, 127), (17, 300), (65, 62)):
        q = normal(type_, n, heads, width)
        k, v = (normal(type_, kv_heads, n + m + 2, width) for _ in range(2))
        k[:, n + m :], v[:, n + m :] = np.nan, np.inf
        exact, size = of_cache(q, k, v, m, causal)
        for run_one in (run, threads):
            check(type_, run_one(q, k, v, [m]), exact, size)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_causality_hides_does_not_matter(bad: float) -> None:
    """But it does to who sees it, whether a block of keys has hidden ones or not."""
    run, threads, _ = built(cache_of("f16", 6, 2, 64))
    q, (k, v) = normal("f16", 70, 6, 64), (normal("f16", 2, 70, 64) for _ in range(2))
    exact, size = of_cache(q, k, v, 0)
    v[0, 21, 5], k[1, 40, 7] = bad, np.nan
    for run_one in (run, threads):
        y = run_one(q, k, v, [0])
        assert not np.isfinite(y[21:, :3, 5]).any()
        assert np.isnan(y[40:, 3:]).all()
        y[21:, :3, 5], y[40:, 3:] = exact[21:, :3, 5], exact[40:, 3:]
        check("f16", y, exact, size)


def test_a_batch_with_a_mask() -> None:
    """Values have more features than keys; a row whose keys are all masked is NaN."""
    run, threads, _ = built(BATCH)
    for b, n, m in ((1, 3, 270), (1, 40, 7), (2, 9, 65), (0, 2, 2), (2, 3, 0)):
        q, k = normal("bf16", b, n, 4, 32), normal("bf16", b, m, 2, 32)
        v, mask = normal("bf16", b, m, 2, 48), normal("bf16", b, 1, n, m)
        mask[np.random.default_rng().random(mask.shape) < 0.3] = -np.inf
        if mask.size:
            mask[0, 0, 0] = -np.inf
        exact = np.zeros((b, n, 4, 48))
        size = exact.copy()
        with np.errstate(invalid="ignore"):
            for z, h in np.ndindex(b, 4) if m else ():
                keys, values = (x[z, :, h // 2].astype(np.float64) for x in (k, v))
                scores = 0.25 * (q[z, :, h].astype(np.float64) @ keys.T) + mask[z, 0]
                exact[z, :, h], size[z, :, h] = attended(scores, values)
        for run_one in (run, threads):
            y = run_one(q, k, v, mask)
            hidden = np.isnan(exact)
            np.testing.assert_array_equal(np.isnan(y.astype(np.float32)), hidden)
            check("bf16", np.where(hidden, 0, y).astype(y.dtype), np.where(hidden, 0, exact),
                  np.where(hidden, 0, size))  # fmt: skip


def test_arrays_that_are_not_aligned() -> None:
    """Copies of 16 bytes would fail."""
    run, _, _ = built(cache_of("f16", 6, 2, 64))
    shapes = (9, 6, 64), (2, 30, 64), (2, 30, 64)
    q, k, v = (normal("f16", int(np.prod(s)) + 1)[1:].reshape(s) for s in shapes)
    assert q.ctypes.data % 16
    exact, size = of_cache(q, k, v, 21)
    check("f16", run(q, k, v, [21]), exact, size)


@pytest.mark.parametrize(
    ("instruction", "error"),
    [("bar.sync", "without a barrier between them"),
     ("cp.async.wait_group", "before a copy to it is complete")],
)  # fmt: skip
def test_what_orders_threads_is_needed(instruction: str, error: str) -> None:
    run, _, kernels = built(cache_of("f16", 6, 2, 64))
    ((name, text),) = (pair for pair in kernels.texts.items() if "mma" in pair[1])
    kernel, program = kernels._kernels[name]
    q, (k, v) = normal("f16", 40, 6, 64), (normal("f16", 2, 240, 64) for _ in range(2))
    (match,) = re.finditer(re.escape(instruction), text)
    kernels._kernels[name] = kernel, parse(f"{text[: match.start()]}//{text[match.start() :]}")
    with pytest.raises(ExecutionError, match=error):
        run(q, k, v, [200])
    kernels._kernels[name] = kernel, program


@pytest.mark.rotate(3)
@pytest.mark.skipif(assembler() is None, reason="no ptxas: nvidia-cuda-nvcc has it")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_the_assembler_spills_nothing(arch: str) -> None:
    for text in (cache_of("bf16", 4, 2, 128), BATCH):
        for ptx in built(text, arch)[2].texts.values():
            assert assemble(ptx, arch).spilled_bytes == 0
