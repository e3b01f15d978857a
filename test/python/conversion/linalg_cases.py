"""What the functions of linalg_cases.mlir compute, in NumPy."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TEXT = Path(__file__).with_suffix(".mlir").read_text()
_random = np.random.default_rng()


@dataclass(frozen=True)
class Case:
    """The arguments of some calls of a function, and what it computes."""

    calls: list[tuple[Any, ...]]
    meaning: Callable[..., Any]


def f32(*shape: int) -> np.ndarray:
    """Random elements."""
    return _random.normal(size=shape).astype(np.float32)


def i32(*values: int) -> np.ndarray:
    """These elements."""
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    """These elements."""
    return np.array(values, np.int64)


def convolution(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A convolution of NHWC images, by a stride of 2 along the height."""
    kh, kw = w.shape[:2]
    rows, columns = (x.shape[1] - kh) // 2 + 1, x.shape[2] - kw + 1
    out = np.empty((len(x), rows, columns, w.shape[3]))
    for i in range(rows):
        for j in range(columns):
            window = x[:, 2 * i : 2 * i + kh, j : j + kw].astype(np.float64)
            out[:, i, j] = np.einsum("nhwc,hwcf->nf", window, w)
    return out


def structured(x: np.ndarray, s: float, i: int) -> tuple[np.ndarray, ...]:
    """A sum of rows, a transpose, a broadcast, and arithmetic on indices."""
    total = x.sum(1, dtype=np.float64) + s
    columns = (np.arange(x.shape[1]) + i) * x.shape[0]
    return total, x.T, x * total[:, None], columns[None] * x + s


def moved(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Slices, reshapes, padding, and a concatenation."""
    h = len(x) // 2
    inserted = np.concatenate([x[:1], y[None], x[2:]])
    padded = np.pad(x, ((1, 0), (h, 2)), constant_values=1.5)
    reshaped = x.reshape(h, 2, -1), x.reshape(-1)
    return x[::2, 1:4], inserted, x[1], *reshaped, padded, np.concatenate([x, inserted])


def halved(x: np.ndarray, b: bool) -> tuple[Any, ...]:
    """The first half, until one element is left, and how often that took."""
    first = y = abs(x[: -(-len(x) // 2)]) if b else np.exp(x)
    rounds = 0
    while len(y) > 1:
        y, rounds = abs(y[: -(-len(y) // 2)]), rounds + 1
    return 2 * first, y, rounds


def softmax(x: np.ndarray) -> np.ndarray:
    """Of each row."""
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def pooled(x: np.ndarray, h: int, w: int) -> np.ndarray:
    """The greatest elements of windows of every other row."""
    out = np.empty((1, h, w, x.shape[3]), np.float32)
    for i in range(h):
        for j in range(w):
            out[0, i, j] = x[0, i : i + 3 : 2, j : j + 3].max((0, 1))
    return out


def partly_written(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, ...]:
    """The diagonal, the first column, and each element if there is a last one, replaced."""
    diagonal, column = x.copy(), x.copy()
    np.fill_diagonal(diagonal, y)
    column[:, 0] = 9
    return diagonal, column, np.full_like(y, z[-1]) if len(z) else y


CASES = {
    "convolution": Case(
        [
            (f32(1, 5, 5, 3), f32(2, 2, 3, 4)),
            (f32(2, 7, 9, 3), f32(3, 1, 3, 5)),
            (f32(1, 2, 2, 3), f32(2, 2, 3, 1)),
        ],
        convolution,
    ),
    "structured": Case(
        [
            (f32(3, 5), 2.0, -3),
            (f32(1, 1), 0.5, 2),
            (f32(0, 4), 0.5, 2),
            (f32(4, 0), 0.5, 2),
            (f32(17, 9), -0.5, 2),
        ],
        structured,
    ),
    "gather": Case(
        [(f32(5, 3), i64(0, 4, 2)), (f32(5, 3), i64(-7, 4, 99)), (f32(1, 1), i64())],
        lambda t, i: t[np.clip(i, 0, len(t) - 1)],
    ),
    "divisions": Case(
        [(i32(7, -7, 5, -(2**31), 9), i32(2, 2, 0, -1, -3))],
        lambda a, b: (i32(3, -3, 0, -(2**31), -3), i32(1, -1, 0, 0, 0), i32(1, -2, 5, -1, 0)),
    ),
    "slices": Case(
        [(f32(4, 5), f32(5)), (f32(2, 4), f32(4))],
        moved,
    ),
    "accumulated": Case(
        [
            (f32(4, 5), f32(5, 6), f32(4, 6)),
            (f32(1, 1), f32(1, 1), f32(1, 1)),
            (f32(33, 0), f32(0, 17), f32(33, 17)),
        ],
        lambda x, y, c: (x @ y + c, c),
    ),
    "tiled": Case(
        [
            (f32(4, 5), f32(5, 6)),
            (f32(1, 1), f32(1, 1)),
            (f32(33, 3), f32(3, 17)),
            (f32(0, 3), f32(3, 2)),
        ],
        lambda x, y: x @ y,
    ),
    "control": Case(
        [(f32(4), True), (f32(9), False), (f32(1), True)],
        halved,
    ),
    "generated": Case(
        [(f32(6), i64(2, 3), 1), (f32(4), i64(4, 1), 2)],
        lambda x, s, k: (x.reshape(s), x * np.arange(len(x), dtype=np.float32), x[k : k + 2]),
    ),
    "softmax": Case(
        [(f32(3, 5),), (f32(0, 2),)],
        softmax,
    ),
    "partly_written": Case(
        [(f32(n, n), f32(n), f32(m)) for n, m in ((3, 2), (17, 0), (1, 1))],
        partly_written,
    ),
    "wrapped": Case([(f32(5),)], lambda x: (x, x[:0])),
    "inserted_at_the_end": Case(
        [(f32(n), f32(2)) for n in (5, 2)],
        lambda x, y: np.concatenate([x[:-2], y]),
    ),
    "pooling": Case(
        [(f32(1, 4, 5, 2), 2, 3), (f32(1, 3, 3, 7), 1, 1), (f32(1, 3, 3, 7), 0, 1)],
        pooled,
    ),
}
