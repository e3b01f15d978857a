"""What the functions of torch_cases.mlir compute, in NumPy."""

from math import erf
from pathlib import Path

import numpy as np
from linalg_cases import Case, f32, i64

TEXT = Path(__file__).with_suffix(".mlir").read_text()


def softmax(x: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def mlp(x: np.ndarray, w: np.ndarray, c: np.ndarray, g: np.ndarray) -> np.ndarray:
    """A linear layer, GELU, a layer norm and softmax."""
    y = x.astype(np.float64) @ w.T + c
    h = y * (1 + np.vectorize(erf, otypes=[float])(y / np.sqrt(2))) / 2
    centred = h - h.mean(1, keepdims=True)
    return softmax(centred / np.sqrt(h.var(1, keepdims=True) + 1e-5) * g)


def pairs(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sums of pairs of rows, and the greatest distances of rows."""
    sums = np.concatenate([x, y]).reshape(-1, 6).sum(1)
    return sums, abs(x[:, None, 1:] - y[None, :, 1:]).max(-1)


def lookup(t: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows of a table, their mean, and their elements."""
    return t[i], t[i].mean(0), t[i]


def images(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    """A convolution, ReLU and pooling; and averages of channels."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.empty((len(x), 4, 5, 5))
    for i in range(5):
        for j in range(5):
            window = padded[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
            out[:, :, i, j] = np.einsum("nchw,ochw->no", window, w)
    pooled = np.maximum(out, 0)[:, :, :4, :4].reshape(len(x), 4, 2, 2, 2, 2).max((3, 5))
    return pooled, x.mean((2, 3), keepdims=True)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention."""
    return softmax(q.astype(np.float64) @ k.swapaxes(2, 3) / 2) @ v


def numbers(a: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
    """Integers."""
    both = (a > c) & (c > 2)
    return a // c, a % c, both, np.where(a > c, a, c).cumsum(), a.astype(np.float32)


CASES = {
    "mlp": Case([(f32(n, 4), f32(3, 4), f32(3), f32(3)) for n in (5, 1, 0, 33)], mlp),
    "pairs": Case([(f32(n, 3), f32(m, 3)) for n, m in ((6, 4), (1, 1), (3, 7))], pairs),
    "lookup": Case([(f32(7, 2), i64(0, 3, 6)), (f32(1, 2), i64(0))], lookup),
    "images": Case([(f32(n, 3, 9, 9), f32(4, 3, 3, 3)) for n in (2, 1)], images),
    "attend": Case(
        [(f32(2, 2, n, 4), f32(2, 2, m, 4), f32(2, 2, m, 4)) for n, m in ((5, 7), (1, 1), (9, 17))],
        attend,
    ),
    "numbers": Case(
        [(i64(7, -7, 4, 0, -1), i64(2, 2, 3, 5, 3)), (i64(-9), i64(-4))],
        numbers,
    ),
}
