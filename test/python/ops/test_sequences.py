"""Operators along time against NumPy, element by element in float64."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, floats, numbers, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0), (2, 0), (-1, 1)])
@pytest.mark.parametrize("dtype", ["f32", "i8", "i1"])
def test_reverse_sequence(time: int, batch: int, dtype: str) -> None:
    run = Decomposed(
        lambda v, s: d.reverse_sequence(v, s, time_axis=time, batch_axis=batch),
        spec(dtype, "a", "b", "c"), spec("i32", "abc"[batch]),
    )  # fmt: skip
    for shape in ((4, 5, 3), (1, 1, 1), (5, 2, 7)):
        x = numbers(shape, dtype)
        lengths = np.array([2, 0, 9, 1, -3][: shape[batch]], np.int32)
        wanted = np.moveaxis(x.copy(), (batch, time), (0, 1))
        for row, length in zip(wanted, lengths):
            length = min(max(length, 0), len(row))
            row[:length] = row[:length][::-1].copy()
        np.testing.assert_array_equal(run(x, lengths), np.moveaxis(wanted, (0, 1), (batch, time)))


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("silu", [False, True])
def test_causal_conv(k: int, past: bool, silu: bool) -> None:
    specs = [spec("f64", "b", 3, "t"), spec("f64", 3, 1, k), spec("f64", 3)]
    specs += [spec("f64", "b", 3, k - 1)] if past else []
    run = Decomposed(lambda x, w, b, *p: d.causal_conv(x, w, b, *p, silu=silu), *specs)
    weight, bias = floats((3, 1, k), "f64"), floats((3,), "f64")
    for b, t in ((2, 5), (1, 1), (2, 2)):
        x = floats((b, 3, t), "f64")
        before = floats((b, 3, k - 1), "f64") if past else np.zeros((b, 3, k - 1))
        whole = np.concatenate([before, x], 2)
        sums = np.stack([(whole[:, :, i : i + k] * weight[:, 0]).sum(2) for i in range(t)], 2)
        sums = sums + bias[:, None]
        wanted = sums / (1 + np.exp(-sums)) if silu else sums
        found, after = run(x, weight, bias, *([before] if past else []))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(after, whole[:, :, t:])


HEADS = [(1, 1), (4, 2), (3, 3)]


def _attended(q, k, v, heads, kv_heads, past, decay, beta, scale):
    b, t, _ = q.shape
    q, k, v = (
        x.reshape(b, t, h, x.shape[2] // h) for x, h in ((q, heads), (k, kv_heads), (v, kv_heads))
    )
    dk, dv = q.shape[3], v.shape[3]
    y, states = np.zeros((b, t, heads, dv)), np.zeros((b, kv_heads, dk, dv))
    for z, g in np.ndindex(b, kv_heads):
        s = np.zeros((dk, dv)) if past is None else past[z, g].copy()
        for i in range(t):
            if decay is not None:
                rate = decay[z, i].reshape(kv_heads, -1)[g]
                s = np.exp(rate)[:, None] * s
            new = v[z, i, g]
            if beta is not None:
                share = beta[z, i, g if beta.shape[2] > 1 else 0]
                new = share * (new - s.T @ k[z, i, g])
            s = s + np.outer(k[z, i, g], new)
            for h in range(g * (heads // kv_heads), (g + 1) * (heads // kv_heads)):
                y[z, i, h] = (dk**-0.5 if scale is None else scale) * (s.T @ q[z, i, h])
        states[z, g] = s
    return y.reshape(b, t, heads * dv), states


@pytest.mark.parametrize(("heads", "kv_heads"), HEADS)
@pytest.mark.parametrize(
    ("decays", "betas", "past", "scale"),
    [(None, None, True, None), (1, None, False, 0.3), (None, 1, True, 1.0),
     ("d", "one", False, None), ("d", 1, True, None)],
)  # fmt: skip
def test_linear_attention(heads, kv_heads, decays, betas, past, scale) -> None:
    width = {None: None, 1: kv_heads, "d": kv_heads * 4, "one": 1}
    shapes = {
        "query": heads * 4, "key": kv_heads * 4, "value": kv_heads * 5,
        "decay": width[decays], "beta": width[betas],
    }  # fmt: skip
    names = [name for name, size in shapes.items() if size is not None]
    specs = [spec("f64", "b", "t", shapes[name]) for name in names]
    specs += [spec("f64", "b", kv_heads, 4, 5)] if past else []

    def build(*v):
        given = dict(zip([*names, "past"], v))
        return d.linear_attention(**given, heads=heads, kv_heads=kv_heads, scale=scale)

    run = Decomposed(build, *specs)
    for b, t in ((2, 5), (1, 1), (1, 0)):
        arrays = {name: floats((b, t, shapes[name]), "f64", -1, 0.5) for name in names}
        state = floats((b, kv_heads, 4, 5), "f64") if past else None
        found = run(*arrays.values(), *([state] if past else []))
        wanted = _attended(
            arrays["query"], arrays["key"], arrays["value"], heads, kv_heads, state,
            arrays.get("decay"), arrays.get("beta"), scale,
        )  # fmt: skip
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_linear_attention_of_half_precision() -> None:
    arrays = [floats((2, 6, 8), "bf16", -1, 1) for _ in range(3)]
    run = Decomposed(
        lambda q, k, v: d.linear_attention(q, k, v, heads=2, kv_heads=2),
        *[spec("bf16", "b", "t", 8)] * 3,
    )
    y, state = run(*arrays)
    assert y.dtype == state.dtype == NUMPY["bf16"]
    wanted = _attended(*map(wide, arrays), 2, 2, None, None, None, None)
    np.testing.assert_allclose(wide(y), wanted[0], rtol=2e-2, atol=2e-2)


X, Q = spec("f32", "b", 3, "t"), spec("f32", "b", "t", 8)


@pytest.mark.parametrize(
    ("build", "specs", "message"),
    [
        (d.reverse_sequence, [X, spec("f32", 3)], "expects lengths in a vector"),
        (d.reverse_sequence, [X, spec("i32", 4)], "expects 3 lengths, but got 4"),
        (lambda x, s: d.reverse_sequence(x, s, time_axis=1), [X, spec("i32", 3)], "two axes"),
        (d.causal_conv, [X, spec("f32", 3, 1, "k")], "expects constant weights"),
        (d.causal_conv, [X, spec("f32", 4, 1, 2)], r"expects \[3, 1, 2\] weights"),
        (d.causal_conv, [X, spec("f32", 3, 2)], "expects ranks of 3, but got 3 and 2"),
        (lambda x, w, p: d.causal_conv(x, w, None, p),
         [X, spec("f32", 3, 1, 2), spec("f32", "b", 3, 2)], "expects a past of 1 elements"),
        (lambda q: d.linear_attention(q, q, q, heads=3, kv_heads=2), [Q], "a multiple of 2 heads"),
        (lambda q: d.linear_attention(q, q, q, heads=3, kv_heads=3), [Q], "query of 3 heads"),
        (lambda q: d.linear_attention(q, q, q, heads=2, kv_heads=1), [Q], "expects keys of 4"),
        (lambda q, k: d.linear_attention(q, k, q, heads=2, kv_heads=2),
         [Q, spec("f64", "b", "t", 8)], "expects key of rank 3 and one float type"),
        (lambda q, k: d.linear_attention(q, q, q, heads=2, kv_heads=2, beta=k),
         [Q, spec("f32", "b", "t", 3)], "expects beta for each head"),
        (lambda q, k: d.linear_attention(q, q, q, k, heads=2, kv_heads=2),
         [Q, spec("f32", "b", 2, 4, 3)], "expects a state of"),
        (lambda q, k: d.linear_attention(q, q, k, heads=2, kv_heads=2),
         [spec("f32", "b", 3, 8), spec("f32", "b", 4, 8)], "value of one batch and length"),
    ],
)  # fmt: skip
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
