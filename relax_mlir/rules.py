"""Functions that are written for classes of ops, which the annotations of their parameters name.

    def leaky_relu(op: LeakyReluOp, kernel: KernelBuilder) -> None: ...

The first of two parameters says which ops the function is for, `A | B` for several; the second
what kind of function it is: a legalisation, or the rule of a gradient.
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from types import FunctionType, ModuleType, UnionType
from typing import Any, get_args

from relax_mlir.bindings import ir


def rules_of_package(package: str, path: list[str], second: type) -> dict[type, Any]:
    """The functions of that kind that modules of a package and its folders define, by op."""
    modules = (import_module(info.name) for info in walk_packages(path, f"{package}."))
    return {
        kind: function
        for module in modules
        for kind, function in rules_of_module(module, second)
        if function.__module__ == module.__name__
    }


def rules_of_module(module: ModuleType, second: type) -> Iterator[tuple[type, Any]]:
    """The public functions of that kind in a module, imported ones included, by class of op."""
    for name, function in vars(module).items():
        if name.startswith("_") or not isinstance(function, FunctionType):
            continue
        first, *others = [_resolved(hint, function) for hint in _parameters(function)] or [None]
        if others != [second]:
            continue
        for kind in get_args(first) if isinstance(first, UnionType) else (first,):
            is_op = isinstance(kind, type) and issubclass(kind, ir.OpView)
            if is_op and getattr(kind, "OPERATION_NAME", None):
                yield kind, function


def _parameters(function: FunctionType) -> list[object]:
    return [hint for name, hint in function.__annotations__.items() if name != "return"]


def _resolved(hint: object, function: FunctionType) -> object:
    """A hint that is text as what it names; None if the name is unknown."""
    return function.__globals__.get(hint) if isinstance(hint, str) else hint
