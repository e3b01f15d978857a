"""The text of values, as `graph.print` and `graph.assert` write it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .elements import PACKED, widen

LONG, EDGE = 1000, 3


def message(pieces: Sequence[str], values: Sequence[Any], elements: Sequence[str]) -> str:
    """The pieces of a format with the values between them, of these element types."""
    shown = [*map(text, values, elements), ""]
    return "".join(f"{piece}{value}" for piece, value in zip(pieces, shown, strict=True))


def text(value: Any, element: str) -> str:
    """An array in brackets; the ends of its axes if it has more than 1000 elements."""
    array = np.asarray(value)
    if element in PACKED:
        return _axis(widen(array, element), array.size > LONG, _short)
    return _axis(array, array.size > LONG, _element)


def _axis(array: np.ndarray, is_long: bool, write: Callable[[np.ndarray], str]) -> str:
    if array.ndim == 0:
        return write(array)
    if is_long and len(array) > 2 * EDGE:
        parts = [_axis(part, is_long, write) for part in (*array[:EDGE], *array[-EDGE:])]
        parts.insert(EDGE, "...")
    else:
        parts = [_axis(part, is_long, write) for part in array]
    return f"[{', '.join(parts)}]"


def _short(element: np.ndarray) -> str:
    """Six digits, which are enough for 16 bits."""
    return "nan" if np.isnan(element) else f"{float(element):.6g}"


def _element(element: np.ndarray) -> str:
    if element.dtype == bool:
        return str(bool(element)).lower()
    if element.dtype.kind in "iu":
        return str(int(element))
    real, digits = float(element), _short(element)
    if element.dtype.itemsize > 2:
        for precision in range(6, 18):
            digits = f"{real:.{precision}g}"
            if element.dtype.type(digits) == element:
                break
    return digits
