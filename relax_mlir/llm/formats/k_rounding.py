"""Rounds matrices to super-blocks of 256: Q4_K, Q5_K, Q6_K (layouts: see `unpacking.py`).

Scales, and minima, are those of least squares for values that are rounded with several spacings;
they are rounded to 6 or 8 bits themselves, and values again with what these decode to.

Source: ggml `ggml-common.h` (layouts).
"""

from collections.abc import Callable, Mapping

import numpy as np

SUPER = 256
SPACINGS = np.linspace(-1.0, 1.0, 11)
"""Added to the greatest value when spacings are tried."""
_HALF = np.dtype("<f2")


def round_to_super_blocks(values: np.ndarray, format: str) -> np.ndarray:
    """The bytes of float32[rows, columns] in a K format, uint8[rows, bytes].

    Columns are a multiple of 256, and values in the range of float16, which factors have.
    """
    rows, columns = values.shape
    blocks = _ROUND[format](values.reshape(-1, SUPER).astype(np.float32))
    return blocks.reshape(rows, columns // SUPER * blocks.shape[1])


def _least_squares(
    values: np.ndarray, codes: np.ndarray, low: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The scale and minimum (at most 0) of groups that decode `codes` best: [..., 1] each."""
    count = values.shape[-1]
    sum_q, sum_x = codes.sum(-1, keepdims=True), values.sum(-1, keepdims=True)
    sum_qq = (codes * codes).sum(-1, keepdims=True)
    sum_qx = (codes * values).sum(-1, keepdims=True)
    determinant = count * sum_qq - sum_q * sum_q
    safe = np.where(determinant > 0, determinant, 1)
    scale = np.where(determinant > 0, (count * sum_qx - sum_q * sum_x) / safe, 0)
    minimum = np.where(determinant > 0, (sum_x - scale * sum_q) / count, low)
    through_zero = sum_qx / np.where(sum_qq > 0, sum_qq, 1)
    is_positive = minimum > 0
    return np.where(is_positive, through_zero, scale), np.where(is_positive, 0, minimum)


def _scale_and_minimum(values: np.ndarray, greatest: int) -> tuple[np.ndarray, np.ndarray]:
    """The best scale and minimum of each group [..., 32] for codes of 0 to `greatest`."""
    low = np.minimum(values.min(-1, keepdims=True), 0)
    span = values.max(-1, keepdims=True) - low
    safe = np.where(span > 0, span, 1)
    scale, minimum = span / np.float32(greatest), low
    best = np.square(_decoded(values, scale, minimum, greatest) - values).sum(-1, keepdims=True)
    for spacing in SPACINGS:
        codes = np.clip(np.rint((values - low) * ((greatest + spacing) / safe)), 0, greatest)
        tried, offset = _least_squares(values, codes.astype(np.float32), low)
        error = np.square(tried * codes + offset - values).sum(-1, keepdims=True)
        is_better = (error < best) & (tried > 0)
        best = np.where(is_better, error, best)
        scale, minimum = np.where(is_better, tried, scale), np.where(is_better, offset, minimum)
    return scale[..., 0], minimum[..., 0]


def _decoded(
    values: np.ndarray, scale: np.ndarray, minimum: np.ndarray, greatest: int
) -> np.ndarray:
    return _codes(values - minimum, scale, 0, greatest) * scale + minimum


def _codes(values: np.ndarray, scale: np.ndarray, low: int, high: int) -> np.ndarray:
    quotients = values / np.where(scale != 0, scale, 1)
    return np.clip(np.rint(np.where(scale != 0, quotients, 0)), low, high)


def _in_half(factors: np.ndarray, greatest: int) -> tuple[np.ndarray, np.ndarray]:
    """The factor of each super-block in float16, and integers up to `greatest` for its groups."""
    outer = (np.abs(factors).max(-1, keepdims=True) / greatest).astype(_HALF)
    return outer, _codes(factors, outer.astype(np.float32), -greatest, greatest)


def _round_with_minima(values: np.ndarray, bits: int) -> np.ndarray:
    """Q4_K or Q5_K: uint8[super-blocks, bytes]."""
    greatest = 2**bits - 1
    groups = values.reshape(-1, 8, 32)
    scale, minimum = _scale_and_minimum(groups, greatest)
    d, scales = _in_half(scale, 63)
    m, minima = _in_half(-minimum, 63)
    step = (d.astype(np.float32) * scales)[..., None]
    offset = (m.astype(np.float32) * minima)[..., None]
    codes = _codes(groups + offset, step, 0, greatest).astype(np.uint8)
    nibbles = (codes & 15).reshape(-1, 4, 2, 32)
    data = (nibbles[:, :, 0] | nibbles[:, :, 1] << 4).reshape(-1, 128)
    high = [np.bitwise_or.reduce((codes >> 4) << np.arange(8, dtype=np.uint8)[:, None], axis=1)]
    packed = _six_bits(scales.astype(np.uint8), minima.astype(np.uint8))
    parts = [d.view(np.uint8), m.view(np.uint8), packed, *(high if bits == 5 else []), data]
    return np.concatenate(parts, axis=1)


def _six_bits(scales: np.ndarray, minima: np.ndarray) -> np.ndarray:
    """The 12 bytes of eight scales and minima: the last four of each are split."""
    first = scales[:, :4] | scales[:, 4:] >> 4 << 6
    second = minima[:, :4] | minima[:, 4:] >> 4 << 6
    return np.concatenate([first, second, scales[:, 4:] & 15 | (minima[:, 4:] & 15) << 4], axis=1)


def _round_symmetric(values: np.ndarray) -> np.ndarray:
    """Q6_K: uint8[super-blocks, 210]."""
    groups = values.reshape(-1, 16, 16)
    d, scales = _in_half(_signed_scale(groups), 127)
    step = (d.astype(np.float32) * scales)[..., None]
    codes = (_codes(groups, step, -32, 31) + 32).astype(np.uint8).reshape(-1, 2, 4, 32)
    nibbles, pairs = codes & 15, codes >> 4
    low = (nibbles[:, :, :2] | nibbles[:, :, 2:] << 4).reshape(-1, 128)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = np.bitwise_or.reduce(pairs << shifts, axis=2).reshape(-1, 64)
    return np.concatenate([low, high, scales.astype(np.int8).view(np.uint8), d.view(np.uint8)], 1)


def _signed_scale(groups: np.ndarray) -> np.ndarray:
    """The best scale of each group for codes of -32 to 31: the extreme value has -32."""
    index = np.abs(groups).argmax(-1, keepdims=True)
    extreme = np.take_along_axis(groups, index, -1)
    scale = extreme / np.float32(-32)
    best = np.square(_codes(groups, scale, -32, 31) * scale - groups).sum(-1, keepdims=True)
    for spacing in SPACINGS:
        codes = _codes(groups, extreme / np.float32(-32 + spacing), -32, 31).astype(np.float32)
        squares = (codes * codes).sum(-1, keepdims=True)
        tried = (codes * groups).sum(-1, keepdims=True) / np.where(squares > 0, squares, 1)
        error = np.square(codes * tried - groups).sum(-1, keepdims=True)
        is_better = error < best
        best, scale = np.where(is_better, error, best), np.where(is_better, tried, scale)
    return scale[..., 0]


_ROUND: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "Q4_K": lambda values: _round_with_minima(values, 4),
    "Q5_K": lambda values: _round_with_minima(values, 5),
    "Q6_K": _round_symmetric,
}
