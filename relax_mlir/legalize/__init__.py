"""From graph operators to tensor programs: one function per operator, one file per family.

A function's first parameter is annotated with the operator it lowers; that is its registration. For
an operator from outside of this package it stands, or is imported, beside the operator's class.
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
    """Returns operator class to legalization, read from the family files."""
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
    return known[kind] if kind in known else _beside(kind)


def _beside(kind: type[GraphOp]) -> Legalization | None:
    """What lowers an operator in the module that declares it, as that module is now."""
    return dict(_registered(sys.modules[kind.__module__])).get(kind)


def _registered(module: ModuleType) -> Iterator[tuple[type, Legalization]]:
    """The operators that public functions of a module lower."""
    for name, function in vars(module).items():
        if name.startswith("_") or not isinstance(function, FunctionType):
            continue
        kind = _first_hint(function)
        if kind is GraphOp:  # what takes any operator lowers none
            continue
        if isinstance(kind, type) and issubclass(kind, ir.OpView):
            yield kind, function


def _first_hint(function: FunctionType) -> object:
    """What the first parameter is annotated with; None if nothing, or no name that is known."""
    found = next(iter(function.__annotations__.values()), None)
    return function.__globals__.get(found) if isinstance(found, str) else found


__all__ = ["KernelBuilder", "Legalization", "legalization_of", "legalizations"]
