"""Tensor programs that select elements."""

from relax_mlir.bindings import arith, ir, linalg, tensor
from relax_mlir.dialects.graph import (
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
    source_type, out_type = ir.RankedTensorType(source.type), ir.RankedTensorType(out.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    offsets: list[int | ir.Value] = [0] * source_type.rank
    strides = [1] * source_type.rank
    begins = exact_dims(dims_of_attr(op.begin.dims))
    empty = 0 in out_type.shape
    for axis, begin, stride in zip(
        ir.DenseI64ArrayAttr(op.attributes["axes"]),
        begins,
        ir.DenseI64ArrayAttr(op.attributes["strides"]),
    ):
        place = normalize_axis(axis, source_type.rank)
        offsets[place] = begin.value if begin.value is not None else kernel.symbol(begin)
        strides[place] = stride
        empty |= begin.value is not None and begin.value == source_type.shape[place]
    if empty:
        # A static slice must begin inside of the operand, even if it has no elements.
        kernel.finish(out)
        return
    extents = [
        dim(out, axis) if extent < 0 else extent for axis, extent in enumerate(out_type.shape)
    ]
    part = tensor.ExtractSliceOp(
        out_type,
        source,
        [value for value in offsets if isinstance(value, ir.Value)],
        [value for value in extents if isinstance(value, ir.Value)],
        [],
        [dynamic if isinstance(value, ir.Value) else value for value in offsets],
        [dynamic if isinstance(value, ir.Value) else value for value in extents],
        strides,
    ).result
    identity = affine_map(out_type.rank, list(range(out_type.rank)))
    copy = generic([part], [out], [identity, identity], [PARALLEL] * out_type.rank, lambda x, _: x)
    kernel.finish(*copy)
