"""The ops of kernels by dialect: a function of each, of the op's name."""

from collections.abc import Callable
from types import ModuleType

from relax_mlir.bindings import ir

from ..emitter import Emitter
from . import arith, gpu, math, memref, scf, ub

_DIALECTS: dict[str, ModuleType] = {
    "arith": arith, "gpu": gpu, "math": math, "memref": memref, "scf": scf, "ub": ub,
}  # fmt: skip


def find(dialect: str, name: str) -> Callable[[Emitter, ir.Operation], None] | None:
    """The function that emits an op; None if there is none."""
    module = _DIALECTS.get(dialect)
    return None if module is None else module.OPS.get(name)
