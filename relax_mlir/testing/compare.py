"""Compares arrays up to rounding, by the sensitivity of results to perturbed arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_mlir.interpreter.elements import exact, round_to

EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
"""The machine epsilon of each type; floats of 8 bits are compared as integers are."""
NORMAL = {"f64": 2.0**-1022, "f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}
"""The smallest normal number of each type."""
ULPS = 16
"""Ulps by which elements may differ, and ulps of the greatest element by which any may."""
SENSITIVITY = 8
"""The factor on the movement in trials by which an element may differ."""


@dataclass(frozen=True)
class Expected:
    """A result, and how far each element moved when arguments moved by an ulp."""

    value: np.ndarray
    element: str
    movement: np.ndarray
    """In exact elements; infinite where a trial changed between finite, infinite and NaN.

    No float counts as less sensitive than half of them are, for their size: in few trials, some
    stay where they are by chance.
    """

    @staticmethod
    def of(value: np.ndarray, element: str, trials: Sequence[np.ndarray]) -> "Expected":
        """From the result of a call, and those of calls with perturbed arguments.

        A trial in which data decide on other dims says nothing of elements.
        """
        values = exact(value, element)
        movement = np.zeros(np.shape(values))
        for trial in (each for each in trials if np.shape(each) == np.shape(value)):
            other = exact(trial, element)
            with np.errstate(invalid="ignore"):
                distance = np.abs(other.astype(np.float64) - values.astype(np.float64))
            both = (other == values) | (np.isnan(other) & np.isnan(values))
            distance = np.where(both, 0, np.where(np.isfinite(distance), distance, np.inf))
            movement = np.maximum(movement, distance)
        return Expected(value, element, np.maximum(movement, _typical(movement, values, element)))

    def difference(
        self, got: np.ndarray, coarsest: str | None = None, ulps: int = ULPS
    ) -> str | None:
        """How a result differs from this one, as the end of a sentence; None if it does not.

        Integers and floats of 8 bits must be equal, unless they moved in a trial. `coarsest` is
        the narrowest type of the computation, by default the result's; `ulps` is the tolerance in
        its ulps.
        """
        if got.shape != self.value.shape or got.dtype != self.value.dtype:
            want = f"{self.value.dtype.name}{list(self.value.shape)}"
            return f"is {got.dtype.name}{list(got.shape)}, but was {want}"
        actual, wanted = exact(got, self.element), exact(self.value, self.element)
        same = (actual == wanted) | (np.isnan(actual) & np.isnan(wanted))
        if self.element in EPSILON:
            unit = ulps * EPSILON[coarsest or self.element]
            magnitude = np.abs(wanted[np.isfinite(wanted)])
            with np.errstate(invalid="ignore", over="ignore"):
                least = magnitude.max(initial=0) / ULPS + NORMAL[self.element]
                allowed = unit * (np.abs(wanted) + least)
                near = np.abs(actual - wanted) <= allowed + SENSITIVITY * self.movement
            same |= near & np.isfinite(wanted)
        same |= np.isinf(self.movement) | ((self.element not in EPSILON) & (self.movement > 0))
        if same.all():
            return None
        at = tuple(int(index) for index in np.argwhere(~same)[0])
        count = int((~same).sum())
        more = f", and {count - 1} more elements" if count > 1 else ""
        return f"at {list(at)} is {_formatted(actual[at])}, but was {_formatted(wanted[at])}{more}"


def _typical(movement: np.ndarray, values: np.ndarray, element: str) -> np.ndarray:
    """The median of relative movements, times each element; 0 where elements must be equal."""
    chosen = np.isfinite(movement) & np.isfinite(values) & (values != 0)
    if element not in EPSILON or not chosen.any():
        return np.zeros(values.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        median = np.median(movement[chosen] / np.abs(values[chosen].astype(np.float64)))
        return np.where(np.isfinite(values), np.abs(values) * median, 0)


def _formatted(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, np.floating) else str(value)


def perturbed(array: Any, element: str, random: np.random.Generator, epsilon: float) -> Any:
    """A copy with floats perturbed by up to `epsilon` relatively, or by one ulp."""
    if element not in EPSILON:
        return array.copy() if isinstance(array, np.ndarray) else array
    relative = max(epsilon, EPSILON[element])
    values = exact(array, element)
    factors = 1 + relative * random.choice([-1.0, 0.0, 1.0], values.shape)
    return round_to(values * factors, element)
