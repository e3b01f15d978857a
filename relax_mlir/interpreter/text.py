"""The text of values, as `graph.print` and `graph.assert` write it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

LONG, EDGE = 1000, 3


def message(pieces: Sequence[str], values: Sequence[Any]) -> str:
    """The pieces of a format with the values between them."""
    shown = [*map(text, values), ""]
    return "".join(f"{piece}{value}" for piece, value in zip(pieces, shown, strict=True))


def text(value: Any) -> str:
    """An array in brackets; the ends of its axes if it has more than 1000 elements."""
    array = np.asarray(value)
    return _axis(array, array.size > LONG)


def _axis(array: np.ndarray, is_long: bool) -> str:
    if array.ndim == 0:
        return _element(array)
    if is_long and len(array) > 2 * EDGE:
        parts = [_axis(part, is_long) for part in (*array[:EDGE], *array[-EDGE:])]
        parts.insert(EDGE, "...")
    else:
        parts = [_axis(part, is_long) for part in array]
    return f"[{', '.join(parts)}]"


def _element(element: np.ndarray) -> str:
    if element.dtype == bool:
        return str(bool(element)).lower()
    if element.dtype.kind in "iu":
        return str(int(element))
    real = float(element)
    if np.isnan(real):
        return "nan"
    digits = f"{real:.6g}"
    if element.dtype.itemsize > 2:
        for precision in range(6, 18):
            digits = f"{real:.{precision}g}"
            if element.dtype.type(digits) == element:
                break
    return digits
