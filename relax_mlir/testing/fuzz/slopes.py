"""Gradients compared with finite differences, where a program is smooth and computes in f64."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

STEPS = (1e-4, 5e-5)
SMOOTH = 1e-3
"""The relative distance up to which slopes of both sides and of both steps are one slope."""
NEAR = 1e-2
ACCURACY = 1e-3
"""The greatest relative error of a gradient."""


def slope_error(
    loss: Callable[[Sequence[Any]], float],
    arrays: Sequence[Any],
    gradients: Sequence[np.ndarray],
    random: np.random.Generator,
) -> str | None:
    """How gradients differ from a difference of losses in a random direction.

    `gradients` are of those arrays that are floats, in order. None if they agree, or if the loss
    has no slope there.
    """
    floats = [i for i, x in enumerate(arrays) if _is_float(x)]
    ways = [random.choice([-1.0, 1.0], np.shape(arrays[i])) for i in floats]
    parts = [float(np.sum(way * g)) for way, g in zip(ways, gradients, strict=True)]
    size = sum(float(np.sum(np.abs(g))) for g in gradients)

    def at(step: float) -> float:
        shifted = list(arrays)
        for index, way in zip(floats, ways, strict=True):
            shifted[index] = arrays[index] + step * way
        return loss(shifted)

    middle = at(0.0)
    slopes = []
    for step in STEPS:
        above, below = at(step), at(-step)
        slopes += [(above - middle) / step, (middle - below) / step]
    if not np.isfinite([*slopes, *parts]).all():
        return None
    slope = (slopes[2] + slopes[3]) / 2
    allowed = SMOOTH * (abs(slope) + 1e-3 * size) + 1e-6
    if max(abs(each - slope) for each in slopes) > allowed:
        return None
    if abs(slope - sum(parts)) <= ACCURACY * (abs(slope) + 1e-2 * size) + 1e-5 + allowed:
        return None
    return f"the gradient says {sum(parts)}, but the loss has the slope {slope}"


def moved(arrays: Sequence[Any], random: np.random.Generator) -> list[Any]:
    """Arguments near by, where hardly any element is at a kink."""
    return [x + NEAR * random.standard_normal(x.shape) if _is_float(x) else x for x in arrays]


def _is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.float64
