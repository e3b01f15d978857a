"""Hierarchical dataflow: a node runs a function once for each index of a grid."""

from collections.abc import Sequence

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import Expr

from .annotations import Annotation, to_mlir
from .calls import _Call
from .dialect import ShapeAttr
from .types import Dim, ShapeError, dims_of_attr, shape_attr

INTERNAL = "graph.internal_node"
"""On a private graph function of nodes only: each instance is a dataflow graph of its own."""
ONE_TO_ONE, ALL_TO_ALL, TILES = "one_to_one", "all_to_all", "tiles"
EDGES = (ONE_TO_ONE, ALL_TO_ALL, TILES)
EXTENTS = "graph.extents"
"""On a node whose instances are tiles: the extents that they cover, the last in part."""
STREAMS = "graph.streams"
"""On a node: which operands are items of a stream, as array<i1: true, false>."""
MAX_GRID = 3
"""Most dims of one node's grid."""


class NodeOp(_Call, name="node", traits=[ext.Pure]):
    """Runs a leaf, or an internal node, once for each index of a grid, in any order or at once.

        %y = "graph.node"(%x, %w) {callee = @scale, grid = #graph.shape<["n", 4]>,
                                   edges = ["one_to_one", "all_to_all"]}

    A result of the node is a tensor of what instances return, with the grid's dims in front. By an
    edge `one_to_one` an instance gets the part of a tensor at its own index, by `all_to_all` the
    whole tensor, so that no instance begins before all of the producer have ended.

    A node with `graph.extents` runs tiles: its callee is one node over a static grid, and instance
    i has the indices from i times that grid on. By an edge `tiles` it gets the tile of a tensor,
    with zeros beyond the extents; of its results, what is beyond is dropped.

        %y = "graph.node"(%x, %w) {callee = @scale_tiles, grid = #graph.shape<["ceil(n/64)", 4]>,
                                   edges = ["tiles", "all_to_all"],
                                   graph.extents = #graph.shape<["n", 16]>}

    C1  the callee is a function with the attribute `tir.leaf` or `graph.internal_node`
    C2  the grid has up to 3 dims, all known and none provably negative
    C3  `edges` has one entry per operand, "one_to_one", "all_to_all" or, of tiles, "tiles"
    C4  there is one operand per parameter, of its element type and rank, and one result per result
    C5  the leading dims of an operand "one_to_one" are proved equal to the grid
    C6  other dims agree with the callee's, symbols substituted
    C7  results have the dims of the grid, then those that the callee returns; tensors that its
        instances share have these alone
    C8  no node contains itself
    C9  ids and sizes that an instance asks for are of a dim of that node
    C10 operands that the leaf stores to, which are `inout`, are passed by "one_to_one"
    C11 the callee of a node with `graph.extents` is an internal node of one node, over as many
        dims, all static and not 0, whose results it returns
    C12 the grid of tiles is proved to be the extents, divided by that grid and rounded up
    C13 the leading dims of an operand "tiles" are proved equal to the extents
    C14 in a tile, operands "tiles" are passed on by "one_to_one", others are "all_to_all" to both
    C15 operands that are `shared`, or that `tir.atomic` exchanges, are passed by "all_to_all"
    C16 `graph.streams`, of a node of a graph function, has one entry per operand

    By an edge of `graph.streams` items pass a bounded queue where the function runs as a stream, of
    stages that `relax-split-streams` makes; a call computes the same.

    Source: HPVM, arXiv 1611.00860, sections 3.1 and 3.2.
    """

    callee: ir.FlatSymbolRefAttr = ext.attribute(kw_only=True)
    grid: ShapeAttr = ext.attribute(kw_only=True)
    edges: ir.ArrayAttr = ext.attribute(kw_only=True)

    @classmethod
    def build(
        cls,
        callee: str,
        ins: Sequence[ir.Value],
        edges: Sequence[str],
        grid: Sequence[Dim | int | str],
        out_types: Sequence[Annotation],
        covered: Sequence[Dim | int | str] | None = None,
    ) -> "NodeOp":
        """Creates the node at the insertion point; instances are tiles if `covered` is given."""
        attributes = {
            "callee": ir.FlatSymbolRefAttr.get(callee),
            "grid": shape_attr(grid),
            "edges": ir.ArrayAttr.get([ir.StringAttr.get(edge) for edge in edges]),
        }
        node = cls.create(ins, [to_mlir(type_) for type_ in out_types], attributes)
        if covered is not None:
            node.operation.attributes[EXTENTS] = shape_attr(covered)
        return node

    @property
    def extents(self) -> tuple[Expr, ...]:
        """The dims of the grid; raises ShapeError if they are no extents."""
        dims = dims_of_attr(ShapeAttr(self.attributes["grid"]).dims)
        known = tuple(dim for dim in dims if dim is not None)
        if len(dims) > MAX_GRID or len(known) < len(dims):  # C2
            grid = self.attributes["grid"]
            raise ShapeError(f"expects a grid of at most {MAX_GRID} known dims, but got {grid}")
        for dim in known:
            high = dim.range[1]
            if high is not None and high < 0:  # C2
                raise ShapeError(f"has a grid of the extent {dim}, which is negative")
        return known

    @property
    def edge_kinds(self) -> tuple[str, ...]:
        """How each operand reaches instances; raises ShapeError if the attribute is malformed."""
        known = EDGES if EXTENTS in self.attributes else EDGES[:2]
        entries = list(ir.ArrayAttr(self.attributes["edges"]))
        kinds = tuple(entry.value for entry in entries if isinstance(entry, ir.StringAttr))
        if len(entries) != len(self.ins) or any(kind not in known for kind in kinds):
            kinds = ()
        if len(kinds) != len(self.ins):  # C3
            raise ShapeError(
                f"expects 'edges' with {' or '.join(known)} for each of {len(self.ins)} operands, "
                f"but got {self.attributes['edges']}"
            )
        return kinds

    @property
    def covered(self) -> tuple[Expr, ...] | None:
        """What tiles cover; None if instances are no tiles. Raises ShapeError if malformed."""
        if EXTENTS not in self.attributes:
            return None
        attribute = self.attributes[EXTENTS]
        dims = dims_of_attr(attribute.dims) if isinstance(attribute, ShapeAttr) else ()
        known = tuple(dim for dim in dims if dim is not None)
        if not known or len(known) < len(dims) or len(dims) != len(self.extents):  # C11
            raise ShapeError(
                f"has '{EXTENTS}' {attribute}; expects a known dim for each of the grid, "
                f"{self.attributes['grid']}"
            )
        return known

    @property
    def streams(self) -> list[bool]:
        """Which operands are items of a stream; raises ShapeError if the attribute is malformed."""
        if STREAMS not in self.attributes:
            return [False] * len(self.ins)
        attribute = self.attributes[STREAMS]
        is_array = isinstance(attribute, ir.DenseBoolArrayAttr)
        if not is_array or len(attribute) != len(self.ins):  # C16
            raise ShapeError(
                f"has '{STREAMS}' {attribute}; expects array<i1: ...> of {len(self.ins)} operands"
            )
        return list(attribute)

    def mark_streams(self, streams: Sequence[bool]) -> None:
        """Says which operands are items of a stream."""
        if any(streams):
            self.operation.attributes[STREAMS] = ir.DenseBoolArrayAttr.get(list(streams))

    def check(self) -> None:
        """Raises ShapeError if grid or edges are malformed; `analysis/nodes.py` checks the rest."""
        _ = self.extents, self.edge_kinds, self.covered, self.streams


def stage_name(function: str, index: int) -> str:
    """The name of a stage of a function with streams."""
    return f"{function}_stage_{index}"
