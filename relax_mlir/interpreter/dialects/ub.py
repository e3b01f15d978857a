"""Undefined values."""

from typing import Any

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.elements import garbage
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame
from relax_mlir.interpreter.step import element_of

__all__ = ["read"]


def poison(frame: Frame, op: ir.OpView) -> Any:
    """Garbage bits, which show if they are used."""
    type_ = op.operation.results[0].type
    shape = type_.shape if isinstance(type_, ir.ShapedType) else ()
    value = garbage(shape, element_of(op.operation.results[0]))
    return int(value) if isinstance(type_, ir.IndexType) else np.asarray(value)[()]
