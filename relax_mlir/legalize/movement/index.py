"""Tensor programs that select elements."""

from relax_mlir.bindings import arith, ir, linalg, tensor
from relax_mlir.dialects.graph import (
    DynamicSliceOp,
    SliceScatterOp,
    StridedSliceOp,
    TakeOp,
    dims_of_attr,
    exact_dims,
    normalize_axis,
)

from ..kernel import PARALLEL, KernelBuilder, affine_map, dim, generic, index
from ..scalars import to_index


def take(op: TakeOp, kernel: KernelBuilder) -> None:
    """Reads the slice of each index; indices are clamped to the axis."""
    source, indices = kernel.ins
    out = kernel.outs[0]
    rank = ir.RankedTensorType(source.type).rank
    axis = normalize_axis(op.attributes["axis"].value, rank)
    index_rank = ir.RankedTensorType(indices.type).rank
    out_rank = ir.RankedTensorType(out.type).rank
    last = last_of(source, axis)

    def body(picked: ir.Value, _: ir.Value) -> ir.Value:
        at = clamped(picked, last)
        loops = [linalg.IndexOp(i).result for i in range(out_rank)]
        at_slice = [*loops[:axis], at, *loops[axis + index_rank :]]
        return tensor.ExtractOp(source, at_slice).result

    maps = [
        affine_map(out_rank, list(range(axis, axis + index_rank))),
        affine_map(out_rank, list(range(out_rank))),
    ]
    kernel.finish(*generic([indices], [out], maps, [PARALLEL] * out_rank, body))


def last_of(source: ir.Value, axis: int) -> ir.Value:
    """The last index of an axis; -1 if it is empty."""
    return arith.SubIOp(dim(source, axis), index(1)).result


def clamped(picked: ir.Value, last: ir.Value) -> ir.Value:
    """An element of indices as an index from 0 to the last one."""
    return arith.MaxSIOp(arith.MinSIOp(to_index(picked), last).result, index(0)).result


def strided_slice(op: StridedSliceOp, kernel: KernelBuilder) -> None:
    """Copies a rectangular part; its begins are constants or index arguments."""
    source, out = kernel.ins[0], kernel.outs[0]
    window = window_of(op, kernel, out)
    if window is None:
        kernel.finish(out)
        return
    part = tensor.ExtractSliceOp(out.type, source, *window).result
    rank = ir.RankedTensorType(out.type).rank
    identity = affine_map(rank, list(range(rank)))
    copy = generic([part], [out], [identity, identity], [PARALLEL] * rank, lambda x, _: x)
    kernel.finish(*copy)


def window_of(
    op: StridedSliceOp | SliceScatterOp, kernel: KernelBuilder, part: ir.Value
) -> tuple[list, ...] | None:
    """The offsets, sizes and strides of a slice of the first input, for MLIR's ops.

    None if it is statically empty: even such a slice would have to begin inside the tensor.
    """
    shape = ir.RankedTensorType(kernel.ins[0].type).shape
    part_shape = ir.RankedTensorType(part.type).shape
    dynamic = ir.ShapedType.get_dynamic_size()
    offsets: list[int | ir.Value] = [0] * len(shape)
    strides = [1] * len(shape)
    empty = 0 in part_shape
    axes, steps = (ir.DenseI64ArrayAttr(op.attributes[name]) for name in ("axes", "strides"))
    for axis, begin, stride in zip(axes, exact_dims(dims_of_attr(op.begin.dims)), steps):
        position = normalize_axis(axis, len(shape))
        offsets[position] = begin.value if begin.value is not None else kernel.symbol(begin)
        strides[position] = stride
        empty |= begin.value is not None and begin.value == shape[position]
    if empty:
        return None
    sizes = [dim(part, axis) for axis, extent in enumerate(part_shape) if extent < 0]
    starts = [value for value in offsets if isinstance(value, ir.Value)]
    statics = [dynamic if isinstance(value, ir.Value) else value for value in offsets]
    return starts, sizes, [], statics, list(part_shape), strides


def dynamic_slice(op: DynamicSliceOp, kernel: KernelBuilder) -> None:
    """Copies a part whose begins are elements of a tensor."""
    source, starts = kernel.ins
    out = kernel.outs[0]
    window = window_at(source, starts, out)
    if window is None:
        kernel.finish(out)
        return
    part = tensor.ExtractSliceOp(out.type, source, *window).result
    rank = ir.RankedTensorType(out.type).rank
    identity = affine_map(rank, list(range(rank)))
    kernel.finish(*generic([part], [out], [identity] * 2, [PARALLEL] * rank, lambda x, _: x))


def window_at(source: ir.Value, starts: ir.Value, part: ir.Value) -> tuple[list, ...] | None:
    """The offsets, sizes and strides of a part that begins where it fits; None if it is empty."""
    shape = list(ir.RankedTensorType(part.type).shape)
    if 0 in shape:
        return None
    dynamic = ir.ShapedType.get_dynamic_size()
    offsets = []
    for axis in range(len(shape)):
        start = tensor.ExtractOp(starts, [index(axis)]).result
        last = arith.SubIOp(dim(source, axis), dim(part, axis)).result
        offsets.append(clamped(start, last))
    sizes = [dim(part, axis) for axis, extent in enumerate(shape) if extent < 0]
    return offsets, sizes, [], [dynamic] * len(shape), shape, [1] * len(shape)
