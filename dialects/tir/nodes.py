"""What an instance of a dataflow node may ask about itself and the nodes around it."""

from typing import Any

from relax_mlir.bindings import ext, ir

from .dialect import Tir

LEAF = "tir.leaf"
"""On a private function: the program of one instance of a dataflow node."""
TARGETS = "tir.targets"
"""On a leaf: what it is written for, as ["vulkan", "cpu"], the best first; without, for all."""
VERSIONS = "tir.versions"
"""On a leaf: other leaves that compute the same, as [@blur_on_device]."""
TILE = "tir.tile"
"""On an op over a grid: how many indices of each dim a tile has; a hint."""
WHOLE_TILES = "tir.whole_tiles"
"""With it: for which dims all tiles are proved to be whole."""
ACCESS = "tir.access"
"""On a tensor that a leaf takes: "in", or "inout" if the leaf stores to it and returns it."""
IN, INOUT = "in", "inout"


class Query(Tir.Operation):
    """A query of one dim of the grid of a node: level 0 is the leaf's, 1 that of its parent, ..."""

    @property
    def position(self) -> tuple[int, int]:
        """Level and dim."""
        level, dim = (ir.IntegerAttr(self.attributes[name]) for name in ("level", "dim"))
        return level.value, dim.value


class NodeIdOp(Query, name="node_id", traits=[ext.Pure]):
    """The index of the instance in a dim of the grid of a node."""

    result: ext.Result[Any]
    level: ir.IntegerAttr
    dim: ir.IntegerAttr


class GridSizeOp(Query, name="grid_size", traits=[ext.Pure]):
    """The extent of a dim of the grid of a node."""

    result: ext.Result[Any]
    level: ir.IntegerAttr
    dim: ir.IntegerAttr


class GlobalIdOp(Query, name="global_id", traits=[ext.Pure]):
    """The index in what all tiles cover: of an instance of a node in a tile (`graph.extents`)."""

    result: ext.Result[Any]
    level: ir.IntegerAttr
    dim: ir.IntegerAttr


class GlobalSizeOp(Query, name="global_size", traits=[ext.Pure]):
    """The extent that all tiles cover in a dim: of a node in a tile."""

    result: ext.Result[Any]
    level: ir.IntegerAttr
    dim: ir.IntegerAttr
