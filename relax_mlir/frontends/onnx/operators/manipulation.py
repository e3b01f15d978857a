"""Shapes, order and types of elements: reshape, transpose, concat, pad, cast and others."""

from collections.abc import Sequence

import numpy as np

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    broadcast_to,
    element_of,
    emit,
    expand_dims,
    permute,
    reshape,
    scalar,
    subtract,
    symbol,
)
from relax_mlir.decompositions.emit import concat as emit_concat
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, Fact, at_most, const, maximum, minimum, product

from ...elements import mlir_element
from ...known import Known, known
from ..node import Node, normalized
from ..registry import Value, operator
from ..types import element_name
from .flattening import as_matrix


@operator("Constant")
def constant(node: Node) -> Known:
    """The elements of an attribute."""
    for name, dtype, element in (
        ("value_int", np.int64, "i64"),
        ("value_ints", np.int64, "i64"),
        ("value_float", np.float32, "f32"),
        ("value_floats", np.float32, "f32"),
    ):
        if node.has(name):
            return Known(np.array(node.attribute(name), dtype), element)
    if not node.has("value"):
        raise ModelError("has a constant that is no tensor of values, which is not supported")
    return node.attribute("value")


@operator("Shape")
def shape(node: Node) -> Known:
    """The dims of a tensor, as expressions."""
    return known(node.dims(0)[node.attribute("start", 0) : node.attribute("end")])


@operator("Size")
def size(node: Node) -> Known:
    """The count of elements, as an expression."""
    return known(product(node.dims(0)))


@operator("Reshape", since=5)
def reshape_(node: Node) -> ir.Value:
    """Other dims, of which 0 is that of the input and -1 what is left."""
    old, new = node.dims(0), node.exprs(1, "dims")
    if any(dim.value is not None and dim.value < -1 for dim in new):
        raise ModelError("has a dim below -1")
    if not node.flag("allowzero"):
        if any(dim == 0 and i >= len(old) for i, dim in enumerate(new)):
            raise ModelError(f"keeps a dim that is beyond rank {len(old)}")
        new = [old[i] if dim == 0 else dim for i, dim in enumerate(new)]
    return d.reshape(node.tensor(0), new)


@operator("Flatten")
def flatten(node: Node) -> ir.Value:
    """A matrix, of rows before an axis."""
    axis, rank = node.attribute("axis", 1), node.rank()
    if not -rank <= axis <= rank:
        raise ModelError(f"has axis {axis} for a tensor of rank {rank}")
    return as_matrix(node, axis + rank if axis < 0 else axis)


@operator("Transpose")
def transpose(node: Node) -> ir.Value:
    """Axes in another order, reversed without one."""
    order = node.attribute("perm", list(reversed(range(node.rank()))))
    return permute(node.tensor(0), order)


@operator("Squeeze")
def squeeze(node: Node) -> ir.Value:
    """Without dims of extent 1: those that are named, or known to be 1; no other may be 1."""
    axes = node.attribute("axes") if node.version < 13 else None
    if node.version >= 13 and node.value(1) is not None:
        axes = node.integers(1, "axes")
    if axes is None:
        dims = node.dims(0)
        axes = [i for i, dim in enumerate(dims) if dim == 1]
        for dim in dims:
            if dim.value is None:
                graph.RequireOp.build([Fact(dim, "!=", const(1))], "squeeze")
    axes = [normalized(axis, node.rank()) for axis in axes]
    return emit(graph.SqueezeOp, node.tensor(0), axes=axes) if axes else node.tensor(0)


@operator("Unsqueeze")
def unsqueeze(node: Node) -> ir.Value:
    """With dims of extent 1."""
    axes = node.required("axes") if node.version < 13 else node.integers(1, "axes")
    rank = node.rank() + len(axes)
    return expand_dims(node.tensor(0), sorted(normalized(axis, rank) for axis in axes))


@operator("Concat", since=4)
def concat(node: Node) -> ir.Value:
    """Tensors in a row along an axis."""
    return emit_concat(node.tensors(), node.axis())


@operator("Split")
def split(node: Node) -> tuple[Value, ...]:
    """Parts along an axis, of given or of equal sizes."""
    axis = node.axis(0)
    extent, count = node.dims(0)[axis], node.attribute("num_outputs", len(node.proto.output))
    sizes: Sequence[Expr] | None = None
    if node.version < 13 and node.has("split"):
        sizes = [const(each) for each in node.attribute("split")]
    elif node.version >= 13 and node.value(1) is not None:
        sizes = node.exprs(1, "sizes")
    if sizes is None:
        if not 0 < count <= len(node.proto.output):
            raise ModelError(f"has {count} parts for {len(node.proto.output)} outputs")
        each = (extent + (count - 1)) // count
        sizes = [each] * (count - 1) + [extent - each * (count - 1)]
    return tuple(parts_of(node, sizes, axis))


def parts_of(node: Node, sizes: Sequence[Expr], axis: int) -> list[ir.Value]:
    """The parts of the first input along an axis; a single one is that input."""
    extent = node.dims(0)[axis]
    if any(size.value is not None and size.value < 0 for size in sizes):
        raise ModelError(f"splits {extent} into {', '.join(map(str, sizes))}, which is below 0")
    if list(sizes) == [extent]:
        return [node.tensor(0)]
    if not sizes and extent == 0:
        return []
    op = graph.SplitOp.build(node.tensor(0), sizes=list(sizes), axis=axis)
    return list(op.operation.results)


@operator("Slice", until=9)
def old_slice(node: Node) -> ir.Value:
    """A part, by attributes."""
    starts, ends = node.required("starts"), node.required("ends")
    axes = node.attribute("axes", list(range(len(starts))))
    return _sliced(node, [const(s) for s in starts], [const(e) for e in ends], axes, None)


@operator("Slice", since=10)
def slice_(node: Node) -> ir.Value:
    """A part, by operands."""
    starts, ends = node.exprs(1, "starts"), node.exprs(2, "ends")
    axes = list(range(len(starts))) if node.value(3) is None else node.integers(3, "axes")
    steps = None if node.value(4) is None else node.integers(4, "steps")
    return _sliced(node, starts, ends, axes, steps)


def _sliced(
    node: Node,
    starts: Sequence[Expr],
    ends: Sequence[Expr],
    axes: Sequence[int],
    steps: Sequence[int] | None,
) -> ir.Value:
    dims = node.dims(0)
    axes = [normalized(axis, len(dims)) for axis in axes]
    strides = [1] * len(axes) if steps is None else list(steps)
    if 0 in strides:
        raise ModelError("has a step of 0")
    begin, end = [], []
    for axis, start, stop, stride in zip(axes, starts, ends, strides, strict=True):
        extent = dims[axis]
        first, last = _from_front(start, extent), _from_front(stop, extent)
        if stride < 0 and first.value is not None and first.value >= END:
            first = extent - 1
        if stride < 0 and start != -1 and not _is_from_front(start, extent):
            first = maximum(first, 0)  # which, unlike NumPy's, is cut off at both ends
        if stride < 0:  # on the axis in reverse
            is_all = last.value is not None and last.value < 0
            first, last = extent - 1 - first, extent if is_all else extent - 1 - last
        begin.append(_bounded(first, extent))
        end.append(maximum(_bounded(last, extent), begin[-1]))
    back = [axis for axis, stride in zip(axes, strides, strict=True) if stride < 0]
    x = emit(graph.FlipOp, node.tensor(0), axes=back) if back else node.tensor(0)
    steps = [abs(stride) for stride in strides]
    return emit(graph.StridedSliceOp, x, axes=axes, begin=begin, end=end, strides=steps)


END = (1 << 31) - 1
"""The least integer that stands for the end of any axis."""


def _from_front(index: Expr, extent: Expr) -> Expr:
    """An index from the front, where one below 0 counts from the end."""
    if _is_from_front(index, extent):
        return index
    if at_most(index, -1).proved:
        from_end = extent + index
        return from_end if from_end.value is None else maximum(from_end, -1)
    is_negative = minimum(maximum(const(0) - index, 0), 1)
    return index + extent * is_negative


def _is_from_front(index: Expr, extent: Expr) -> bool:
    """Whether an index is not below 0, or the last one of an axis, which of none is -1."""
    return (extent - index) == 1 or at_most(0, index).proved


def _bounded(index: Expr, extent: Expr) -> Expr:
    """An index that is cut off at the end; "to the end" is written as the greatest integer."""
    if index.value is not None and index.value >= END:
        return extent
    return maximum(minimum(index, extent), 0)


@operator("Expand")
def expand(node: Node) -> ir.Value:
    """Repeated along dims of extent 1, in both directions."""
    wanted = node.exprs(1, "dims")
    dims = graph.exact_dims(graph.broadcast(node.dims(0), wanted))
    return broadcast_to(node.tensor(0), dims)


@operator("Tile", since=6)
def tile(node: Node) -> ir.Value:
    """Repeated along each axis."""
    return emit(graph.TileOp, node.tensor(0), repeats=node.exprs(1, "repeats"))


@operator("Pad", since=2)
def pad(node: Node) -> ir.Value:
    """With elements around."""
    rank, mode = node.rank(), node.attribute("mode", "constant")
    if node.version < 11:
        pads = [const(each) for each in node.required("pads")]
        value = scalar(node.attribute("value", 0.0), element_of(node.tensor(0)))
    else:
        pads = node.exprs(1, "pads")
        value = node.optional(2) or scalar(0, element_of(node.tensor(0)))
    axes = list(range(rank)) if node.value(3) is None else node.integers(3, "axes")
    low, high = [const(0)] * rank, [const(0)] * rank
    for i, axis in enumerate(axes):
        low[normalized(axis, rank)] = pads[i]
        high[normalized(axis, rank)] = pads[len(axes) + i]
    return padded(node.tensor(0), low, high, mode, value)


MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}


def padded(
    x: ir.Value, low: Sequence[Expr], high: Sequence[Expr], mode: str, value: ir.Value | None
) -> ir.Value:
    """A tensor with elements around; negative counts take elements away."""
    if mode not in MODES:
        raise ModelError(f"has mode '{mode}', which is none of {', '.join(MODES)}")
    cut = [minimum(each, 0) for each in (*low, *high)]
    if any(each != 0 for each in cut):
        dims, rank = d.emit.dims_of(x), len(low)
        begin = [const(0) - each for each in cut[:rank]]
        end = [dim + each for dim, each in zip(dims, cut[rank:])]
        x = emit(
            graph.StridedSliceOp,
            x,
            axes=list(range(rank)),
            begin=begin,
            end=end,
            strides=[1] * rank,
        )
        low, high = ([maximum(each, 0) for each in ends] for ends in (low, high))
    if all(each == 0 for each in (*low, *high)):
        return x
    operands = [x]
    if mode == "constant" and value is not None:
        operands.append(reshape(value, []))
    return emit(
        graph.PadOp,
        *operands,
        low=list(low),
        high=list(high),
        interior=[0] * len(low),
        mode=MODES[mode],
    )


@operator("CenterCropPad")
def center_crop_pad(node: Node) -> ir.Value:
    """The middle, of other extents along some axes."""
    return d.center_crop_pad(node.tensor(0), node.exprs(1, "sizes"), node.attribute("axes"))


@operator("Cast", "CastLike", since=6)
def cast(node: Node) -> ir.Value:
    """Elements of another type."""
    if node.op == "CastLike":
        target = node.element(1)
    else:
        target = element_name(node.required("to"))
    x = node.tensor(0)
    if target == "i1" and str(element_of(x)) != "i1":
        return emit(graph.NotEqualOp, x, scalar(0, element_of(x)))
    element = mlir_element(target)
    if target.startswith("f8") and not node.flag("saturate", default=True):
        return d.cast_float8(x, element, saturate=False)
    return astype(x, element)


@operator("BitCast")
def bitcast(node: Node) -> ir.Value:
    """The bits as elements of another type of that width; a boolean is a byte."""
    x, element = node.tensor(0), mlir_element(element_name(node.required("to")))
    own, wanted = (max(8, graph.types.element_bits(each)) for each in (element_of(x), element))
    if own != wanted:
        raise ModelError(f"has elements of {own} bits, where {wanted} are expected")
    if node.element(0) == "i1" and element != element_of(x):
        x = astype(x, mlir_element("ui8"))
    return d.bitcast(x, element)


@operator("ConstantOfShape")
def constant_of_shape(node: Node) -> ir.Value:
    """One value everywhere."""
    value = node.attribute("value", Known(np.zeros(1, np.float32), "f32"))
    single = Known(value.array.reshape(()), value.element).emit()
    return emit(graph.FullOp, single, shape=node.exprs(0, "dims"))


@operator("Range")
def range_(node: Node) -> ir.Value:
    """Elements from a start by a step."""
    parts = [node.known(i) for i in range(3)]
    element = mlir_element(node.element(0))
    if all(part is not None for part in parts) and not isinstance(element, ir.FloatType):
        exprs = [part.exprs[0] for part in parts if part is not None]
        step = exprs[2].value
        if step:
            bounds = exprs if step > 0 else [each * -1 for each in exprs]
            result = emit(graph.ArangeOp, bounds=bounds, dtype=element)
            return result if step > 0 else emit(graph.NegativeOp, result)
    operands = [reshape(node.tensor(i), []) for i in range(3)]
    return emit(graph.RangeOfOp, *operands)


@operator("DepthToSpace")
def depth_to_space(node: Node) -> ir.Value:
    """Channels as pixels."""
    return d.depth_to_space(
        node.tensor(0), node.required("blocksize"), node.attribute("mode", "DCR")
    )


@operator("SpaceToDepth")
def space_to_depth(node: Node) -> ir.Value:
    """Pixels as channels."""
    block, x = node.required("blocksize"), node.tensor(0)
    if node.attribute("mode", "DCR") == "DCR":
        return d.space_to_depth(x, block)
    n, c, h, w = node.dims(0)
    shifted = d.space_to_depth(x, block)
    split = reshape(shifted, [n, block * block, c, h // block, w // block])
    return reshape(
        permute(split, [0, 2, 1, 3, 4]), [n, c * (block * block), h // block, w // block]
    )


@operator("Trilu")
def trilu(node: Node) -> ir.Value:
    """What is above or below a diagonal."""
    upper, x = node.flag("upper", default=True), node.tensor(0)
    op = graph.TriuOp if upper else graph.TrilOp
    if node.value(1) is None or (node.known(1) and not node.known(1).is_symbolic):  # type: ignore[union-attr]
        return emit(op, x, k=int(node.constant(1, "a diagonal")))
    rows, columns = node.dims(0)[-2:]
    i64 = ir.IntegerType.get_signless(64)
    down = expand_dims(d.emit.arange(0, rows, 1, i64), [1])
    across = expand_dims(d.emit.arange(0, columns, 1, i64), [0])
    distance = subtract(subtract(across, down), reshape(node.tensor(1), []))
    retained = emit(graph.GreaterEqualOp if upper else graph.LessEqualOp, distance, scalar(0, i64))
    return d.emit.where(retained, x, 0)


@operator("EyeLike")
def eye_like(node: Node) -> ir.Value:
    """1 on a diagonal."""
    element = element_name(node.attribute("dtype")) if node.has("dtype") else node.element(0)
    k = node.attribute("k", 0)
    return emit(graph.EyeOp, shape=node.dims(0), k=k, dtype=mlir_element(element))


@operator("OneHot", since=9)
def one_hot(node: Node) -> ir.Value:
    """A value at an index, another elsewhere; negative indices count from the end."""
    (depth,) = node.exprs(1, "a depth")
    indices, values = node.tensor(0), node.tensor(2)
    i64 = ir.IntegerType.get_signless(64)
    indices = astype(indices, i64)
    below = d.emit.less(indices, 0)
    depths = symbol(depth, i64)
    depths = reshape(depths, [])
    indices = d.emit.where(below, d.emit.add(indices, depths), indices)
    off, on = (emit(graph.TakeOp, values, scalar(i, i64), axis=0) for i in (0, 1))
    axis = normalized(node.attribute("axis", -1), node.rank() + 1)
    return emit(graph.OneHotOp, indices, on, off, depth=[depth], axis=axis)


@operator("ReverseSequence")
def reverse_sequence(node: Node) -> ir.Value:
    """The first elements of each sequence in reverse."""
    time, batch = node.attribute("time_axis", 0), node.attribute("batch_axis", 1)
    return d.reverse_sequence(node.tensor(0), node.tensor(1), time_axis=time, batch_axis=batch)


@operator("Col2Im")
def col2im(node: Node) -> ir.Value:
    """Sums of the elements of windows."""
    return d.fold(
        node.tensor(0),
        node.exprs(1, "sizes"),
        node.integers(2, "windows"),
        strides=node.attribute("strides"),
        padding=node.attribute("pads"),
        dilation=node.attribute("dilations"),
    )
