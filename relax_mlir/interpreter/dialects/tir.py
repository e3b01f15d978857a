"""What instances of dataflow nodes ask about the grids around them."""

from __future__ import annotations

from relax_mlir.dialects.tir import GlobalIdOp, GlobalSizeOp, GridSizeOp, NodeIdOp
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame

__all__ = ["read"]


def node_id(frame: Frame, op: NodeIdOp) -> int:
    """The index of the instance, or of one around it."""
    level, dim = op.position
    return frame.grids[level].ids[dim]


def grid_size(frame: Frame, op: GridSizeOp) -> int:
    """The extent of a dim of a grid."""
    level, dim = op.position
    return frame.grids[level].extents[dim]


def global_id(frame: Frame, op: GlobalIdOp) -> int:
    """The index in what tiles cover."""
    level, dim = op.position
    own, tile = frame.grids[level], frame.grids[level + 1]
    return tile.ids[dim] * own.extents[dim] + own.ids[dim]


def global_size(frame: Frame, op: GlobalSizeOp) -> int:
    """The extent that tiles cover."""
    level, dim = op.position
    return frame.grids[level + 1].covered[dim]
