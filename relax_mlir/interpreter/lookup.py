"""Looks up the function that computes an op, by the op's name."""

import inspect
import keyword
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from relax_mlir.bindings import arith, arities, ir
from relax_mlir.dialects.graph import GraphOp
from relax_mlir.dialects.tir import FUNCTION, LEAF, PrimFunc

from .constants import constant_value
from .elements import Read, exact, stored
from .operators import nn

TERMINATORS = (
    *("func.return", "scf.yield", "scf.condition", "scf.reduce", "linalg.yield"),
    *("gpu.return", "gpu.terminator"),
)


def find(op: ir.OpView) -> tuple[Callable[..., Any], Read] | None:
    """The function that computes an op, and how it reads operands; None if there is none."""
    if isinstance(op, arith.ConstantOp):
        value = constant_value(op.attributes["value"])
        return lambda: value, stored
    if FUNCTION in op.attributes:
        return _named(ir.StringAttr(op.attributes[FUNCTION]).value), exact
    dialect, _, name = arities.plain_name(op.operation).partition(".")
    if isinstance(op, GraphOp) and op.has_rule():
        return find_operator(type(op))
    module = _module(f"{__package__}.dialects.{dialect}")
    function = _member(module, name) or _member(module, "any_op")
    if function is None:
        return None
    if name in getattr(module, "DIVISIONS", ()) and _is_in_program(op.operation):
        function = module.total(function)
    if name in getattr(module, "CLAMPED", ()) and LEAF in _function_of(op.operation).attributes:
        function = module.clamped(function)
    return function, module.read


def _is_in_program(op: ir.Operation) -> bool:
    """Whether an op is part of a tensor program, or of a leaf, which becomes one."""
    function = _function_of(op)
    return PrimFunc.is_prim_func(function.opview) or LEAF in function.attributes


def _function_of(op: ir.Operation) -> ir.Operation:
    """The function that an op is in; the outermost op if there is none."""
    while op.parent is not None and op.name != "func.func":
        op = op.parent.operation
    return op


def _named(function: str) -> Callable[..., Any]:
    """The function that `tir.function` names, of the op's operands."""
    if function == "logaddexp":  # the plain arithmetic is accurate enough
        return np.add
    activation = getattr(nn, f"nn_{function}")
    return lambda x, _: activation(x)


def find_operator(kind: type[GraphOp]) -> tuple[Callable[..., Any], Read] | None:
    """The function that computes an operator, and how it reads operands.

    It is in the file of `operators` with the name of the operator's own file. For an operator from
    outside this project it may be in the module of the class.
    """
    name = kind.OPERATION_NAME.partition(".")[2]
    family = kind.__module__.rpartition(".")[2]
    for module in (_module(f"{__package__}.operators.{family}"), sys.modules[kind.__module__]):
        if (function := _member(module, name)) is not None:
            return function, getattr(module, "read", exact)
    return None


def is_known(op: ir.OpView) -> bool:
    """Whether an op is supported, or is only structure around others."""
    return op.operation.name in (*TERMINATORS, "func.func") or find(op) is not None


@cache
def parameters(function: Callable[..., Any]) -> tuple[bool, list[str]]:
    """Whether a function takes the frame, and the names of its keyword parameters."""
    if isinstance(function, np.ufunc):
        return False, []
    try:
        kinds = {name: p.kind for name, p in inspect.signature(function).parameters.items()}
    except ValueError:  # a NumPy ufunc
        return False, []
    named = [name for name, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY]
    return "frame" in kinds, named


def _member(module: ModuleType, name: str) -> Callable[..., Any] | None:
    plain = name.replace(".", "_")
    return getattr(module, f"{plain}_" if keyword.iskeyword(plain) else plain, None)


@cache
def _module(name: str) -> ModuleType:
    """A module; an empty one if there is none of that name."""
    return ModuleType(name) if find_spec(name) is None else import_module(name)
