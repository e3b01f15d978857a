"""Convolutions by filters of any extents: products of matrices, of which windows are columns.

Filters of known extents are `graph.nn_conv2d`, which copies no elements.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import RequireOp, ShapeError
from relax_mlir.symbolic import Expr, Fact, at_most, const, product

from .emit import (
    add,
    arange,
    astype,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    multiply,
    permute,
    rank_of,
    reshape,
    scalar,
    symbol,
    widen,
    with_dims,
)


def conv_by_columns(
    x: ir.Value,
    weight: ir.Value,
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> ir.Value:
    """A convolution of [n, groups * c, d1, ...] by [groups * o, c, k1, ...], of any extents."""
    spatial = rank_of(x) - 2
    filters, each, *window = dims_of(weight)
    n, channels, *_ = dims_of(x)
    per_group = _part(filters, groups)
    x = with_dims(x, [n, each * groups, *dims_of(x)[2:]]) if channels != each * groups else x
    x = _padded(x, padding[:spatial], padding[spatial:])
    counts: list[Expr] = []
    for axis in reversed(range(spatial)):
        size, step, stride = window[axis], dilation[axis], strides[axis]
        extent = (size - 1) * step + 1
        counts.insert(0, _count(extent, dims_of(x)[2 + axis], stride))
        x = emit(graph.TakeOp, x, _indices(size, step, counts[0], stride), axis=2 + axis)
    order = [0, 1, *range(2, 2 + 2 * spatial, 2), *range(3, 3 + 2 * spatial, 2)]
    rows, columns = product([each, *window]), product(counts)
    taken = reshape(permute(x, order), [n, groups, rows, columns])
    result = emit(graph.MatmulOp, reshape(weight, [groups, per_group, rows]), taken)
    return reshape(result, [n, filters, *counts])


def conv_transpose_by_columns(
    x: ir.Value,
    weight: ir.Value,
    strides: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> ir.Value:
    """The transposed convolution of [n, groups * c, d1, ...] by [groups * c, o, k1, ...].

    Products of each element with the filters, which are added up where they belong.
    """
    n, _, *spatial = dims_of(x)
    channels, each, *window = dims_of(weight)
    per_group = _part(channels, groups)
    taps, elements = product(window), product(spatial)
    filters = reshape(widen(weight), [groups, per_group, each * taps])
    columns = reshape(widen(x), [n, groups, per_group, elements])
    parts = emit(graph.MatmulOp, permute(filters, [0, 2, 1]), columns)
    parts = reshape(parts, [n, each * groups, taps * elements])
    full = [
        (dim - 1) * stride + (size - 1) * step + 1
        for dim, size, stride, step in zip(spatial, window, strides, dilation, strict=True)
    ]
    index = _targets(spatial, window, strides, dilation, full)
    index = broadcast_to(reshape(index, [taps * elements]), dims_of(parts))
    zeros = broadcast_to(scalar(0, element_of(parts)), [n, each * groups, product(full)])
    line = emit(graph.ScatterElementsOp, zeros, index, parts, axis=2, reduction="add")
    result = reshape(astype(line, element_of(x)), [n, each * groups, *full])
    count = len(spatial)
    low = [-first for first in padding[:count]]
    high = [more - last for more, last in zip(output_padding, padding[count:], strict=True)]
    return _padded(result, low, high)


def _targets(
    spatial: Sequence[Expr],
    window: Sequence[Expr],
    strides: Sequence[int],
    dilation: Sequence[int],
    full: Sequence[Expr],
) -> ir.Value:
    """[k1, ..., d1, ...]: where the product of a tap and an element belongs in the line of all."""
    i64, rank = ir.IntegerType.get_signless(64), len(spatial)
    total = scalar(0, i64)
    for axis in range(rank):
        at = _indices(window[axis], dilation[axis], spatial[axis], strides[axis])
        others = [i for i in range(2 * rank) if i not in (axis, rank + axis)]
        total = add(multiply(total, symbol(full[axis], i64)), expand_dims(at, others))
    return total


def _part(channels: Expr, groups: int) -> Expr:
    """The channels of each group; refused unless the groups are equal."""
    if groups < 1 or (channels.value is not None and channels.value % groups):
        raise ShapeError(f"expects groups that divide {channels} channels, but got {groups}")
    if channels % groups != 0:
        RequireOp.build([Fact(channels % groups, "==", const(0))], "conv")
    return channels // groups


def _padded(
    x: ir.Value,
    low: Sequence[int],
    high: Sequence[int],
) -> ir.Value:
    """Zeros around the spatial dims; what is negative is taken off."""
    if not any(low) and not any(high):
        return x
    widths = {"low": [0, 0, *low], "high": [0, 0, *high], "interior": [0] * (2 + len(low))}
    return emit(graph.PadOp, x, scalar(0, element_of(x)), **widths, mode="constant")


def _count(extent: Expr, dim: Expr, stride: int) -> Expr:
    """How many windows there are: none at least, or they are refused."""
    fits = at_most(extent, dim + stride)
    if extent.value is not None and dim.value is not None and not fits.proved:
        raise ShapeError(f"has a window of {extent} elements with stride {stride}, but {dim}")
    if not fits.proved:
        RequireOp.build([Fact(extent, "<=", dim + stride)], "conv")
    return (dim - extent) // stride + 1


def _indices(size: Expr, step: int, count: Expr, stride: int) -> ir.Value:
    """[size, count]: where the elements of each window are."""
    i64 = ir.IntegerType.get_signless(64)
    elements = expand_dims(arange(0, size, step, i64), [1])
    return add(elements, expand_dims(arange(0, count, stride, i64), [0]))
