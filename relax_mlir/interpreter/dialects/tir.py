"""What instances of dataflow nodes ask about the grids around them."""

from __future__ import annotations

from relax_mlir.dialects.tir import GridSizeOp, NodeIdOp
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame

__all__ = ["read"]


def node_id(frame: Frame, op: NodeIdOp) -> int:
    """The index of the instance, or of one around it."""
    level, dim = op.position
    return frame.grids[level][0][dim]


def grid_size(frame: Frame, op: GridSizeOp) -> int:
    """The extent of a dim of a grid."""
    level, dim = op.position
    return frame.grids[level][1][dim]
