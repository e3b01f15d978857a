"""Convolutions whose windows are displaced element by element: deform_conv2d."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import Expr, const

from ..emit import (
    add,
    arange,
    astype,
    dims_of,
    element_of,
    emit,
    expand_dims,
    is_integer,
    multiply,
    per_channel,
    permute,
    rank_of,
    reshape,
    scalar,
    vector,
    widen,
    with_dims,
)
from ..grid_sample import sampled
from ..pooling import windows_of
from ..windows import Windows
from .columns import require_windows

MOST = 1 << 16
"""Elements of a filter, each of which is listed."""


def deform_conv2d(
    x: ir.Value,
    offset: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    mask: ir.Value | None = None,
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
    offset_groups: int = 1,
) -> ir.Value:
    """Products of filters with elements that lie `offset` from where a window has them.

        x : tensor<n, c, h, w>    offset : tensor<n, offset_groups * kh * kw * 2, rows, columns>
        weight : tensor<o, c / groups, kh, kw>    mask : as offset, but a factor for two offsets

    Between elements x is interpolated, and 0 outside. Source: arXiv 1703.06211, 1811.11168; ONNX
    `DeformConv`; torchvision `deform_conv2d`.
    """
    windows = _windows(x, weight, strides, padding, dilation)
    n, c, h, w = dims_of(x)
    counts = require_windows(windows, [h, w], "@deform_conv2d")
    taps = windows[0].size * windows[1].size
    _check([x, offset, weight, bias, mask], groups, offset_groups)
    own = _check_dims(x, weight, groups, offset_groups)
    lines = n * offset_groups
    wanted = [n, const(offset_groups * taps * 2), *counts]
    moves = reshape(_of_dims(widen(offset), wanted, "offsets"), [lines, taps, 2, *counts])
    at = [_at(moves, windows, axis, counts[axis]) for axis in (0, 1)]
    values = permute(reshape(widen(x), [lines, c // offset_groups, h, w]), [0, 2, 3, 1])
    picked = sampled(values, at, [h, w])
    if mask is not None:
        factors = _of_dims(widen(mask), [n, const(offset_groups * taps), *counts], "factors")
        picked = multiply(picked, reshape(factors, [lines, taps, *counts, 1]))
    split = reshape(picked, [n, offset_groups, taps, counts[0] * counts[1], c // offset_groups])
    columns = reshape(
        permute(split, [0, 1, 4, 2, 3]), [n, groups, own * taps, counts[0] * counts[1]]
    )
    filters = dims_of(weight)[0]
    rows = reshape(widen(weight), [groups, filters // groups, own * taps])
    result = reshape(emit(graph.MatmulOp, rows, columns), [n, filters, *counts])
    result = result if bias is None else add(result, per_channel(widen(bias), 4))
    return astype(result, element_of(x))


def _windows(
    x: ir.Value,
    weight: ir.Value,
    strides: Sequence[int] | None,
    padding: Sequence[int] | None,
    dilation: Sequence[int] | None,
) -> list[Windows]:
    if rank_of(x) != 4 or rank_of(weight) != 4:
        raise ShapeError(f"expects images and filters, not ranks {rank_of(x)}, {rank_of(weight)}")
    size = [dim.value for dim in dims_of(weight)[2:]]
    if None in size:
        raise ShapeError(f"expects filters of constant size, but got {dims_of(weight)[2:]}")
    return windows_of(4, [s or 0 for s in size], strides, padding, dilation, False)


def _check(operands: Sequence[ir.Value | None], groups: int, offset_groups: int) -> None:
    present = [value for value in operands if value is not None]
    for value in present:
        if element_of(value) != element_of(present[0]) or is_integer(element_of(value)):
            kinds = f"{element_of(present[0])} and {element_of(value)}"
            raise ShapeError(f"expects floats of one type, but got {kinds}")
    if min(groups, offset_groups) < 1:
        raise ShapeError(f"expects groups, but got {groups} and {offset_groups}")


def _check_dims(x: ir.Value, weight: ir.Value, groups: int, offset_groups: int) -> Expr:
    """The channels of a filter."""
    c, (o, own) = dims_of(x)[1], dims_of(weight)[:2]
    for dim, count in ((c, groups), (c, offset_groups), (o, groups)):
        if dims_differ(dim, dim // count * count):
            raise ShapeError(f"expects {count} groups of channels, but got {dim}")
    if dims_differ(own * groups, c):
        raise ShapeError(f"has filters of {own} channels in {groups} groups, but {c} channels")
    return c // groups


def _of_dims(value: ir.Value, dims: Sequence[Expr], what: str) -> ir.Value:
    actual = dims_of(value)
    if len(actual) != len(dims) or any(map(dims_differ, actual, dims)):
        texts = (f"[{', '.join(map(str, each))}]" for each in (dims, actual))
        raise ShapeError(f"expects {what} of dims {' but got '.join(texts)}")
    return with_dims(value, dims)


def _at(moves: ir.Value, windows: Sequence[Windows], axis: int, count: Expr) -> ir.Value:
    """[n * groups, taps, rows, columns]: where elements are along an axis."""
    side, element = windows[axis], element_of(moves)
    columns = windows[1].size
    taps = range(windows[0].size * columns)
    if len(taps) > MOST:
        raise ShapeError(f"expects filters of at most {MOST} elements, but got {len(taps)}")
    steps = [(tap % columns if axis else tap // columns) * side.dilation for tap in taps]
    starts = arange(-side.low, count, side.stride, element)
    base = add(
        expand_dims(vector(steps, element), [1, 2]), expand_dims(starts, [0] if axis else [1])
    )
    position = scalar(axis, ir.IntegerType.get_signless(64))
    return add(emit(graph.TakeOp, moves, position, axis=2), base)
