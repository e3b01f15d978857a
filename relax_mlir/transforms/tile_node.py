"""Tiles leaves: a node over a grid becomes a node over tiles, of a node over a tile.

    %y = "graph.node"(%x, %w) {callee = @leaf, grid = ["n", "m"],
                               edges = ["one_to_one", "all_to_all"]}
      -> sizes=64,32
    %y = "graph.node"(%x, %w) {callee = @leaf_tile, grid = ["ceil(n/64)", "ceil(m/32)"],
                               edges = ["tiles", "all_to_all"], graph.extents = ["n", "m"]}
    @leaf_tile(%x: tensor<64x32>, %w):
      "graph.node"(%x, %w) {callee = @leaf_in_tile, grid = [64, 32],
                            edges = ["one_to_one", "all_to_all"]}

What a leaf asks about its own node is asked about all tiles; nodes around it are a level further
out. Where sizes are proved to divide the grid, loops over a tile have constant bounds; else the
last tiles are shorter. Without `leaves`, all leaves of as many dims are tiled, but for those whose
instances share memory, and those of several versions: `relax-map-nodes` comes first.

Needs: nothing; it checks the rules of nodes. Leaves: more nodes; results have the same bits, if the
    leaf gets the same schedule.
Source: HPVM, arXiv 1611.00860, section 3.4.
"""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from relax_mlir.analysis.devices import DEVICE
from relax_mlir.analysis.functions import facts_of
from relax_mlir.analysis.leaves import shared_parameters
from relax_mlir.analysis.node_versions import versions_of
from relax_mlir.analysis.nodes import has_nodes, is_leaf, piece_type, report_broken
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    EXTENTS,
    INTERNAL,
    MAX_GRID,
    ONE_TO_ONE,
    TILES,
    NodeOp,
    TensorType,
    annotation_of,
    to_mlir,
)
from relax_mlir.dialects.tir import VERSIONS, GlobalIdOp, GlobalSizeOp, NodeIdOp, Query
from relax_mlir.errors import UsageError
from relax_mlir.passes import Pass
from relax_mlir.rewriting import SymbolNames, replace, walk_ops
from relax_mlir.symbolic import Expr, Facts, as_expr, simplify

MAX_TILE = 1 << 16
"""Limit on the instances of a tile, which may each have a value in memory."""


@dataclass(frozen=True)
class TileNode(Pass):
    """Tiles leaves: a node over a grid becomes a node over tiles, of a node over a tile."""

    takes_tuples: ClassVar[bool] = True

    sizes: tuple[int, ...] = (64, 64)
    leaves: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        is_positive = all(size > 0 for size in self.sizes)
        if not 1 <= len(self.sizes) <= MAX_GRID or not is_positive or prod(self.sizes) > MAX_TILE:
            raise ValueError(
                f"sizes={','.join(map(str, self.sizes))} are none of a tile; expects 1 to "
                f"{MAX_GRID}, above 0, of at most {MAX_TILE} instances"
            )

    def run(self, op: ir.Operation) -> None:
        """Tiles every node of a leaf over as many dims as there are sizes, once."""
        if not has_nodes(op) or report_broken(op):
            return
        functions = functions_by_name(op)
        for name in self.leaves:
            if name not in functions or not is_leaf(functions[name]):
                raise UsageError(f"relax-tile-node has leaves={name}, which is no leaf")
        names = SymbolNames(op.regions[0].blocks[0])
        tiled: dict[tuple[object, ...], str] = {}
        for function in functions.values():
            in_tiles = {n.callee_name for n in walk_ops(op, NodeOp) if EXTENTS in n.attributes}
            if function.is_external or function.name.value in in_tiles:
                continue
            for node in walk_ops(function, NodeOp):
                leaf = functions[node.callee_name]
                if self._takes(node, leaf):
                    key = (node.callee_name, *node.edge_kinds)
                    if key not in tiled:
                        tiled[key] = _tile(leaf, node.edge_kinds, self.sizes, names)
                    _run_tiles(node, tiled[key], self.sizes, facts_of(function))
        run = {node.callee_name for node in walk_ops(op, NodeOp)}
        run |= {
            f.name.value for leaf in functions.values() for f in versions_of(leaf, functions)[1:]
        }
        for name in {str(name) for name, *_ in tiled} - run:
            functions[name].operation.erase()

    def _takes(self, node: NodeOp, leaf: func.FuncOp) -> bool:
        """Whether a node is tiled: one of each leaf, or of those named, of one version alone."""
        is_asked = not self.leaves or node.callee_name in self.leaves
        is_one = is_leaf(leaf) and VERSIONS not in leaf.attributes and not shared_parameters(leaf)
        return is_one and is_asked and len(node.extents) == len(self.sizes)


def _run_tiles(node: NodeOp, tile: str, sizes: tuple[int, ...], facts: Facts) -> None:
    """Replaces a node by one over tiles."""
    grid = [
        simplify((extent + size - 1) // size, facts) for extent, size in zip(node.extents, sizes)
    ]
    kinds = [TILES if kind == ONE_TO_ONE else kind for kind in node.edge_kinds]
    with ir.InsertionPoint(node), node.location:
        outs = [annotation_of(value) for value in node.outs]
        tiles = NodeOp.build(tile, list(node.ins), kinds, grid, outs, node.extents)
        tiles.mark_streams(node.streams)
        if DEVICE in node.attributes:
            tiles.operation.attributes[DEVICE] = node.attributes[DEVICE]
        replace(node, tiles)


def _tile(
    leaf: func.FuncOp, kinds: tuple[str, ...], sizes: tuple[int, ...], names: SymbolNames
) -> str:
    """Writes the internal node of a tile, and the leaf in it; the name of the former."""
    extents: tuple[Expr, ...] = tuple(map(as_expr, sizes))

    def whole(type_: ir.Type) -> TensorType:
        piece = piece_type(type_)
        return TensorType((*extents, *(piece.dims or ())), piece.element)

    parameters = [
        whole(type_) if kind == ONE_TO_ONE else piece_type(type_)
        for type_, kind in zip(leaf.type.inputs, kinds, strict=True)
    ]
    results = [whole(type_) for type_ in leaf.type.results]
    inner = _in_tile(leaf, names.fresh(f"{leaf.name.value}_in_tile"))
    name = names.fresh(f"{leaf.name.value}_tile")
    types = ([to_mlir(t) for t in parameters], [to_mlir(t) for t in results])
    with ir.InsertionPoint(leaf), leaf.location:
        function = func.FuncOp(name, types, visibility="private")
        function.attributes[INTERNAL] = ir.UnitAttr.get()
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            node = NodeOp.build(inner, list(block.arguments), kinds, extents, results)
            func.ReturnOp(list(node.outs))
    return name


def _in_tile(leaf: func.FuncOp, name: str) -> str:
    """Writes the leaf as one in a tile."""
    with ir.InsertionPoint(leaf):
        inner = leaf.operation.clone().opview
    inner.attributes["sym_name"] = ir.StringAttr.get(name)
    for query in walk_ops(inner, Query):
        level, dim = query.position
        is_own = level == 0
        kind = type(query)
        if is_own:
            kind = GlobalIdOp if isinstance(query, NodeIdOp) else GlobalSizeOp
        with ir.InsertionPoint(query), query.location:
            replace(query, kind.build(0 if is_own else level + 1, dim))
    return name
