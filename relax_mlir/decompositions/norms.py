"""Normalisations by mean and variance, or by a norm; half precision is computed in f32."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ, normalize_axis
from relax_mlir.symbolic import const, product

from .emit import (
    add,
    astype,
    broadcast_to,
    dims_of,
    dims_text,
    divide,
    element_of,
    emit,
    maximum,
    multiply,
    per_channel,
    rank_of,
    reduce,
    reshape,
    scalar,
    subtract,
    where,
    widen,
)
from .pooling import sum_pool


def batch_norm(
    x: ir.Value,
    scale: ir.Value | None,
    bias: ir.Value | None,
    mean: ir.Value,
    variance: ir.Value,
    *,
    epsilon: float,
    axis: int = 1,
) -> ir.Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, of known means and variances.

    Parameters are vectors along the axis. Source: arXiv 1502.03167; ONNX `BatchNormalization`.
    """
    position = normalize_axis(axis, rank_of(x))
    factor = emit(graph.RsqrtOp, add(widen(variance), epsilon))
    if scale is not None:
        factor = multiply(factor, widen(scale))
    centred = subtract(widen(x), _along(widen(mean), x, position))
    result = multiply(centred, _along(factor, x, position))
    return astype(_affine(result, None, bias, position), element_of(x))


def instance_norm(
    x: ir.Value, scale: ir.Value | None, bias: ir.Value | None, *, epsilon: float
) -> ir.Value:
    """Each channel of each element of the batch by its own mean and variance.

    Source: arXiv 1607.08022; ONNX `InstanceNormalization`.
    """
    result = _normalized(widen(x), range(2, rank_of(x)), epsilon)
    return astype(_affine(result, scale, bias, 1), element_of(x))


def group_norm(
    x: ir.Value, groups: int, scale: ir.Value | None, bias: ir.Value | None, *, epsilon: float
) -> ir.Value:
    """Groups of channels of each element of the batch by their mean and variance.

    Source: arXiv 1803.08494; ONNX `GroupNormalization`; ATen `group_norm`.
    """
    n, c, *spatial = dims_of(x)
    if groups < 1 or dims_differ(c, c // groups * groups):
        raise ShapeError(f"expects groups that divide {c} channels, but got {groups}")
    split = reshape(widen(x), [n, groups, c // groups, *spatial])
    result = _normalized(split, range(2, rank_of(split)), epsilon)
    return astype(_affine(reshape(result, dims_of(x)), scale, bias, 1), element_of(x))


def mean_variance_norm(x: ir.Value, axes: Sequence[int], *, epsilon: float = 0) -> ir.Value:
    """(x - mean) / sqrt(variance + epsilon) over some axes; of ONNX the deviation has 1e-9 added.

    Source: ONNX `MeanVarianceNormalization`.
    """
    return astype(_normalized(widen(x), axes, epsilon), element_of(x))


def _normalized(x: ir.Value, axes: Sequence[int], epsilon: float) -> ir.Value:
    attributes = {"axes": list(axes), "keepdims": True}
    mean = emit(graph.MeanOp, x, **attributes)
    variance = emit(graph.VarianceOp, x, correction=0, **attributes)
    return multiply(subtract(x, mean), emit(graph.RsqrtOp, add(variance, epsilon)))


def _affine(x: ir.Value, scale: ir.Value | None, bias: ir.Value | None, axis: int) -> ir.Value:
    """x * scale + bias, by the index of an axis."""
    if scale is not None:
        x = multiply(x, _along(widen(scale), x, axis))
    return x if bias is None else add(x, _along(widen(bias), x, axis))


def _along(parameter: ir.Value, x: ir.Value, axis: int) -> ir.Value:
    dims = dims_of(parameter)
    if len(dims) != 1 or dims_differ(dims[0], dims_of(x)[axis]):
        wanted = dims_of(x)[axis]
        raise ShapeError(f"expects a vector for dim {wanted}, but got {dims_text(dims)}")
    return per_channel(parameter, rank_of(x), axis)


def layer_norm(
    x: ir.Value,
    scale: ir.Value | None,
    bias: ir.Value | None,
    *,
    epsilon: float,
    axis: int = -1,
) -> ir.Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the dims from an axis on.

    Parameters have those dims, or broadcast to them, or to all. Source: ONNX
    `LayerNormalization`; ATen `layer_norm`.
    """
    merged, dims = _rows(x, axis)
    if any(each is not None and rank_of(each) > len(dims) for each in (scale, bias)):
        y = layer_norm(x, None, None, epsilon=epsilon, axis=axis)
        y = y if scale is None else multiply(y, broadcast_to(scale, dims_of(x)))
        return y if bias is None else add(y, broadcast_to(bias, dims_of(x)))
    parameters = [_row(x, scale, dims, 1), _row(x, bias, dims, 0)]
    result = emit(graph.LayerNormOp, merged, *parameters, epsilon=epsilon)
    return reshape(result, dims_of(x))


def rms_norm(x: ir.Value, scale: ir.Value | None, *, epsilon: float, axis: int = -1) -> ir.Value:
    """x / sqrt(mean(x^2) + epsilon) * scale over the dims from an axis on.

    The scale broadcasts to those dims, or to all. Source: arXiv 1910.07467; ONNX
    `RMSNormalization`.
    """
    merged, dims = _rows(x, axis)
    if scale is not None and rank_of(scale) > len(dims):
        y = rms_norm(x, None, epsilon=epsilon, axis=axis)
        return multiply(y, broadcast_to(scale, dims_of(x)))
    result = emit(graph.RmsNormOp, merged, _row(x, scale, dims, 1), epsilon=epsilon)
    return reshape(result, dims_of(x))


def _rows(x: ir.Value, axis: int) -> tuple[ir.Value, tuple]:
    """The tensor with the dims from an axis on as one, and those dims."""
    position = normalize_axis(axis, rank_of(x))
    lead, last = dims_of(x)[:position], dims_of(x)[position:]
    return reshape(x, [*lead, product(last)]), last


def _row(x: ir.Value, parameter: ir.Value | None, dims: tuple, default: float) -> ir.Value:
    """A parameter as one dim."""
    if parameter is None:
        value = scalar(default, element_of(x))
        return emit(graph.FullOp, value, shape=[product(dims)])
    if dims_of(parameter) != dims:
        parameter = broadcast_to(parameter, dims)
    return reshape(parameter, [product(dims)])


def lp_norm(x: ir.Value, *, p: int = 2, axis: int = -1, epsilon: float = 0) -> ir.Value:
    """x divided by its p-norm along an axis, at least `epsilon`; 0 where that is 0.

    Source: ONNX `LpNormalization`; ATen `normalize`.
    """
    if p not in (1, 2):
        raise ShapeError(f"expects a norm of 1 or 2, but got {p}")
    value, axes = widen(x), [normalize_axis(axis, rank_of(x))]
    sizes = emit(graph.AbsOp if p == 1 else graph.SquareOp, value)
    norm = reduce(graph.SumOp, sizes, axes, keepdims=True)
    norm = norm if p == 1 else emit(graph.SqrtOp, norm)
    norm = maximum(norm, epsilon) if epsilon else norm
    zero = emit(graph.EqualOp, norm, scalar(0, element_of(norm)))
    return astype(where(zero, 0, divide(value, norm)), element_of(x))


def local_response_norm(
    x: ir.Value, size: int, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1
) -> ir.Value:
    """x / (bias + alpha / size * sum of squares of `size` channels around it)^beta.

    Source: ONNX `LRN`; ATen `local_response_norm`, of which the squares are of as many channels.
    """
    if size < 1:
        raise ShapeError(f"expects one channel or more, but got {size}")
    n, c, *spatial = dims_of(x)
    value = widen(x)
    squares = reshape(emit(graph.SquareOp, value), [n, const(1), c, product(spatial)])
    around = [(size - 1) // 2, 0, size // 2, 0]
    sums = reshape(sum_pool(squares, [size, 1], padding=around), dims_of(x))
    norm = add(multiply(sums, alpha / size), bias)
    power = emit(graph.PowerOp, norm, scalar(beta, element_of(norm)))
    return astype(divide(value, power), element_of(x))
