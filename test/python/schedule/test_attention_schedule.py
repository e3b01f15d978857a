"""Attention schedules against a float64 reference, at positions around block borders."""

import ml_dtypes
import numpy as np
import pytest
from scheduled import assert_guarded, built_from_graph, guarded

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
TOLERANCE = {"f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2}


def graph(dtype, heads, kv_heads, width, causal, position='"m"'):
    query = f'tensor<?x{heads}x{width}x{dtype}, #graph.shape<["n", {heads}, {width}]>>'
    cache = f'tensor<{kv_heads}x?x{width}x{dtype}, #graph.shape<[{kv_heads}, "c", {width}]>>'
    return f"""func.func @main(%q: {query}, %k: {cache}, %v: {cache},
        %p: !graph.shape_value<["m"]>) -> {query} {{
      %0 = "graph.nn_attention"(%q, %k, %v) {{position = #graph.shape<[{position}]>,
        scale = {width**-0.5} : f32, causal = {str(causal).lower()}}}
        : ({query}, {cache}, {cache}) -> {query}
      return %0 : {query}
    }}"""


def reference(q, k, v, position, causal):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    n, heads, width = q.shape
    length = position + n
    group = heads // k.shape[0]
    k, v = (np.repeat(x[:, :length], group, axis=0) for x in (k, v))
    scores = np.einsum("ihd,htd->hit", q, k) * width**-0.5
    if causal:
        seen = np.arange(length) <= position + np.arange(n)[:, None]
        scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True)) if n else scores
    return np.einsum("hit,htd->ihd", powers / powers.sum(-1, keepdims=True), v)


def check(kernel, dtype, heads, kv_heads, width, causal, n, m, capacity, *symbols):
    rng = np.random.default_rng(n * 1000 + m)
    q = rng.standard_normal((n, heads, width)).astype(DTYPES[dtype])
    k, v = (rng.standard_normal((kv_heads, capacity, width)).astype(DTYPES[dtype]) for _ in "kv")
    # What lies behind the valid keys is not to be read.
    k[:, m + n :], v[:, m + n :] = np.nan, np.nan
    out, memory = guarded(q.shape, q.dtype)
    kernel(q, k, v, out, *symbols)
    assert_guarded(memory)
    expected = reference(q, k, v, m, causal)
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


PLACES = ((0, 0), (1, 0), (1, 1), (1, 62), (1, 63), (1, 64), (1, 511), (2, 127), (7, 0), (17, 3))
LONG = ((48, 16), (65, 0), (100, 29))


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("heads", "kv_heads"), [(9, 3), (4, 4), (8, 1), (4, 2), (7, 1)])
def test_attention_of_grouped_heads(heads, kv_heads, causal, fuse):
    kernel = built_from_graph(graph("f32", heads, kv_heads, 16, causal), fuse)
    assert kernel.rule == ("attention" if fuse else "fallback")
    for n, m in (*PLACES, *LONG):
        check(kernel, "f32", heads, kv_heads, 16, causal, n, m, m + n + 5, m)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [8, 64, 80, 128])
def test_attention_of_head_sizes(dtype, width):
    kernel = built_from_graph(graph(dtype, 6, 2, width, True))
    for n, m in (*PLACES, *LONG):
        check(kernel, dtype, 6, 2, width, True, n, m, m + n, m)


def test_attention_on_narrower_vectors():
    for target in ("x86-64-v3", "x86-64-v2"):
        kernel = built_from_graph(graph("f32", 6, 2, 64, True), target=target)
        for n, m in (*PLACES, *LONG):
            check(kernel, "f32", 6, 2, 64, True, n, m, m + n, m)


def test_attention_of_a_head_size_that_fills_no_vector():
    kernel = built_from_graph(graph("f32", 4, 2, 18, True))
    assert kernel.rule == "row_reduction"
    for n, m in PLACES:
        check(kernel, "f32", 4, 2, 18, True, n, m, m + n + 1, m)


def test_attention_at_a_constant_position():
    kernel = built_from_graph(graph("f32", 4, 2, 32, True, "0"))
    assert kernel.rule == "attention"
    for n in (0, 1, 5, 64, 65):
        check(kernel, "f32", 4, 2, 32, True, n, 0, n + 3)
