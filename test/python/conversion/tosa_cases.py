"""What the functions of tosa_cases.mlir compute, in NumPy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from linalg_cases import Case, f32

TEXT = Path(__file__).with_suffix(".mlir").read_text()
_random = np.random.default_rng()


def random_integers(dtype: Any, *shape: int, low: int = -128, high: int = 128) -> np.ndarray:
    """Random elements."""
    return _random.integers(low, high, shape).astype(dtype)


def elementwise(x: np.ndarray, y: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, ...]:
    """A clamped product, a comparison, and a sigmoid of what it selects."""
    clamped = np.clip((x + y) * row, -1.0, 1.5)
    chosen = np.where(x > clamped, -x, clamped)
    return clamped, x > clamped, 1 / (1 + np.exp(-chosen))


def integers(a: np.ndarray, b: np.ndarray, c: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Each op on integers."""
    wide, other = a.astype(object), b.astype(object)
    quotients = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(wide, other)]
    products = [(p * q + 64 >> 7) for p, q in zip(wide, other)]
    shifted = [(p >> 2) + (p >> 1 & 1) for p in wide]
    zeros = [32 - int(p % 2**32).bit_length() for p in wide]
    negated = np.clip(6 - c.astype(int), -128, 127)
    return (
        *(np.array(each, np.int32) for each in (quotients, products, shifted, zeros)),
        negated,
        np.full(len(c), 5),
        np.clip(np.rint(x), -128, 127),
    )


def products(x: np.ndarray, w: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    """Products of matrices, of integers less their zero points."""
    return x.astype(np.float64) @ w, (a.astype(int) - 3) @ (b.astype(int) + 7)


def convolved(
    x: np.ndarray,
    w: np.ndarray,
    pad: Sequence[int],
    stride: Sequence[int] = (1, 1),
    dilation: Sequence[int] = (1, 1),
) -> np.ndarray:
    """A convolution of NHWC images by OHWI filters."""
    x = np.pad(x.astype(np.float64), ((0, 0), pad[:2], pad[2:], (0, 0)))
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[1:3], dilation)]
    rows, columns = ((n - s) // t + 1 for n, s, t in zip(x.shape[1:3], spans, stride))
    out = np.empty((len(x), rows, columns, len(w)))
    for i in range(rows):
        for j in range(columns):
            top, left = i * stride[0], j * stride[1]
            window = x[:, top : top + spans[0], left : left + spans[1]]
            window = window[:, :: dilation[0], :: dilation[1]]
            out[:, i, j] = np.einsum("nhwc,ohwc->no", window, w)
    return out


def convolutions(
    x: np.ndarray, w: np.ndarray, d: np.ndarray, t: np.ndarray, b: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, ...]:
    """A convolution, one of each channel, and a transposed one."""
    plain = convolved(x, w, (1, 0, 0, 2), (2, 1), (1, 2)) + b
    each = [convolved(x[..., i : i + 1], d[:, :, i : i + 1].transpose(3, 0, 1, 2), (0, 0, 1, 0))
            for i in range(3)]  # fmt: skip
    n, h, width, _ = x.shape
    whole = np.zeros((n, (h - 1) * 2 + 3, width + 1, 4))
    for i in range(h):
        for j in range(width):
            update = np.einsum("nc,ohwc->nhwo", x[:, i, j].astype(np.float64), t)
            whole[:, 2 * i : 2 * i + 3, j : j + 2] += update
    transposed = np.pad(whole[:, :-1], ((0, 0), (1, 0), (0, 2), (0, 0))) + b
    return plain, np.concatenate(each, -1) + c, transposed


def quantized(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    """A convolution, and its result and input at other scales."""
    sums = convolved(x.astype(int) + 5, w, (1, 1, 0, 0)) + b
    multipliers, shifts = [1073741824, 1288490189, 2147483647], [40, 38, 35]
    single, double = (np.empty(sums.shape, int) for _ in range(2))
    for at in np.ndindex(*sums.shape):
        value, factor, shift = int(sums[at]), multipliers[at[-1]], shifts[at[-1]]
        half = 1 << (shift - 1)
        single[at] = (value * factor + half) >> shift
        double[at] = (value * factor + half + (1 << 30) * (1 if value >= 0 else -1)) >> shift
    scaled = ((x.astype(int) + 5) * 19689 + (1 << 14)) >> 15
    unsigned = np.clip(double + 9, 0, 255).astype(np.uint8).astype(np.int8)
    return sums, np.clip(single + 9, -128, 127), unsigned, scaled


def reduced(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Pooling and reductions."""
    low = np.pad(x, ((0, 0), (1, 0), (0, 1), (0, 0)), constant_values=-np.inf)
    rows, columns = (low.shape[1] - 3) // 2 + 1, low.shape[2] - 1
    greatest = [[low[:, 2 * i : 2 * i + 3, j : j + 2].max((1, 2)) for j in range(columns)]
                for i in range(rows)]  # fmt: skip
    nan = np.pad(x, ((0, 0), (1, 0), (1, 1), (0, 0)), constant_values=np.nan)
    rows, columns = nan.shape[1] - 1, (nan.shape[2] - 3) // 2 + 1
    means = [[np.nanmean(nan[:, i : i + 2, 2 * j : 2 * j + 3], axis=(1, 2)) for j in range(columns)]
             for i in range(rows)]  # fmt: skip
    return (
        np.array(greatest).transpose(2, 0, 1, 3),
        np.array(means).transpose(2, 0, 1, 3),
        x.argmax(2),
        x.sum(3, keepdims=True),
        x.min(1, keepdims=True),
    )


def rearranged(x: np.ndarray, i: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, ...]:
    """Each op that moves elements."""
    scattered = x.copy()
    for n, row in enumerate(i):
        scattered[n, row] = u[n]
    return (
        x.reshape(-1, 3),
        np.pad(x, ((0, 0), (1, 2), (0, 0)), constant_values=0.5),
        x[:, 1:3, 1:3],
        np.tile(x, (1, 3, 2)),
        x.transpose(2, 0, 1),
        x[:, ::-1],
        np.stack([part[row] for part, row in zip(x, i)]),
        scattered,
    )


def controlled(x: np.ndarray, c: np.ndarray) -> tuple[Any, ...]:
    """An exponential or the operand, doubled five times."""
    return 32 * (np.exp(x) if c else x), np.array(5)


def _rearranged(n: int, k: int, w: int) -> tuple[np.ndarray, ...]:
    rows = np.stack([_random.permutation(k)[:w] for _ in range(n)]).astype(np.int32)
    return f32(n, k, 3), rows, f32(n, w, 3)


CASES = {
    "elementwise": Case(
        [
            (f32(3, 5), f32(3, 5), f32(1, 5)),
            (f32(3, 5), f32(1, 5), f32(1, 1)),
            (f32(1, 1), f32(7, 1), f32(1, 1)),
            (f32(0, 4), f32(0, 4), f32(1, 4)),
        ],
        elementwise,
    ),
    "integers": Case(
        [
            (
                random_integers(np.int32, n, low=-9999, high=9999),
                random_integers(np.int32, n, low=1, high=99),
                np.append(random_integers(np.int8, n - 1), np.int8(-128)),
                f32(n) * 100,
            )
            for n in (1, 17)
        ],
        integers,
    ),
    "products": Case(
        [
            (
                *(f32(n, h, c), f32(n, c, w)),
                *(random_integers(np.int8, n, h, c), random_integers(np.int8, n, c, w)),
            )
            for n, h, c, w in ((1, 1, 1, 1), (2, 3, 5, 7), (3, 0, 4, 2), (2, 17, 33, 9))
        ],
        products,
    ),
    "convolutions": Case(
        [
            (f32(n, h, w, 3), f32(4, 3, 2, 3), f32(3, 2, 3, 2), f32(4, 3, 2, 3), f32(4), f32(6))
            for n, h, w in ((1, 3, 3), (2, 7, 5))
        ],
        convolutions,
    ),
    "quantized": Case(
        [
            (
                random_integers(np.int8, n, h, w, 2),
                random_integers(np.int8, 3, 2, 2, 2),
                random_integers(np.int32, 3, low=-99999, high=99999),
            )
            for n, h, w in ((1, 2, 2), (2, 5, 7))
        ],
        quantized,
    ),
    "reduced": Case([(f32(2, 4, 5, 3),), (f32(1, 7, 3, 1),)], reduced),
    "rearranged": Case([_rearranged(2, 4, 3), _rearranged(1, 3, 1)], rearranged),
    "controlled": Case(
        [(f32(4), np.array(True)), (f32(1), np.array(False))],
        controlled,
    ),
}
