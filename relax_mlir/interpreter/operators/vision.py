"""Operators on boxes in images, box by box in float64."""

import numpy as np

from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]


def vision_nms(
    boxes: np.ndarray,
    scores: np.ndarray,
    limit: np.ndarray,
    overlap: np.ndarray,
    least: np.ndarray,
    *,
    center: bool,
) -> np.ndarray:
    """Visits the boxes of each class in order."""
    result = np.full(scores.shape, -1, np.int64)
    for batch, channel in np.ndindex(*scores.shape[:2]):
        low, high = _corners(boxes[batch], center)
        line = scores[batch, channel]
        selected: list[int] = []
        for box in len(line) - 1 - np.argsort(line[::-1], kind="stable")[::-1]:
            if len(selected) >= limit or not line[box] > least:
                continue
            if not any(_overlap(low, high, box, other) > overlap for other in selected):
                selected.append(int(box))
        result[batch, channel, : len(selected)] = selected
    return result


def _corners(boxes: np.ndarray, center: bool) -> tuple[np.ndarray, np.ndarray]:
    first, second = boxes[:, :2].astype(np.float64), boxes[:, 2:].astype(np.float64)
    if center:
        return first - second / 2, first + second / 2
    return np.minimum(first, second), np.maximum(first, second)


def _overlap(low: np.ndarray, high: np.ndarray, a: int, b: int) -> float:
    """The intersection over the union, of those that have any area; else a NaN."""
    sides = np.minimum(high[a], high[b]) - np.maximum(low[a], low[b])
    own, other = high[a] - low[a], high[b] - low[b]
    if not (sides > 0).all() or not (own > 0).all() or not (other > 0).all():
        return np.nan
    common = sides[0] * sides[1]
    return common / (own[0] * own[1] + other[0] * other[1] - common)
