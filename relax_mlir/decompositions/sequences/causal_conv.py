"""Convolutions along time that look back only, and carry what they will look back on."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import const

from ..convolution import conv
from ..emit import (
    astype,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    rank_of,
    scalar,
    widen,
    with_dims,
)


def causal_conv(
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    past: ir.Value | None = None,
    *,
    silu: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """Sums over the last k elements of each channel of x [b, c, t], by weights [c, 1, k].

    `past` has the k - 1 elements in front of x, [b, c, k - 1], zeros without it. Returns the sums,
    or their silu, and the past of what comes next. Source: ONNX `CausalConvWithState`.
    """
    if rank_of(x) != 3 or rank_of(weight) != 3:
        raise ShapeError(f"expects ranks of 3, but got {rank_of(x)} and {rank_of(weight)}")
    b, c, t = dims_of(x)
    channels, one, k = dims_of(weight)
    if channels.value is None or k.value is None or not channels.value or not k.value:
        raise ShapeError(f"expects constant weights, but got {channels} of {k}")
    if dims_differ(c, channels) or dims_differ(one, const(1)):
        raise ShapeError(f"expects [{c}, 1, {k}] weights, but got [{channels}, {one}, {k}]")
    x, seen = with_dims(x, [b, channels, t]), k.value - 1
    state = [b, channels, const(seen)]
    if past is None:
        past = broadcast_to(scalar(0, element_of(x)), state)
    elif rank_of(past) != 3 or any(map(dims_differ, dims_of(past), state)):
        raise ShapeError(f"expects a past of {seen} elements, but got '{_type(past)}'")
    whole = graph.ConcatOp.build(with_dims(past, state), x, axis=2).operation.results[0]
    sums = conv(whole, weight, bias, groups=channels.value)
    if silu:
        sums = astype(emit(graph.SiluOp, widen(sums)), element_of(x))
    after = emit(graph.StridedSliceOp, whole, axes=[2], begin=[t], end=[t + seen], strides=[1])
    return sums, after


def _type(value: ir.Value) -> graph.TensorType:
    return graph.TensorType.of(value)
