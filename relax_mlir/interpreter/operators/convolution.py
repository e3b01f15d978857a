"""Operators that slide a window over the last two dims."""

from collections.abc import Iterator, Sequence

import numpy as np

from relax_mlir.interpreter.elements import exact as read

from .statistical import limits

__all__ = ["read"]


def nn_conv2d(
    x: np.ndarray,
    weight: np.ndarray,
    *,
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> np.ndarray:
    """The sum of products over the window and the channels, with zero padding."""
    filters, channels, *window = weight.shape
    grouped = weight.reshape(groups, filters // groups, channels, *window)
    total: np.ndarray | float = 0.0
    for (u, v), seen in _windows(_padded(x, padding, 0), window, strides, dilation):
        n, _, rows, columns = seen.shape
        parts = seen.reshape(n, groups, channels, rows, columns)
        product = np.einsum("ngcyx,gfc->ngfyx", parts, grouped[..., u, v])
        total = total + product.reshape(n, filters, rows, columns)
    return np.asarray(total)


def nn_max_pool2d(
    x: np.ndarray,
    *,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> np.ndarray:
    """The greatest element of the window; padding is less than all elements."""
    parts = _windows(_padded(x, padding, limits(x)[0]), window, strides, dilation)
    return np.maximum.reduce([part for _, part in parts])


def nn_sum_pool2d(
    x: np.ndarray,
    *,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> np.ndarray:
    """The sum of the window, in the precision of x."""
    parts = _windows(_padded(x, padding, 0), window, strides, dilation)
    return np.add.reduce([part for _, part in parts])


def _padded(x: np.ndarray, padding: Sequence[int], value: float) -> np.ndarray:
    top, left, bottom, right = padding
    around = ((0, 0), (0, 0), (top, bottom), (left, right))
    return np.pad(x, around, constant_values=value)


def _windows(
    x: np.ndarray, window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """For each element of the window, the inputs under it at all positions of the window."""
    extents = [(size - 1) * step + 1 for size, step in zip(window, dilation, strict=True)]
    counts = [max((x.shape[2 + i] - extents[i]) // strides[i] + 1, 0) for i in range(2)]
    for u in range(window[0]):
        for v in range(window[1]):
            rows = u * dilation[0] + strides[0] * np.arange(counts[0])
            columns = v * dilation[1] + strides[1] * np.arange(counts[1])
            yield (u, v), x[:, :, rows[:, None], columns]
