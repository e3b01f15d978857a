"""Has a node for each phase of a leaf with barriers, and one for what it returns of its own.

    @f: %0 = "tir.atomic"(%x, %bins, %i) {kind = "add"}     @f_until: %bins -> %0
        %1 = "tir.barrier"(%0)                        ->    @f_after: %1, .. -> ..
        %2 = tensor.extract %1[%i]                          %a = "graph.node"(%bins, ..) @f_until
                                                            %b = "graph.node"(%a, ..) @f_after

A barrier is an edge all-to-all: no instance goes on before all have come to it. What an instance
computes before a barrier and needs after it is computed again, from the same tensors. A leaf that
updates shared tensors then returns these alone: of what it returns besides, another node is made.

Needs: nothing; it checks the rules of nodes. Leaves: no barrier; leaves that update shared tensors
    return nothing else.
Source: HPVM, arXiv 1611.00860, section 3.2; pocl, DOI 10.1007/s10766-014-0320-y, section 4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.devices import DEVICE
from relax_mlir.analysis.leaves import shared_parameters
from relax_mlir.analysis.nodes import has_nodes, report_broken
from relax_mlir.analysis.shared_memory import barriers_of, home
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir, tensor
from relax_mlir.dialects.graph import ALL_TO_ALL, Annotation, NodeOp, annotation_of
from relax_mlir.dialects.tir import ACCESS, SHARED, AtomicOp
from relax_mlir.passes import Pass, run_upstream
from relax_mlir.rewriting import SymbolNames, alone, replace, walk_ops


@dataclass(frozen=True)
class SplitLeaves(Pass):
    """Has a node for each phase of a leaf with barriers, and one for what it returns of its own."""

    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Splits the nodes of every function; leaves that no node runs any more stay."""
        functions = functions_by_name(op)
        sharing = {name for name, f in functions.items() if shared_parameters(f)}
        if not sharing or not has_nodes(op) or report_broken(op):
            return
        split = _Split(functions, SymbolNames(op.regions[0].blocks[0]))
        for function in list(functions.values()):
            for node in walk_ops(function, NodeOp):
                split.node(node)


@dataclass
class _Split:
    """The leaves of a module, and the parts of those that were split."""

    functions: dict[str, func.FuncOp]
    names: SymbolNames
    known: dict[tuple[str, str], str] = field(default_factory=dict)
    before: dict[str, list[int]] = field(default_factory=dict)

    def node(self, node: NodeOp) -> None:
        """Replaces a node by those of the parts of its leaf."""
        leaf = self.functions[node.callee_name]
        shared = shared_parameters(leaf)
        if not shared:
            return
        if barriers_of(leaf):
            self._at_barrier(node, leaf, shared)
        elif len(node.outs) > len(_updated(leaf)):
            self._apart(node, leaf, shared)

    def _at_barrier(self, node: NodeOp, leaf: func.FuncOp, shared: Sequence[int]) -> None:
        until, after = self._part(leaf, _until), self._part(leaf, _after)
        first = _node(node, until, node.ins, [annotation_of(node.ins[i]) for i in shared])
        ins = list(node.ins)
        for index, value in zip(shared, first.outs, strict=True):
            ins[index] = value
        ins += [node.ins[i] for i in self.before[after]]
        second = _node(node, after, ins, [annotation_of(x) for x in node.outs])
        replace(node, list(second.outs))
        self.node(first)
        self.node(second)

    def _apart(self, node: NodeOp, leaf: func.FuncOp, shared: Sequence[int]) -> None:
        """Nodes for what is updated and for what instances return; what is neither stays."""
        outs = [annotation_of(value) for value in node.outs]
        made = {index: node.ins[index] for index in shared}
        if updated := _updated(leaf):
            types = [outs[shared.index(index)] for index in updated]
            first = _node(node, self._part(leaf, _shared_alone), node.ins, types)
            made.update(zip(updated, first.outs, strict=True))
        own: list[ir.Value] = []
        if len(outs) > len(shared):
            part = self._part(leaf, _own_alone)
            own = list(_node(node, part, node.ins, outs[len(shared) :]).outs)
        replace(node, [*made.values(), *own])

    def _part(self, leaf: func.FuncOp, make: Callable[[func.FuncOp], None]) -> str:
        """The name of a part of a leaf, which is made once."""
        key = leaf.name.value, make.__name__
        if key not in self.known:
            module = alone(leaf)
            part = module.body.operations[0]
            make(part)
            run_upstream("builtin.module(canonicalize)", module.operation)
            name = self.known[key] = self.names.fresh(f"{leaf.name.value}{make.__name__}")
            self.before[name] = _complete(part, leaf, make)
            part.attributes["sym_name"] = ir.StringAttr.get(name)
            part.operation.detach_from_parent()
            ir.InsertionPoint.after(leaf).insert(part)
            self.functions[name] = part
        return self.known[key]


def _until(part: func.FuncOp) -> None:
    """Leaves what is in front of the first barrier, which is returned."""
    operations, barriers = list(part.entry_block.operations), barriers_of(part)[0]
    values = [barrier.before for barrier in barriers]
    for op in reversed(operations[operations.index(barriers[0]) :]):
        op.operation.erase()
    with ir.InsertionPoint(part.entry_block), part.location:
        func.ReturnOp(values)


def _after(part: func.FuncOp) -> None:
    """Has shared parameters be what the first barrier returns, and adds what they were before."""
    for index, barrier in zip(shared_parameters(part), barriers_of(part)[0], strict=True):
        parameter = part.arguments[index]
        before = part.entry_block.add_argument(parameter.type, part.location)
        for use in list(parameter.uses):
            if not isinstance(use.owner, tensor.DimOp):
                use.owner.operation.operands[use.operand_number] = before
        barrier.result.replace_all_uses_with(parameter)
        barrier.operation.erase()


def _updated(leaf: func.FuncOp) -> list[int]:
    """The shared parameters that a leaf does update."""
    homes = {home(op.dest, leaf) for op in walk_ops(leaf, AtomicOp)}
    return [index for index in shared_parameters(leaf) if index in homes]


def _shared_alone(part: func.FuncOp) -> None:
    """Leaves the shared tensors that are updated."""
    shared = shared_parameters(part)
    _return(part, [shared.index(index) for index in _updated(part)])


def _own_alone(part: func.FuncOp) -> None:
    """Leaves what an instance returns of its own."""
    _return(part, range(len(shared_parameters(part)), len(part.type.results)))


def _return(part: func.FuncOp, which: Sequence[int]) -> None:
    """Has a leaf return some of its results."""
    *_, terminator = part.entry_block.operations
    values = [terminator.operands[index] for index in which]
    with ir.InsertionPoint(terminator), terminator.location:
        func.ReturnOp(values)
    terminator.operation.erase()


def _complete(part: func.FuncOp, leaf: func.FuncOp, make: Callable[..., None]) -> list[int]:
    """Completes the signature; returns the shared parameters that are also passed as they were."""
    shared, count = shared_parameters(leaf), len(leaf.type.inputs)
    kept: list[int] = []
    for extra, index in reversed(list(enumerate(shared[: len(part.arguments) - count], count))):
        if next(iter(part.arguments[extra].uses), None) is None:
            part.entry_block.erase_argument(extra)
        else:
            kept.insert(0, index)
    *_, terminator = part.entry_block.operations
    results = [value.type for value in terminator.operands]
    kind = ir.FunctionType.get([argument.type for argument in part.arguments], results)
    part.attributes["function_type"] = ir.TypeAttr.get(kind)
    marked = {_own_alone: [], _shared_alone: _updated(leaf)}.get(make, shared)
    marks = [
        {ACCESS: ir.StringAttr.get(SHARED)} if i in marked else {}
        for i in range(len(part.arguments))
    ]
    part.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(mark) for mark in marks])
    return kept


def _node(like: NodeOp, callee: str, ins: Sequence[ir.Value], outs: Sequence[Annotation]) -> NodeOp:
    """A node in front of another, over its grid; operands after its own are passed all-to-all."""
    kinds = [*like.edge_kinds, *[ALL_TO_ALL] * (len(ins) - len(like.ins))]
    with ir.InsertionPoint(like), like.location:
        node = NodeOp.build(callee, ins, kinds, like.extents, outs)
    if DEVICE in like.attributes:
        node.attributes[DEVICE] = like.attributes[DEVICE]
    return node
