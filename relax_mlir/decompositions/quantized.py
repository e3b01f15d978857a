"""Affine quantisation of ONNX: integers that stand for scale * (integer - zero_point).

`bounds` are the least and the greatest integer, those of the type if there are none.
"""

from collections.abc import Sequence

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ, normalize_axis
from relax_mlir.dialects.graph.elementwise import is_float, is_integer

from .convolution import conv
from .emit import (
    add,
    astype,
    binary,
    bounds_of,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    maker,
    maximum,
    minimum,
    multiply,
    per_channel,
    rank_of,
    reduce,
    subtract,
    where,
    widen,
)

Bounds = tuple[int, int]
_EXACT = 1 << 24
"""Sums of integers up to this magnitude are exact in f32."""


def quantize_linear(
    x: ir.Value,
    scale: ir.Value,
    zero_point: ir.Value | None = None,
    *,
    element: ir.Type,
    axis: int = 1,
    bounds: Bounds | None = None,
) -> ir.Value:
    """round(x / scale) + zero_point, to nearest even, within the bounds.

    A float of 8 bits as the element is that nearest to x / scale + zero_point, or its greatest.
    `scale` and `zero_point` are of rank 0, or have an element for each index of the axis. Source:
    ONNX `QuantizeLinear`; TVM `relax.quantize`.
    """
    _require_float(x, scale)
    values = widen(x)
    steps = divide(values, _aligned(astype(scale, element_of(values)), x, axis))
    is_float8 = graph.is_small_float(element)
    whole = steps if is_float8 else emit(graph.RoundOp, steps)
    if zero_point is not None:
        whole = add(whole, _aligned(astype(zero_point, element_of(values)), x, axis))
    return astype(whole, element) if is_float8 else _saturated(whole, element, bounds)


def dequantize_linear(
    x: ir.Value, scale: ir.Value, zero_point: ir.Value | None = None, *, axis: int = 1
) -> ir.Value:
    """scale * (x - zero_point), in the type of the scale.

    Source: ONNX `DequantizeLinear`; TVM `relax.dequantize`.
    """
    _require_float(scale)
    own, zero = widen(scale), _aligned_if(zero_point, x, axis)
    if graph.is_small_float(element_of(x)):
        values = astype(x, element_of(own))
        values = values if zero is None else subtract(values, astype(zero, element_of(own)))
    else:
        _require_integers(x, zero_point)
        values = astype(_centred(x, zero, 64), element_of(own))
    return astype(multiply(values, _aligned(own, x, axis)), element_of(scale))


def dynamic_quantize_linear(
    x: ir.Value, *, signed: bool = False
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """x as integers of 0 to 255, of ui8, or of -128 to 127, of i8; their scale and zero point.

    The scale is the range of x and 0, divided by 255; 1 if all are 0. Source: ONNX
    `DynamicQuantizeLinear`.
    """
    _require_float(x)
    values = astype(x, ir.F32Type.get())
    axes = list(range(rank_of(x)))
    low = minimum(reduce(graph.MinOp, values, axes), 0)
    high = maximum(reduce(graph.MaxOp, values, axes), 0)
    span = divide(subtract(high, low), 255)
    scale = where(binary(graph.EqualOp, span, 0), 1, span)
    element = _signless(8) if signed else ir.IntegerType.get_unsigned(8)
    first = subtract(bounds_of(ir.IntegerType(element))[0], divide(low, scale))
    zero_point = _saturated(emit(graph.RoundOp, first), element, None)
    return quantize_linear(values, scale, zero_point, element=element), scale, zero_point


def matmul_integer(
    a: ir.Value,
    b: ir.Value,
    a_zero: ir.Value | None = None,
    b_zero: ir.Value | None = None,
) -> ir.Value:
    """The product of a - a_zero and b - b_zero, in i32, which wraps.

    Zero points are of rank 0, or have an element for each row of a, each column of b. Source: ONNX
    `MatMulInteger`.
    """
    _require_integers(a, b, a_zero, b_zero)
    if a_zero is not None and rank_of(a_zero) == 1:
        a_zero = expand_dims(a_zero, [1])
    a_zero, b_zero = (None if _is_zero(zero) else zero for zero in (a_zero, b_zero))
    if not _are_bytes(a, b) or min(rank_of(a), rank_of(b)) < 2:
        return emit(graph.MatmulOp, _centred(a, a_zero, 32), _centred(b, b_zero, 32))
    # Machines multiply bytes, not differences: a b - sum(a) b_zero - a_zero sum(b - b_zero). Each
    # term widens for itself, so that products are fused with it.
    product = emit(graph.MatmulOp, _centred(a, None, 32), _centred(b, None, 32))
    if b_zero is not None:
        sums = reduce(graph.SumOp, _centred(a, None, 32), [rank_of(a) - 1], keepdims=True)
        product = subtract(product, multiply(sums, _centred(b_zero, None, 32)))
    if a_zero is not None:
        sums = reduce(graph.SumOp, _centred(b, b_zero, 32), [rank_of(b) - 2], keepdims=True)
        product = subtract(product, multiply(_centred(a_zero, None, 32), sums))
    return product


def _are_bytes(*values: ir.Value) -> bool:
    return all(str(element_of(value)) in ("i8", "ui8") for value in values)


def _is_zero(value: ir.Value | None) -> bool:
    """Whether a zero point is a constant 0."""
    made = None if value is None else maker(value)
    made = maker(made.operands[0]) if isinstance(made, graph.BitcastOp) else made
    elements = made.attributes["value"] if isinstance(made, arith.ConstantOp) else None
    if not isinstance(elements, ir.DenseElementsAttr) or not elements.is_splat:
        return False
    return ir.IntegerAttr(elements.get_splat_value()).value == 0


def conv_integer(
    x: ir.Value,
    weight: ir.Value,
    x_zero: ir.Value | None = None,
    weight_zero: ir.Value | None = None,
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
) -> ir.Value:
    """The convolution of x - x_zero and weight - weight_zero, in i32, which wraps.

    `weight_zero` is of rank 0, or has an element for each filter. Sums are exact in the floats that
    they are computed in. Source: ONNX `ConvInteger`.
    """
    _require_integers(x, weight, x_zero, weight_zero)
    if weight_zero is not None and rank_of(weight_zero) == 1:
        weight_zero = expand_dims(weight_zero, range(1, rank_of(weight)))
    element = _exact_float(x, weight)
    operands = [
        astype(_centred(v, zero, 32), element) for v, zero in ((x, x_zero), (weight, weight_zero))
    ]
    sums = conv(*operands, strides=strides, padding=padding, dilation=dilation, groups=groups)
    return astype(astype(sums, _signless(64)), _signless(32))


def qlinear_matmul(
    a: ir.Value,
    a_scale: ir.Value,
    a_zero: ir.Value,
    b: ir.Value,
    b_scale: ir.Value,
    b_zero: ir.Value,
    y_scale: ir.Value,
    y_zero: ir.Value,
    *,
    bounds: Bounds | None = None,
) -> ir.Value:
    """The product of two quantised matrices, quantised to the type of `y_zero`.

    Scales and zero points are of rank 0, or have an element for each row of a, each column of b.
    Source: ONNX `QLinearMatMul`.
    """
    if rank_of(a_scale) == 1:
        a_scale = expand_dims(a_scale, [1])
    product = matmul_integer(a, b, a_zero, b_zero)
    return _requantized(product, multiply(a_scale, b_scale), y_scale, y_zero, bounds)


def qlinear_conv(
    x: ir.Value,
    x_scale: ir.Value,
    x_zero: ir.Value,
    weight: ir.Value,
    weight_scale: ir.Value,
    weight_zero: ir.Value,
    y_scale: ir.Value,
    y_zero: ir.Value,
    bias: ir.Value | None = None,
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
    bounds: Bounds | None = None,
) -> ir.Value:
    """A convolution of quantised tensors, quantised to the type of `y_zero`.

    The bias is i32, of the scale of the products. Source: ONNX `QLinearConv`.
    """
    sums = conv_integer(
        x, weight, x_zero, weight_zero,
        strides=strides, padding=padding, dilation=dilation, groups=groups,
    )  # fmt: skip
    if bias is not None:
        sums = add(sums, per_channel(bias, rank_of(x)))
    if rank_of(weight_scale) == 1:
        weight_scale = expand_dims(weight_scale, range(1, rank_of(x) - 1))
    return _requantized(sums, multiply(x_scale, weight_scale), y_scale, y_zero, bounds)


def _requantized(
    sums: ir.Value,
    scale: ir.Value,
    y_scale: ir.Value,
    y_zero: ir.Value,
    bounds: Bounds | None,
) -> ir.Value:
    factor = divide(widen(scale), widen(y_scale))
    whole = emit(graph.RoundOp, multiply(astype(sums, element_of(factor)), factor))
    return _saturated(add(whole, astype(y_zero, element_of(factor))), element_of(y_zero), bounds)


def _saturated(whole: ir.Value, element: ir.Type, bounds: Bounds | None) -> ir.Value:
    """Floats as integers within bounds; the conversion keeps to those of the type."""
    if not is_integer(element):
        raise ShapeError(f"expects an integer element type, but got {element}")
    if bounds is None:
        return astype(whole, element)
    low, high = bounds_of(ir.IntegerType(element))
    if not low <= bounds[0] <= bounds[1] <= high:
        raise ShapeError(f"expects bounds within {element}, but got {bounds}")
    return astype(minimum(maximum(whole, bounds[0]), bounds[1]), element)


def _exact_float(x: ir.Value, weight: ir.Value) -> ir.Type:
    """The float type in which sums of products of 8-bit integers, less zero points, are exact."""
    taps = 1
    for dim in dims_of(weight)[1:]:
        taps *= dim.value or _EXACT
    is_small = all(ir.IntegerType(element_of(v)).width == 8 for v in (x, weight))
    return ir.F32Type.get() if is_small and taps * 255 * 255 <= _EXACT else ir.F64Type.get()


def _centred(x: ir.Value, zero: ir.Value | None, width: int) -> ir.Value:
    """The element less the zero point, in a type that has the difference."""
    own = astype(x, _signless(width))
    return own if zero is None else subtract(own, astype(zero, _signless(width)))


def _aligned_if(value: ir.Value | None, x: ir.Value, axis: int) -> ir.Value | None:
    return None if value is None else _aligned(value, x, axis)


def _aligned(value: ir.Value, x: ir.Value, axis: int) -> ir.Value:
    """A parameter so that it broadcasts along an axis of x."""
    if rank_of(value) == 0:
        return value
    if rank_of(value) != 1:
        raise ShapeError(f"expects a parameter of rank 0 or 1, but got rank {rank_of(value)}")
    position = normalize_axis(axis, rank_of(x))
    if dims_differ(dims_of(value)[0], dims_of(x)[position]):
        dims = f"{dims_of(x)[position]}, but got {dims_of(value)[0]}"
        raise ShapeError(f"expects as many parameters as dim {position} of {dims}")
    return expand_dims(value, range(1, rank_of(x) - position))


def _require_float(*values: ir.Value) -> None:
    for value in values:
        if not is_float(element_of(value)):
            raise ShapeError(f"expects floats, but got {element_of(value)}")


def _require_integers(*values: ir.Value | None) -> None:
    for value in values:
        if value is not None and not is_integer(element_of(value)):
            raise ShapeError(f"expects integers, but got {element_of(value)}")


def _signless(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)
