"""Attention schedules against a float64 reference, at positions around block borders."""

import ml_dtypes
import numpy as np
import pytest
from scheduled import NATIVE, assert_guarded, before_a_border, built_from_graph, guarded

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
TOLERANCE = {"f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2}


def graph(dtype, heads, kv_heads, width, causal, position='"m"', scale=None):
    query = f'tensor<?x{heads}x{width}x{dtype}, #graph.shape<["n", {heads}, {width}]>>'
    cache = f'tensor<{kv_heads}x?x{width}x{dtype}, #graph.shape<[{kv_heads}, "c", {width}]>>'
    return f"""func.func @main(%q: {query}, %k: {cache}, %v: {cache},
        %p: !graph.shape_value<["m"]>) -> {query} {{
      %0 = "graph.nn_attention"(%q, %k, %v) {{position = #graph.shape<[{position}]>,
        scale = {width**-0.5 if scale is None else scale} : f32, causal = {str(causal).lower()}}}
        : ({query}, {cache}, {cache}) -> {query}
      return %0 : {query}
    }}"""


def reference(q, k, v, position, causal, scale=None):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    n, heads, width = q.shape
    length = position + n
    group = heads // k.shape[0]
    k, v = (np.repeat(x[:, :length], group, axis=0) for x in (k, v))
    scores = np.einsum("ihd,htd->hit", q, k) * (width**-0.5 if scale is None else scale)
    if causal:
        seen = np.arange(length) <= position + np.arange(n)[:, None]
        scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True)) if n else scores
    return np.einsum("hit,htd->ihd", powers / powers.sum(-1, keepdims=True), v)


def check(kernel, dtype, heads, kv_heads, width, causal, n, m, capacity, *symbols):
    rng = np.random.default_rng(n * 1000 + m)
    q = rng.standard_normal((n, heads, width)).astype(DTYPES[dtype])
    k, v = (rng.standard_normal((kv_heads, capacity, width)).astype(DTYPES[dtype]) for _ in "kv")
    # Elements after the valid keys must not be read.
    k[:, m + n :], v[:, m + n :] = np.nan, np.nan
    out, memory = guarded(q.shape, q.dtype)
    kernel(q, k, v, out, *symbols)
    assert_guarded(memory)
    expected = reference(q, k, v, m, causal)
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


POSITIONS = ((0, 0), (1, 0), (1, 1), (1, 62), (1, 63), (1, 64), (1, 511), (2, 127), (7, 0), (17, 3))
LONG = ((48, 16), (65, 0), (100, 29))


@pytest.mark.rotate(4)
@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("heads", "kv_heads"), [(9, 3), (4, 4), (8, 1), (4, 2), (7, 1)])
def test_attention_of_grouped_heads(heads, kv_heads, causal, fuse):
    kernel = built_from_graph(graph("f32", heads, kv_heads, 16, causal), fuse)
    assert kernel.rule == ("attention" if fuse else "fallback")
    for n, m in (*POSITIONS, *LONG):
        check(kernel, "f32", heads, kv_heads, 16, causal, n, m, m + n + 5, m)


@pytest.mark.parametrize("width", [16, 64, 128])
def test_last_tiles_end_with_their_block(width):
    kernel = built_from_graph(graph("f32", 2, 2, width, True))
    for n in range(37, 49):
        check(kernel, "f32", 2, 2, width, True, n, 3, n + 3, 3)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [8, 64, 80, 128])
def test_attention_of_head_sizes(dtype, width):
    kernel = built_from_graph(graph(dtype, 6, 2, width, True))
    for n, m in (*POSITIONS, *LONG):
        check(kernel, dtype, 6, 2, width, True, n, m, m + n, m)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("target", NATIVE)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("shape", [(9, 3, 64), (8, 1, 96), (3, 3, 32), (5, 1, 160)])
def test_attention_of_bf16_blocks(shape, causal, target):
    kernel = built_from_graph(graph("bf16", *shape, causal), target=target)
    around = [(n, m) for n in (1, 2, 5, 15, 16, 17, 48) for m in (0, 13, 16, 30, 31, 32, 500)]
    for n, m in (*around, (130, 0), (300, 0), (3, 1021)):
        check(kernel, "bf16", *shape, causal, n, m, m + n + 2, m)


def test_attention_on_narrower_vectors():
    for target in ("x86-64-v3", "x86-64-v2"):
        kernel = built_from_graph(graph("f32", 6, 2, 64, True), target=target)
        for n, m in (*POSITIONS, *LONG):
            check(kernel, "f32", 6, 2, 64, True, n, m, m + n, m)


def test_attention_of_a_head_size_that_fills_no_vector():
    kernel = built_from_graph(graph("f32", 4, 2, 18, True))
    assert kernel.rule == "row_reduction"
    for n, m in POSITIONS:
        check(kernel, "f32", 4, 2, 18, True, n, m, m + n + 1, m)


EDGES = (15, 16, 17, 47, 127, 128, 129, 255, 256, 257, 509, 512, 513, 1024, 1025)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(
    "shape", [(9, 3, 64), (2, 2, 96), (8, 1, 32), (32, 1, 32), (4, 1, 256), (64, 64, 16)]
)
def test_attention_of_one_query_in_parts(shape, dtype):
    kernel = built_from_graph(graph(dtype, *shape, True))
    for length in EDGES:
        check(kernel, dtype, *shape, True, 1, length - 1, length, length - 1)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_of_a_few_queries_in_parts(causal):
    kernel = built_from_graph(graph("f32", 6, 2, 32, causal))
    for n, m in ((2, 254), (2, 255), (3, 509), (16, 496), (17, 1024), (40, 300), (70, 443)):
        check(kernel, "f32", 6, 2, 32, causal, n, m, m + n + 1, m)


@pytest.mark.parametrize(
    ("dtype", "target"), [("f32", "native"), *(("bf16", target) for target in NATIVE)]
)
def test_attention_of_extreme_scores(dtype, target):
    kernel = built_from_graph(graph(dtype, 2, 1, 32, True), target=target)
    rng = np.random.default_rng(0)
    rtol, atol = (1e-3, 1e-4) if dtype == "f32" else (TOLERANCE[dtype], TOLERANCE[dtype])
    for n, m in ((1, 511), (1, 40), (24, 300)):
        q = rng.standard_normal((n, 2, 32)) * 1e3
        k, v = (rng.standard_normal((1, n + m, 32)) for _ in "kv")
        # One part of the keys far below the others, and the greatest scores at the very end.
        k[:, : n + m // 2] *= 1e-3
        q, k, v = (x.astype(DTYPES[dtype]) for x in (q, k, v))
        out = np.empty_like(q)
        kernel(q, k, v, out, m)
        expected = reference(q, k, v, m, True)
        np.testing.assert_allclose(out.astype(np.float64), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("target", NATIVE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_of_nan(dtype, target):
    kernel = built_from_graph(graph(dtype, 2, 1, 32, True), target=target)
    rng = np.random.default_rng(4)
    for m in (0, 1, 15, 16, 40, 511):
        q = rng.standard_normal((1, 2, 32)).astype(DTYPES[dtype])
        k, v = (rng.standard_normal((1, m + 1, 32)).astype(q.dtype) for _ in "kv")
        for at in {0, m // 2, m}:
            broken, out = k.copy(), np.zeros_like(q)
            broken[0, at, 5] = np.nan
            kernel(q, broken, v, out, m)
            assert np.isnan(out.astype(np.float64)).all()
        q[0, 1, 5], out = np.nan, np.zeros_like(q)
        kernel(q, k, v, out, m)
        assert np.isnan(out[:, 1].astype(np.float64)).all()
        assert np.isfinite(out[:, 0].astype(np.float64)).all()


@pytest.mark.parametrize("target", NATIVE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_reads_no_further_than_the_cache(dtype, target):
    kernel = built_from_graph(graph(dtype, 4, 1, 32, True), target=target)
    rng = np.random.default_rng(3)
    for n, m in ((1, 0), (3, 0), (5, 3), (1, 14), (2, 31), (9, 40), (4, 128)):
        q = before_a_border(rng.standard_normal((n, 4, 32)).astype(DTYPES[dtype]))
        k, v = (before_a_border(rng.standard_normal((1, n + m, 32)).astype(q.dtype)) for _ in "kv")
        out = before_a_border(np.zeros_like(q))
        kernel(q, k, v, out, m)
        expected, bound = reference(q, k, v, m, True), TOLERANCE[dtype]
        np.testing.assert_allclose(out.astype(np.float64), expected, rtol=bound, atol=bound)


@pytest.mark.parametrize("target", NATIVE)
@pytest.mark.parametrize("rise", [0.05, 0.3, -0.3, 2.0])
def test_attention_of_scores_that_rise_with_keys(rise, target):
    kernel = built_from_graph(graph("bf16", 2, 1, 32, True), target=target)
    n, m = 40, 200
    rng = np.random.default_rng(1)
    v = rng.standard_normal((1, n + m, 32)).astype(DTYPES["bf16"])
    q, k = np.zeros((n, 2, 32), v.dtype), np.zeros_like(v)
    q[..., 0], k[..., 0] = 32**0.5, rise * np.arange(n + m)
    out = np.empty_like(q)
    kernel(q, k, v, out, m)
    expected = reference(q, k, v, m, True)
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=0, atol=TOLERANCE["bf16"])


@pytest.mark.rotate(3)
@pytest.mark.parametrize("target", NATIVE)
@pytest.mark.parametrize("scale", [0.0, -0.2, 0.5])
def test_attention_at_other_scales(scale, target):
    kernel = built_from_graph(graph("bf16", 4, 2, 32, True, scale=scale), target=target)
    rng = np.random.default_rng(2)
    for n, m in ((1, 40), (7, 0), (33, 70)):
        q = rng.standard_normal((n, 4, 32)).astype(DTYPES["bf16"])
        k, v = (rng.standard_normal((2, n + m, 32)).astype(q.dtype) for _ in "kv")
        out = np.empty_like(q)
        kernel(q, k, v, out, m)
        expected, bound = reference(q, k, v, m, True, scale), TOLERANCE["bf16"]
        np.testing.assert_allclose(out.astype(np.float64), expected, rtol=bound, atol=bound)


def test_attention_at_a_constant_position():
    kernel = built_from_graph(graph("f32", 4, 2, 32, True, "0"))
    assert kernel.rule == "attention"
    for n in (0, 1, 5, 64, 65):
        check(kernel, "f32", 4, 2, 32, True, n, 0, n + 3)
