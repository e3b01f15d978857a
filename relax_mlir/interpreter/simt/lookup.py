"""Looks up the function that computes an op for all threads at once."""

import keyword
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from relax_mlir.bindings import arith as arith_ops
from relax_mlir.bindings import ir
from relax_mlir.interpreter.constants import constant_value
from relax_mlir.interpreter.dialects import arith
from relax_mlir.interpreter.elements import Read, stored
from relax_mlir.interpreter.lookup import find as find_for_one

from .dialects import builtin, cooperative, gpu, llvm, memref, nvgpu, nvvm, scf, vector
from .threads import Threads

_OWN: dict[str, ModuleType] = {
    **{
        "builtin": builtin,
        "gpu": gpu,
        "llvm": llvm,
        "memref": memref,
        "nvgpu": nvgpu,
        "nvvm": nvvm,
    },
    **{"scf": scf, "vector": vector},
}


def find(op: ir.OpView) -> tuple[Callable[..., Any], Read] | None:
    """As `interpreter.lookup.find`: control flow and memory are those of threads."""
    dialect, _, name = op.operation.name.replace(".", "_").partition("_")
    if isinstance(op, arith_ops.ConstantOp) and isinstance(op.result.type, ir.VectorType):
        return _for_each_thread(constant_value(op.operation.attributes["value"])), stored
    own = cooperative if name.startswith("subgroup_") else _OWN.get(dialect)
    if own is not None:
        function = getattr(own, f"{name}_" if keyword.iskeyword(name) else name, None)
        return None if function is None else (function, stored)
    if dialect == "arith" and name in arith.DIVISIONS:
        return _with_divisor(getattr(arith, name)), arith.read
    return find_for_one(op)


def _for_each_thread(vector_: np.ndarray) -> Callable[..., np.ndarray]:
    """The same vector for each thread."""

    def result(frame: Threads, op: ir.OpView) -> np.ndarray:
        return np.broadcast_to(vector_, (len(frame.running), *vector_.shape))

    return result


def _with_divisor(divide: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A division that refuses to divide by zero."""

    def result(a: Any, b: Any) -> Any:
        if not np.all(b):
            raise ValueError("divides by zero")
        return divide(a, b)

    return result
