"""Looks up the function that computes an op for all threads at once."""

import keyword
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.dialects import arith
from relax_mlir.interpreter.elements import Read, stored
from relax_mlir.interpreter.lookup import find as find_for_one

from . import gpu, memref, scf

_OWN: dict[str, ModuleType] = {"gpu": gpu, "memref": memref, "scf": scf}


def find(op: ir.OpView) -> tuple[Callable[..., Any], Read] | None:
    """As `interpreter.lookup.find`: control flow and memory are those of threads."""
    dialect, _, name = op.operation.name.partition(".")
    own = _OWN.get(dialect)
    if own is not None:
        function = getattr(own, f"{name}_" if keyword.iskeyword(name) else name, None)
        return None if function is None else (function, stored)
    if dialect == "arith" and name in arith.DIVISIONS:
        return _with_divisor(getattr(arith, name)), arith.read
    return find_for_one(op)


def _with_divisor(divide: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A division that refuses to divide by zero."""

    def result(a: Any, b: Any) -> Any:
        if not np.all(b):
            raise ValueError("divides by zero")
        return divide(a, b)

    return result
