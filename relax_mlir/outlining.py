"""Outlines ops of a block to private graph functions, which equal groups share.

    %0 = "graph.matmul"(%x, %w)                 func.func private @dense(%x, %w, %b) {
    %1 = "graph.add"(%0, %b)          ->          both ops, return %1
                                                }
                                                %1 = "graph.call"(%x, %w, %b) {callee = @dense}

Symbols keep their names; those that no tensor operand binds are passed by a last operand,
`!graph.shape_value<["m"]>` (paper Figure 8). Results that other ops use are results of the call.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key

from relax_mlir.analysis.purity import Purity
from relax_mlir.analysis.rename import own_symbols
from relax_mlir.analysis.symbols import bindings, symbols_of
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallOp, MakeShapeOp, annotation_of, shape_value_type
from relax_mlir.rewriting import SymbolNames, is_unused, safe_erase


class Refused(Exception):
    """Says why ops cannot become one call."""


@dataclass(frozen=True)
class Group:
    """Ops of one block that one call can replace, in program order.

    `late` are ops between them that use a result: they have to follow the call. `copied` are
    constants that the function has copies of.
    """

    ops: list[ir.Operation]
    late: list[ir.Operation]
    inputs: list[ir.Value]
    outputs: list[ir.Value]
    copied: list[ir.Operation]
    symbols: list[str]
    """Those that a last operand passes."""

    @staticmethod
    def of(
        ops: Iterable[ir.Operation], constants: Iterable[ir.Operation], purity: Purity
    ) -> "Group":
        """Reads a group of pure ops without regions.

        Raises Refused if they are of several blocks, or need what is computed from their results.
        """
        members = in_order(ops)
        if any(op.block != members[0].block for op in members):
            raise Refused("its ops are in different regions")
        impure = next((op for op in members if not purity.is_pure(op.opview)), None)
        if impure is not None or any(len(op.regions) for op in members):
            name = (impure or members[0]).name
            raise Refused(f"'{name}' does more than make its results")
        copied, inside = list(constants), set(members)
        late = _late(members, inside, purity)
        values = dict.fromkeys(value for op in members for value in op.operands)
        defined = {result for op in (*members, *copied) for result in op.results}
        inputs = [value for value in values if value not in defined]
        outputs = [value for op in members for value in op.results if _leaves(value, inside)]
        used = [name for op in members for name in sorted(own_symbols(op.opview))]
        used += symbols_of([annotation_of(value) for value in values])
        bound = bindings([annotation_of(value) for value in inputs])
        symbols = [name for name in dict.fromkeys(used) if name not in bound]
        return Group(members, late, inputs, outputs, copied, symbols)

    @property
    def key(self) -> tuple:
        """Equal for groups that compute the same from their operands."""
        ids = {value: i for i, value in enumerate(self.inputs)}
        for op in (*self.copied, *self.ops):
            for value in op.results:
                ids[value] = len(ids)
        ops = tuple(
            (
                op.name,
                tuple(op.attributes.items()),
                tuple(ids[value] for value in op.operands),
                tuple(value.type for value in op.results),
            )
            for op in (*self.copied, *self.ops)
        )
        types = tuple(value.type for value in self.inputs)
        outputs = tuple(ids[value] for value in self.outputs)
        return ops, types, outputs, tuple(self.symbols)


@dataclass
class Outliner:
    """Outlines groups of ops of one module."""

    module: ir.Operation
    purity: Purity
    _known: dict[tuple, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._block = self.module.regions[0].blocks[0]
        self._names = SymbolNames(self._block)

    def outline(self, group: Group, base: str, attributes: Mapping[str, ir.Attribute]) -> CallOp:
        """Replaces a group by a call of a function of that name, or a similar one."""
        key = (group.key, base, tuple(attributes.items()))
        last = group.ops[-1]
        if key not in self._known:
            self._known[key] = self._names.fresh(base)
            with ir.InsertionPoint(self._block), last.location:
                function = _function(self._known[key], group)
            for name, value in attributes.items():
                function.attributes[name] = value
            self.purity.functions[self._known[key]] = function
        previous = last
        for op in group.late:
            op.move_after(previous)
            previous = op
        with ir.InsertionPoint(last), last.location:
            operands = list(group.inputs)
            if group.symbols:
                operands.append(MakeShapeOp.build(dims=group.symbols).result)
            types = [annotation_of(value) for value in group.outputs]
            call = CallOp.build(self._known[key], operands, types)
        for old, new in zip(group.outputs, call.outs, strict=True):
            old.replace_all_uses_with(new)
        for op in reversed(group.ops):
            safe_erase(op)
        for op in group.copied:
            if is_unused(op):
                safe_erase(op)
        return call


def _function(name: str, group: Group) -> func.FuncOp:
    """Builds a private function with copies of the ops."""
    types = [value.type for value in group.inputs]
    if group.symbols:
        types.append(shape_value_type(group.symbols))
    function = func.FuncOp(name, (types, [value.type for value in group.outputs]))
    function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    entry = function.add_entry_block()
    new = dict(zip(group.inputs, entry.arguments))
    with ir.InsertionPoint(entry):
        point = ir.InsertionPoint(entry)
        for op in (*group.copied, *group.ops):
            copy = op.clone(point)
            for i, value in enumerate(op.operands):
                copy.operands[i] = new[value]
            new.update(zip(op.results, copy.operation.results))
        func.ReturnOp([new[value] for value in group.outputs])
    return function


def in_order(ops: Iterable[ir.Operation]) -> list[ir.Operation]:
    """Ops of one block in program order, each once."""

    def compare(a: ir.Operation, b: ir.Operation) -> int:
        return 0 if a == b else -1 if a.is_before_in_block(b) else 1

    unique = list(dict.fromkeys(ops))
    same = not unique or all(op.block == unique[0].block for op in unique)
    return sorted(unique, key=cmp_to_key(compare)) if same else unique


def _late(
    members: Sequence[ir.Operation], inside: set[ir.Operation], purity: Purity
) -> list[ir.Operation]:
    """The ops before the last member that use results of members, in program order."""
    block, last = members[0].block, members[-1]
    late: dict[ir.Operation, None] = {}
    stack = list(members)
    while stack:
        op = stack.pop()
        for use in (use for result in op.results for use in result.uses):
            user = _ancestor(use.owner.operation, block)
            if user in inside and op not in inside:
                raise Refused(f"'{op.name}' computes an operand from one of its results")
            if user in inside or user in late or not user.is_before_in_block(last):
                continue
            if not purity.is_pure(user.opview):
                raise Refused(f"'{user.name}' uses a result, and has to stay before others")
            late[user] = None
            stack.append(user)
    return in_order(late)


def _ancestor(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of the block that is, or has inside, the given one."""
    while op.block != block:
        parent = op.parent
        assert parent is not None  # a value is used in its own block, or in one inside
        op = parent.operation
    return op


def _leaves(value: ir.Value, inside: set[ir.Operation]) -> bool:
    return any(use.owner.operation not in inside for use in value.uses)
