"""Convolutions, softmax, attention, images."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    broadcast_to,
    dims_of,
    emit,
    expand_dims,
    multiply,
    reshape,
    symbol,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, const

from ..call import Call
from ..registry import Function, operator
from .shaping import padded


def spread(values: Any, count: int) -> list[Any]:
    """A value for each spatial dim."""
    if isinstance(values, int):
        return [values] * count
    return list(values) * count if len(values) == 1 else list(values)


@operator("convolution")
def convolution(
    call: Call,
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> ir.Value:
    """A convolution, or a transposed one."""
    count = call.rank(weight) - 2
    pads = call.exprs(spread(padding, count))
    if not transposed:
        return _convolved(call, x, weight, bias, stride, pads, pads, dilation, groups)
    around = call.integers(pads, "padding")
    alone = call.rank(x) == count + 1
    result = d.conv_transpose(
        expand_dims(x, [0]) if alone else x,
        weight,
        bias,
        strides=call.integers(spread(stride, count), "strides"),
        padding=[*around, *around],
        output_padding=call.integers(spread(output_padding, count), "output padding"),
        dilation=call.integers(spread(dilation, count), "dilation"),
        groups=groups,
    )
    return emit(graph.SqueezeOp, result, axes=[0]) if alone else result


def _convolved(
    call: Call,
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    stride: Any,
    low: Sequence[Expr],
    high: Sequence[Expr],
    dilation: Any,
    groups: int,
) -> ir.Value:
    """A convolution; padding that is not known is put around the elements first."""
    count = call.rank(weight) - 2
    padding: Sequence[int | None] = [each.value for each in (*low, *high)]
    if any(each is None for each in padding):
        pads = [end for ends in zip(reversed(low), reversed(high), strict=True) for end in ends]
        x, padding = padded(call, x, pads, "constant", 0), [0] * 2 * count
    alone = call.rank(x) == count + 1
    result = d.conv(
        expand_dims(x, [0]) if alone else x,
        weight,
        bias,
        strides=call.integers(spread(stride, count), "strides"),
        padding=[each for each in padding if each is not None],
        dilation=call.integers(spread(dilation, count), "dilation"),
        groups=groups,
    )
    return emit(graph.SqueezeOp, result, axes=[0]) if alone else result


@operator("conv1d", "conv2d", "conv3d")
def conv(
    call: Call,
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> ir.Value:
    """A convolution."""
    return convolution(call, x, weight, bias, stride, padding, dilation, False, 0, groups)


@operator("conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv_padding(
    call: Call,
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    stride: Any = 1,
    padding: str = "valid",
    dilation: Any = 1,
    groups: int = 1,
) -> ir.Value:
    """A convolution of as many windows as elements, or of those within."""
    count = call.rank(weight) - 2
    low, high = [const(0)] * count, [const(0)] * count
    if padding == "same":
        sizes, steps = dims_of(weight)[2:], call.exprs(spread(dilation, count))
        totals = [(size - 1) * step for size, step in zip(sizes, steps, strict=True)]
        low = [total // 2 for total in totals]
        high = [total - first for total, first in zip(totals, low, strict=True)]
    return _convolved(call, x, weight, bias, stride, low, high, dilation, groups)


@operator("_softmax", "softmax.int")
def softmax(call: Call, x: ir.Value, dim: int, *args: Any, **options: Any) -> ir.Value:
    """The softmax along an axis."""
    x = call.tensor(x, call.element)
    if not call.rank(x):
        return reshape(emit(graph.SoftmaxOp, reshape(x, [1]), axis=0), [])
    return emit(graph.SoftmaxOp, x, axis=call.axis(dim, call.rank(x)))


@operator("_log_softmax", "log_softmax.int")
def log_softmax(call: Call, x: ir.Value, dim: int, *args: Any, **options: Any) -> ir.Value:
    """Its logarithm."""
    x = call.tensor(x, call.element)
    if not call.rank(x):
        return reshape(emit(graph.LogSoftmaxOp, reshape(x, [1]), axis=0), [])
    return emit(graph.LogSoftmaxOp, x, axis=call.axis(dim, call.rank(x)))


@operator("scaled_dot_product_attention")
def attention(
    call: Call,
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    mask: ir.Value | None = None,
    dropout: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> ir.Value:
    """Scaled dot-product attention of [..., n, d]."""
    if dropout:
        raise ModelError("has dropout, which is not supported; call model.eval() first")
    operands = [query, key, value]
    dims = dims_of(query)
    if scale is None and dims[-1].value is None:
        width = reshape(symbol(dims[-1], call.element), [])
        operands[0], scale = multiply(query, emit(graph.RsqrtOp, width)), 1.0
    if len(dims) == 3:
        operands = [expand_dims(each, [1]) for each in operands]
        mask = expand_dims(mask, [1]) if mask is not None and call.rank(mask) == 3 else mask
    elif len(dims) != 4:
        raise ModelError(f"has queries of rank {len(dims)}, which is not supported")
    heads = [dims_of(each)[1] for each in operands]
    if heads[0].value is None and heads[0] == heads[1] == heads[2]:
        operands, mask = _with_heads_as_rows(operands, mask)
    result = d.attention(*operands, mask=mask, causal=is_causal, scale=scale)[0]
    return reshape(result, call.dims)


def _with_heads_as_rows(
    operands: Sequence[ir.Value], mask: ir.Value | None
) -> tuple[list[ir.Value], ir.Value | None]:
    """Operands of one head: as many heads as a symbol says are rows of the batch."""
    rows, heads = dims_of(operands[0])[:2]
    merged = [reshape(each, [dims_of(each)[0] * heads, 1, *dims_of(each)[2:]]) for each in operands]
    if mask is not None and len(dims_of(mask)) == 4:
        last = dims_of(mask)[2:]
        mask = reshape(broadcast_to(mask, [rows, heads, *last]), [rows * heads, 1, *last])
    return merged, mask


@operator("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    call: Call,
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    dropout: float = 0.0,
    is_causal: bool = False,
    attn_mask: ir.Value | None = None,
    scale: float | None = None,
) -> Sequence[ir.Value | None]:
    """The same; the sums of exponentials are for gradients alone."""
    return attention(call, query, key, value, attn_mask, dropout, is_causal, scale), None


def _resized(
    call: Call,
    x: ir.Value,
    scales: Any,
    mode: str,
    coordinates: str,
    nearest: str,
    **more: Any,
) -> ir.Value:
    count = call.rank(x) - 2
    sizes, axes = call.dims[2:], list(range(2, call.rank(x)))
    how: dict[str, Any] = {"mode": mode, "coordinates": coordinates, "nearest": nearest, **more}
    if scales is None:
        return d.resize(x, axes, sizes=sizes, **how)
    return d.resize(x, axes, sizes=sizes, scales=list(map(float, spread(scales, count))), **how)


@operator("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def upsample_nearest(call: Call, x: ir.Value, size: Any, scales: Any) -> ir.Value:
    """The nearest element."""
    return _resized(call, x, scales, "nearest", "asymmetric", "floor")


@operator("upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec")
def upsample_linear(
    call: Call, x: ir.Value, size: Any, align_corners: bool, scales: Any
) -> ir.Value:
    """Between neighbours."""
    coordinates = "align_corners" if align_corners else "half_pixel"
    return _resized(call, x, None if align_corners else scales, "linear", coordinates, "floor")


@operator("upsample_bicubic2d.vec")
def upsample_cubic(
    call: Call, x: ir.Value, size: Any, align_corners: bool, scales: Any
) -> ir.Value:
    """Between four neighbours."""
    coordinates = "align_corners" if align_corners else "half_pixel"
    return _resized(call, x, None if align_corners else scales, "cubic", coordinates, "floor")


def _smoothed(mode: str, **more: Any) -> Function:
    """Between the mean of neighbours, as many as an element of the result stands for."""

    def build(
        call: Call, x: ir.Value, size: Any, align_corners: bool, *scales: float | None
    ) -> ir.Value:
        given: Any = scales if len(scales) == 2 and None not in scales else None
        if align_corners:
            given = _between_corners(call, x)
        how: dict[str, Any] = {"antialias": True, "exclude_outside": True, **more}
        return _resized(call, x, given, mode, "half_pixel", "floor", **how)

    return build


def _between_corners(call: Call, x: ir.Value) -> list[float]:
    """Scales of the distances between the first and the last element."""
    pairs = zip(dims_of(x)[2:], call.dims[2:], strict=True)
    own = [call.integers(pair, "a size that is smoothed with align_corners") for pair in pairs]
    if any(size < 2 for pair in own for size in pair):
        raise ModelError("is smoothed with align_corners to or from a size below 2")
    return [(target - 1) / (source - 1) for source, target in own]


operator("_upsample_bilinear2d_aa")(_smoothed("linear"))
operator("_upsample_bicubic2d_aa")(_smoothed("cubic", cubic=-0.5))


@operator("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sample(
    call: Call, x: ir.Value, grid: ir.Value, mode: int, padding: int, align_corners: bool
) -> ir.Value:
    """Elements at coordinates."""
    return d.grid_sample(
        x,
        grid,
        mode=("linear", "nearest", "cubic")[mode],
        padding=("zeros", "border", "reflection")[padding],
        align_corners=align_corners,
    )


@operator("glu")
def glu(call: Call, x: ir.Value, dim: int = -1) -> ir.Value:
    """One half, times the sigmoid of the other."""
    return d.glu(x, call.axis(dim, call.rank(x)))
