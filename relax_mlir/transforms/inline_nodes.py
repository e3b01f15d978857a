"""Makes leaves of internal nodes: nodes in it become loops, and edges between them its own memory.

    @tile(%x): %0 = "graph.node"(%x) {callee = @a, grid = [16], edges = ["all_to_all"]}
               %1 = "graph.node"(%0) {callee = @b, grid = [], edges = ["all_to_all"]}
               return %1
      ->
    @tile(%x) {tir.leaf}: %0 = scf.for %i = 0 to 16 iter_args(tensor<16xf32>) { a at %i }
                          b on %0

Instead of a tensor of all instances of `@tile`, a value between its nodes is then memory that a
thread takes once, for one instance at a time: what allocation nodes are in HPVM. Grids in the node
are static and have instances, and its nodes are of leaves of one version that share no memory;
other nodes stay as they are. Without `nodes`, all internal nodes are made leaves, inner ones first.

Needs: nothing; it checks the rules of nodes. Leaves: fewer internal nodes; results have the same
    bits.
Source: HPVM, arXiv 1611.00860, section 3.3; loops around work items, Karrenberg and Hack, 2011.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.leaves import shared_parameters, updated_parameters
from relax_mlir.analysis.nodes import has_nodes, is_internal, is_leaf, report_broken
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import arith, func, ir, scf, tensor
from relax_mlir.dialects.graph import EXTENTS, INTERNAL, ONE_TO_ONE, NodeOp
from relax_mlir.dialects.tir import LEAF, VERSIONS, GridSizeOp, NodeIdOp, Query
from relax_mlir.errors import UsageError
from relax_mlir.passes import Pass
from relax_mlir.rewriting import copy_op, walk_ops

Values = list[ir.Value]


@dataclass(frozen=True)
class InlineNodes(Pass):
    """Makes leaves of internal nodes: nodes become loops, edges between them its own memory."""

    takes_tuples: ClassVar[bool] = True

    nodes: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        """Makes leaves of internal nodes until there is none that can be, of those asked for."""
        if not has_nodes(op) or report_broken(op):
            return
        functions = functions_by_name(op)
        for name in self.nodes:
            if name not in functions or not is_internal(functions[name]):
                raise UsageError(f"relax-inline-nodes has nodes={name}, which is no internal node")
        tiles = {node.callee_name for node in walk_ops(op, NodeOp) if EXTENTS in node.attributes}
        asked = [name for name in self.nodes or functions if name not in tiles]
        inlined: set[str] = set()
        while True:
            ready = next((x for x in asked if _is_ready(functions[x], functions)), None)
            if ready is None:
                break
            inlined |= {node.callee_name for node in walk_ops(functions[ready], NodeOp)}
            _make_leaf(functions[ready], functions)
        run = {node.callee_name for node in walk_ops(op, NodeOp)}
        for name in inlined - run:
            functions[name].operation.erase()


def _is_ready(function: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> bool:
    """Whether a function is an internal node of nodes that can be loops."""
    if not is_internal(function):
        return False
    return all(_may_be_loops(node, functions) for node in walk_ops(function, NodeOp))


def _may_be_loops(node: NodeOp, functions: Mapping[str, func.FuncOp]) -> bool:
    leaf = functions[node.callee_name]
    if not is_leaf(leaf) or VERSIONS in leaf.attributes or shared_parameters(leaf):
        return False
    pieces = [x for x, kind in zip(node.ins, node.edge_kinds) if kind == ONE_TO_ONE]
    is_static = all(ir.RankedTensorType(x.type).has_static_shape for x in [*pieces, *node.outs])
    return is_static and EXTENTS not in node.attributes and all(x.value for x in node.extents)


def _make_leaf(function: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> None:
    """Replaces the nodes of an internal node."""
    *nodes, end = list(function.entry_block.operations)
    values: dict[ir.Value, ir.Value] = {x: x for x in function.arguments}
    for node in nodes:
        assert isinstance(node, NodeOp), node
        leaf = functions[node.callee_name].operation.clone().opview
        for query in walk_ops(leaf, Query):  # out of loops and branches
            query.operation.move_before(leaf.entry_block.operations[0].operation)
        with ir.InsertionPoint(end), node.location:
            made = _Inlined(node, leaf, values).emit()
        leaf.operation.erase()
        values.update(zip(node.outs, made, strict=True))
    for index, value in enumerate(end.operands):
        end.operation.operands[index] = values[value]
    for node in reversed(nodes):
        node.operation.erase()
    del function.attributes[INTERNAL]
    function.attributes[LEAF] = ir.UnitAttr.get()


@dataclass(frozen=True)
class _Inlined:
    """A node of a leaf as loops; `values` are what its operands are now."""

    node: NodeOp
    leaf: func.FuncOp
    values: dict[ir.Value, ir.Value]

    def emit(self) -> Values:
        """The loops over the grid, around the leaf; the results, as tensors without symbols."""
        kinds = [ir.RankedTensorType(out.type) for out in self.node.outs]
        empty = [tensor.EmptyOp(kind.shape, kind.element_type).result for kind in kinds]
        grid = [extent.value or 0 for extent in self.node.extents]
        return _loops(grid, empty, self._instance)

    def _instance(self, ids: Values, results: Values) -> Values:
        """Computes an instance, and stores what it returns."""
        values = {
            parameter: self._piece(index, parameter, ids)
            for index, parameter in enumerate(self.leaf.arguments)
        }
        *body, end = list(self.leaf.entry_block.operations)
        for op in body:
            if isinstance(op, Query):
                values[op.result] = self._answer(op, ids)
            else:
                copy_op(op, values)
        made = [values[value] for value in end.operands]
        return [_stored(piece, into, ids) for piece, into in zip(made, results, strict=True)]

    def _piece(self, index: int, parameter: ir.Value, ids: Values) -> ir.Value:
        """What an instance gets of an operand."""
        whole = self.values[self.node.ins[index]]
        at = ids if self.node.edge_kinds[index] == ONE_TO_ONE else []
        kind = parameter.type
        if not isinstance(kind, ir.RankedTensorType):
            return tensor.ExtractOp(whole, at).result
        is_copied = index in updated_parameters(self.leaf) and isinstance(whole.owner, ir.Block)
        if not at and not is_copied:
            return whole
        shape = ir.RankedTensorType(whole.type).shape[len(at) :]
        part = tensor.GenerateOp(ir.RankedTensorType.get(shape, kind.element_type), [])
        block = part.operation.regions[0].blocks.append(*[ir.IndexType.get()] * kind.rank)
        with ir.InsertionPoint(block):
            tensor.YieldOp(tensor.ExtractOp(whole, [*at, *block.arguments]).result)
        return part.result

    def _answer(self, query: Query, ids: Values) -> ir.Value:
        """What an instance asks about its own loop, or about the node that is a leaf now."""
        level, dim = query.position
        if level == 0 and isinstance(query, NodeIdOp):
            return ids[dim]
        if level == 0 and isinstance(query, GridSizeOp):
            return _index(self.node.extents[dim].value or 0)
        return type(query).build(level - 1, dim)


def _loops(
    extents: Sequence[int], carried: Values, body: Callable[[Values, Values], Values]
) -> Values:
    """Nested loops that carry tensors."""

    def nest(ids: Values, values: Values) -> Values:
        if len(ids) == len(extents):
            return body(ids, values)
        bounds = _index(0), _index(extents[len(ids)]), _index(1)
        loop = scf.ForOp(*bounds, values)
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(nest([*ids, loop.induction_variable], list(loop.inner_iter_args)))
        return list(loop.results)

    return nest([], carried)


def _stored(piece: ir.Value, into: ir.Value, ids: Values) -> ir.Value:
    """The tensor with what an instance returns at its indices."""
    if not isinstance(piece.type, ir.RankedTensorType):
        return tensor.InsertOp(piece, into, ids).result
    if not ids:
        return piece
    shape = ir.RankedTensorType(piece.type).shape

    def element(at: Values, made: Values) -> Values:
        picked = tensor.ExtractOp(piece, at).result
        return [tensor.InsertOp(picked, made[0], [*ids, *at]).result]

    return _loops(shape, [into], element)[0]


def _index(value: int) -> ir.Value:
    return arith.ConstantOp.create_index(value).result
