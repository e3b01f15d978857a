"""Tensor programs of convolution and pooling: a padded copy, then sums or maxima over windows."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.dialects.graph import Conv2dOp, GraphOp, MaxPool2dOp, SumPool2dOp
from relax_mlir.passes import PassFailure

from ..kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    dim,
    elementwise,
    empty,
    empty_like,
    fill,
    generic,
    index,
    scalar,
)
from ..reductions.statistical import least
from ..scalars import add, compute_type, from_compute, maximum, multiply, to_compute

FAST_MATH = "graph.fastmath"
"""Attribute of a convolution: the fast-math flags of its products and sums."""
Size: TypeAlias = int | ir.Value


def fast_math_of(op: GraphOp) -> ir.Attribute | None:
    """The fast-math flags of an operator; None without any."""
    flags = op.attributes[FAST_MATH] if FAST_MATH in op.attributes else None
    if flags is not None and not str(flags).startswith("#arith.fastmath<"):
        raise PassFailure(op, f"has '{FAST_MATH} = {flags}', but it is '#arith.fastmath<...>'")
    return flags


def conv2d(op: Conv2dOp, kernel: KernelBuilder) -> None:
    """Sums over channels and window; grouped channels are split into [groups, channels]."""
    source, weight = kernel.ins
    out = kernel.outs[0]
    element = ir.ShapedType(out.type).element_type
    compute = compute_type(element)
    groups = op.groups.value
    strides, dilation = tuple(op.strides), tuple(op.dilation)
    zero = scalar(element, 0)
    if groups > 1:
        source = _split_channels(source, groups, 1)
        weight = _split_channels(weight, groups, 0)
    padded = _padded(source, zero, tuple(op.padding))
    sums = out if compute == element else empty_like(out, compute)
    flags = fast_math_of(op)
    product = _sums_of_products(padded, weight, sums, groups, strides, dilation, flags)
    if compute != element:
        product = elementwise([product], out, lambda x: from_compute(x, element))
    kernel.finish(product)


def _sums_of_products(
    padded: ir.Value,
    weight: ir.Value,
    sums: ir.Value,
    groups: int,
    strides: Sequence[int],
    dilation: Sequence[int],
    flags: ir.Attribute | None,
) -> ir.Value:
    """The loops are the dims of the result, then channel, row and column of a filter."""
    rank = 5 if groups > 1 else 4
    spread = _split_channels(sums, groups, 1) if groups > 1 else sums
    zeros = fill(scalar(ir.ShapedType(sums.type).element_type, 0), spread)
    n, group, filter_, y, x = (0, [1], 2, 3, 4) if groups > 1 else (0, [], 1, 2, 3)
    channel, u, v = rank, rank + 1, rank + 2
    positions = [
        _input_index(y, u, strides[0], dilation[0]),
        _input_index(x, v, strides[1], dilation[1]),
    ]
    maps = [
        affine_map(rank + 3, [n, *group, channel, *positions]),
        affine_map(rank + 3, [*group, filter_, channel, u, v]),
        affine_map(rank + 3, list(range(rank))),
    ]
    iterators = [PARALLEL] * rank + [REDUCTION] * 3

    def multiply_add(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
        product = multiply(to_compute(a), to_compute(b))
        accumulated = add(total, product)
        for value in (product, accumulated) if flags else ():
            value.owner.attributes["fastmath"] = flags
        return accumulated

    product = generic([padded, weight], [zeros], maps, iterators, multiply_add)[0]
    if groups == 1:
        return product
    together = [[0], [1, 2], [3], [4]]
    return tensor.CollapseShapeOp(sums.type, product, together).result


def max_pool2d(op: MaxPool2dOp, kernel: KernelBuilder) -> None:
    """Maxima over the window; padding is less than everything."""
    element = ir.ShapedType(kernel.outs[0].type).element_type
    kernel.finish(_pool(op, kernel.ins[0], kernel.outs[0], least(element), maximum))


def sum_pool2d(op: SumPool2dOp, kernel: KernelBuilder) -> None:
    """Sums over the window; half precision is widened before the padding."""
    (source,), out = kernel.ins, kernel.outs[0]
    element = ir.ShapedType(out.type).element_type
    compute = compute_type(element)
    if compute == element:
        kernel.finish(_pool(op, source, out, 0, add))
        return
    source = elementwise([source], empty_like(source, compute), to_compute)
    sums = _pool(op, source, empty_like(out, compute), 0, add)
    kernel.finish(elementwise([sums], out, lambda x: from_compute(x, element)))


def _pool(
    op: MaxPool2dOp | SumPool2dOp,
    source: ir.Value,
    out: ir.Value,
    start: float,
    combine: Callable[[ir.Value, ir.Value], ir.Value],
) -> ir.Value:
    """Combines the elements of each window; padding and results are `start` at first."""
    element = ir.ShapedType(out.type).element_type
    strides, dilation = tuple(op.strides), tuple(op.dilation)
    first = scalar(element, start)
    padded = _padded(source, first, tuple(op.padding))
    window = empty(list(op.window), element)
    positions = [
        _input_index(2, 4, strides[0], dilation[0]),
        _input_index(3, 5, strides[1], dilation[1]),
    ]
    maps = [affine_map(6, [0, 1, *positions]), affine_map(6, [4, 5]), affine_map(6, [0, 1, 2, 3])]
    iterators = [PARALLEL] * 4 + [REDUCTION] * 2
    outs = [fill(first, out)]
    return generic([padded, window], outs, maps, iterators, lambda x, _, best: combine(x, best))[0]


def _input_index(position: int, within: int, stride: int, dilation: int) -> ir.AffineExpr:
    """The input index of element `within` of the window at `position`; both are loops."""
    return ir.AffineExpr.get_dim(position) * stride + ir.AffineExpr.get_dim(within) * dilation


def _sizes(value: ir.Value) -> list[Size]:
    type_ = ir.RankedTensorType(value.type)
    return [dim(value, i) if type_.is_dynamic_dim(i) else n for i, n in enumerate(type_.shape)]


def _split_channels(value: ir.Value, groups: int, axis: int) -> ir.Value:
    """`value` with the dim `axis` split into groups and channels per group."""
    type_ = ir.RankedTensorType(value.type)
    sizes = _sizes(value)
    channels = sizes[axis]
    each: Size
    if isinstance(channels, int):
        each = channels // groups
    else:
        each = arith.DivUIOp(channels, index(groups)).result
    sizes[axis : axis + 1] = [groups, each]
    parts = [[i] for i in range(type_.rank + 1)]
    parts[axis : axis + 2] = [[axis, axis + 1]]
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [dynamic if isinstance(size, ir.Value) else size for size in sizes]
    values = [size for size in sizes if isinstance(size, ir.Value)]
    result = ir.RankedTensorType.get(shape, type_.element_type)
    return tensor.ExpandShapeOp(result, value, parts, values, shape).result


def _padded(source: ir.Value, value: ir.Value, padding: Sequence[int]) -> ir.Value:
    """`source` padded by `value` around its last two dims."""
    if not any(padding):
        return source
    top, left, bottom, right = padding
    sizes = _sizes(source)
    around = [*sizes[:-2], _plus(sizes[-2], top + bottom), _plus(sizes[-1], left + right)]
    whole = fill(value, empty(around, value.type))
    dynamic = ir.ShapedType.get_dynamic_size()
    return tensor.InsertSliceOp(
        source,
        whole,
        [],
        [size for size in sizes if isinstance(size, ir.Value)],
        [],
        [*[0] * (len(sizes) - 2), top, left],
        [dynamic if isinstance(size, ir.Value) else size for size in sizes],
        [1] * len(sizes),
    ).result


def _plus(size: Size, more: int) -> Size:
    if isinstance(size, int):
        return size + more
    return arith.AddIOp(size, index(more)).result
