"""Scales, and minima, of groups of values: those of weighted least squares for several spacings.

Each spacing is that of the codes which a scale between the extremes would have; for these codes,
the best scale and minimum are computed, and the ones with the least error are taken.
"""

import numpy as np

SPACINGS = np.linspace(-1.0, 1.0, 11)
"""Added to the greatest code when spacings are tried."""


def symmetric(values: np.ndarray, weights: np.ndarray, low: int) -> np.ndarray:
    """The scale of each group [..., n], by weights of that shape, for codes of `low` to -low - 1.

    It is [..., 1]; the extreme value has about the code `low`.
    """
    index = np.abs(values).argmax(-1, keepdims=True)
    extreme = np.take_along_axis(values, index, -1)
    high = -low - 1
    scale = extreme / np.float32(low)
    best = (weights * np.square(codes(values, scale, low, high) * scale - values)).sum(
        -1, keepdims=True
    )
    for spacing in SPACINGS:
        code = codes(values, extreme / np.float32(low + spacing), low, high)
        squares = (weights * code * code).sum(-1, keepdims=True)
        products = (weights * code * values).sum(-1, keepdims=True)
        tried = products / np.where(squares > 0, squares, 1)
        error = (weights * np.square(code * tried - values)).sum(-1, keepdims=True)
        is_better = error < best
        best, scale = np.where(is_better, error, best), np.where(is_better, tried, scale)
    return scale


def affine(
    values: np.ndarray, weights: np.ndarray, greatest: int, through_zero: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The scale and minimum of each group [..., n], for codes of 0 to `greatest`: [..., 1] each.

    With `through_zero`, minima are at most 0, since their factors are positive in the file.
    """
    low = values.min(-1, keepdims=True)
    if through_zero:
        low = np.minimum(low, 0)
    span = values.max(-1, keepdims=True) - low
    safe = np.where(span > 0, span, 1)
    scale, minimum = span / np.float32(greatest), low
    code = codes(values - low, scale, 0, greatest)
    best = (weights * np.square(code * scale + minimum - values)).sum(-1, keepdims=True)
    for spacing in SPACINGS:
        code = np.clip(np.rint((values - low) * ((greatest + spacing) / safe)), 0, greatest)
        tried, offset = _least_squares(values, weights, code.astype(np.float32), low, through_zero)
        error = (weights * np.square(tried * code + offset - values)).sum(-1, keepdims=True)
        is_better = (error < best) & (tried > 0)
        best = np.where(is_better, error, best)
        scale, minimum = np.where(is_better, tried, scale), np.where(is_better, offset, minimum)
    return scale, minimum


def _least_squares(
    values: np.ndarray, weights: np.ndarray, code: np.ndarray, low: np.ndarray, through_zero: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The scale and minimum of groups that decode `code` best: [..., 1] each."""
    weighted = weights * code
    count = np.broadcast_to(weights, values.shape).sum(-1, keepdims=True)
    sum_q, sum_x = weighted.sum(-1, keepdims=True), (weights * values).sum(-1, keepdims=True)
    sum_qq = (weighted * code).sum(-1, keepdims=True)
    sum_qx = (weighted * values).sum(-1, keepdims=True)
    determinant = count * sum_qq - sum_q * sum_q
    is_regular = determinant > 1e-6 * count * sum_qq
    safe = np.where(is_regular, determinant, 1)
    scale = np.where(is_regular, (count * sum_qx - sum_q * sum_x) / safe, 0)
    minimum = np.where(is_regular, (sum_x - scale * sum_q) / np.where(count > 0, count, 1), low)
    if not through_zero:
        return scale, minimum
    is_positive = minimum > 0
    slope = sum_qx / np.where(sum_qq > 0, sum_qq, 1)
    return np.where(is_positive, slope, scale), np.where(is_positive, 0, minimum)


def codes(values: np.ndarray, scale: np.ndarray, low: int, high: int) -> np.ndarray:
    """Values over their scales, rounded to integers of `low` to `high`; 0 where the scale is 0."""
    quotients = values / np.where(scale != 0, scale, 1)
    return np.clip(np.rint(np.where(scale != 0, quotients, 0)), low, high)
