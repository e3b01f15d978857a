"""Rotary embedding, cache append and attention against float64 NumPy."""

import numpy as np
import pytest
from harness import FLOATS, NUMPY, Program, floats, numbers, spec, wide

from relax_mlir.dialects import graph

TOLERANCE = {"f64": 1e-12, "f32": 2e-6, "f16": 1.5e-3, "bf16": 1e-2}


def _assert_near(actual: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    assert actual.dtype == NUMPY[dtype]
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(wide(actual), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("heads", "d"), [(3, 8), (1, 2), (2, 66)])
def test_rotary(heads: int, d: int, dtype: str, route: str) -> None:
    half = d // 2
    specs = spec(dtype, "n", heads, d), spec(dtype, "n", half), spec(dtype, "n", half)
    program = Program(graph.RotaryOp, *specs, route=route)
    for n in (0, 1, 5, 17):
        x = floats((n, heads, d), dtype)
        angle = floats((n, half), "f64")
        cos, sin = np.cos(angle).astype(NUMPY[dtype]), np.sin(angle).astype(NUMPY[dtype])
        low, high = wide(x)[..., :half], wide(x)[..., half:]
        c, s = wide(cos)[:, None], wide(sin)[:, None]
        expected = np.concatenate([low * c - high * s, high * c + low * s], -1)
        _assert_near(program(x, cos, sin), expected, dtype)


def _attention(query, keys, values, position: int, scale: float, causal: bool) -> np.ndarray:
    """One query and head at a time, straight from the definition."""
    n, heads, _ = query.shape
    group = heads // keys.shape[0]
    result = np.zeros_like(query)
    for i in range(n):
        count = position + (i + 1 if causal else n)
        for h in range(heads):
            scores = scale * (keys[h // group, :count] @ query[i, h])
            weights = np.exp(scores - scores.max())
            result[i, h] = weights / weights.sum() @ values[h // group, :count]
    return result


CASES = [(1, 0), (1, 1), (1, 6), (5, 0), (3, 4), (7, 0), (2, 15), (17, 3)]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("heads", "groups", "d", "causal"),
    [(4, 2, 8, True), (4, 2, 8, False), (3, 3, 5, True), (6, 1, 16, True)],
)
def test_attention(heads, groups, d, causal, dtype: str, route: str) -> None:
    cache = spec(dtype, groups, "c", d)
    program = Program(
        graph.AttentionOp,
        spec(dtype, "n", heads, d),
        cache,
        cache,
        position=("m",),
        scale=d**-0.5,
        causal=causal,
        route=route,
    )
    for n, m in CASES:
        capacity = n + m + 3
        query = floats((n, heads, d), dtype)
        keys, values = (numbers((groups, capacity, d), dtype) for _ in range(2))
        # What lies behind the valid tokens must not matter.
        keys[:, n + m :], values[:, n + m :] = np.nan, np.nan
        expected = _attention(wide(query), wide(keys), wide(values), m, d**-0.5, causal)
        _assert_near(program(query, keys, values, m=m), expected, dtype)


def test_attention_of_f64(route: str) -> None:
    cache = spec("f64", 2, 16, 4)
    program = Program(
        graph.AttentionOp,
        spec("f64", "n", 4, 4),
        cache,
        cache,
        position=(5,),
        scale=0.5,
        causal=True,
        route=route,
    )
    query, keys, values = (
        floats((3, 4, 4), "f64"),
        floats((2, 16, 4), "f64"),
        floats((2, 16, 4), "f64"),
    )
    _assert_near(program(query, keys, values), _attention(query, keys, values, 5, 0.5, True), "f64")


@pytest.mark.parametrize("dtype", FLOATS)
def test_kv_append(dtype: str, route: str) -> None:
    cache, rows = spec(dtype, 2, "c", 5), spec(dtype, "n", 2, 5)
    program = Program(graph.KvAppendOp, cache, cache, rows, rows, position=("m",), route=route)
    for n, m, capacity in ((1, 0, 1), (1, 4, 9), (3, 2, 5), (0, 2, 4), (7, 0, 8)):
        caches = [numbers((2, capacity, 5), dtype) + NUMPY[dtype].type(i) for i in range(2)]
        new = [numbers((n, 2, 5), dtype) - NUMPY[dtype].type(i) for i in range(2)]
        results = program(*map(np.copy, caches), *new, m=m)
        for result, cache_before, added in zip(results, caches, new, strict=True):
            expected = cache_before.copy()
            expected[:, m : m + n] = added.transpose(1, 0, 2)
            np.testing.assert_array_equal(wide(result), wide(expected))


def _batched(query, keys, values, mask, scale: float, causal: bool) -> np.ndarray:
    """One sequence, query and head at a time."""
    batch, n, heads, _ = query.shape
    group = heads // keys.shape[2]
    result = np.zeros((*query.shape[:3], values.shape[3]))
    for z, i, h in np.ndindex(batch, n, heads):
        count = min(i + 1, keys.shape[1]) if causal else keys.shape[1]
        scores = scale * (keys[z, :count, h // group] @ query[z, i, h])
        if mask is not None:
            scores = (
                scores + np.broadcast_to(mask, (batch, heads, n, keys.shape[1]))[z, h, i, :count]
            )
        if count:
            weights = np.exp(scores - scores.max())
            result[z, i, h] = weights / weights.sum() @ values[z, :count, h // group]
    return result


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("mask", "causal"),
    [(None, False), (None, True), (("b", 4, "n", "m"), False), ((1, 1, "n", "m"), False),
     (("b", 4, 1, 1), True)],
)  # fmt: skip
def test_batched_attention(mask, causal: bool, dtype: str, route: str) -> None:
    specs = [spec(dtype, "b", "n", 4, 5), spec(dtype, "b", "m", 2, 5), spec(dtype, "b", "m", 2, 3)]
    specs += [] if mask is None else [spec(dtype, *mask)]
    program = Program(graph.BatchedAttentionOp, *specs, scale=0.4, causal=causal, route=route)
    for b, n, m in ((1, 1, 1), (2, 3, 7), (1, 5, 2), (0, 2, 3), (3, 0, 4), (2, 3, 0)):
        extents = {"b": b, "n": n, "m": m}
        arrays = [floats([extents.get(dim, dim) for dim in item.dims], dtype) for item in specs]
        query, keys, values, *masks = map(wide, arrays)
        added = masks[0] if masks else None
        expected = _batched(query, keys, values, added, 0.4, causal)
        _assert_near(program(*arrays), expected, dtype)
