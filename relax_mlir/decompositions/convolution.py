"""Convolutions of one to three spatial dims: by `graph.nn_conv2d`, if the filters' are known.

    x : tensor<n, groups * c, d1, ...>    weight : tensor<o, c, k1, ...>

Padding is in front of each spatial dim, then after each. Of three dims the taps along the first
become channels: each plane of the result is an image of its own. Of one dim with a long stride, as
in spectra of overlapping frames, so do the elements of a block that is as long as the stride.
"""

from collections.abc import Sequence
from typing import NamedTuple

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import RequireOp, ShapeError
from relax_mlir.symbolic import Expr, Fact, at_most, const

from .emit import (
    add,
    arange,
    dims_of,
    element_of,
    emit,
    expand_dims,
    per_channel,
    permute,
    rank_of,
    reshape,
    scalar,
)
from .windowed_products import conv_by_columns

MIN_BLOCK = 16
"""The stride of one dim from which its blocks become channels."""


def conv(
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
) -> ir.Value:
    """Sums of products of windows with filters, and the filter's bias.

    Source: ONNX `Conv`; ATen `conv1d` to `conv3d`; TVM `relax.nn.conv1d` to `conv3d`.
    """
    spatial = rank_of(x) - 2
    strides, dilation = strides or [1] * spatial, dilation or [1] * spatial
    padding = padding or [0] * (2 * spatial)
    check_windows(x, weight, strides, padding, dilation)
    settings = _Settings(list(strides), list(padding), list(dilation), groups)
    if any(size.value is None for size in dims_of(weight)[2:]):
        result = conv_by_columns(x, weight, *settings)
    else:
        result = (_conv1d, _images, _conv3d)[spatial - 1](x, weight, settings)
    return result if bias is None else add(result, per_channel(bias, rank_of(x)))


def check_windows(
    x: ir.Value,
    weight: ir.Value,
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> None:
    """Raises ShapeError unless there are one to three spatial dims, and settings for each."""
    rank = rank_of(x)
    if rank not in (3, 4, 5) or rank_of(weight) != rank:
        raise ShapeError(f"convolves ranks {rank} and {rank_of(weight)}, but not one of 3 to 5")
    if not len(strides) == len(dilation) == rank - 2 or len(padding) != 2 * (rank - 2):
        given = f"{list(strides)}, {list(padding)} and {list(dilation)}"
        raise ShapeError(f"expects strides, padding and dilation of rank {rank}, but got {given}")
    if min(*strides, *dilation) < 1 or min(padding) < 0:
        raise ShapeError(f"has strides {list(strides)} and dilation {list(dilation)}")


class _Settings(NamedTuple):
    """Those of a convolution, for each of its spatial dims."""

    strides: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int


def _images(x: ir.Value, weight: ir.Value, settings: _Settings) -> ir.Value:
    return emit(graph.Conv2dOp, x, weight, **settings._asdict())


def _conv1d(x: ir.Value, weight: ir.Value, settings: _Settings) -> ir.Value:
    """Images of one row."""
    strides, (low, high), dilation, groups = settings
    stride, size = strides[0], dims_of(weight)[2].value
    if stride >= MIN_BLOCK and dilation == [1] and size and not size % stride:
        return _by_blocks(pad_zeros(x, [2], [low], [high]), weight, stride, groups)
    rows = [reshape(value, [*dims_of(value)[:2], 1, dims_of(value)[2]]) for value in (x, weight)]
    row = _Settings([1, *strides], [0, low, 0, high], [1, *dilation], groups)
    result = _images(rows[0], rows[1], row)
    n, o, _, w = dims_of(result)
    return reshape(result, [n, o, w])


def _by_blocks(x: ir.Value, weight: ir.Value, stride: int, groups: int) -> ir.Value:
    """A convolution of one dim whose stride divides the window: one of blocks, at stride 1."""
    length, size = dims_of(x)[2], dims_of(weight)[2].value
    assert size is not None, weight
    _require_window(size, length, stride)
    count = (length - size) // stride + size // stride
    end = {"axes": [2], "begin": [0], "end": [count * stride], "strides": [1]}
    blocks = _blocks(emit(graph.StridedSliceOp, x, **end), count, stride)
    plain = _Settings([1], [0, 0], [1], groups)
    return _conv1d(blocks, _blocks(weight, const(size // stride), stride), plain)


def _blocks(x: ir.Value, count: Expr, size: int) -> ir.Value:
    """[n, c * size, count]: the elements of a block one after the other, for each channel."""
    n, c, _ = dims_of(x)
    return reshape(permute(reshape(x, [n, c, count, size]), [0, 1, 3, 2]), [n, c * size, count])


def _conv3d(x: ir.Value, weight: ir.Value, settings: _Settings) -> ir.Value:
    """Images of each plane of the result, with as many channels for each one as there are taps."""
    strides, padding, dilation, groups = settings
    n, c, _, h, w = dims_of(x)
    o, each, taps, *window = dims_of(weight)
    assert taps.value is not None, taps
    planes = _planes(x, taps.value, strides[0], padding[0], padding[3], dilation[0])
    depth = dims_of(planes)[3]
    images = reshape(permute(planes, [0, 3, 1, 2, 4, 5]), [n * depth, c * taps, h, w])
    filters = reshape(weight, [o, each * taps, *window])
    around = [padding[1], padding[2], padding[4], padding[5]]
    result = _images(images, filters, _Settings(strides[1:], around, dilation[1:], groups))
    rows, columns = dims_of(result)[2:]
    return permute(reshape(result, [n, depth, o, rows, columns]), [0, 2, 1, 3, 4])


def _planes(x: ir.Value, taps: int, stride: int, low: int, high: int, dilation: int) -> ir.Value:
    """[n, c, taps, depth of the result, h, w]: the plane that each tap has in each window."""
    x = pad_zeros(x, [2], [low], [high])
    depth, extent = dims_of(x)[2], (taps - 1) * dilation + 1
    _require_window(extent, depth, stride)
    count = (depth - extent) // stride + 1
    i64 = ir.IntegerType.get_signless(64)
    offsets = expand_dims(arange(0, taps, dilation, i64), [1])
    indices = add(offsets, arange(0, count, stride, i64))
    return emit(graph.TakeOp, x, indices, axis=2)


def _require_window(extent: int, depth: Expr, stride: int) -> None:
    """Refuses images of less than no window, as `graph.nn_conv2d` does for its dims."""
    fits = at_most(const(extent), depth + stride)
    if depth.value is not None and not fits.proved:
        raise ShapeError(f"has a window of {extent} with stride {stride}, but a dim of {depth}")
    if not fits.proved:
        RequireOp.build([Fact(const(extent), "<=", depth + stride)], "graph.nn_conv2d")


def pad_zeros(
    x: ir.Value, axes: Sequence[int], low: Sequence[int], high: Sequence[int]
) -> ir.Value:
    """Zeros in front of some axes and after them; what is negative is taken off."""
    if not any(low) and not any(high):
        return x
    lows, highs = [0] * rank_of(x), [0] * rank_of(x)
    for axis, first, last in zip(axes, low, high, strict=True):
        lows[axis], highs[axis] = first, last
    interior = [0] * rank_of(x)
    zero = scalar(0, element_of(x))
    return emit(graph.PadOp, x, zero, low=lows, high=highs, interior=interior, mode="constant")
