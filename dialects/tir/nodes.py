"""What an instance of a dataflow node may ask about the nodes around it, and do with the others."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir

from .dialect import Tir

LEAF = "tir.leaf"
"""On a private function: the program of one instance of a dataflow node."""
OF_LEAF = "tir.of_leaf"
"""On a tensor program: it is of a leaf; a device keeps its own tensors near its threads."""
TARGETS = "tir.targets"
"""On a leaf: what it is written for, as ["vulkan", "cpu"], the best first; without, for all."""
VERSIONS = "tir.versions"
"""On a leaf: other leaves that compute the same, as [@blur_on_device]."""
TILE = "tir.tile"
"""On an op over a grid: how many indices of each dim a tile has; a hint."""
WHOLE_TILES = "tir.whole_tiles"
"""With it: for which dims all tiles are proved to be whole."""
ACCESS = "tir.access"
"""On a tensor that a leaf takes: "in", or "inout" if the leaf stores to it and returns it, or
"shared" if all instances update it."""
IN, INOUT, SHARED = "in", "inout", "shared"
EXCHANGE = "exchange"
ATOMIC_KINDS = ("add", "sub", "min", "max", "and", "or", "xor", EXCHANGE)


class Query(Tir.Operation):
    """A query of one dim of the grid of a node: level 0 is the leaf's, 1 that of its parent, ..."""

    @classmethod
    def build(cls, level: int, dim: int) -> ir.Value:
        """Asks at the insertion point."""
        i64 = ir.IntegerType.get_signless(64)
        attributes = {"level": ir.IntegerAttr.get(i64, level), "dim": ir.IntegerAttr.get(i64, dim)}
        made = ir.Operation.create(
            cls.OPERATION_NAME, results=[ir.IndexType.get()], attributes=attributes
        )
        return made.results[0]

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


class AtomicOp(Tir.Operation, name="atomic", traits=[ext.Pure]):
    """A tensor that all instances share, with one element updated; an index outside does nothing.

        %1 = "tir.atomic"(%x, %bins, %i) {kind = "add"}      bins[i] = bins[i] + x

    Updates of all instances are in the result of the node, and of the next barrier. Nobody gets the
    element that was there, so their order does not matter: `analysis/shared_memory.py` has the
    rules. "min" and "max" are of signed integers, sums wrap, "exchange" stores the value.

    Source: HPVM, arXiv 1611.00860, section 3.2.
    """

    result: ext.Result[Any]
    value: ext.Operand[Any]
    dest: ext.Operand[Any]
    indices: Sequence[ext.Operand[ir.IndexType]]
    kind: ir.StringAttr = ext.attribute(kw_only=True)

    @classmethod
    def build(
        cls, kind: str, value: ir.Value, dest: ir.Value, indices: Sequence[ir.Value]
    ) -> "AtomicOp":
        """Creates the update at the insertion point."""
        segments = ir.DenseI32ArrayAttr.get([1, 1, len(indices)])
        return ir.Operation.create(
            cls.OPERATION_NAME,
            results=[dest.type],
            operands=[value, dest, *indices],
            attributes={"kind": ir.StringAttr.get(kind), "operandSegmentSizes": segments},
        ).opview

    @property
    def kind_name(self) -> str:
        """The kind, one of `ATOMIC_KINDS`."""
        return ir.StringAttr(self.attributes["kind"]).value

    @property
    def kind_class(self) -> str:
        """The kind; updates of one class commute."""
        return "add" if self.kind_name == "sub" else self.kind_name


class BarrierOp(Tir.Operation, name="barrier", traits=[ext.Pure]):
    """A shared tensor of a leaf when all instances of its node have come here.

        %bins_2 = "tir.barrier"(%bins_1)

    If there are several shared tensors, those of all stand together.

    Source: HPVM, arXiv 1611.00860, section 3.2.
    """

    result: ext.Result[Any]
    before: ext.Operand[Any]

    @classmethod
    def build(cls, before: ir.Value) -> "BarrierOp":
        """Creates the barrier at the insertion point."""
        return ir.Operation.create(
            cls.OPERATION_NAME, results=[before.type], operands=[before]
        ).opview
