"""From graph operators to tensor programs: one function per operator, one file per family.

A function's first parameter is annotated with the operator it lowers; that is its registration.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import get_type_hints

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import GraphOp

from .kernel import KernelBuilder

Legalization = Callable[[GraphOp, KernelBuilder], None]


@cache
def legalizations() -> dict[type, Legalization]:
    """Returns operator class to legalization, read from the family files."""
    found: dict[type, Legalization] = {}
    for info in iter_modules(__path__):
        module = import_module(f"{__name__}.{info.name}")
        for name, function in vars(module).items():
            if name.startswith("_") or not callable(function) or isinstance(function, type):
                continue
            if function.__module__ != module.__name__:
                continue
            hints = list(get_type_hints(function).values())
            if not hints or not isinstance(hints[0], type) or hints[0] is GraphOp:
                continue  # what takes any operator lowers none
            if issubclass(hints[0], ir.OpView):
                found[hints[0]] = function
    return found


__all__ = ["KernelBuilder", "Legalization", "legalizations"]
