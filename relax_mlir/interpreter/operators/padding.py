"""Operators that add elements around a tensor."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]


def pad(
    x: np.ndarray,
    value: np.ndarray | None,
    *,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int],
    mode: str,
) -> np.ndarray:
    """NumPy's own, of what is spread first; what is negative is cut off afterwards."""
    if value is not None:
        spread = np.full([n + max(n - 1, 0) * gap for n, gap in zip(x.shape, interior)], value)
        spread[tuple(slice(None, None, gap + 1) for gap in interior)] = x
        x = spread
    settings: dict[str, Any] = {"mode": mode}
    if value is not None:
        settings["constant_values"] = value[()]
    widths = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    padded = np.pad(x, widths, **settings) if widths else x
    cut = (
        slice(max(-a, 0), n - max(-b, 0)) for a, b, n in zip(low, high, padded.shape, strict=True)
    )
    return padded[tuple(cut)]
