"""StableHLO and CHLO: the host package has them, and loads neither of them by itself.

This module and `chlo` are what the bindings look for when they meet an op of these dialects.
"""

from functools import cache

from torch_mlir import ir, passmanager
from torch_mlir._mlir_libs import _stablehlo
from torch_mlir.dialects import quant

from .elements import element_bytes

__all__ = [
    "NEWEST",
    "OLDEST",
    "element_bytes",
    "evaluate",
    "load",
    "portable",
    "quant",
    "run_pass",
    "run_passes",
    "to_bytecode",
]

NEWEST: str = _stablehlo.get_current_version()
OLDEST: str = _stablehlo.get_minimum_version()
"""Versions of portable artifacts that can be read."""

_LOADS_CHLO = "stablehlo-complex-math-expander"
"""A pass whose results may have ops of CHLO, which is loaded before it runs."""


@cache
def _register_passes() -> None:
    _stablehlo.register_stablehlo_passes()


def load(context: ir.Context) -> None:
    """Loads StableHLO and CHLO into a context."""
    _stablehlo.register_dialect(context, load=True)
    with context, ir.Location.unknown():
        run_pass(ir.Module.create(), _LOADS_CHLO)


def run_pass(module: ir.Module, name: str) -> None:
    """Runs a pass of StableHLO on the functions of a module; raises ir.MLIRError."""
    run_passes(module, f"func.func({name})")


def run_passes(module: ir.Module, text: str) -> None:
    """Runs passes on a module; raises ir.MLIRError."""
    _register_passes()
    pipeline = f"builtin.module({text})"
    passmanager.PassManager.parse(pipeline, module.context).run(module.operation)


def to_bytecode(artifact: bytes) -> bytes:
    """MLIR's bytecode of a portable artifact; raises ValueError for one that is damaged."""
    return _stablehlo.deserialize_portable_artifact_str(artifact)


def portable(module: ir.Module, version: str = NEWEST) -> bytes:
    """A portable artifact of a module; raises ValueError if that version cannot have it."""
    return _stablehlo.serialize_portable_artifact_str(str(module), version)


def evaluate(module: ir.Module, arguments: list[ir.Attribute]) -> list[ir.Attribute]:
    """The results of @main by StableHLO's own interpreter, a reference for tests.

    Raises ValueError or RuntimeError for what it does not run.
    """
    return _stablehlo.eval_module(module, arguments)
