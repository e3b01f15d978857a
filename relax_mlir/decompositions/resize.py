"""Resizing by nearest elements, or linear and cubic interpolation, one axis after the other.

Coordinates are quotients of integers, computed in f64: they are exact wherever they are integers or
halves, so that elements are chosen as the definition says.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError, exact_dims, normalize_axis
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import Expr, const

from .emit import (
    add,
    arange,
    astype,
    binary,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greater,
    is_integer,
    less,
    maximum,
    multiply,
    rank_of,
    subtract,
    symbol,
    where,
    widen,
)

COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"),
    "tf_crop_and_resize",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
MODES = ("nearest", "linear", "cubic")
MAX_REACH = 64
"""Elements on either side of a coordinate that antialias takes a mean of."""


@dataclass(frozen=True)
class Axis:
    """How an axis is resized: by `up / down`, from `start` to `end` of it if it is cropped."""

    source: Expr
    target: Expr
    up: Expr
    down: Expr
    start: float
    end: float


def resize(
    x: ir.Value,
    axes: Sequence[int],
    *,
    sizes: Sequence[Dim | int | str] | None = None,
    scales: Sequence[float] | None = None,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    nearest: str = "round_prefer_floor",
    cubic: float = -0.75,
    exclude_outside: bool = False,
    region: Sequence[tuple[float, float]] | None = None,
    extrapolation: float = 0,
    antialias: bool = False,
) -> ir.Value:
    """The tensor with other sizes along some axes, by sizes or scales.

    Of both, scales say where elements are, and sizes how many.
    `coordinates`, `nearest` and `cubic` (the coefficient a) are those of ONNX. `region` is the
    start and end of each axis, from 0 to 1, in mode `tf_crop_and_resize`, in which positions out of
    the input have the value `extrapolation`. With `antialias`, each element of an axis that shrinks
    by a known scale is a mean of all elements that it stands for.

    Source: ONNX `Resize`; ATen `upsample_bilinear2d` and others; TVM `relax.image.resize2d`.
    """
    known = (mode, MODES), (coordinates, COORDINATES), (nearest, NEAREST)
    for choice, choices in known:
        if choice not in choices:
            raise ShapeError(f"expects one of {', '.join(choices)}, but got '{choice}'")
    if antialias and mode == "nearest":
        raise ShapeError("expects interpolation with antialias, but got 'nearest'")
    if is_integer(element_of(x)) and mode != "nearest":
        raise ShapeError(f"interpolates floats, but got {element_of(x)}")
    described = _axes(x, axes, sizes, scales, region)
    result = x if mode == "nearest" else widen(x)
    outside = None
    for position, axis in described:
        at = _coordinates(axis, coordinates)
        if mode == "nearest":
            result = emit(graph.TakeOp, result, _nearest(at, nearest), axis=position)
        else:
            if antialias:
                taps = _smoothed(at, axis, mode, cubic)
            else:
                taps = _linear(at) if mode == "linear" else _cubic(at, cubic)
            taps = _inside(taps, axis) if exclude_outside else taps
            result = _interpolated(result, position, taps)
        if coordinates == "tf_crop_and_resize":
            beyond = _beyond(at, axis)
            aligned = expand_dims(beyond, range(1, rank_of(x) - position))
            outside = aligned if outside is None else binary(graph.LogicalOrOp, outside, aligned)
    if outside is not None:
        result = where(outside, extrapolation, result)
    return astype(result, element_of(x))


def _axes(
    x: ir.Value,
    axes: Sequence[int],
    sizes: Sequence[Dim | int | str] | None,
    scales: Sequence[float] | None,
    region: Sequence[tuple[float, float]] | None,
) -> list[tuple[int, Axis]]:
    """Each axis that is resized, with its position."""
    given = [each for each in (sizes, scales) if each is not None]
    if not given or any(len(each) != len(axes) for each in given):
        raise ShapeError(f"expects sizes or scales for {len(axes)} axes")
    if region is not None and len(region) != len(axes):
        raise ShapeError(f"expects a region of {len(axes)} axes, but got {len(region)}")
    positions = [normalize_axis(axis, rank_of(x)) for axis in axes]
    ends = region or [(0.0, 1.0)] * len(axes)
    result = []
    for i, (position, (start, end)) in enumerate(zip(positions, ends)):
        source = dims_of(x)[position]
        if scales is None:
            (up,), down = exact_dims(as_dims([(sizes or ())[i]])), source
        else:
            if not 0 < scales[i] < float("inf"):
                raise ShapeError(f"expects positive scales, but got {scales[i]}")
            scale = Fraction(scales[i])
            up, down = const(scale.numerator), const(scale.denominator)
            target = source * up // down
        if sizes is not None:
            (target,) = exact_dims(as_dims([sizes[i]]))
        result.append((position, Axis(source, target, up, down, start, end)))
    return result


def _coordinates(axis: Axis, mode: str) -> ir.Value:
    """Where each element of the result is in the input, as f64."""
    f64, i64 = ir.F64Type.get(), ir.IntegerType.get_signless(64)
    source, up, down = axis.source, axis.up, axis.down
    steps = arange(0, axis.target, 1, i64)
    # The length that the scale gives, less 1, in parts of `down`.
    last = source * up - down if up != axis.target else (up - 1) * down
    if mode == "asymmetric":
        return _quotient(multiply(steps, symbol(down, i64)), up)
    if mode in ("align_corners", "tf_crop_and_resize"):
        numerator = multiply(steps, symbol((source - 1) * down, i64))
        at = divide(astype(numerator, f64), maximum(symbol(last, f64), 1))
        if mode == "align_corners":
            return at
        final = symbol(source - 1, f64)
        cropped = add(multiply(at, axis.end - axis.start), multiply(final, axis.start))
        middle = multiply(final, (axis.end + axis.start) / 2)
        single = less(symbol(last, f64), 1) if axis.target.value is None else None
        if axis.target.value is not None:
            return cropped if axis.target.value != 1 else add(multiply(at, 0), middle)
        return where(single, middle, cropped) if single is not None else cropped
    odd = add(multiply(steps, 2), 1)
    if mode == "half_pixel_symmetric":
        centred = multiply(subtract(odd, symbol(axis.target, i64)), symbol(down, i64))
        return _quotient(add(centred, symbol((source - 1) * up, i64)), up * 2)
    at = _quotient(subtract(multiply(odd, symbol(down, i64)), symbol(up, i64)), up * 2)
    if mode == "half_pixel" or (axis.target.value or 0) > 1:
        return at
    return where(less(symbol(axis.target, f64), 2), 0, at)


def _quotient(numerator: ir.Value, divisor: Expr) -> ir.Value:
    f64 = ir.F64Type.get()
    return divide(astype(numerator, f64), maximum(symbol(divisor, f64), 1))


def _nearest(at: ir.Value, mode: str) -> ir.Value:
    """The index of the element at each coordinate; what picks elements clamps it."""
    shifted = {"round_prefer_floor": -0.5, "round_prefer_ceil": 0.5}.get(mode)
    at = at if shifted is None else add(at, shifted)
    up = mode in ("ceil", "round_prefer_floor")
    rounded = emit(graph.CeilOp if up else graph.FloorOp, at)
    return astype(rounded, ir.IntegerType.get_signless(64))


Taps = Sequence[tuple[ir.Value, ir.Value]]
"""Indices, as f64, and weights."""


def _linear(at: ir.Value) -> Taps:
    first = emit(graph.FloorOp, at)
    share = subtract(at, first)
    return [(first, subtract(1, share)), (add(first, 1), share)]


def _cubic(at: ir.Value, a: float) -> Taps:
    first = emit(graph.FloorOp, at)
    return [
        (add(first, i - 1), weight)
        for i, weight in enumerate(cubic_weights(subtract(at, first), a))
    ]


def _smoothed(at: ir.Value, axis: Axis, mode: str, a: float) -> Taps:
    """The kernel of a mode, stretched by how much the axis shrinks; its weights have a sum of 1."""
    up, down = axis.up.value, axis.down.value
    if up is None or down is None or not up:
        raise ShapeError(f"expects antialias of a known scale, but got {axis.up} / {axis.down}")
    scale = min(up / down, 1.0)
    reach = math.ceil((1 if mode == "linear" else 2) / scale)
    if reach > MAX_REACH:
        raise ShapeError(f"expects antialias of a scale of 1/{MAX_REACH} or more, but got {scale}")
    first = emit(graph.FloorOp, at)
    taps = []
    for i in range(1 - reach, reach + 1):
        index = add(first, i)
        distance = multiply(emit(graph.AbsOp, subtract(index, at)), scale)
        taps.append((index, _kernel(distance, mode, a)))
    total = taps[0][1]
    for _, weight in taps[1:]:
        total = add(total, weight)
    return [(index, divide(weight, total)) for index, weight in taps]


def _kernel(distance: ir.Value, mode: str, a: float) -> ir.Value:
    """The weight of an element so far away."""
    if mode == "linear":
        return maximum(subtract(1, distance), 0)
    inner, outer = _polynomial([a + 2, -(a + 3), 0, 1]), _polynomial([a, -5 * a, 8 * a, -4 * a])
    near, far = less(distance, 1), less(distance, 2)
    return where(near, inner(distance), where(far, outer(distance), 0))


def cubic_weights(share: ir.Value, a: float) -> list[ir.Value]:
    """The weights of four elements, of which the second is `share` in front of a coordinate."""
    rest = subtract(1, share)
    outer, inner = _polynomial([a, -5 * a, 8 * a, -4 * a]), _polynomial([a + 2, -(a + 3), 0, 1])
    return [outer(add(share, 1)), inner(share), inner(rest), outer(add(rest, 1))]


def _polynomial(coefficients: Sequence[float]) -> Callable[[ir.Value], ir.Value]:
    def evaluate(x: ir.Value) -> ir.Value:
        first, *others = coefficients
        result = multiply(x, first)
        for i, coefficient in enumerate(others):
            result = multiply(result, x) if i else result
            result = add(result, coefficient)
        return result

    return evaluate


def _inside(taps: Taps, axis: Axis) -> Taps:
    """Taps outside of the input have no weight, and the others a sum of 1."""
    inside = [where(_beyond(index, axis), 0, weight) for index, weight in taps]
    total = inside[0]
    for weight in inside[1:]:
        total = add(total, weight)
    return [(index, divide(weight, total)) for (index, _), weight in zip(taps, inside)]


def _beyond(at: ir.Value, axis: Axis) -> ir.Value:
    last = symbol(axis.source - 1, ir.F64Type.get())
    return binary(graph.LogicalOrOp, less(at, 0), greater(at, last))


def _interpolated(x: ir.Value, axis: int, taps: Taps) -> ir.Value:
    """The sum of the taps' elements times their weights."""
    i64, total = ir.IntegerType.get_signless(64), None
    for index, weight in taps:
        part = emit(graph.TakeOp, x, astype(index, i64), axis=axis)
        aligned = expand_dims(astype(weight, element_of(x)), range(1, rank_of(x) - axis))
        product = multiply(part, aligned)
        total = product if total is None else add(total, product)
    assert total is not None
    return total
