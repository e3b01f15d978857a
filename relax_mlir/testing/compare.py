"""Compares arrays where rounding may differ: how far results move when arguments move a little."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_mlir.interpreter.elements import exact, round_to

EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
"""The distance from 1 to the next number of each type."""
NORMAL = {"f64": 2.0**-1022, "f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}
"""The least number of each type that has all its bits."""
ULPS = 16
"""Units in the last place by which elements may differ, and of the greatest by which any may."""
SENSITIVITY = 8
"""How many times as far as in trials an element may move."""


@dataclass(frozen=True)
class Expected:
    """A result, and how far each element moved when arguments moved by a unit in the last place."""

    value: np.ndarray
    element: str
    movement: np.ndarray
    """Of the exact elements; infinite where a trial gave something of another kind."""

    @staticmethod
    def of(value: np.ndarray, element: str, trials: Sequence[np.ndarray]) -> "Expected":
        """The result of a call, and of others with arguments that are nearly the same."""
        wide = exact(value, element)
        movement = np.zeros(np.shape(wide))
        for trial in trials:
            other = exact(trial, element)
            with np.errstate(invalid="ignore"):
                moved = np.abs(other.astype(np.float64) - wide.astype(np.float64))
            both = (other == wide) | (np.isnan(other) & np.isnan(wide))
            moved = np.where(both, 0, np.where(np.isfinite(moved), moved, np.inf))
            movement = np.maximum(movement, moved)
        return Expected(value, element, movement)

    def difference(
        self, got: np.ndarray, coarsest: str | None = None, ulps: int = ULPS
    ) -> str | None:
        """How a result differs from this one, as a sentence's end; None if it does not.

        Integers differ if they are not the same, unless they moved in a trial. `coarsest` is the
        type of fewest bits that is computed with, by default the result's, `ulps` how many units
        of it an element may differ by.
        """
        if got.shape != self.value.shape or got.dtype != self.value.dtype:
            want = f"{self.value.dtype.name}{list(self.value.shape)}"
            return f"is {got.dtype.name}{list(got.shape)}, but was {want}"
        found, wanted = exact(got, self.element), exact(self.value, self.element)
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        if wanted.dtype.kind == "f":
            unit = ulps * EPSILON[coarsest or self.element]
            magnitude = np.abs(wanted[np.isfinite(wanted)])
            with np.errstate(invalid="ignore", over="ignore"):
                least = magnitude.max(initial=0) / ULPS + NORMAL[self.element]
                allowed = unit * (np.abs(wanted) + least)
                near = np.abs(found - wanted) <= allowed + SENSITIVITY * self.movement
            same |= near & np.isfinite(wanted)
        same |= np.isinf(self.movement) | ((wanted.dtype.kind != "f") & (self.movement > 0))
        if same.all():
            return None
        at = tuple(int(index) for index in np.argwhere(~same)[0])
        count = int((~same).sum())
        more = f", and {count - 1} more elements" if count > 1 else ""
        return f"at {list(at)} is {_told(found[at])}, but was {_told(wanted[at])}{more}"


def _told(number: Any) -> str:
    return f"{number:.9g}" if isinstance(number, np.floating) else str(number)


def moved(array: Any, element: str, random: np.random.Generator, epsilon: float) -> Any:
    """A copy whose elements are each moved by up to `epsilon` of them, or one unit; only floats."""
    if element not in EPSILON:
        return array.copy() if isinstance(array, np.ndarray) else array
    relative = max(epsilon, EPSILON[element])
    wide = exact(array, element)
    factors = 1 + relative * random.choice([-1.0, 0.0, 1.0], wide.shape)
    return round_to(wide * factors, element)
