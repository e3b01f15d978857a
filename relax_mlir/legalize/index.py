"""Tensor programs that select elements."""

from relax_mlir.bindings import arith, ir, linalg, tensor
from relax_mlir.dialects.graph import (
    SliceScatterOp,
    StridedSliceOp,
    TakeOp,
    dims_of_attr,
    exact_dims,
    normalize_axis,
)

from .kernel import PARALLEL, KernelBuilder, affine_map, dim, generic, index


def take(op: TakeOp, kernel: KernelBuilder) -> None:
    """Reads the slice that each index names; indices are clamped to the axis."""
    source, indices = kernel.ins
    out = kernel.outs[0]
    rank = ir.RankedTensorType(source.type).rank
    axis = normalize_axis(op.attributes["axis"].value, rank)
    index_rank = ir.RankedTensorType(indices.type).rank
    out_rank = ir.RankedTensorType(out.type).rank
    last = last_of(source, axis)

    def body(picked: ir.Value, _: ir.Value) -> ir.Value:
        place = clamped(picked, last)
        loops = [linalg.IndexOp(i).result for i in range(out_rank)]
        places = [*loops[:axis], place, *loops[axis + index_rank :]]
        return tensor.ExtractOp(source, places).result

    maps = [
        affine_map(out_rank, list(range(axis, axis + index_rank))),
        affine_map(out_rank, list(range(out_rank))),
    ]
    kernel.finish(*generic([indices], [out], maps, [PARALLEL] * out_rank, body))


def last_of(source: ir.Value, axis: int) -> ir.Value:
    """The last index of an axis; -1 if it has none."""
    return arith.SubIOp(dim(source, axis), index(1)).result


def clamped(picked: ir.Value, last: ir.Value) -> ir.Value:
    """An element of indices as an index from 0 to the last one."""
    place = arith.IndexCastOp(ir.IndexType.get(), picked).result
    return arith.MaxSIOp(arith.MinSIOp(place, last).result, index(0)).result


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
    """The offsets, sizes and strides of a slice of the first input, as ops of MLIR take them.

    None if it has no elements and is static: such a slice must begin inside of the tensor too.
    """
    shape = ir.RankedTensorType(kernel.ins[0].type).shape
    part_shape = ir.RankedTensorType(part.type).shape
    dynamic = ir.ShapedType.get_dynamic_size()
    offsets: list[int | ir.Value] = [0] * len(shape)
    strides = [1] * len(shape)
    empty = 0 in part_shape
    axes, steps = (ir.DenseI64ArrayAttr(op.attributes[name]) for name in ("axes", "strides"))
    for axis, begin, stride in zip(axes, exact_dims(dims_of_attr(op.begin.dims)), steps):
        place = normalize_axis(axis, len(shape))
        offsets[place] = begin.value if begin.value is not None else kernel.symbol(begin)
        strides[place] = stride
        empty |= begin.value is not None and begin.value == shape[place]
    if empty:
        return None
    sizes = [dim(part, axis) for axis, extent in enumerate(part_shape) if extent < 0]
    starts = [value for value in offsets if isinstance(value, ir.Value)]
    statics = [dynamic if isinstance(value, ir.Value) else value for value in offsets]
    return starts, sizes, [], statics, list(part_shape), strides
