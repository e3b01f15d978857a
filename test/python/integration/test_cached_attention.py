"""Attention over caches of fewer bits, decoded where they are read, against float64 NumPy."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import relax_mlir
from relax_mlir.profile import profile

pytestmark = pytest.mark.usefixtures("llvm_turns")

LENGTHS = ((1, 0), (1, 1), (1, 30), (1, 255), (1, 256), (1, 600), (2, 5), (5, 0), (33, 31), (70, 7))
SHAPES = [(6, 2, 64), (4, 4, 32), (8, 2, 128), (16, 1, 96)]


def _types(heads: int, kv_heads: int, width: int) -> tuple[str, Callable[[str, int], str]]:
    query = f'tensor<?x{heads}x{width}xf32, #graph.shape<["n", {heads}, {width}]>>'

    def cache(element: str, columns: int = width) -> str:
        dims = f'[{kv_heads}, "c", {columns}]'
        return f"tensor<{kv_heads}x?x{columns}x{element}, #graph.shape<{dims}>>"

    return query, cache


def _attention(query: str, cache: str, width: int, keys: str, values: str) -> str:
    return f"""
      %out = "graph.nn_attention"(%q, {keys}, {values}) {{position = #graph.shape<["m"]>,
        scale = {width**-0.5} : f32, causal = true}} : ({query}, {cache}, {cache}) -> {query}
      return %out : {query} }}"""


def _bf16_module(heads: int, kv_heads: int, width: int) -> str:
    query, cache = _types(heads, kv_heads, width)
    narrow, wide = cache("bf16", width), cache("f32", width)
    return f"""func.func @main(%q: {query}, %k: {narrow}, %v: {narrow},
        %p: !graph.shape_value<["m"]>) -> {query} {{
      %0 = "graph.astype"(%k) {{dtype = f32}} : ({narrow}) -> {wide}
      %1 = "graph.astype"(%v) {{dtype = f32}} : ({narrow}) -> {wide}
      {_attention(query, wide, width, "%0", "%1")}"""


def _int8_module(heads: int, kv_heads: int, width: int) -> str:
    query, cache = _types(heads, kv_heads, width)
    data, scale, wide = cache("i8", width), cache("f32", width // 32), cache("f32", width)
    two = "operandSegmentSizes = array<i32: 1, 1, 0>"
    return f"""func.func @main(%q: {query}, %k: {data}, %ks: {scale}, %v: {data}, %vs: {scale},
        %p: !graph.shape_value<["m"]>) -> {query} {{
      %0 = "graph.dequantize_blocks"(%k, %ks) {{{two}}} : ({data}, {scale}) -> {wide}
      %1 = "graph.dequantize_blocks"(%v, %vs) {{{two}}} : ({data}, {scale}) -> {wide}
      {_attention(query, wide, width, "%0", "%1")}"""


def _reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, m: int) -> np.ndarray:
    n, heads, width = q.shape
    group = heads // k.shape[0]
    k, v = (np.repeat(x[:, : m + n], group, axis=0) for x in (k, v))
    scores = np.einsum("ihd,htd->hit", q.astype(np.float64), k) * width**-0.5
    seen = np.arange(m + n) <= m + np.arange(n)[:, None]
    powers = np.exp(np.where(seen, scores, -np.inf) - scores.max(-1, keepdims=True))
    return np.einsum("hit,htd->ihd", powers / powers.sum(-1, keepdims=True), v)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_attention_over_bf16(shape, level):
    heads, kv_heads, width = shape
    main = relax_mlir.compile(_bf16_module(*shape), opt_level=level)["main"]
    rng = np.random.default_rng()
    for n, m in LENGTHS:
        q = rng.standard_normal((n, heads, width)).astype(np.float32)
        room = (kv_heads, n + m + 3, width)
        k, v = (rng.standard_normal(room).astype(ml_dtypes.bfloat16) for _ in "kv")
        k[:, n + m :], v[:, n + m :] = np.nan, np.nan
        out = main(q, k, v, [m])
        expected = _reference(q, k.astype(np.float64), v.astype(np.float64), m)
        np.testing.assert_allclose(out, expected, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_attention_over_int8(shape, level):
    heads, kv_heads, width = shape
    main = relax_mlir.compile(_int8_module(*shape), opt_level=level)["main"]
    rng = np.random.default_rng()
    for n, m in LENGTHS:
        q = rng.standard_normal((n, heads, width)).astype(np.float32)
        room = (kv_heads, n + m + 3, width)
        k, v = (rng.integers(-127, 128, room).astype(np.int8) for _ in "kv")
        blocks = (*room[:2], width // 32)
        ks, vs = (rng.uniform(0.005, 0.02, blocks).astype(np.float32) for _ in "kv")
        ks[:, n + m :], vs[:, n + m :] = np.nan, np.nan
        out = main(q, k, ks, v, vs, [m])
        wide = [x * np.repeat(s.astype(np.float64), 32, -1) for x, s in ((k, ks), (v, vs))]
        np.testing.assert_allclose(out, _reference(q, *wide, m), rtol=3e-6, atol=3e-6)


def test_results_do_not_depend_on_threads():
    executable = relax_mlir.compile(_int8_module(6, 2, 64))
    rng = np.random.default_rng()
    for n, m in ((1, 600), (2, 1030), (70, 443)):
        q = rng.standard_normal((n, 6, 64)).astype(np.float32)
        k, v = (rng.integers(-127, 128, (2, n + m, 64)).astype(np.int8) for _ in "kv")
        ks, vs = (rng.uniform(0.005, 0.02, (2, n + m, 2)).astype(np.float32) for _ in "kv")
        found = []
        for threads in (1, 2, 5):
            executable.threads = threads
            found.append(executable["main"](q, k, ks, v, vs, [m]))
        np.testing.assert_array_equal(found[1:], [found[0]] * 2)


def test_decoding_is_fused_and_counted_once_for_each_filled_row():
    executable = relax_mlir.compile(_int8_module(6, 2, 64))
    n, m, capacity = 2, 5, 16
    q = np.zeros((n, 6, 64), np.float32)
    numbers, scales = np.zeros((2, capacity, 64), np.int8), np.zeros((2, capacity, 2), np.float32)
    before = executable.counters()["kernels"]
    executable["main"](q, numbers, scales, numbers, scales, [m])
    assert executable.counters()["kernels"] - before == 1
    call = executable["main"].bind(q, numbers, scales, numbers, scales, [m])
    (kernel,) = profile(call, rounds=1).spans
    filled = 2 * (n + m) * (64 + 2 * 4)
    assert kernel.bytes == 2 * filled + 2 * q.nbytes
