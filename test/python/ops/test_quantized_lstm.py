"""A recurrent layer of 8-bit weights, against NumPy with the same roundings."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from decomposed import module_of
from harness import spec

import relax_mlir
from relax_mlir import decompositions as d
from relax_mlir.decompositions.recurrent import Quantized
from relax_mlir.dialects.graph import ShapeError

FEATURES, HIDDEN = 5, 3
Run = Mapping[str, Callable[..., Any]]
SPECS = [spec("f32", "t", "n", FEATURES)]
SPECS += [spec("i8", 2, FEATURES, 4 * HIDDEN), spec("f32", 2), spec("i8", 2)]
SPECS += [
    spec("ui8", 2, HIDDEN, 4 * HIDDEN),
    spec("f32", 2, 4 * HIDDEN),
    spec("ui8", 2, 4 * HIDDEN),
]
SPECS += [spec("f32", 2, 8 * HIDDEN), spec("i32", "n")]


def _build(x, w, ws, wz, r, rs, rz, bias, lengths):
    return d.dynamic_quantize_lstm(
        x,
        Quantized(w, ws, wz),
        Quantized(r, rs, rz),
        bias=bias,
        sequence_lens=lengths,
        direction="bidirectional",
    )


@pytest.fixture(
    scope="module",
    params=["interpreted", pytest.param("compiled", marks=pytest.mark.rotate(3, together=True))],
)
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    text = module_of({"main": (_build, SPECS)})
    made = relax_mlir.interpret if request.param == "interpreted" else relax_mlir.compile
    return made(text)["main"]


def _product(x: np.ndarray, w: np.ndarray, scale: Any, zero: Any) -> np.ndarray:
    """x, rounded to bytes, times integers."""
    low, high = min(x.min(), 0), max(x.max(), 0)
    step = np.float32((np.float32(high) - np.float32(low)) / np.float32(255)) or np.float32(1)
    first = np.clip(np.round(np.float32(0 - low) / step), 0, 255)
    codes = np.clip(np.round(x.astype(np.float32) / step) + first, 0, 255)
    return (codes - first) @ (w.astype(np.float64) - zero) * (step * scale)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _reference(x, w, ws, wz, r, rs, rz, bias, lengths) -> list[np.ndarray]:
    t, n, _ = x.shape
    y, last = np.zeros((t, 2, n, HIDDEN)), np.zeros((2, 2, n, HIDDEN))
    for k in range(2):
        h, c = np.zeros((2, n, HIDDEN))
        projected = _product(x, w[k], ws[k], float(wz[k])) + bias[k].reshape(2, -1).sum(0)
        for i in range(t)[:: -1 if k else 1]:
            gates = projected[i] + _product(h, r[k], rs[k], rz[k].astype(np.float64))
            i_gate, o, f, g = np.split(gates, 4, axis=1)
            new = _sigmoid(f) * c + _sigmoid(i_gate) * np.tanh(g)
            counts = (i < lengths)[:, None]
            y[i, k] = np.where(counts, _sigmoid(o) * np.tanh(new), 0)
            h, c = np.where(counts, y[i, k], h), np.where(counts, new, c)
        last[:, k] = h, c
    return [y, *last]


@pytest.mark.parametrize(("t", "n"), [(1, 1), (5, 3), (9, 2)])
def test_same_roundings(t: int, n: int, run: Callable[..., Any]) -> None:
    generator = np.random.default_rng(t)

    def integers(dtype: str, *dims: int) -> np.ndarray:
        info = np.iinfo(dtype)
        return generator.integers(info.min, info.max, dims, endpoint=True).astype(dtype)

    def floats(low: float, high: float, *dims: int) -> np.ndarray:
        return generator.uniform(low, high, dims).astype(np.float32)

    given = [floats(-2, 3, t, n, FEATURES)]
    given += [integers("i1", 2, FEATURES, 4 * HIDDEN), floats(0.002, 0.01, 2), integers("i1", 2)]
    given += [integers("u1", 2, HIDDEN, 4 * HIDDEN), floats(0.002, 0.01, 2, 4 * HIDDEN)]
    given += [integers("u1", 2, 4 * HIDDEN), floats(-1, 1, 2, 8 * HIDDEN)]
    given += [generator.integers(0, t + 1, n).astype(np.int32)]
    for found, wanted in zip(run(*given), _reference(*given), strict=True):
        # An element next to a half may be rounded to the other neighbour.
        assert np.abs(found - wanted).max(initial=0) < 0.02
        assert np.abs(found - wanted).mean() < 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({1: spec("f32", 2, FEATURES, 4 * HIDDEN)}, "expects integers w of rank 3"),
        ({4: spec("ui8", HIDDEN, 4 * HIDDEN)}, "expects integers r of rank 3"),
        ({2: spec("f32", 3)}, "has scales of 3 directions, for 2"),
        ({5: spec("f32", 2, 7)}, "expects scales of 1 or 12 columns"),
        ({1: spec("i8", 2, 4, 4 * HIDDEN)}, "expects w of dims"),
    ],
)
def test_what_is_refused(change: dict, message: str) -> None:
    specs = [change.get(i, each) for i, each in enumerate(SPECS)]
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (_build, specs)})
