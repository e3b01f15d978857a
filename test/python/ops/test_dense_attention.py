"""Attention with masks, caches and windows, query by query in float64."""

from itertools import pairwise

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, floats, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError

TOLERANCE = {"f64": 1e-12, "f32": 3e-6, "f16": 4e-3, "bf16": 3e-2}


def _attended(q, k, v, bias, scale=None, softcap=None):
    """y and the four kinds of scores, of [b, heads, n, d] and so on; -infinity hides a key."""
    b, heads, n, size = q.shape
    group, m = heads // k.shape[1], k.shape[2]
    y, kinds = np.zeros((b, heads, n, v.shape[3])), np.zeros((4, b, heads, n, m))
    for z, h, i in np.ndindex(b, heads, n):
        raw = (size**-0.5 if scale is None else scale) * (k[z, h // group] @ q[z, h, i])
        capped = raw if softcap is None else softcap * np.tanh(raw / softcap)
        own = bias[z, h, i]
        shares, seen = np.zeros(m), np.isfinite(own)
        if seen.any():
            weights = np.exp((capped + own)[seen] - (capped + own)[seen].max())
            shares[seen] = weights / weights.sum()
        kinds[:, z, h, i] = raw, capped, capped + own, shares
        y[z, h, i] = shares @ v[z, h // group]
    return y, kinds


def _hidden(b, n, m, before=0, lengths=None, causal=False, window=(None, None)):
    """0 or -infinity for each batch, query and key."""
    bias = np.zeros((b, n, m))
    for z, i, j in np.ndindex(b, n, m):
        position = i + (before if lengths is None else lengths[z] - n)
        hides = [
            lengths is not None and j >= lengths[z], causal and j > position,
            window[0] is not None and j < position - window[0],
            window[1] is not None and j > position + window[1],
        ]  # fmt: skip
        bias[z, i, j] = -np.inf if any(hides) else 0
    return bias[:, None]


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 2), (6, 2)])
@pytest.mark.parametrize(
    "settings",
    [{}, {"causal": True}, {"window": (2, None)}, {"window": (1, 1), "causal": True},
     {"softcap": 0.5, "causal": True}, {"scale": 0.1, "softcap": 2.0}],
)  # fmt: skip
def test_attention(settings, heads: int, kv_heads: int, flat: bool) -> None:
    own = {"heads": heads, "kv_heads": kv_heads} if flat else {}
    counts = (heads, kv_heads, kv_heads)
    sizes = (4, 4, 5)
    specs = [
        spec("f64", "b", t, c * s) if flat else spec("f64", "b", c, t, s)
        for t, c, s in zip("nmm", counts, sizes)
    ]
    run = Decomposed(lambda q, k, v: d.attention(q, k, v, **settings, **own)[0], *specs)
    for b, n, m in ((2, 3, 7), (1, 1, 1), (1, 5, 2), (1, 0, 2)):
        q, k, v = (floats((b, c, t, s), "f64") for c, t, s in zip(counts, (n, m, m), sizes))
        rules = {key: settings[key] for key in ("causal", "window") if key in settings}
        bias = np.broadcast_to(_hidden(b, n, m, **rules), (b, heads, n, m))
        others = {key: settings[key] for key in ("scale", "softcap") if key in settings}
        wanted, _ = _attended(q, k, v, bias, **others)
        if flat:
            q, k, v, wanted = (
                x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])
                for x in (q, k, v, wanted)
            )
        np.testing.assert_allclose(run(q, k, v), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
@pytest.mark.parametrize("boolean", [False, True])
@pytest.mark.parametrize("shape", [("m",), ("n", "m"), (2, 1, "m"), ("b", 1, "n", "m"), ("n", 3)])
def test_masks_and_scores(shape, boolean: bool, kind: int) -> None:
    run = Decomposed(
        lambda q, k, v, s: d.attention(q, k, v, mask=s, scores=kind, softcap=3.0),
        *[spec("f64", "b", 2, t, 4) for t in "nmm"], spec("i1" if boolean else "f64", *shape),
    )  # fmt: skip
    plain = Decomposed(
        lambda q, k, v, s: d.attention(q, k, v, mask=s, causal=True)[0],
        *[spec("f64", "b", 2, t, 4) for t in "nmm"], spec("i1" if boolean else "f64", *shape),
    )  # fmt: skip
    b, n, m = 3, 4, 5
    q, k, v = (floats((b, 2, t, 4), "f64") for t in (n, m, m))
    extents = [{"b": b, "n": n, "m": m}.get(dim, dim) for dim in shape]
    mask = floats(extents, "f64")
    mask.reshape(-1)[::2] = -np.inf
    mask.reshape(-1)[:4] = -np.inf  # a query that sees nothing, in some shapes
    mask = np.isfinite(mask) if boolean else mask
    bias = np.where(mask, 0, -np.inf) if boolean else mask
    bias = np.pad(bias, [(0, 0)] * (bias.ndim - 1) + [(0, m - bias.shape[-1])],
                  constant_values=-np.inf)  # fmt: skip
    bias = np.broadcast_to(bias, (b, 2, n, m))
    y, kinds = _attended(q, k, v, bias, softcap=3.0)
    found, _, _, scores = run(q, k, v, mask)
    np.testing.assert_allclose(found, y, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(scores, kinds[kind], rtol=1e-12, atol=1e-12)
    y, _ = _attended(q, k, v, bias + _hidden(b, n, m, causal=True))
    np.testing.assert_allclose(plain(q, k, v, mask), y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_past(causal: bool) -> None:
    run = Decomposed(
        lambda q, k, v, a, b: d.attention(q, k, v, past=(a, b), causal=causal, window=(3, None)),
        spec("f64", "b", 4, "n", 4), *[spec("f64", "b", 2, "n", 4)] * 2,
        *[spec("f64", "b", 2, "p", 4)] * 2,
    )  # fmt: skip
    for b, n, p in ((2, 3, 4), (1, 1, 0)):
        q = floats((b, 4, n, 4), "f64")
        k, v = (floats((b, 2, n, 4), "f64") + i for i in (0, 1))
        old = [floats((b, 2, p, 4), "f64") - i for i in (0, 1)]
        keys, values = (np.concatenate(pair, 2) for pair in zip(old, (k, v)))
        bias = np.broadcast_to(
            _hidden(b, n, n + p, p, causal=causal, window=(3, None)), (b, 4, n, n + p)
        )
        y, _ = _attended(q, keys, values, bias)
        found = run(q, k, v, *old)
        np.testing.assert_allclose(found[0], y, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(found[1], keys)
        np.testing.assert_array_equal(found[2], values)


@pytest.mark.parametrize("causal", [False, True])
def test_lengths(causal: bool) -> None:
    run = Decomposed(
        lambda q, k, v, s: d.attention(q, k, v, lengths=s, causal=causal)[0],
        *[spec("f64", "b", 2, t, 4) for t in "nmm"], spec("i64", "b"),
    )  # fmt: skip
    q, k, v = (floats((4, 2, t, 4), "f64") for t in (3, 6, 6))
    lengths = np.array([3, 6, 0, 1])
    bias = np.broadcast_to(_hidden(4, 3, 6, 0, lengths, causal), (4, 2, 3, 6))
    y, _ = _attended(q, k, v, bias)
    np.testing.assert_allclose(run(q, k, v, lengths), y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_types(dtype: str) -> None:
    run = Decomposed(
        lambda q, k, v, m: d.attention(q, k, v, mask=m, softcap=4.0)[0],
        *[spec(dtype, "b", 2, t, 4) for t in "nmm"], spec("i1", "n", "m"),
    )  # fmt: skip
    q, k, v = (floats((2, 2, t, 4), dtype) for t in (3, 5, 5))
    mask = floats((3, 5), "f32") > 0
    bias = np.broadcast_to(np.where(mask, 0, -np.inf), (2, 2, 3, 5))
    y, _ = _attended(wide(q), wide(k), wide(v), bias, softcap=4.0)
    found = run(q, k, v, mask)
    assert found.dtype == NUMPY[dtype]
    np.testing.assert_allclose(wide(found), y, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("causal", [None, "TopLeft", "BottomRight"])
def test_attention_var_len(causal) -> None:
    run = Decomposed(
        lambda q, k, v, s, t: d.attention_var_len(q, k, v, s, t, causal=causal),
        spec("f64", 1, "n", 4, 3), *[spec("f64", 1, "m", 2, 3)] * 2,
        spec("i32", "s"), spec("i32", "s"),
    )  # fmt: skip
    starts, key_starts = np.array([0, 3, 3, 7], np.int32), np.array([0, 4, 5, 8], np.int32)
    q, k, v = (floats((1, t, h, 3), "f64") for t, h in ((7, 4), (8, 2), (8, 2)))
    wanted = np.zeros((1, 7, 4, 3))
    for (a, b), (c, e) in zip(pairwise(starts), pairwise(key_starts)):
        parts = (q[:, a:b], k[:, c:e], v[:, c:e])
        before = {"TopLeft": 0, "BottomRight": (e - c) - (b - a)}.get(causal, 0)
        bias = _hidden(1, b - a, e - c, before, causal=causal is not None)
        bias = np.broadcast_to(bias, (1, 4, b - a, e - c))
        y, _ = _attended(*(x.transpose(0, 2, 1, 3) for x in parts), bias)
        wanted[:, a:b] = y.transpose(0, 2, 1, 3)
    np.testing.assert_allclose(run(q, k, v, starts, key_starts), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("width", [None, 4])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("by_position", [False, True])
def test_rotary_embedding(interleaved: bool, width, flat: bool, by_position: bool) -> None:
    half, b, n = (width or 6) // 2, 2, 5
    table = spec("f64", *(("p", half) if by_position else ("b", "n", half)))
    specs = [spec("f64", "b", "n", 18) if flat else spec("f64", "b", 3, "n", 6), table, table]
    specs += [spec("i64", "b", "n")] if by_position else []
    run = Decomposed(
        lambda *v: d.rotary_embedding(
            *v, interleaved=interleaved, width=width, heads=3 if flat else None
        ),
        *specs,
    )
    x, angles = (
        floats((b, 3, n, 6), "f64"),
        floats((9, half) if by_position else (b, n, half), "f64"),
    )
    positions = np.arange(b * n).reshape(b, n) * 7 % 9
    own = angles[positions] if by_position else angles
    wanted = x.copy()
    for z, h, i, j in np.ndindex(b, 3, n, half):
        one, two = (2 * j, 2 * j + 1) if interleaved else (j, j + half)
        pair = complex(x[z, h, i, one], x[z, h, i, two]) * np.exp(1j * own[z, i, j])
        wanted[z, h, i, [one, two]] = pair.real, pair.imag
    if flat:
        x, wanted = (y.transpose(0, 2, 1, 3).reshape(b, n, 18) for y in (x, wanted))
    arrays = [x, np.cos(angles), np.sin(angles), *([positions] if by_position else [])]
    np.testing.assert_allclose(run(*arrays), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("axis", [-2, 1])
def test_tensor_scatter(axis: int, circular: bool) -> None:
    dims = [("b", 3, "t", 2), ("b", 3, "s", 2)] if axis == -2 else [("b", "t", 2), ("b", "s", 2)]
    run = Decomposed(
        lambda c, u, s: d.tensor_scatter(c, u, s, axis=axis, circular=circular),
        *[spec("f32", *shape) for shape in dims], spec("i64", "b"),
    )  # fmt: skip
    sizes = {"b": 3, "t": 6, "s": 4}
    cache, update = (floats([sizes.get(x, x) for x in shape], "f32") for shape in dims)
    starts, wanted = np.array([0, 2, 4]), cache.copy()
    along, parts = np.moveaxis(wanted, axis, 1), np.moveaxis(update, axis, 1)
    for z, i in np.ndindex(3, 4):
        at = starts[z] + i
        if circular or at < 6:
            along[z, at % 6] = parts[z, i]
    np.testing.assert_array_equal(run(cache, update, starts), wanted)


Q, F = spec("f32", "b", 2, "n", 4), spec("f32", "b", "n", 8)
TABLE = spec("f32", "b", "n", 2)


@pytest.mark.parametrize(
    ("build", "specs", "message"),
    [
        (lambda q, f: d.attention(q, f, f), [Q, F], "of rank 3 or 4, but got ranks"),
        (lambda f: d.attention(f, f, f), [F], "expects a multiple of kv_heads heads"),
        (lambda f: d.attention(f, f, f, heads=3, kv_heads=3), [F], "3 heads, but got dim 8"),
        (lambda q: d.attention(q, q, q, window=(-1, None)), [Q], "a window of counts of keys"),
        (lambda q: d.attention(q, q, q, softcap=0.0), [Q], "expects a positive limit of scores"),
        (lambda q: d.attention(q, q, q, scores=4), [Q], "expects scores of kind 0 to 3"),
        (lambda q, m: d.attention(q, q, q, mask=m), [Q, spec("i32", "n")], "a mask of i1 or f32"),
        (lambda q, m: d.attention(q, q, q, mask=m),
         [spec("f32", 1, 2, 3, 4), spec("i1", 3, 5)], "masks 5 keys, but there are 3"),
        (lambda q: d.attention_var_len(q, q, q, q), [Q], "expects a vector of starts"),
        (lambda q: d.attention_var_len(q, q, q, q, causal="Left"), [Q], "TopLeft or BottomRight"),
        (lambda q, t: d.rotary_embedding(q, t, t), [F, TABLE], "expects features of None heads"),
        (lambda q, t: d.rotary_embedding(q, t, t, width=3), [Q, TABLE], "an even count"),
        (lambda q, t: d.rotary_embedding(q, t, t, width=6), [Q, TABLE], "an even count"),
        (lambda q, t: d.rotary_embedding(q, t, t), [Q, spec("f32", "b", "n", 3)], "of 2 columns"),
        (lambda q, f: d.tensor_scatter(q, f), [Q, F], "writes 'tensor<"),
        (lambda q: d.tensor_scatter(q, q, q), [Q], "expects a vector of starts"),
        (lambda q, u: d.tensor_scatter(q, u), [Q, spec("f32", "b", 3, 1, 4)], "writes dim 1 of 3"),
    ],
)  # fmt: skip
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
