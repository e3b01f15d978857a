"""Lowers dataflow nodes to calls of tensor programs: hierarchy becomes longer grids.

    %y = "graph.node"(%x) {callee = @tile, grid = ["n"], edges = ["one_to_one"]}
    @tile: %0 = "graph.node"(%t) {callee = @leaf, grid = [4], edges = ["all_to_all"]}
      ->
    %y = "graph.call_tir"(%x) {callee = @leaf_1}      whose loops are those of the grid [n, 4]

A value in an internal node is a tensor with a part for each instance around it: which axes of the
grid index it first is known of each value, so an internal node needs no code of its own. Equal
nodes share a program. Tiles become no longer grid: their sizes are a hint for the schedule. Calls
are on the device that `graph.device` of a node names, or that of the node around it.

Needs: `relax-split-leaves`; it checks the rules of nodes. Leaves: no nodes; tensor programs, which
    fuse as those of operators do.
Source: HPVM, arXiv 1611.00860, section 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from relax_mlir.analysis.devices import DEVICE
from relax_mlir.analysis.functions import facts_of
from relax_mlir.analysis.leaves import shared_parameters, updated_parameters
from relax_mlir.analysis.nodes import (
    Binding,
    bind,
    has_nodes,
    is_internal,
    is_leaf,
    report_broken,
    tiles_of,
)
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir
from relax_mlir.conversion.safety import define_results
from relax_mlir.dialects.graph import (
    ALL_TO_ALL,
    CallTirInplaceOp,
    CallTirOp,
    NodeOp,
    RequireOp,
    TensorType,
)
from relax_mlir.dialects.tir import OF_LEAF
from relax_mlir.legalize import KernelBuilder
from relax_mlir.legalize.leaves import Axes, Grid, Level, emit_leaf
from relax_mlir.legalize.shared_leaves import emit_shared_leaf
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import SymbolNames, safe_erase, walk_ops
from relax_mlir.symbolic import Expr, Fact, Facts, at_most

MAX_CALLS = 4096
"""Limit on the calls that one function's nodes become: a hierarchy may double at each level."""


@dataclass(frozen=True)
class LowerDataflow(Pass):
    """Lowers dataflow nodes to calls of tensor programs: hierarchy becomes longer grids."""

    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Checks and expands every node, and erases leaves and internal nodes."""
        if not has_nodes(op) or report_broken(op):
            return
        functions = functions_by_name(op)
        nodes = {name for name, f in functions.items() if is_leaf(f) or is_internal(f)}
        for name in nodes:
            define_results(functions[name])
        programs = _Programs(op.regions[0].blocks[0])
        for name, function in functions.items():
            if name not in nodes and not function.is_external:
                lowering = _Lowering(functions, programs, facts_of(function))
                for node in walk_ops(function, NodeOp):
                    lowering.lower(node)
        for name in nodes:
            functions[name].operation.erase()


@dataclass(frozen=True)
class _Part:
    """A value of which each instance has the part at its indices of some axes of the grid."""

    value: ir.Value
    annotation: TensorType
    axes: Axes

    @property
    def own(self) -> TensorType:
        """What an instance has of it."""
        return TensorType((self.annotation.dims or ())[len(self.axes) :], self.annotation.element)


@dataclass
class _Programs:
    """The tensor programs of leaves, by all that they depend on."""

    block: ir.Block
    known: dict[tuple, tuple[str, tuple[Expr, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = SymbolNames(self.block)

    def of(
        self,
        leaf: func.FuncOp,
        grid: Grid,
        ins: Sequence[_Part],
        outs: Sequence[TensorType],
        facts: Facts,
        updated: Sequence[int],
    ) -> tuple[str, tuple[Expr, ...]]:
        """The name of the program of a leaf over a grid, and the sizes that calls pass.

        `updated` inputs are in its outputs.
        """
        name, axes = leaf.name.value, [part.axes for part in ins]
        types = [part.annotation for part in ins]
        key = (name, grid, *axes, *types, *outs, facts, tuple(updated))
        if key not in self.known:
            fresh = self.names.fresh(f"{name}_node")
            with leaf.location:
                read = [type_ for i, type_ in enumerate(types) if i not in updated]
                kernel = KernelBuilder(fresh, read, outs, self.block)
                kernel.attribute(OF_LEAF, ir.UnitAttr.get())
                shared = shared_parameters(leaf)
                with kernel.insertion_point:
                    if shared:
                        emit_shared_leaf(kernel, leaf, grid, axes, facts, shared)
                    else:
                        emit_leaf(kernel, leaf, grid, axes, facts, updated)
            self.known[key] = fresh, kernel.sym_args
        return self.known[key]


@dataclass
class _Lowering:
    """The nodes of one function."""

    functions: dict[str, func.FuncOp]
    programs: _Programs
    facts: Facts
    calls: int = 0

    def lower(self, node: NodeOp) -> None:
        """Replaces a node by calls."""
        ins = [_Part(x, TensorType.of(x).storage, ()) for x in node.ins]
        with ir.InsertionPoint(node), node.location:
            outs = self._expand(node, ins, {}, Grid((), ()), None)
        for old, new in zip(node.outs, outs, strict=True):
            old.replace_all_uses_with(new.value)
        safe_erase(node)

    def _expand(
        self,
        node: NodeOp,
        ins: Sequence[_Part],
        symbols: dict[str, Expr],
        around: Grid,
        device: ir.Attribute | None,
    ) -> list[_Part]:
        """Writes the calls of a node; `symbols` are those of its function in the outermost one.

        `device` is that of the node around it.
        """
        callee = self.functions[node.callee_name]
        device = node.attributes[DEVICE] if DEVICE in node.attributes else device
        tiles, edges = tiles_of(node, self.functions), node.edge_kinds
        extents = node.extents if tiles is None else tiles.covered
        extents = tuple(extent.substitute(symbols) for extent in extents)
        first = len(around.extents)
        own = range(first, first + len(extents))
        levels = [Level(own)]
        if tiles is not None:
            levels = [Level(own, tiles.sizes, is_inside=True), Level(own, tiles.sizes)]
        grid = Grid((*around.extents, *extents), (*levels, *around.levels))
        seen = [
            part if edge == ALL_TO_ALL else replace(part, axes=(*part.axes, *own))
            for part, edge in zip(ins, edges, strict=True)
        ]
        if tiles is not None:
            node, seen = _in_tile(callee, seen)
            callee = self.functions[node.callee_name]
        binding = bind(callee, [part.own for part in seen])
        if is_leaf(callee):
            return self._call(node, callee, grid, seen, binding, device)
        values = dict(zip(callee.arguments, seen, strict=True))
        *inner, terminator = list(callee.entry_block.operations)
        for op in inner:
            assert isinstance(op, NodeOp), op
            parts = [values[value] for value in op.ins]
            made = self._expand(op, parts, dict(binding.values), grid, device)
            values.update(zip(op.outs, made, strict=True))
        return [
            _Part(part.value, part.annotation, tuple(range(first)))
            for part in (values[value] for value in terminator.operands)
        ]

    def _call(
        self,
        node: NodeOp,
        leaf: func.FuncOp,
        grid: Grid,
        ins: Sequence[_Part],
        binding: Binding,
        device: ir.Attribute | None,
    ) -> list[_Part]:
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise PassFailure(node, f"is part of a hierarchy of more than {MAX_CALLS} leaves")
        first = len(grid.extents) - len(grid.levels[0].axes)
        around, own = grid.extents[:first], grid.extents[first:]
        outs = [TensorType((*around, *(t.dims or ())), t.element) for t in binding.results(own)]
        if binding.shared:
            self._require(own, node)
        updated = _updated_in_place(leaf, grid, ins)
        name, sizes = self.programs.of(leaf, grid, ins, outs, self.facts, updated)
        values = [part.value for part in ins]
        call: CallTirOp | CallTirInplaceOp
        if updated:
            outputs = [*updated, *[-1] * (len(outs) - len(updated))]
            call = CallTirInplaceOp.build(name, values, outputs, outs, sizes)
        else:
            call = CallTirOp.build(name, values, outs, sizes)
        if device is not None:
            call.attributes[DEVICE] = device
        axes = tuple(range(len(around)))
        return [_Part(x, out, axes) for x, out in zip(call.outs, outs, strict=True)]

    def _require(self, extents: Sequence[Expr], node: NodeOp) -> None:
        """Has a call refuse a grid that is negative, if no result has its dims."""
        for extent in extents:
            if not at_most(0, extent, self.facts).proved:
                RequireOp.build([Fact(extent, ">=", Expr())], f"@{node.callee_name}")


def _in_tile(tile: func.FuncOp, seen: Sequence[_Part]) -> tuple[NodeOp, list[_Part]]:
    """The node of a tile, and what its instances get: grids of tiles and in tiles are one."""
    node = tile.entry_block.operations[0]
    assert isinstance(node, NodeOp), node
    return node, [seen[ir.BlockArgument(value).arg_number] for value in node.ins]


def _updated_in_place(leaf: func.FuncOp, grid: Grid, ins: Sequence[_Part]) -> list[int]:
    """The parameters that instances update where they are; none if two instances share a part."""
    updated, every_axis = updated_parameters(leaf), tuple(range(len(grid.extents)))
    own = all(ins[i].axes == every_axis for i in updated)
    once = len({ins[i].value for i in updated}) == len(updated)
    return updated if own and once else []
