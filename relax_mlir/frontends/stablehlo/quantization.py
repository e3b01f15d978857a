"""Quantised elements: integers that stand for floats, by scales and zero points of their type."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.bindings.stablehlo import quant
from relax_mlir.decompositions.emit import (
    add,
    astype,
    dims_of,
    divide,
    element_of,
    emit,
    maximum,
    minimum,
    multiply,
    per_channel,
    scalar,
    subtract,
    vector,
    widen,
    with_dims,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import const

from ..elements import mlir_element
from ..known import Known

WIDTHS = (8, 16, 32)
EXPRESSED = ("f16", "bf16", "f32", "f64")
SAME = 1e-12
"""How far a ratio of scales may be from 1 for integers of 32 bits to be the same under both."""


@dataclass(frozen=True)
class Quantization:
    """scale * (integer - zero_point), of integers of `storage` from `low` to `high`.

    There is one scale and one zero point, or one of each for every index of `axis`. Floats are of
    the type `expressed`.
    """

    storage: str
    low: int
    high: int
    expressed: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest integer of the storage type."""
        bits = self.width
        return (
            (0, (1 << bits) - 1)
            if self.storage[0] == "u"
            else (-1 << (bits - 1), ~(-1 << (bits - 1)))
        )

    @property
    def width(self) -> int:
        """The bits of an integer."""
        return int(self.storage.lstrip("ui"))

    @property
    def farthest(self) -> int:
        """The greatest distance of an integer to its zero point."""
        low, high = self.bounds
        return max(high - min(self.zero_points), max(self.zero_points) - low)

    @property
    def exact(self) -> ir.Type:
        """A float type that has all integers, and their distances to zero points."""
        is_small = self.farthest < 1 << 24 and self.expressed != "f64"
        return ir.F32Type.get() if is_small else ir.F64Type.get()


def is_quantized(type_: ir.Type) -> bool:
    """Whether a type is of quantised elements, or a tuple with such."""
    if isinstance(type_, ir.RankedTensorType):
        return isinstance(type_.element_type, quant.QuantizedType)
    return "!quant." in str(type_)


def quantization_of(type_: ir.Type) -> Quantization | None:
    """How elements of a tensor type are quantised, None if they are not.

    Raises ModelError for what is not supported.
    """
    if not isinstance(type_, ir.RankedTensorType):
        return None
    element = type_.element_type
    if not isinstance(element, quant.QuantizedType):
        return None
    axis = None
    if isinstance(element, quant.UniformQuantizedPerAxisType):
        scales, zero_points = tuple(element.scales), tuple(element.zero_points)
        axis = int(element.quantized_dimension)
        _require_axis(type_, axis, len(scales))
    elif isinstance(element, quant.UniformQuantizedType):
        scales, zero_points = (element.scale,), (element.zero_point,)
    else:
        supported = "uniform ones of a scale, or of one for each index of an axis, are supported"
        raise ModelError(f"has elements of {element}: {supported}")
    width, expressed = element.storage_type_integral_width, str(element.expressed_type)
    if not isinstance(element.storage_type, ir.IntegerType) or width not in WIDTHS:
        raise ModelError(f"has elements of {element}: integers of 8, 16 and 32 bits are supported")
    if expressed not in EXPRESSED:
        raise ModelError(f"has elements of {element}: {', '.join(EXPRESSED)} are supported")
    storage = f"{'i' if element.is_signed else 'ui'}{width}"
    if element.expressed_type.width == 16:  # others are rounded where they are used
        scales = tuple(ir.FloatAttr.get(element.expressed_type, each).value for each in scales)
    low, high = element.storage_type_min, element.storage_type_max
    if not all(low <= each <= high for each in zero_points):
        raise ModelError(f"has elements of {element}: zero points have to be {low} to {high}")
    return Quantization(storage, low, high, expressed, scales, zero_points, axis)


def _require_axis(type_: ir.RankedTensorType, axis: int, count: int) -> None:
    dynamic = ir.ShapedType.get_dynamic_size()
    if axis >= len(type_.shape) or type_.shape[axis] not in (count, dynamic):
        raise ModelError(f"has {count} scales along axis {axis} of dims {list(type_.shape)}")


# Floats and integers.


def quantize(x: ir.Value, to: Quantization) -> ir.Value:
    """x / scale + zero_point, within the bounds, rounded to nearest even."""
    values = widen(astype(x, mlir_element(to.expressed)))
    values, scales = _parameter(values, to.scales, to.axis, to.expressed)
    return _rounded(divide(values, scales), to)


def dequantize(x: ir.Value, by: Quantization) -> ir.Value:
    """scale * (x - zero_point)."""
    computed = ir.F64Type.get() if by.expressed == "f64" else ir.F32Type.get()
    if any(by.zero_points):
        values, zero_points = _parameter(astype(x, by.exact), by.zero_points, by.axis)
        x = subtract(values, zero_points)
    values, scales = _parameter(astype(x, computed), by.scales, by.axis, by.expressed)
    return astype(multiply(values, scales), mlir_element(by.expressed))


def converted(x: ir.Value, by: Quantization | None, to: Quantization | None) -> ir.Value:
    """Elements of one type, None for floats, as those of another."""
    if by == to:
        return x
    values = x if by is None else dequantize(x, by)
    return values if to is None else quantize(values, to)


def rescaled(
    sums: ir.Value, scales: Sequence[float], axis: int | None, to: Quantization
) -> ir.Value:
    """What integers of zero points of 0 stand for, by scales along an axis, as other integers."""
    count = max(len(scales), len(to.scales))
    own, new = (list(each) * (count // len(each)) for each in (scales, to.scales))
    factors = [a / b for a, b in zip(own, new, strict=True)]
    steps = astype(sums, to.exact)
    if any(abs(factor - 1) > SAME for factor in factors):
        steps, scale = _parameter(steps, factors, to.axis if axis is None else axis)
        steps = multiply(steps, scale)
    return _rounded(steps, to)


def centred(x: ir.Value, by: Quantization, element: str) -> ir.Value:
    """Integers less their zero points, in a type that has them."""
    if not any(by.zero_points):
        return astype(x, mlir_element(element))
    values = astype(x, mlir_element("i32" if by.farthest < 1 << 31 else "i64"))
    values, zero_points = _parameter(values, by.zero_points, by.axis)
    return astype(subtract(values, zero_points), mlir_element(element))


def centred_known(value: Known, by: Quantization) -> Known:
    """Known integers less their zero point, as i64."""
    return Known(value.array.astype(np.int64) - by.zero_points[0], "i64")


def from_centred(x: ir.Value, by: Quantization) -> ir.Value:
    """Integers of i64 with their zero point again, within the bounds."""
    stored = add(x, by.zero_points[0]) if by.zero_points[0] else x
    return astype(minimum(maximum(stored, by.low), by.high), mlir_element(by.storage))


def _rounded(steps: ir.Value, to: Quantization) -> ir.Value:
    """Multiples of the scale as integers: with zero points, within the bounds, to nearest even."""
    values = astype(steps, to.exact)
    if any(to.zero_points):
        values, zero_points = _parameter(values, to.zero_points, to.axis)
        values = add(values, zero_points)
    if (to.low, to.high) != to.bounds:  # others the conversion keeps to
        values = minimum(maximum(values, to.low), to.high)
    return astype(emit(graph.RoundOp, values), mlir_element(to.storage))


def _parameter(
    x: ir.Value, values: Sequence[float], axis: int | None, written: str = ""
) -> tuple[ir.Value, ir.Value]:
    """A tensor, and values that broadcast along an axis of it, rounded to the type `written`."""
    element = element_of(x)
    given = mlir_element(written) if written else element
    if len(set(values)) == 1:
        return x, astype(scalar(values[0], given), element)
    assert axis is not None
    dims = list(dims_of(x))
    dims[axis] = const(len(values))
    return with_dims(x, dims), per_channel(astype(vector(values, given), element), len(dims), axis)
