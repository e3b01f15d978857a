"""Groups calls of tensor programs that can run as one kernel into private graph functions.

    %a = "graph.call_tir"(%x, %w) {callee = @matmul}
    %b = "graph.call_tir"(%a) {callee = @silu}
      ->
    func.func private @fused_matmul_silu(%x, %w) attributes {graph.primitive} {
      both calls, return %b
    }
    %b = "graph.call"(%x, %w) {callee = @fused_matmul_silu}

Groups with equal calls share one function. Symbols keep their names; those that no tensor operand
binds are passed by a last operand, `!graph.shape_value<["m"]>` (paper Figure 8). Splat constants
are moved into the function.

Needs: `relax-annotate-pattern`; programs that are scheduled already are not fused. Leaves: calls
    that `relax-fuse-tir` turns into tensor programs. Source: paper Algorithm 2; TVM `FuseOps`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.compute_pattern import moves_only
from relax_mlir.analysis.dataflow import Dataflow, Node
from relax_mlir.analysis.functions import PRIMITIVE, graph_functions
from relax_mlir.analysis.fusion import Fusion, Group
from relax_mlir.analysis.symbols import bindings, symbols_of
from relax_mlir.bindings import arith, func, ir
from relax_mlir.diagnostics import detail
from relax_mlir.dialects.graph import (
    CallOp,
    MakeShapeOp,
    annotation_of,
    shape_value_type,
)
from relax_mlir.dialects.tir import PrimFunc, prim_funcs
from relax_mlir.passes import Pass
from relax_mlir.rewriting import SymbolNames, erase_unused_makers, safe_erase

MAX_NAME = 60


@dataclass(frozen=True)
class FuseOps(Pass):
    """Groups calls of tensor programs that can run as one kernel into private graph functions."""

    needs_verified: ClassVar[bool] = True

    max_size: int = 256

    def __post_init__(self) -> None:
        if self.max_size < 1:
            raise ValueError(f"max-size must be positive, but is {self.max_size}")

    def run(self, op: ir.Operation) -> None:
        """Fuses within each block of the module's graph functions."""
        kernels = {kernel.name: kernel for kernel in prim_funcs(op) if not kernel.is_scheduled}
        outliner = _Outliner(op)
        for function in graph_functions(op):
            if PRIMITIVE not in function.attributes:
                for block in _blocks(function.operation):
                    _split_transposes(block, kernels)
                    fusion = Fusion(Dataflow.of(block, kernels), self.max_size)
                    groups = fusion.groups()
                    _tell_refusals(fusion)
                    for group in groups:
                        outliner.outline(group)


def _tell_refusals(fusion: Fusion) -> None:
    """Emits remarks, if they are wanted, on calls that are not fused with what uses them."""
    for node, (sink, why) in fusion.refused.items():
        if not node.is_reshape and not sink.is_reshape and not fusion.joins(node, sink):
            names = f"'{node.kernel.name}' is not fused with '{sink.kernel.name}'"
            detail(node.call.location, f"{names}: {why}")


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    for region in op.regions:
        for block in region.blocks:
            yield block
            for child in block.operations:
                yield from _blocks(child.operation)


def _split_transposes(block: ir.Block, kernels: dict[str, PrimFunc]) -> None:
    """Clones the transpose for each matmul that reads a transposed tensor: it is free."""
    for node in Dataflow.of(block, kernels).nodes:
        matmuls = all(user.kernel.pattern == "out_fusible" for user in node.users)
        if len(node.users) < 2 or node.escapes or not matmuls or not moves_only(node.kernel):
            continue
        for user in node.users[1:]:
            copy = node.call.operation.clone(ir.InsertionPoint(user.call))
            for i, value in enumerate(user.ins):
                if value == node.outs[0]:
                    user.call.operation.operands[i] = copy.results[0]


@dataclass
class _Outliner:
    """Outlines groups to functions, which equal groups share."""

    module: ir.Operation
    known: dict[tuple, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.block = self.module.regions[0].blocks[0]
        self.names = SymbolNames(self.block)

    def outline(self, group: Group) -> None:
        """Replaces the calls of a group by one call of a function that contains them."""
        members = group.ordered
        for node in members:
            node.ins = node.call.ins  # groups outlined before have replaced some
        outputs = group.outputs()
        constants = [value for value in group.inputs() if _is_splat(value)]
        inputs = [value for value in group.inputs() if value not in constants]
        missing = _missing_symbols(members, inputs)
        key = _key(members, inputs, constants, outputs, missing)
        if key not in self.known:
            self.known[key] = self._name(members)
            _build(
                self.known[key], self.block, members, inputs, constants, outputs, missing
            )  # fmt: skip
        last = members[-1].call
        with ir.InsertionPoint(last), last.location:
            operands = list(inputs)
            if missing:
                operands.append(MakeShapeOp.build(dims=missing).result)
            types = [annotation_of(value) for value in outputs]
            call = CallOp.build(self.known[key], operands, types)
        for old, new in zip(outputs, call.outs, strict=True):
            old.replace_all_uses_with(new)
        for member in reversed(members):
            safe_erase(member.call)
        erase_unused_makers(constants)

    def _name(self, members: Sequence[Node]) -> str:
        """`fused_` and the callees' names, without duplicates and numeric suffixes."""
        parts = dict.fromkeys(_base_name(node.kernel.name) for node in members)
        base = "fused_" + "_".join(parts)
        if len(base) > MAX_NAME:
            base = base[:MAX_NAME].rsplit("_", 1)[0]
        return self.names.fresh(base)


def _base_name(name: str) -> str:
    head, _, tail = name.rpartition("_")
    return head if head and tail.isdigit() else name


def _is_splat(value: ir.Value) -> bool:
    if isinstance(value.owner, ir.Block) or not isinstance(value.owner.opview, arith.ConstantOp):
        return False
    elements = value.owner.attributes["value"]
    return isinstance(elements, ir.DenseElementsAttr) and elements.is_splat


def _missing_symbols(members: Sequence[Node], inputs: Sequence[ir.Value]) -> list[str]:
    """Symbols that the calls need and the operands do not bind, in order of first occurrence."""
    bound = bindings([annotation_of(value) for value in inputs])
    results = [annotation_of(value) for node in members for value in node.outs]
    arguments = [shape_value_type(node.call.symbol_arguments) for node in members]
    return [name for name in symbols_of([*results, *arguments]) if name not in bound]


def _key(
    members: Sequence[Node],
    inputs: Sequence[ir.Value],
    constants: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    missing: Sequence[str],
) -> tuple:
    """A key that is equal for groups that compute the same from their operands."""
    ids = {value: i for i, value in enumerate(inputs)}
    ids.update({value: ~i for i, value in enumerate(constants)})
    for node in members:
        for value in node.outs:
            ids[value] = len(ids)
    calls = tuple(
        (
            node.kernel.name,
            node.call.attributes["sym_args"],
            tuple(sorted(node.inplace)),
            tuple(ids[value] for value in node.ins),
            tuple(value.type for value in node.outs),
        )
        for node in members
    )
    types = tuple(value.type for value in inputs)
    values = tuple(value.owner.attributes["value"] for value in constants)
    return (calls, types, values, tuple(ids[value] for value in outputs), tuple(missing))


def _build(
    name: str,
    block: ir.Block,
    members: Sequence[Node],
    inputs: Sequence[ir.Value],
    constants: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    missing: Sequence[str],
) -> None:
    """Creates the function with copies of the calls."""
    types = [value.type for value in inputs]
    if missing:
        types.append(shape_value_type(missing))
    with ir.InsertionPoint(block), members[-1].call.location:
        function = func.FuncOp(name, (types, [value.type for value in outputs]))
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        function.attributes[PRIMITIVE] = ir.UnitAttr.get()
        entry = function.add_entry_block()
        new = dict(zip(inputs, entry.arguments))
        with ir.InsertionPoint(entry):
            point = ir.InsertionPoint(entry)
            for value in constants:
                new[value] = value.owner.clone(point).results[0]
            for node in members:
                copy = node.call.operation.clone(point)
                for i, value in enumerate(node.ins):
                    copy.operands[i] = new[value]
                new.update(zip(node.outs, copy.results))
            func.ReturnOp([new[value] for value in outputs])
