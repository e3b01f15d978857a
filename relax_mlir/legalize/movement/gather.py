"""Tensor programs that pick elements by tensors of indices."""

from relax_mlir.bindings import ir, linalg, tensor
from relax_mlir.dialects.graph import GatherElementsOp, GatherNdOp, IndexTensorOp, normalize_axis
from relax_mlir.dialects.graph.gather import joint_position

from ..kernel import PARALLEL, KernelBuilder, affine_map, generic
from .index import clamped, last_of


def gather_elements(op: GatherElementsOp, kernel: KernelBuilder) -> None:
    """Reads the input at the loops, one of which is replaced by the index."""
    source, indices = kernel.ins
    out = kernel.outs[0]
    rank = ir.RankedTensorType(out.type).rank
    axis = normalize_axis(op.attributes["axis"].value, rank)
    last = last_of(source, axis)

    def body(picked: ir.Value, _: ir.Value) -> ir.Value:
        at = [linalg.IndexOp(i).result for i in range(rank)]
        at[axis] = clamped(picked, last)
        return tensor.ExtractOp(source, at).result

    identity = affine_map(rank, list(range(rank)))
    kernel.finish(*generic([indices], [out], [identity] * 2, [PARALLEL] * rank, body))


def gather_nd(op: GatherNdOp, kernel: KernelBuilder) -> None:
    """Reads the components of index tuples as separate operands."""
    source, indices = kernel.ins
    out = kernel.outs[0]
    rank, lead = (ir.RankedTensorType(x.type).rank for x in (out, indices))
    batch = op.attributes["batch_dims"].value
    count = ir.RankedTensorType(indices.type).shape[-1]
    lasts = [last_of(source, batch + field) for field in range(count)]

    def body(*picked: ir.Value) -> ir.Value:
        loops = [linalg.IndexOp(i).result for i in range(rank)]
        at = [clamped(index, last) for index, last in zip(picked, lasts)]
        return tensor.ExtractOp(source, [*loops[:batch], *at, *loops[lead - 1 :]]).result

    fields = [ir.AffineExpr.get_constant(field) for field in range(count)]
    maps = [affine_map(rank, [*range(lead - 1), field]) for field in fields]
    maps.append(affine_map(rank, list(range(rank))))
    kernel.finish(*generic([indices] * count, [out], maps, [PARALLEL] * rank, body))


def index_tensor(op: IndexTensorOp, kernel: KernelBuilder) -> None:
    """Reads each tensor of indices at the loops of its dims, those of extent 1 at 0."""
    source, *indices = kernel.ins
    out = kernel.outs[0]
    rank, source_rank = (ir.RankedTensorType(x.type).rank for x in (out, source))
    axes = [axis % source_rank for axis in ir.DenseI64ArrayAttr(op.attributes["axes"])]
    first, joint = joint_position(axes), rank - (source_rank - len(axes))
    lasts = [last_of(source, axis) for axis in axes]

    def body(*picked: ir.Value) -> ir.Value:
        loops = [linalg.IndexOp(i).result for i in range(rank)]
        others = iter([*loops[:first], *loops[first + joint :]])
        named = dict(zip(axes, map(clamped, picked, lasts)))
        at = [named[i] if i in named else next(others) for i in range(source_rank)]
        return tensor.ExtractOp(source, at).result

    maps = [joint_map(value, rank, first + joint) for value in indices]
    maps.append(affine_map(rank, list(range(rank))))
    kernel.finish(*generic(indices, [out], maps, [PARALLEL] * rank, body))


def joint_map(indices: ir.Value, loops: int, end: int) -> ir.AffineMap:
    """The map of indices whose dims are right-aligned with the loops before `end`."""
    type_ = ir.RankedTensorType(indices.type)
    zero = ir.AffineExpr.get_constant(0)
    start = end - type_.rank
    return affine_map(loops, [zero if n == 1 else start + i for i, n in enumerate(type_.shape)])
