"""Tensor programs that move elements."""

from collections.abc import Sequence

from relax_mlir.analysis.memory import RESHAPE
from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.dialects.graph import (
    BroadcastToOp,
    ConcatOp,
    ExpandDimsOp,
    PermuteDimsOp,
    ReshapeOp,
    SplitOp,
    SqueezeOp,
    exact_dims,
    normalize_axis,
)
from relax_mlir.symbolic import Expr

from ..kernel import PARALLEL, KernelBuilder, affine_map, dim, elementwise, generic, index
from .regroup import cast, collapse, match_dynamic


def permute_dims(op: PermuteDimsOp, kernel: KernelBuilder) -> None:
    """out[i...] = input with dim j read at loop dim axes^-1[j]."""
    source, out = kernel.ins[0], kernel.outs[0]
    axes = list(ir.DenseI64ArrayAttr(op.attributes["axes"]))
    rank = len(axes)
    maps = [
        affine_map(rank, [axes.index(axis) for axis in range(rank)]),
        affine_map(rank, list(range(rank))),
    ]
    kernel.finish(*generic([source], [out], maps, [PARALLEL] * rank, lambda x, _: x))


def broadcast_to(op: BroadcastToOp, kernel: KernelBuilder) -> None:
    """Reads dims of extent 1 at 0 and skips the leading ones."""
    kernel.finish(elementwise(kernel.ins, kernel.outs[0], lambda x: x))


def reshape(op: ReshapeOp, kernel: KernelBuilder) -> None:
    """Preserves row-major order under other dims."""
    same_memory(kernel)


def expand_dims(op: ExpandDimsOp, kernel: KernelBuilder) -> None:
    """Dims of extent 1 added."""
    same_memory(kernel)


def squeeze(op: SqueezeOp, kernel: KernelBuilder) -> None:
    """Dims of extent 1 removed."""
    same_memory(kernel)


def same_memory(kernel: KernelBuilder) -> None:
    """Views the input under the output's type and copies it there; calls are views instead."""
    source, out = kernel.ins[0], kernel.outs[0]
    kernel.attribute(RESHAPE, ir.UnitAttr.get())
    rank = ir.RankedTensorType(out.type).rank
    identity = affine_map(rank, list(range(rank)))
    view = _view(kernel, source, out)
    copy = generic([view], [out], [identity, identity], [PARALLEL] * rank, lambda x, _: x)
    kernel.finish(*copy)


def _view(kernel: KernelBuilder, source: ir.Value, out: ir.Value) -> ir.Value:
    """Regroups dims through expand and collapse where they match, else through one dim."""
    before, after = (exact_dims(t.dims) for t in (kernel.in_types[0], kernel.out_types[0]))
    groups = _matching_groups(before, after)
    out_type = ir.RankedTensorType(out.type)
    if groups is not None:
        return _regroup(source, out, *groups)
    if not after:
        ones = ir.RankedTensorType.get([1] * len(before), out_type.element_type)
        return tensor.CollapseShapeOp(out_type, cast(source, ones), []).result if before else source
    if not before:
        return _expand(source, out, [])
    flat = source if len(before) == 1 else collapse(source, [list(range(len(before)))])
    if len(after) == 1:
        return cast(flat, out_type)
    return _expand(flat, out, [list(range(len(after)))])


def _matching_groups(
    before: Sequence[Expr], after: Sequence[Expr]
) -> tuple[list[list[int]], list[list[int]]] | None:
    """Splits both dim lists into groups of equal products, greedily; None if that fails."""
    left: list[list[int]] = []
    right: list[list[int]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        run_left, run_right = [i], [j]
        product_left, product_right = before[i], after[j]
        i, j = i + 1, j + 1
        while product_left != product_right:
            grow_left = _smaller(product_left, product_right)
            if grow_left and i < len(before):
                product_left, i = product_left * before[i], i + 1
                run_left.append(i - 1)
            elif j < len(after):
                product_right, j = product_right * after[j], j + 1
                run_right.append(j - 1)
            else:
                return None
        left.append(run_left)
        right.append(run_right)
    while left and i < len(before) and before[i].value == 1:
        left[-1].append(i)
        i += 1
    while right and j < len(after) and after[j].value == 1:
        right[-1].append(j)
        j += 1
    done = i == len(before) and j == len(after) and bool(left)
    one_to_many = all(len(a) == 1 or len(b) == 1 for a, b in zip(left, right))
    return (left, right) if done and one_to_many else None


def _smaller(a: Expr, b: Expr) -> bool:
    if a.value is not None and b.value is not None:
        return a.value < b.value
    return len(a.terms[0][0]) < len(b.terms[0][0]) if a.terms and b.terms else False


def _regroup(
    source: ir.Value, out: ir.Value, left: list[list[int]], right: list[list[int]]
) -> ir.Value:
    value = source
    if any(len(run) > 1 for run in left):
        value = collapse(value, left)
    if any(len(run) > 1 for run in right):
        return _expand(value, out, right)
    return cast(value, ir.RankedTensorType(out.type))


def _expand(value: ir.Value, out: ir.Value, groups: list[list[int]]) -> ir.Value:
    out_type = ir.RankedTensorType(out.type)
    sizes = [dim(out, axis) for axis in range(out_type.rank) if out_type.is_dynamic_dim(axis)]
    value = match_dynamic(value, out_type, groups)
    return tensor.ExpandShapeOp(out_type, value, groups, sizes, list(out_type.shape)).result


def concat(op: ConcatOp, kernel: KernelBuilder) -> None:
    """Copies each operand into its part of the output."""
    out = kernel.outs[0]
    rank = ir.RankedTensorType(out.type).rank
    axis = normalize_axis(op.attributes["axis"].value, rank)
    result, offset = out, index(0)
    for source in kernel.ins:
        if 0 in ir.RankedTensorType(source.type).shape:
            continue
        result = _insert_at(source, result, axis, offset)
        offset = arith.AddIOp(offset, dim(source, axis)).result
    kernel.finish(result)


def _insert_at(source: ir.Value, out: ir.Value, axis: int, offset: ir.Value) -> ir.Value:
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = ir.RankedTensorType(source.type).shape
    sizes = [dim(source, i) for i, extent in enumerate(shape) if extent < 0]
    offsets = [dynamic if i == axis else 0 for i in range(len(shape))]
    return tensor.InsertSliceOp(
        source, out, [offset], sizes, [], offsets, list(shape), [1] * len(shape)
    ).result


def split(op: SplitOp, kernel: KernelBuilder) -> None:
    """Copies each part of the input to its output."""
    source = kernel.ins[0]
    rank = ir.RankedTensorType(source.type).rank
    axis = normalize_axis(op.attributes["axis"].value, rank)
    identity = affine_map(rank, list(range(rank)))
    dynamic = ir.ShapedType.get_dynamic_size()
    offset, parts = index(0), []
    for out in kernel.outs:
        shape = list(ir.RankedTensorType(out.type).shape)
        if 0 in shape:
            parts.append(out)
            continue
        sizes = [dim(out, i) for i, extent in enumerate(shape) if extent < 0]
        offsets = [dynamic if i == axis else 0 for i in range(rank)]
        part = tensor.ExtractSliceOp(
            out.type, source, [offset], sizes, [], offsets, shape, [1] * rank
        ).result
        parts += generic([part], [out], [identity] * 2, [PARALLEL] * rank, lambda x, _: x)
        offset = arith.AddIOp(offset, dim(out, axis)).result
    kernel.finish(*parts)
