"""Operands of TOSA that have to be constants: zero points, shifts, elements of padding."""

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.data import elements_of
from relax_mlir.dialects.graph import ShapeError


def constant_of(value: ir.Value, what: str) -> list[int]:
    """The integers of a constant operand; raises ShapeError for another one."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in ("tosa.const", "arith.constant"):
        raise ShapeError(f"has {what} that is computed; expects a constant")
    name = "values" if owner.name == "tosa.const" else "value"
    elements = np.asarray(elements_of(owner.attributes[name])).reshape(-1)
    return [int(each) for each in elements]


def integer_of(value: ir.Value, what: str) -> int:
    """The one integer of a constant operand."""
    values = constant_of(value, what)
    if len(set(values)) != 1:
        raise ShapeError(f"has {what} of {len(values)} elements; expects one")
    return values[0]


def require_propagation(op: ir.Operation) -> None:
    """Raises ShapeError unless a NaN operand makes a NaN result."""
    if "nan_mode" in op.attributes and "IGNORE" in str(op.attributes["nan_mode"]):
        raise ShapeError("ignores NaN; expects nan_mode = PROPAGATE")
