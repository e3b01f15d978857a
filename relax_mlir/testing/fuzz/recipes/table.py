"""The table that recipes register themselves in."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from relax_mlir.dialects.graph import ShapeError

from ..builder import Builder

Recipe = Callable[[Builder, Any], None]
Made = TypeVar("Made", bound=Recipe)

FAMILIES: dict[str, dict[Any, Recipe]] = defaultdict(dict)
"""Family to its ops (classes, or names of what is no op of the dialect) and their recipes."""


def recipe(family: str, *ops: Any) -> Callable[[Made], Made]:
    """Registers a function as the recipe of some ops."""

    def register(function: Made) -> Made:
        FAMILIES[family].update(dict.fromkeys(ops, function))
        return function

    return register


def step(b: Builder, weights: Mapping[str, int]) -> None:
    """Adds an op of a random family, unless a rule finds it wrong for all sizes."""
    family = b.random.choices(list(weights), list(weights.values()))[0]
    op, function = b.random.choice(list(FAMILIES[family].items()))
    try:
        function(b, op)
    except ShapeError:
        b.used.append("(refused by a rule)")
