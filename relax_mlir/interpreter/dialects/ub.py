"""Undefined behaviour, as far as it has results."""

from typing import Any

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.elements import garbage
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame
from relax_mlir.interpreter.step import element_of

__all__ = ["read"]


def poison(frame: Frame, op: ir.OpView) -> Any:
    """Anything; bits that show if they are used."""
    type_ = op.operation.results[0].type
    shape = type_.shape if isinstance(type_, ir.ShapedType) else ()
    found = garbage(shape, element_of(op.operation.results[0]))
    return int(found) if isinstance(type_, ir.IndexType) else np.asarray(found)[()]
