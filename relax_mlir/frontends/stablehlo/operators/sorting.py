"""Orders: sort, by keys that a region compares, or by any region."""

import re
from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    arange,
    astype,
    dims_of,
    element_of,
    emit,
    expand_dims,
    is_integer,
    permute,
    reduce,
    scalar,
    where,
)
from relax_mlir.dialects import graph

from ...elements import mlir_element
from ..bodies import Names, each_part, expression, is_total, lifted, returned
from ..folds import parts_of
from ..node import Node
from ..registry import Value, operator
from .elementwise import is_bool, ordered

_ARGUMENT = re.compile(r"\b([xy])\d+\b")

_OPPOSITE = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}

Key = tuple[ir.Value, bool, bool]
"""What is compared, of the first of both elements; whether the greater comes first; total order."""


@operator("sort", takes_pairs=True)
def sort(node: Node) -> tuple[Value, ...]:
    """Tensors in the order along an axis that a region says of them."""
    axis = node.integer("dimension", -1) % max(node.rank(), 1)
    if not node.rank():
        return tuple(node.operands)
    keys = _keys(node)
    if keys is None:
        return _picked(node, _by_ranks(node, axis), axis)
    block = node.regions[0]
    firsts = [each for i, each in enumerate(block.arguments) if i % 2 == 0]
    scope = node.scope.inner(lifted=True)
    scope.values.update(zip(firsts, node.operands, strict=True))
    order: ir.Value | None = None
    for value, descending, is_total_order in reversed(keys):
        (key,) = parts_of(scope, [scope.compute(value)])
        if is_total_order and not is_integer(element_of(key)):
            key = ordered(key)
        key = astype(key, mlir_element("i8")) if is_bool(key) else key
        if order is not None:
            key = emit(graph.GatherElementsOp, key, order, axis=axis)
        positions = graph.SortOp.build(key, axis=axis, descending=descending)
        own = positions.operation.results[1]
        order = own if order is None else emit(graph.GatherElementsOp, order, own, axis=axis)
    assert order is not None
    return _picked(node, order, axis)


def _picked(node: Node, order: ir.Value, axis: int) -> tuple[Value, ...]:
    """All operands at indices along an axis."""
    return tuple(
        each_part(lambda x: emit(graph.GatherElementsOp, x, order, axis=axis), value, node.scope)
        for value in node.operands
    )


def _keys(node: Node) -> list[Key] | None:
    """What a region compares, the most significant first; None if it is not such an order."""
    block = node.regions[0]
    names: Names = {each: f"{'xy'[i % 2]}{i // 2}" for i, each in enumerate(block.arguments)}
    (value,) = returned(block)
    keys: list[Key] = []
    while True:
        op = _owner(value)
        if op is not None and op.name == "stablehlo.compare":
            key = _key(op, names, ("LT", "GT"))
            return None if key is None else [*keys, key]
        parts = _lexicographic(op)
        if parts is None:
            return None
        first, same, value = parts
        key, equal = _key(first, names, ("LT", "GT")), _key(same, names, ("EQ",))
        if key is None or equal is None:
            return None
        if expression(key[0], block, names) != expression(equal[0], block, names):
            return None
        keys.append(key)


def _owner(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _lexicographic(op: ir.Operation | None) -> tuple[ir.Operation, ir.Operation, ir.Value] | None:
    """The parts of `or(less, and(equal, rest))`."""
    if op is None or op.name != "stablehlo.or":
        return None
    first, both = map(_owner, op.operands)
    if first is None or both is None or both.name != "stablehlo.and":
        return None
    same = _owner(both.operands[0])
    return None if same is None else (first, same, both.operands[1])


def _key(op: ir.Operation, names: Names, relations: Sequence[str]) -> Key | None:
    """What a comparison is of, if it is of the same of both elements."""
    if op.name != "stablehlo.compare":
        return None
    direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    swapped = {each: {"x": "y", "y": "x"}[name[0]] + name[1:] for each, name in names.items()}
    x, y = op.operands
    block = op.block
    if "y" in _arguments(expression(x, block, names)):
        x, y, direction = y, x, _OPPOSITE[direction]
    ours, theirs = expression(x, block, names), expression(y, block, swapped)
    if direction not in relations or ours != theirs or "y" in _arguments(ours):
        return None
    return x, direction == "GT", is_total(op)


def _arguments(text: str) -> str:
    """The letters of arguments in the text of an expression."""
    return "".join(_ARGUMENT.findall(text))


def _by_ranks(node: Node, axis: int) -> ir.Value:
    """The order by any region: each element comes after as many as it says."""
    rank = node.rank()
    order = [i for i in range(rank) if i != axis] + [axis]
    columns = [each_part(lambda x: permute(x, order), value, node.scope) for value in node.operands]
    first = parts_of(node.scope, columns)[0]
    *rest, count = dims_of(first)
    arguments: list[Value] = []
    for column in columns:
        arguments.append(each_part(lambda x: expand_dims(x, [rank]), column, node.scope))
        arguments.append(each_part(lambda x: expand_dims(x, [rank - 1]), column, node.scope))
    (less,) = parts_of(
        node.scope, lifted(node.scope, node.regions[0], arguments, [*rest, count, count])
    )
    swapped = permute(less, [*range(rank - 1), rank, rank - 1])
    i64 = mlir_element("i64")
    ramp = arange(0, count, 1, i64)
    earlier = emit(graph.LessOp, expand_dims(ramp, [1]), expand_dims(ramp, [0]))
    tie = emit(graph.LogicalNotOp, emit(graph.LogicalOrOp, less, swapped))
    before = emit(graph.LogicalOrOp, less, emit(graph.LogicalAndOp, tie, earlier))
    ranks = reduce(graph.SumOp, where(before, scalar(1, i64), 0), [rank - 1])
    op = graph.SortOp.build(ranks, axis=rank - 1, descending=False)
    back = [order.index(i) for i in range(rank)]
    return permute(op.operation.results[1], back)
