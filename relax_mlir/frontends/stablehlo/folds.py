"""Reductions by any function of a region: in log n steps along a dim that is known, else a loop."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    broadcast_to,
    concat,
    dims_of,
    emit,
    permute,
    reshape,
)
from relax_mlir.decompositions.loops import Round, each_index
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, product

from ..complex import Pair
from .bodies import each_part, lifted
from .importer import Scope
from .registry import Value

Combine = Callable[[list[Value], list[Value]], list[Value]]
"""What two lists of tensors come to, element by element."""


def combiner(scope: Scope, block: ir.Block) -> Combine:
    """The function of a region, of tensors of any dims."""

    def combine(a: list[Value], b: list[Value]) -> list[Value]:
        dims = max((dims_of(parts_of(scope, [each])[0]) for each in (a[0], b[0])), key=len)
        return lifted(scope, block, [*a, *b], dims)

    return combine


def folded(
    scope: Scope,
    values: Sequence[Value],
    inits: Sequence[Value],
    axes: Sequence[int],
    combine: Combine,
) -> list[Value]:
    """What tensors come to along some axes, from values of rank 0 on."""
    flat = [each_part(lambda x: _joined(x, axes), value, scope) for value in values]
    first = flat[0].real if isinstance(flat[0], Pair) else flat[0]
    assert isinstance(first, ir.Value)
    *rest, count = dims_of(first)
    starts = [each_part(lambda x: broadcast_to(x, rest), init, scope) for init in inits]
    if count.value == 0:
        return starts
    if count.value is None:
        return _looped(scope, flat, starts, combine)
    return combine(starts, _halved(scope, flat, count.value, combine))


def _joined(x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Some axes as one, the last."""
    dims = dims_of(x)
    rest = [axis for axis in range(len(dims)) if axis not in axes]
    joined: Expr = product([dims[axis] for axis in sorted(axes)])
    return reshape(permute(x, [*rest, *sorted(axes)]), [*(dims[axis] for axis in rest), joined])


def _halved(scope: Scope, values: list[Value], count: int, combine: Combine) -> list[Value]:
    """Neighbours combined in pairs, in their order, until one is left."""
    while count > 1:
        even = _part(scope, values, 0, count - count % 2, 2)
        odd = _part(scope, values, 1, count - count % 2, 2)
        merged = combine(even, odd)
        if count % 2:
            last = _part(scope, values, count - 1, count, 1)
            merged = [_appended(scope, a, b) for a, b in zip(merged, last, strict=True)]
        values, count = merged, (count + 1) // 2
    return [each_part(lambda x: reshape(x, dims_of(x)[:-1]), value, scope) for value in values]


def _part(scope: Scope, values: list[Value], begin: int, end: int, stride: int) -> list[Value]:
    def part(x: ir.Value) -> ir.Value:
        axis = len(dims_of(x)) - 1
        bounds = {"begin": [begin], "end": [end], "strides": [stride]}
        return emit(graph.StridedSliceOp, x, axes=[axis], **bounds)

    return [each_part(part, value, scope) for value in values]


def _appended(scope: Scope, a: Value, b: Value) -> Value:
    if isinstance(a, Pair) and isinstance(b, Pair):
        parts = zip(a.parts, b.parts, strict=True)
        return Pair(*(concat(list(each), len(dims_of(each[0])) - 1) for each in parts))
    x, y = scope.importer.tensor(a), scope.importer.tensor(b)
    return concat([x, y], len(dims_of(x)) - 1)


def _looped(
    scope: Scope, values: list[Value], starts: list[Value], combine: Combine
) -> list[Value]:
    """One element of each line after another."""
    tensors = parts_of(scope, values)
    axis = len(dims_of(tensors[0])) - 1

    def round_(at: Round, *carried: ir.Value) -> list[ir.Value]:
        own = like(carried, starts)
        elements = like([at.take(x, axis) for x in tensors], values)
        return parts_of(scope, combine(own, elements))

    return like(each_index(tensors[0], axis, parts_of(scope, starts), round_), starts)


def parts_of(scope: Scope, values: Sequence[Value]) -> list[ir.Value]:
    """Values as tensors, complex ones as two."""
    flat: list[ir.Value] = []
    for value in values:
        parts = value.parts if isinstance(value, Pair) else (value,)
        flat += [scope.importer.tensor(part) for part in parts]
    return flat


def like(flat: Sequence[ir.Value], values: Sequence[Value]) -> list[Value]:
    """Tensors as values of the kinds of others again."""
    rest, result = iter(flat), list[Value]()
    for value in values:
        first = next(rest)
        result.append(Pair(first, next(rest)) if isinstance(value, Pair) else first)
    return result
