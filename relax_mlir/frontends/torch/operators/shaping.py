"""Shapes and order of elements."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    broadcast_to,
    concat,
    dims_of,
    emit,
    expand_dims,
    permute,
    reshape,
    symbol,
)
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, const, maximum, minimum, simplify

from ..adapters import by_part
from ..call import Call
from ..registry import operator

END = (1 << 31) - 1


@operator(
    "view",
    "reshape",
    "_unsafe_view",
    "view_copy",
    "_reshape_copy",
    "flatten.using_ints",
    pairs=by_part,
)
def view(call: Call, x: ir.Value, *args: Any) -> ir.Value:
    """Other dims."""
    return reshape(x, call.dims)


@operator("permute", "permute_copy", pairs=by_part)
def permute_(call: Call, x: ir.Value, dims: Sequence[int]) -> ir.Value:
    """Axes in another order."""
    return permute(x, [call.axis(axis, call.rank(x)) for axis in dims])


@operator("transpose.int", "transpose_copy.int", pairs=by_part)
def transpose(call: Call, x: ir.Value, first: int, second: int) -> ir.Value:
    """Two axes exchanged."""
    order = list(range(call.rank(x)))
    if order:
        i, j = call.axis(first, len(order)), call.axis(second, len(order))
        order[i], order[j] = order[j], order[i]
    return permute(x, order)


@operator("t", "numpy_T", "t_copy", pairs=by_part)
def t(call: Call, x: ir.Value) -> ir.Value:
    """A matrix, transposed."""
    return permute(x, list(reversed(range(call.rank(x)))))


@operator(
    "squeeze",
    "squeeze.dim",
    "squeeze.dims",
    "unsqueeze",
    "squeeze_copy",
    "squeeze_copy.dim",
    "squeeze_copy.dims",
    "unsqueeze_copy",
    "expand_as",
    "unflatten.int",
    pairs=by_part,
)
def squeeze(call: Call, x: ir.Value, *args: Any) -> ir.Value:
    """With or without dims of extent 1."""
    return reshape(x, call.dims)


@operator("expand", "broadcast_to", "expand_copy", pairs=by_part)
def expand(call: Call, x: ir.Value, sizes: Any, implicit: bool = False) -> ir.Value:
    """Repeated along dims of extent 1."""
    return broadcast_to(x, call.dims)


@operator("cat", "concat", pairs=by_part)
def cat(call: Call, tensors: Sequence[ir.Value], dim: int = 0) -> ir.Value:
    """Tensors in a row along an axis."""
    own = [each for each in tensors if dims_of(each) != (const(0),)] or list(tensors[:1])
    own = [call.tensor(each, call.element) for each in own]
    return concat(own, call.axis(dim, call.rank(own[0])))


@operator("stack", pairs=by_part)
def stack(call: Call, tensors: Sequence[ir.Value], dim: int = 0) -> ir.Value:
    """Tensors along an axis of their own."""
    axis = call.axis(dim, call.rank(tensors[0]) + 1)
    own = [call.tensor(expand_dims(each, [axis]), call.element) for each in tensors]
    return concat(own, axis)


def from_front(indices: ir.Value, extent: Expr) -> ir.Value:
    """Indices, of which negative ones count from the end."""
    count = reshape(symbol(extent, d.emit.element_of(indices)), [])
    return d.emit.where(d.emit.less(indices, 0), d.emit.add(indices, count), indices)


def part_of(call: Call, start: Any, end: Any, extent: Expr) -> tuple[Expr, Expr]:
    """The indices from the front between which a slice of an axis is; by default all of it."""
    begin = _bounded(call, start, extent, const(0))
    stop = maximum(_bounded(call, end, extent, extent), begin)
    return begin, simplify(stop, call.importer.facts)


def _bounded(call: Call, index: Any, extent: Expr, default: Expr) -> Expr:
    if index is None:
        return default
    expr = call.position(index, extent)
    if expr.value is not None and expr.value >= END:
        return extent
    return simplify(maximum(minimum(expr, extent), 0), call.importer.facts)


def sliced(x: ir.Value, axis: int, begin: Expr, end: Expr, step: int = 1) -> ir.Value:
    """A part along an axis."""
    return emit(graph.StridedSliceOp, x, axes=[axis], begin=[begin], end=[end], strides=[step])


@operator("slice.Tensor", "slice_copy.Tensor", pairs=by_part)
def slice_(
    call: Call, x: ir.Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> ir.Value:
    """A part along an axis."""
    axis = call.axis(dim, call.rank(x))
    if isinstance(start, ir.Value) or isinstance(end, ir.Value):
        return _computed_slice(call, x, axis, start, end, step)
    extent = dims_of(x)[axis]
    begin, stop = part_of(call, start, end, extent)
    if (begin, stop, step) == (const(0), extent, 1):
        return x
    return graph_cast(call, sliced(x, axis, begin, stop, step))


def _computed_slice(
    call: Call, x: ir.Value, axis: int, start: Any, end: Any, step: int
) -> ir.Value:
    """A part between indices that run time computes, which may be negative."""
    i64 = ir.IntegerType.get_signless(64)
    extent = dims_of(x)[axis]
    most = call.tensor(extent, i64)
    begin, stop = (
        d.emit.minimum(d.emit.maximum(from_front(each, extent), 0), most)
        if isinstance(each, ir.Value)
        else call.tensor(_bounded(call, each, extent, default), i64)
        for each, default in ((start, const(0)), (end, extent))
    )
    span = d.emit.maximum(d.emit.subtract(stop, begin), 0)
    count = call.importer.bind(
        d.emit.floor_divide(d.emit.add(span, step - 1), step), call.first.shape[axis]
    )
    index = d.emit.add(d.emit.arange(0, count, step, i64), begin)
    return emit(graph.TakeOp, x, index, axis=axis)


def graph_cast(call: Call, value: ir.Value) -> ir.Value:
    """A tensor with the dims that PyTorch inferred, asserted where ours differ in writing."""
    return d.emit.with_dims(value, call.dims)


@operator("select.int", "select_copy.int", pairs=by_part)
def select(call: Call, x: ir.Value, dim: int, index: Any) -> ir.Value:
    """A slice of an axis, without the axis."""
    axis = call.axis(dim, call.rank(x))
    extent = dims_of(x)[axis]
    if isinstance(index, ir.Value):
        return emit(graph.TakeOp, x, from_front(index, extent), axis=axis)
    at = call.position(index, extent)
    part = sliced(x, axis, at, at + 1)
    return emit(graph.SqueezeOp, part, axes=[axis])


@operator(
    "split_with_sizes",
    "split.Tensor",
    "split_with_sizes_copy",
    "split_copy.Tensor",
    "chunk",
    pairs=by_part,
)
def split(call: Call, x: ir.Value, sizes: Any, dim: int = 0) -> Sequence[ir.Value]:
    """Parts along an axis."""
    axis = call.axis(dim, call.rank(x))
    own = [call.exprs(part.shape)[axis] for part in call.value]
    if len(own) == 1:
        return [x]
    return list(graph.SplitOp.build(x, sizes=own, axis=axis).operation.results)


@operator("unbind.int", "unbind_copy.int", pairs=by_part)
def unbind(call: Call, x: ir.Value, dim: int = 0) -> Sequence[ir.Value]:
    """All slices of an axis."""
    axis = call.axis(dim, call.rank(x))
    parts = [sliced(x, axis, const(i), const(i + 1)) for i in range(len(call.value))]
    return [emit(graph.SqueezeOp, part, axes=[axis]) for part in parts]


@operator("flip", pairs=by_part)
def flip(call: Call, x: ir.Value, dims: Sequence[int]) -> ir.Value:
    """Axes in reverse."""
    axes = sorted({call.axis(axis, call.rank(x)) for axis in dims})
    return emit(graph.FlipOp, x, axes=axes) if axes and call.rank(x) else x


@operator("roll", pairs=by_part)
def roll(call: Call, x: ir.Value, shifts: Any, dims: Sequence[int] = ()) -> ir.Value:
    """Elements shifted around."""
    shifts = call.integers(shifts, "shifts")
    if dims:
        axes = [call.axis(axis, call.rank(x)) for axis in dims]
        return emit(graph.RollOp, x, shifts=shifts, axes=axes)
    line = d.reshape(x, [-1])
    return reshape(emit(graph.RollOp, line, shifts=shifts, axes=[0]), dims_of(x))


@operator("repeat", "tile", pairs=by_part)
def repeat(call: Call, x: ir.Value, repeats: Sequence[Any]) -> ir.Value:
    """The tensor several times along each axis."""
    counts = call.exprs(repeats)
    x = expand_dims(x, range(len(counts) - call.rank(x))) if len(counts) > call.rank(x) else x
    counts = [const(1)] * (call.rank(x) - len(counts)) + counts
    return emit(graph.TileOp, x, repeats=counts) if counts else x


@operator("repeat_interleave.self_int", pairs=by_part)
def repeat_interleave(
    call: Call, x: ir.Value, repeats: Any, dim: int | None = None, output_size: Any = None
) -> ir.Value:
    """Each slice several times."""
    x = d.reshape(x, [-1]) if dim is None else x
    axis = call.axis(dim or 0, call.rank(x))
    return emit(graph.RepeatOp, x, repeats=[call.expr(repeats)], axis=axis)


@operator("repeat_interleave.Tensor")
def repeated_indices(call: Call, repeats: ir.Value, output_size: Any = None) -> ir.Value:
    """Each index as often as a tensor says."""
    i64 = ir.IntegerType.get_signless(64)
    indices = astype(d.emit.arange(0, dims_of(repeats)[0], 1, i64), call.element)
    return emit(graph.RepeatInterleaveOp, indices, repeats, axis=0)


@operator("constant_pad_nd", pairs=by_part)
def constant_pad(call: Call, x: ir.Value, pads: Sequence[Any], value: Any = 0) -> ir.Value:
    """With a value around; negative counts take elements away."""
    return padded(call, x, pads, "constant", value)


@operator("pad", pairs=by_part)
def pad(
    call: Call, x: ir.Value, pads: Sequence[Any], mode: str = "constant", value: Any = None
) -> ir.Value:
    """With elements around."""
    modes = {"constant": "constant", "replicate": "edge", "reflect": "reflect", "circular": "wrap"}
    return padded(call, x, pads, modes[mode], value or 0)


@operator("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", pairs=by_part)
def reflection_pad(call: Call, x: ir.Value, pads: Sequence[Any]) -> ir.Value:
    """Mirrored at the borders."""
    return padded(call, x, pads, "reflect", 0)


@operator("replication_pad1d", "replication_pad2d", "replication_pad3d", pairs=by_part)
def replication_pad(call: Call, x: ir.Value, pads: Sequence[Any]) -> ir.Value:
    """With the elements of the borders around."""
    return padded(call, x, pads, "edge", 0)


def padded(call: Call, x: ir.Value, pads: Sequence[Any], mode: str, value: Any) -> ir.Value:
    """A tensor with elements around; the pads begin with the last axis."""
    rank, facts = call.rank(x), call.importer.facts
    low, high = [const(0)] * rank, [const(0)] * rank
    for i in range(len(pads) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = call.exprs(pads[2 * i : 2 * i + 2])
    if mode == "edge" and any((each.value or -1) < 0 for each in (*low, *high) if each != 0):
        return _with_borders(x, low, high)
    for axis in range(rank):
        begin, end = (simplify(maximum(each[axis] * -1, 0), facts) for each in (low, high))
        if begin != 0 or end != 0:
            x = sliced(x, axis, begin, dims_of(x)[axis] - end)
    low, high = ([simplify(maximum(each, 0), facts) for each in ends] for ends in (low, high))
    if all(each == 0 for each in (*low, *high)):
        return graph_cast(call, x)
    operands = [x]
    if mode == "constant":
        operands.append(call.tensor(value, d.emit.element_of(x)))
    widths = {"low": low, "high": high, "interior": [0] * rank}
    return emit(graph.PadOp, *operands, mode=mode, **widths)


def _with_borders(x: ir.Value, low: Sequence[Expr], high: Sequence[Expr]) -> ir.Value:
    """The nearest element of each position, where counts may be negative."""
    i64 = ir.IntegerType.get_signless(64)
    for axis, (first, last) in enumerate(zip(low, high, strict=True)):
        extent = dims_of(x)[axis]
        if first != 0 or last != 0:
            at = d.emit.arange(first * -1, extent + first + last, 1, i64)
            most = reshape(symbol(extent - 1, i64), [])
            x = emit(graph.TakeOp, x, d.emit.maximum(d.emit.minimum(at, most), 0), axis=axis)
    return x


@operator("pixel_shuffle", pairs=by_part)
def pixel_shuffle(call: Call, x: ir.Value, factor: int) -> ir.Value:
    """Channels as pixels."""
    return d.depth_to_space(x, factor, "CRD")


@operator("pixel_unshuffle", pairs=by_part)
def pixel_unshuffle(call: Call, x: ir.Value, factor: int) -> ir.Value:
    """Pixels as channels, in the order of `pixel_shuffle`."""
    n, c, h, w = dims_of(x)
    split = reshape(x, [n, c, h // factor, factor, w // factor, factor])
    return reshape(permute(split, [0, 1, 3, 5, 2, 4]), call.dims)


@operator("as_strided", "as_strided_copy", pairs=by_part)
def as_strided(
    call: Call, x: ir.Value, sizes: Sequence[Any], strides: Sequence[Any], offset: Any = None
) -> ir.Value:
    """Elements by offsets in the memory of a tensor, which is in order."""
    first = call.first_element()
    start = const(0) if offset is None else call.expr(offset) - first
    return d.as_strided(x, call.exprs(sizes), call.exprs(strides), start)


@operator("diagonal", "diagonal_copy", pairs=by_part)
def diagonal(call: Call, x: ir.Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> ir.Value:
    """Diagonals of matrices, as the last axis."""
    return diagonal_of(call, x, offset, dim1, dim2, call.dims[-1])


def diagonal_of(
    call: Call, x: ir.Value, offset: int, dim1: int, dim2: int, count: Expr
) -> ir.Value:
    """Diagonals of so many elements."""
    rank = call.rank(x)
    first, second = call.axis(dim1, rank), call.axis(dim2, rank)
    rest = [i for i in range(rank) if i not in (first, second)]
    x = permute(x, [first, second, *rest])
    dims = dims_of(x)
    i64 = ir.IntegerType.get_signless(64)
    line = reshape(x, [dims[0] * dims[1], *dims[2:]])
    down, right = max(-offset, 0), max(offset, 0)
    at = d.emit.arange(0, count, 1, i64)
    step = reshape(symbol(dims[1] + 1, i64), [])
    start = reshape(symbol(dims[1] * down + right, i64), [])
    index = d.emit.add(d.emit.multiply(at, step), start)
    taken = emit(graph.TakeOp, line, index, axis=0)
    return permute(taken, [*range(1, rank - 1), 0])


@operator("unfold", "unfold_copy", pairs=by_part)
def unfold(call: Call, x: ir.Value, dim: int, size: Any, step: Any) -> ir.Value:
    """Windows of an axis, as a last axis."""
    rank = call.rank(x)
    if not rank:
        return sliced(reshape(x, [1]), 0, const(0), call.expr(size))
    axis = call.axis(dim, rank)
    i64 = ir.IntegerType.get_signless(64)
    count, length = call.dims[axis], call.expr(size)
    starts = d.emit.arange(0, count, call.integer(step, "a step"), i64)
    index = d.emit.add(expand_dims(starts, [1]), expand_dims(d.emit.arange(0, length, 1, i64), [0]))
    taken = emit(graph.TakeOp, x, index, axis=axis)
    order = [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1]
    return permute(taken, order)


@operator("meshgrid", "meshgrid.indexing", pairs=by_part)
def meshgrid(call: Call, tensors: Sequence[ir.Value], indexing: str = "ij") -> Sequence[ir.Value]:
    """Coordinates of a grid."""
    return d.meshgrid(*tensors, indexing=indexing)


@operator("narrow_copy", pairs=by_part)
def narrow(call: Call, x: ir.Value, dim: int, start: Any, length: Any) -> ir.Value:
    """So many slices of an axis."""
    axis = call.axis(dim, call.rank(x))
    begin = call.position(start, dims_of(x)[axis])
    return sliced(x, axis, begin, begin + call.expr(length))
