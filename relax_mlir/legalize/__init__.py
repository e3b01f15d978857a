"""From graph operators to tensor programs: one function per operator, one file per family.

The annotation of a function's first parameter is the operator that it lowers; that registers it.
For an operator from outside this package it is defined in, or imported to, the module of its class.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import FunctionType, ModuleType

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import GraphOp

from .kernel import KernelBuilder

Legalization = Callable[[GraphOp, KernelBuilder], None]


@cache
def legalizations() -> dict[type, Legalization]:
    """Maps operator classes to legalizations, from the family files."""
    modules = (import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__))
    return {
        kind: function
        for module in modules
        for kind, function in _registered(module)
        if function.__module__ == module.__name__
    }


def legalization_of(kind: type[GraphOp]) -> Legalization | None:
    """Returns the function that lowers an operator, None if there is none."""
    known = legalizations()
    return known[kind] if kind in known else _in_own_module(kind)


def _in_own_module(kind: type[GraphOp]) -> Legalization | None:
    """The legalization of an operator in the module that declares it, in its current state."""
    return dict(_registered(sys.modules[kind.__module__])).get(kind)


def _registered(module: ModuleType) -> Iterator[tuple[type, Legalization]]:
    """The operators that public functions of a module lower."""
    for name, function in vars(module).items():
        if name.startswith("_") or not isinstance(function, FunctionType):
            continue
        kind = _first_hint(function)
        if kind is GraphOp:  # a helper for any operator
            continue
        if isinstance(kind, type) and issubclass(kind, ir.OpView):
            yield kind, function


def _first_hint(function: FunctionType) -> object:
    """The annotation of the first parameter; None if there is none, or the name is unknown."""
    hint = next(iter(function.__annotations__.values()), None)
    return function.__globals__.get(hint) if isinstance(hint, str) else hint


__all__ = ["KernelBuilder", "Legalization", "legalization_of", "legalizations"]
