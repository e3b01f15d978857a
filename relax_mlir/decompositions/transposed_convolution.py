"""Transposed convolutions, as convolutions of each phase of the result.

    y[t] = sum over i, j with t = i * stride + j * dilation of x[i] * weight[j]

Of a phase, the t of one remainder r modulo the stride, the taps j lie `stride / g` apart, and what
they are multiplied with `dilation / g`, for g the greatest common divisor: an ordinary convolution,
without zeros between elements. Phases of as many taps at one offset are filters of one convolution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import gcd

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import Expr

from .convolution import check_windows, conv, pad_zeros
from .emit import (
    add,
    dims_of,
    element_of,
    emit,
    per_channel,
    permute,
    rank_of,
    reshape,
    scalar,
    vector,
)
from .windowed_products import conv_transpose_by_columns

MOST = 1 << 16
"""The greatest stride, and extent of a filter, whose phases are listed."""


@dataclass(frozen=True)
class Phases:
    """Phases in a row of one dim: the taps of each, and how the input is padded and dilated."""

    taps: tuple[tuple[int, ...], ...]
    dilation: int
    low: int
    offset: int
    reach: int

    @property
    def high(self) -> int:
        """The padding at the end, with which there are as many positions of each phase."""
        return self.reach - self.offset


def phases_of(size: int, stride: int, dilation: int) -> list[Phases]:
    """The phases of a dim in order; those in a row that differ in their taps alone are together."""
    reach = (size - 1) * dilation // stride
    step = dilation // gcd(stride, dilation)
    taps: list[list[int]] = [[] for _ in range(stride)]
    for tap in range(size):
        taps[tap * dilation % stride].append(tap)
    offsets = [(own[0] * dilation - i) // stride if own else 0 for i, own in enumerate(taps)]
    result: list[Phases] = []
    for (count, offset), group in groupby(range(stride), lambda i: (len(taps[i]), offsets[i])):
        low = offset + max(count - 1, 0) * step
        result.append(Phases(tuple(tuple(taps[i]) for i in group), step, low, offset, reach))
    return result


def conv_transpose(
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
) -> ir.Value:
    """The gradient of a convolution by its input, of weights [groups * c, o, k1, ...], and a bias.

    A dim of the result is (d - 1) * stride + (k - 1) * dilation + 1 + output padding, less the
    padding. Source: ONNX `ConvTranspose`; ATen `conv_transpose2d`; TVM `relax.nn.conv2d_transpose`.
    """
    spatial = rank_of(x) - 2
    strides, dilation = strides or [1] * spatial, dilation or [1] * spatial
    padding, output_padding = padding or [0] * 2 * spatial, output_padding or [0] * spatial
    check_windows(x, weight, strides, padding, dilation)
    if len(output_padding) != spatial or min(output_padding) < 0:
        raise ShapeError(f"has output padding {list(output_padding)} for {spatial} dims")
    if any(dim.value is None for dim in dims_of(weight)) or _is_large(weight, strides):
        settings = (strides, padding, output_padding, dilation, groups)
        result = conv_transpose_by_columns(x, weight, *settings)
        return result if bias is None else add(result, per_channel(bias, rank_of(x)))
    sizes = [dim.value for dim in dims_of(weight) if dim.value is not None]
    if min(sizes) < 1:
        raise ShapeError(f"expects weights, but got dims {list(dims_of(weight))}")
    if groups < 1 or sizes[0] % groups:
        raise ShapeError(f"expects groups that divide {sizes[0]} channels, but got {groups}")
    dims = list(zip(sizes[2:], strides, dilation))
    whole = _joined(x, weight, groups, [phases_of(*dim) for dim in dims])
    result = _interleaved(whole, spatial)
    ends = [
        (size - 1) * step % stride + 1 - stride - high + more
        for (size, stride, step), high, more in zip(dims, padding[spatial:], output_padding)
    ]
    low = [-first for first in padding[:spatial]]
    result = pad_zeros(result, range(2, spatial + 2), low, ends)
    return result if bias is None else add(result, per_channel(bias, rank_of(x)))


def _is_large(weight: ir.Value, strides: Sequence[int]) -> bool:
    """Whether there are more phases and taps than may be listed."""
    sizes = [dim.value or 0 for dim in dims_of(weight)[2:]]
    return max((*sizes, *strides), default=0) > MOST


def _joined(
    x: ir.Value,
    weight: ir.Value,
    groups: int,
    phases: Sequence[Sequence[Phases]],
    chosen: tuple[Phases, ...] = (),
) -> ir.Value:
    """[n, o, phases of each dim, positions of each dim], from one convolution for each choice."""
    axis = len(chosen)
    if axis == len(phases):
        return _convolved(x, weight, groups, chosen)
    parts = [_joined(x, weight, groups, phases, (*chosen, each)) for each in phases[axis]]
    if len(parts) == 1:
        return parts[0]
    return graph.ConcatOp.build(*parts, axis=2 + axis).operation.results[0]


def _convolved(x: ir.Value, weight: ir.Value, groups: int, chosen: Sequence[Phases]) -> ir.Value:
    """The phases of one choice; zeros where no tap reaches them."""
    n, _, *spatial = dims_of(x)
    each = dims_of(weight)[1]
    counts = [len(phases.taps) for phases in chosen]
    if not all(phases.taps[0] for phases in chosen):
        positions = [dim + phases.reach for dim, phases in zip(spatial, chosen)]
        dims = [n, each * groups, *counts, *positions]
        return emit(graph.FullOp, scalar(0, element_of(x)), shape=dims)
    padding = [phases.low for phases in chosen] + [phases.high for phases in chosen]
    result = conv(
        x,
        _filters(weight, groups, chosen),
        padding=padding,
        dilation=[phases.dilation for phases in chosen],
        groups=groups,
    )
    return reshape(result, [n, each * groups, *counts, *dims_of(result)[2:]])


def _filters(weight: ir.Value, groups: int, chosen: Sequence[Phases]) -> ir.Value:
    """A filter for each output channel and phase: its taps from the last one to the first."""
    i64 = ir.IntegerType.get_signless(64)
    channels, each = dims_of(weight)[:2]
    for axis in reversed(range(len(chosen))):
        taps = chosen[axis].taps
        flat = [tap for phase in taps for tap in reversed(phase)]
        indices = reshape(vector(flat, i64), [len(taps), len(taps[0])])
        weight = emit(graph.TakeOp, weight, indices, axis=2 + axis)
    dims = dims_of(weight)[2:]
    split = reshape(weight, [groups, channels // groups, each, *dims])
    phases, taps_of = range(3, 3 + len(dims), 2), range(4, 3 + len(dims), 2)
    ordered = permute(split, [0, 2, *phases, 1, *taps_of])
    filters: Expr = each * groups
    for count in dims[::2]:
        filters = filters * count
    return reshape(ordered, [filters, channels // groups, *dims[1::2]])


def _interleaved(value: ir.Value, spatial: int) -> ir.Value:
    """Phases next to positions, as one dim."""
    order = [axis for i in range(spatial) for axis in (2 + spatial + i, 2 + i)]
    n, o, *dims = dims_of(value)
    ordered = permute(value, [0, 1, *order])
    merged = [dims[i] * dims[spatial + i] for i in range(spatial)]
    return reshape(ordered, [n, o, *merged])
