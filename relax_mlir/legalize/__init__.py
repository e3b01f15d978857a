"""From graph operators to tensor programs: one function per operator, one file per family.

The annotation of a function's first parameter is the operator that it lowers; that registers it.
For an operator from outside this package it is defined in, or imported to, the module of its class.
"""

import sys
from collections.abc import Callable
from functools import cache

from relax_mlir.dialects.graph import GraphOp
from relax_mlir.rules import rules_of_module, rules_of_package

from .kernel import KernelBuilder

Legalization = Callable[[GraphOp, KernelBuilder], None]


@cache
def legalizations() -> dict[type, Legalization]:
    """Maps operator classes to legalizations, from the family files."""
    return rules_of_package(__name__, __path__, KernelBuilder)


def legalization_of(kind: type[GraphOp]) -> Legalization | None:
    """Returns the function that lowers an operator, None if there is none."""
    known = legalizations()
    return known[kind] if kind in known else _in_own_module(kind)


def _in_own_module(kind: type[GraphOp]) -> Legalization | None:
    """The legalization of an operator in the module that declares it, in its current state."""
    return dict(rules_of_module(sys.modules[kind.__module__], KernelBuilder)).get(kind)


__all__ = ["KernelBuilder", "Legalization", "legalization_of", "legalizations"]
