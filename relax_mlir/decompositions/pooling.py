"""Pooling of one to three spatial dims: maxima, averages, norms, and adaptive windows.

    x : tensor<n, c, d1, ...>    window, strides, dilation : an integer for each spatial dim
    padding : elements in front of each spatial dim, then those after each

A result dim is the count of windows that begin in the padded input and end in it, or begin in the
input or in front of it with `ceil_mode`. Windows of three dims are those of two, then of one.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import Expr

from .emit import (
    astype,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    multiply,
    reduce,
    reshape,
    scalar,
    widen,
)
from .windows import Windows, counts


def windows_of(
    rank: int,
    window: Sequence[int],
    strides: Sequence[int] | None,
    padding: Sequence[int] | None,
    dilation: Sequence[int] | None,
    ceil_mode: bool,
) -> list[Windows]:
    """The windows of each spatial dim of a tensor."""
    spatial = rank - 2
    strides, dilation = strides or [1] * spatial, dilation or [1] * spatial
    padding = padding or [0] * (2 * spatial)
    if not 1 <= spatial <= 3:
        raise ShapeError(f"pools one to three dims, but got rank {rank}")
    if not len(window) == len(strides) == len(dilation) == spatial or len(padding) != 2 * spatial:
        given = f"{list(window)}, {list(strides)}, {list(padding)} and {list(dilation)}"
        raise ShapeError(
            f"expects window, strides, padding and dilation of rank {rank}, not {given}"
        )
    if min(*window, *strides, *dilation) < 1 or min(padding) < 0:
        raise ShapeError(f"has a window of {list(window)} by steps of {list(strides)}")
    settings = zip(window, strides, padding[:spatial], padding[spatial:], dilation, strict=True)
    return [
        Windows(size, stride, low, high, step, stride - 1 if ceil_mode else 0)
        for size, stride, low, high, step in settings
    ]


def _pool(op: type[graph.InferredOp], x: ir.Value, windows: Sequence[Windows]) -> ir.Value:
    """Windows of one to three dims by those of two."""
    n, c, *spatial = dims_of(x)
    if len(windows) == 1:
        row = Windows(1, 1, 0, 0, 1, 0)
        pooled = _pool_images(op, reshape(x, [n, c, 1, *spatial]), row, windows[0])
        return reshape(pooled, [n, c, dims_of(pooled)[3]])
    if len(windows) == 2:
        return _pool_images(op, x, *windows)
    depth, height, width = spatial
    planes = _pool_images(op, reshape(x, [n, c * depth, height, width]), *windows[1:])
    rows, columns = dims_of(planes)[2:]
    column = Windows(1, 1, 0, 0, 1, 0)
    pooled = _pool_images(op, reshape(planes, [n, c, depth, rows * columns]), windows[0], column)
    return reshape(pooled, [n, c, dims_of(pooled)[2], rows, columns])


def _pool_images(
    op: type[graph.InferredOp], x: ir.Value, rows: Windows, columns: Windows
) -> ir.Value:
    ends = [side.high + side.extra for side in (rows, columns)]
    pooled = emit(
        op,
        x,
        window=[rows.size, columns.size],
        strides=[rows.stride, columns.stride],
        padding=[rows.low, columns.low, *ends],
        dilation=[rows.dilation, columns.dilation],
    )
    dims = list(dims_of(pooled))
    wanted = [side.count(dim) for side, dim in zip((rows, columns), dims_of(x)[2:])]
    axes = [axis for axis in (2, 3) if dims[axis] != wanted[axis - 2]]
    if not axes:
        return pooled
    ends_of = [wanted[axis - 2] for axis in axes]
    begin, strides = [0] * len(axes), [1] * len(axes)
    return emit(graph.StridedSliceOp, pooled, axes=axes, begin=begin, end=ends_of, strides=strides)


def max_pool(
    x: ir.Value,
    window: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> ir.Value:
    """The greatest element of each window. Source: ONNX `MaxPool`; ATen `max_pool2d`."""
    windows = windows_of(len(dims_of(x)), window, strides, padding, dilation, ceil_mode)
    return _pool(graph.MaxPool2dOp, x, windows)


def sum_pool(
    x: ir.Value,
    window: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> ir.Value:
    """The sum of each window. Source: StableHLO `reduce_window`."""
    windows = windows_of(len(dims_of(x)), window, strides, padding, dilation, ceil_mode)
    return astype(_pool(graph.SumPool2dOp, widen(x), windows), element_of(x))


def avg_pool(
    x: ir.Value,
    window: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    divisor: int | None = None,
) -> ir.Value:
    """The sum of each window, divided by the count of its elements in the input.

    With `count_include_pad` those of the padding count too; a `divisor` replaces the count. A
    window of none is NaN. Source: ONNX `AveragePool`; ATen `avg_pool2d`.
    """
    windows = windows_of(len(dims_of(x)), window, strides, padding, dilation, ceil_mode)
    sums = _pool(graph.SumPool2dOp, widen(x), windows)
    averages = _divided(sums, dims_of(x)[2:], windows, count_include_pad, divisor)
    return astype(averages, element_of(x))


def _divided(
    sums: ir.Value,
    spatial: Sequence[Expr],
    windows: Sequence[Windows],
    count_include_pad: bool,
    divisor: int | None,
) -> ir.Value:
    """Sums divided by a constant, times a vector for each dim whose windows may be cut off."""
    constant = 1 if divisor is None else divisor
    divisors = None
    for axis, (side, dim) in enumerate(zip(windows, spatial)):
        cut = side.extra or (not count_include_pad and (side.low or side.high))
        if divisor is not None or not cut:
            constant *= side.size if divisor is None else 1
            continue
        ends = (-side.low, dim + side.high) if count_include_pad else (0, dim)
        vector = counts(side, dims_of(sums)[2 + axis], ends, element_of(sums))
        vector = expand_dims(vector, range(1, len(windows) - axis))
        divisors = vector if divisors is None else multiply(divisors, vector)
    if divisors is None:
        return divide(sums, constant)
    return divide(sums, divisors if constant == 1 else multiply(divisors, constant))


def lp_pool(
    x: ir.Value,
    window: Sequence[int],
    *,
    p: int = 2,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> ir.Value:
    """The p-norm of each window. Source: ONNX `LpPool`."""
    if p < 1:
        raise ShapeError(f"expects a norm of 1 or more, but got {p}")
    windows = windows_of(len(dims_of(x)), window, strides, padding, dilation, ceil_mode)
    powers = _power(widen(x), p)
    return astype(_root(_pool(graph.SumPool2dOp, powers, windows), p), element_of(x))


def global_lp_pool(x: ir.Value, p: int = 2) -> ir.Value:
    """The p-norm over all spatial dims. Source: ONNX `GlobalLpPool`."""
    if p < 1:
        raise ShapeError(f"expects a norm of 1 or more, but got {p}")
    axes = range(2, len(dims_of(x)))
    return astype(
        _root(reduce(graph.SumOp, _power(widen(x), p), axes, keepdims=True), p), element_of(x)
    )


def _power(x: ir.Value, p: int) -> ir.Value:
    if p == 2:
        return emit(graph.SquareOp, x)
    size = emit(graph.AbsOp, x)
    return size if p == 1 else emit(graph.PowerOp, size, scalar(p, element_of(x)))


def _root(x: ir.Value, p: int) -> ir.Value:
    if p == 2:
        return emit(graph.SqrtOp, x)
    return x if p == 1 else emit(graph.PowerOp, x, scalar(1 / p, element_of(x)))


def global_avg_pool(x: ir.Value) -> ir.Value:
    """The mean over all spatial dims. Source: ONNX `GlobalAveragePool`."""
    return reduce(graph.MeanOp, x, range(2, len(dims_of(x))), keepdims=True)


def global_max_pool(x: ir.Value) -> ir.Value:
    """The maximum over all spatial dims. Source: ONNX `GlobalMaxPool`."""
    return reduce(graph.MaxOp, x, range(2, len(dims_of(x))), keepdims=True)
