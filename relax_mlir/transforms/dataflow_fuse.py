"""Fuses nodes along edges one-to-one: an instance computes what the next one's gets.

    %y = "graph.node"(%x) {callee = @a, grid = ["n"], edges = ["one_to_one"]}
    %z = "graph.node"(%y, %w) {callee = @b, grid = ["n"], edges = ["one_to_one", "all_to_all"]}
      ->
    %z = "graph.node"(%x, %w) {callee = @a_b, grid = ["n"], edges = ["one_to_one", "all_to_all"]}

Both are leaves that update nothing and have no versions, for the same targets, and on one device if
they are placed; the grids are proved equal, and nothing else uses the first node. An edge
all-to-all stays: an instance after it needs all of the producer. So does a stream. The leaf has the
ops of both in their order, so results have the same bits, but for a product of the one that the
other adds to: where there is an instruction for both, it rounds once.

Needs: nothing; it checks the rules of nodes. Leaves: fewer nodes of longer leaves.
Source: HPVM, arXiv 1611.00860, section 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.devices import DEVICE
from relax_mlir.analysis.functions import facts_of
from relax_mlir.analysis.leaves import shared_parameters, updated_parameters
from relax_mlir.analysis.node_versions import targets_of, versions_of
from relax_mlir.analysis.nodes import has_nodes, is_leaf, piece_type, report_broken
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import ONE_TO_ONE, NodeOp, TensorType, annotation_of, to_mlir
from relax_mlir.dialects.tir import LEAF, TARGETS, VERSIONS
from relax_mlir.passes import Pass
from relax_mlir.rewriting import SymbolNames, defining_op, replace, safe_erase, walk_ops
from relax_mlir.symbolic import Facts, as_expr, equal


@dataclass(frozen=True)
class DataflowFuse(Pass):
    """Fuses nodes along edges one-to-one: an instance computes what the next one's gets."""

    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Fuses until no function has a pair; erases leaves that nothing runs any more."""
        if not has_nodes(op) or report_broken(op):
            return
        leaves = _Leaves(functions_by_name(op), SymbolNames(op.regions[0].blocks[0]))
        for function in functions_by_name(op).values():
            if not function.is_external:
                facts = facts_of(function)
                for node in walk_ops(function, NodeOp):
                    _fuse_with_producers(node, leaves, facts)
        kept = {node.callee_name for node in walk_ops(op, NodeOp)}
        for leaf in leaves.functions.values():
            kept |= {version.name.value for version in versions_of(leaf, leaves.functions)[1:]}
        for name in leaves.fused - kept:
            leaves.functions[name].operation.erase()


def _fuse_with_producers(node: NodeOp, leaves: "_Leaves", facts: Facts) -> None:
    """Fuses a node with one producer after the other."""
    while True:
        producers = (defining_op(value, NodeOp) for value in node.ins)
        found = next((p for p in producers if p and _may_fuse(p, node, leaves, facts)), None)
        if found is None:
            return
        node = _fused(found, node, leaves)


def _may_fuse(producer: NodeOp, node: NodeOp, leaves: "_Leaves", facts: Facts) -> bool:
    if producer.operation.block != node.operation.block:
        return False
    made = list(producer.outs)
    if any(is_stream and value in made for is_stream, value in zip(node.streams, node.ins)):
        return False
    kinds = node.edge_kinds
    for value in producer.outs:
        for use in value.uses:
            if use.owner != node or kinds[use.operand_number] != ONE_TO_ONE:
                return False
    first, second = (leaves.functions[op.callee_name] for op in (producer, node))
    if not is_leaf(first) or not is_leaf(second):
        return False
    if not all(map(_has_inputs_only, (first, second))):
        return False
    if targets_of(first) != targets_of(second) or _placed(producer) != _placed(node):
        return False
    ours, theirs = producer.extents, node.extents
    return len(ours) == len(theirs) and all(equal(a, b, facts).proved for a, b in zip(ours, theirs))


def _has_inputs_only(leaf: func.FuncOp) -> bool:
    """Whether a leaf updates no parameter, and has no other versions."""
    is_updating = updated_parameters(leaf) or shared_parameters(leaf)
    return not is_updating and VERSIONS not in leaf.attributes


def _placed(node: NodeOp) -> ir.Attribute | None:
    """Where a node is to run, if it says so."""
    return node.attributes[DEVICE] if DEVICE in node.attributes else None


def _fused(producer: NodeOp, node: NodeOp, leaves: "_Leaves") -> NodeOp:
    """The node of both, in the place of the second."""
    made = list(producer.outs)
    piped = {i: made.index(value) for i, value in enumerate(node.ins) if value in made}
    kept = [i for i in range(len(node.ins)) if i not in piped]
    name = leaves.chain(producer.callee_name, node.callee_name, piped)
    ins = [*producer.ins, *(node.ins[i] for i in kept)]
    kinds = [*producer.edge_kinds, *(node.edge_kinds[i] for i in kept)]
    with ir.InsertionPoint(node), node.location:
        outs = [annotation_of(value) for value in node.outs]
        new = NodeOp.build(name, ins, kinds, node.extents, outs)
        new.mark_streams([*producer.streams, *(node.streams[i] for i in kept)])
    if (device := _placed(node)) is not None:
        new.attributes[DEVICE] = device
    replace(node, new)
    safe_erase(producer)
    return new


@dataclass
class _Leaves:
    """The functions of a module, and the leaves of chains, each made once."""

    functions: dict[str, func.FuncOp]
    names: SymbolNames

    def __post_init__(self) -> None:
        self._made: dict[tuple[object, ...], str] = {}
        self.fused: set[str] = set()

    def chain(self, first: str, second: str, piped: Mapping[int, int]) -> str:
        """The leaf that passes results of one to parameters of another: `piped` maps these."""
        key = (first, second, *piped.items())
        self.fused |= {first, second}
        if key not in self._made:
            name = self.names.fresh(f"{first}_{second}")
            a, b = self.functions[first], self.functions[second]
            self.functions[name] = _chain(name, a, b, piped)
            self._made[key] = name
        return self._made[key]


def _chain(name: str, a: func.FuncOp, b: func.FuncOp, piped: Mapping[int, int]) -> func.FuncOp:
    kept = [i for i in range(len(b.type.inputs)) if i not in piped]
    types = [*a.type.inputs, *(b.type.inputs[i] for i in kept)]
    inputs = [_with_own_symbols(type_, index) for index, type_ in enumerate(types)]
    with ir.InsertionPoint(b), b.location:
        function = func.FuncOp(name, (inputs, b.type.results), visibility="private")
        function.attributes[LEAF] = ir.UnitAttr.get()
        if TARGETS in b.attributes:
            function.attributes[TARGETS] = b.attributes[TARGETS]
        block = function.add_entry_block()
        arguments = list(block.arguments)
        count = len(a.type.inputs)
        with ir.InsertionPoint(block):
            between = _copied(a, arguments[:count])
            rest = dict(zip(kept, arguments[count:], strict=True))
            passed = [
                between[piped[i]] if i in piped else rest[i] for i in range(len(b.type.inputs))
            ]
            func.ReturnOp(_copied(b, passed))
    return function


def _with_own_symbols(type_: ir.Type, index: int) -> ir.Type:
    """A type whose unknown dims are symbols that no other parameter has."""
    if not isinstance(type_, ir.RankedTensorType) or type_.has_static_shape:
        return type_
    piece = piece_type(type_)
    dims = [
        dim if dim is not None and dim.value is not None else as_expr(f"d{index}_{axis}")
        for axis, dim in enumerate(piece.dims or ())
    ]
    return to_mlir(TensorType(tuple(dims), piece.element))


def _copied(leaf: func.FuncOp, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """Writes a leaf's ops at the insertion point; what it returns for these arguments."""
    copy = leaf.operation.clone().opview
    for old, new in zip(copy.arguments, arguments, strict=True):
        old.replace_all_uses_with(new)
    *body, terminator = list(copy.entry_block.operations)
    results = list(terminator.operands)
    terminator.operation.erase()
    for op in body:
        op.operation.detach_from_parent()
        ir.InsertionPoint.current.insert(op)
    copy.operation.erase()
    return results
