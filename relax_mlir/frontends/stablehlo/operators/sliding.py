"""Reductions of windows, and what scatters to the elements that windows select."""

from collections.abc import Sequence
from typing import NamedTuple

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    arange,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    less,
    reduce,
    reshape,
    scalar,
    where,
)
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, const, product

from ...complex import Pair
from ..bodies import each_part, promoted, reducers
from ..folds import combiner, folded, parts_of
from ..node import Node
from ..registry import Value, operator
from ..windows import taken, windows
from .elementwise import is_bool
from .movement import padded
from .reductions import combined, is_neutral, reduction_of
from .scattering import put

CUMULATIVE = {"add": graph.CumsumOp, "multiply": graph.CumprodOp}


class Sides(NamedTuple):
    """How windows lie along each axis."""

    sizes: Sequence[Expr]
    strides: list[int]
    base: list[int]
    dilation: list[int]
    padding: Sequence[tuple[Expr, Expr]]

    @staticmethod
    def of(node: Node) -> "Sides":
        """Those of an op."""
        sizes = node.integers("window_dimensions")
        ones = [1] * len(sizes)
        names = ("window_strides", "base_dilations", "window_dilations")
        strides, base, dilation = (node.integers(name, ones) for name in names)
        padding = _exprs(node.pairs("padding", len(sizes)))
        return Sides([const(size) for size in sizes], strides, base, dilation, padding)

    @staticmethod
    def of_operands(node: Node, first: int) -> "Sides":
        """Those that operands of an op have, from one on."""
        words = ("strides", "base dilations", "window dilations")
        sizes, flat = node.exprs(first, "window sizes"), node.exprs(first + 4, "padding")
        strides, base, dilation = (
            node.constants(first + 1 + i, word) for i, word in enumerate(words)
        )
        return Sides(sizes, strides, base, dilation, list(zip(flat[::2], flat[1::2], strict=True)))

    def padded(self, x: ir.Value, value: ir.Value) -> ir.Value:
        """A tensor with all elements that windows reach."""
        low, high = ([pad[end] for pad in self.padding] for end in (0, 1))
        return padded(x, value, low, high, [each - 1 for each in self.base])


@operator("reduce_window", takes_pairs=True)
def reduce_window(node: Node) -> tuple[Value, ...]:
    """What the elements of each window come to, by the function of a region."""
    node, count = promoted(node), len(node.operands) // 2
    operands = node.operands[:count], node.operands[count:]
    return _reduced(node, Sides.of(node), *operands, node.regions[0])


@operator("@stablehlo.dynamic_reduce_window", takes_pairs=True)
def dynamic_reduce_window(node: Node) -> tuple[Value, ...]:
    """The same for windows that operands have, by a function that is called."""
    count = (len(node.operands) - 5) // 2
    (callee,) = ir.ArrayAttr(node.attribute("called_computations"))
    name = ir.FlatSymbolRefAttr(callee).value
    block = node.importer.functions[name].regions[0].blocks[0]
    operands = node.operands[:count], node.operands[count : 2 * count]
    return _reduced(node, Sides.of_operands(node, 2 * count), *operands, block)


def _reduced(
    node: Node,
    sides: Sides,
    values: Sequence[Value],
    inits: Sequence[Value],
    block: ir.Block,
) -> tuple[Value, ...]:
    """What the elements of each window come to, by the function of a block."""
    names = reducers(block)
    if names is not None and all(_is_known(node, n, v) for n, v in zip(names, values)):
        each = zip(names, values, inits, strict=True)
        return tuple(_known(node, sides, *one) for one in each)
    rank = len(sides.sizes)
    scalars = [each_part(lambda x: reshape(x, []), init, node.scope) for init in inits]
    flat = [_windows(node, sides, v, i) for v, i in zip(values, scalars, strict=True)]
    axes = list(range(rank, 2 * rank))
    return tuple(folded(node.scope, flat, scalars, axes, combiner(node.scope, block)))


def _exprs(pairs: Sequence[tuple[int, int]]) -> list[tuple[Expr, Expr]]:
    return [(const(low), const(high)) for low, high in pairs]


def _is_known(node: Node, name: str, value: Value) -> bool:
    if isinstance(value, Pair):
        return name == "add"
    return reduction_of(name, is_bool(node.importer.tensor(value))) is not None


def _windows(node: Node, sides: Sides, value: Value, init: Value) -> Value:
    """[windows..., elements of a window...] of a tensor, or of both parts."""

    def of(x: ir.Value, outside: ir.Value) -> ir.Value:
        return windows(sides.padded(x, outside), sides.sizes, sides.strides, sides.dilation)

    if isinstance(value, Pair):
        parts = zip(value.parts, node.importer.pair(init).parts, strict=True)
        return Pair(*(of(node.importer.tensor(x), outside) for x, outside in parts))
    return of(node.importer.tensor(value), node.importer.tensor(init))


def _known(node: Node, sides: Sides, name: str, value: Value, init: Value) -> Value:
    """Sums, products, greatest or least elements, one axis after another."""
    if isinstance(value, Pair):
        assert isinstance(init, Pair)
        parts = zip(value.parts, init.parts, strict=True)
        return Pair(*(_known_part(node, sides, name, x, start) for x, start in parts))
    return _known_part(node, sides, name, value, init)


def _known_part(node: Node, sides: Sides, name: str, value: Value, init: Value) -> ir.Value:
    x, start = node.importer.tensor(value), reshape(node.importer.tensor(init), [])
    op = reduction_of(name, is_bool(x))
    assert op is not None
    cumulative = _cumulative(sides, name, x) if is_neutral(name, init) else None
    if cumulative is not None:
        axis, reverse = cumulative
        return emit(CUMULATIVE[name], x, axis=axis, exclusive=False, reverse=reverse)
    x = sides.padded(x, start)
    for axis in range(len(sides.sizes)):
        size, stride = sides.sizes[axis], sides.strides[axis]
        if size == const(1) and stride == 1:
            continue
        x = reduce(op, taken(x, axis, size, stride, sides.dilation[axis]), [axis])
    return combined(name, init, x, node)


def _cumulative(sides: Sides, name: str, x: ir.Value) -> tuple[int, bool] | None:
    """The axis, and whether from its end, along which windows reach all that is before."""
    dims, rank = dims_of(x), len(sides.sizes)
    others = [*sides.strides, *sides.base, *sides.dilation]
    axes = [axis for axis in range(rank) if sides.sizes[axis] != const(1)]
    if name not in CUMULATIVE or is_bool(x) or len(axes) != 1 or any(each != 1 for each in others):
        return None
    (axis,), size = axes, sides.sizes[axes[0]]
    none = const(0)
    if dims[axis] != size or any(
        pad != (none, none) for i, pad in enumerate(sides.padding) if i != axis
    ):
        return None
    ends = {(size - 1, none): False, (none, size - 1): True}
    return (axis, ends[sides.padding[axis]]) if sides.padding[axis] in ends else None


@operator("select_and_scatter")
def select_and_scatter(node: Node) -> ir.Value:
    """What is scattered to the element that each window selects, from an initial value on."""
    node = promoted(node)
    x, source, init = node.tensors()
    rank = node.rank()
    sizes = node.integers("window_dimensions", [1] * rank)
    ones = [1] * rank
    strides, padding = node.integers("window_strides", ones), node.pairs("padding", rank)
    sides = Sides([const(size) for size in sizes], strides, ones, ones, _exprs(padding))
    i64, dims = ir.IntegerType.get_signless(64), dims_of(x)
    count = product(dims)
    positions = reshape(arange(0, count, 1, i64), dims)
    outside = scalar(0, element_of(x))
    flat: list[Value] = [
        windows(sides.padded(x, outside), sizes, strides, ones),
        windows(sides.padded(positions, scalar(-1, i64)), sizes, strides, ones),
    ]
    starts: list[Value] = [outside, scalar(-1, i64)]
    axes = list(range(rank, 2 * rank))
    select = combiner(node.scope, node.regions[0])

    def better(a: list[Value], b: list[Value]) -> list[Value]:
        """The first of what the region selects, of elements that are inside."""
        (x, i), (y, j) = parts_of(node.scope, a), parts_of(node.scope, b)
        (first,) = parts_of(node.scope, select([x], [y]))
        stays = emit(graph.LogicalOrOp, less(j, 0), first)
        stays = emit(graph.LogicalAndOp, stays, emit(graph.LogicalNotOp, less(i, 0)))
        return [where(stays, x, y), where(stays, i, j)]

    _, selected = folded(node.scope, flat, starts, axes, better)
    return _scattered(node, node.importer.tensor(selected), source, init)


def _scattered(node: Node, selected: ir.Value, source: ir.Value, init: ir.Value) -> ir.Value:
    """A tensor of an initial value, to which a source is added where indices say."""
    dims = node.dims()
    count = product(dims)
    result = broadcast_to(reshape(init, []), [count])
    total = product(dims_of(source))
    lines = reshape(selected, [total]), reshape(source, [total])
    (scattered,) = put(node, node.regions[1], [result], [lines[0]], [lines[1]])
    return reshape(node.importer.tensor(scattered), dims)
