"""Constants and shapes: shapes are expressions, which no value has."""

from collections.abc import Callable

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.data import elements_of
from relax_mlir.dialects.graph import ShapeError, constant
from relax_mlir.symbolic import Expr, at_most, const, maximum, minimum

from ..function import Conversion
from ..registry import converts


@converts("tosa.const")
def tensor_constant(conversion: Conversion, op: ir.Operation) -> None:
    """A constant."""
    conversion.define(op, constant(op.attributes["values"]))


@converts("tosa.const_shape")
def shape_constant(conversion: Conversion, op: ir.Operation) -> None:
    """A shape of constants."""
    values = np.asarray(elements_of(op.attributes["values"])).reshape(-1)
    kind = int(str(op.results[0].type).removeprefix("!tosa.shape<").removesuffix(">"))
    elements = [const(int(each)) for each in values]
    conversion.shapes[op.results[0]] = elements * kind if len(elements) == 1 < kind else elements


@converts("tosa.dim")
def dim(conversion: Conversion, op: ir.Operation) -> None:
    """An extent as a shape."""
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    conversion.shapes[op.results[0]] = [conversion.dims(op.operands[0])[axis]]


@converts("tosa.concat_shape")
def joined(conversion: Conversion, op: ir.Operation) -> None:
    """Shapes in a row."""
    parts = [conversion.shape(each) for each in op.operands]
    conversion.shapes[op.results[0]] = [dim for part in parts for dim in part]


@converts("tosa.slice_shape")
def sliced(conversion: Conversion, op: ir.Operation) -> None:
    """A part of a shape."""
    source, first, count = (conversion.shape(each) for each in op.operands)
    start, size = first[0].value, count[0].value
    if start is None or size is None or not 0 <= start <= start + size <= len(source):
        raise ShapeError(f"takes {count[0]} dims from {first[0]} of {len(source)}")
    conversion.shapes[op.results[0]] = source[start : start + size]


def _positive(divisor: Expr) -> Expr:
    if not at_most(1, divisor).proved:
        raise ShapeError(f"divides by {divisor}, which may be less than 1")
    return divisor


_BINARY: dict[str, Callable[[Expr, Expr], Expr]] = {
    "tosa.add_shape": lambda a, b: a + b,
    "tosa.sub_shape": lambda a, b: a - b,
    "tosa.mul_shape": lambda a, b: a * b,
    "tosa.max_shape": maximum,
    "tosa.min_shape": minimum,
    "tosa.div_floor_shape": lambda a, b: a // _positive(b),
    "tosa.div_ceil_shape": lambda a, b: (a + b - 1) // _positive(b),
    "tosa.mod_shape": lambda a, b: a % _positive(b),
}


@converts(*_BINARY)
def binary(conversion: Conversion, op: ir.Operation) -> None:
    """Arithmetic on dims."""
    a, b = (conversion.shape(each) for each in op.operands)
    conversion.shapes[op.results[0]] = [_BINARY[op.name](x, y) for x, y in zip(a, b, strict=True)]


@converts("tosa.assert_equal_shape")
def assert_equal(conversion: Conversion, op: ir.Operation) -> None:
    """A check that two shapes are one."""
    if ir.BoolAttr(op.attributes["allow_broadcast"]).value:
        raise ShapeError("allows shapes that broadcast; expects allow_broadcast = false")
    a, b = (conversion.shape(each) for each in op.operands)
    for axis, (x, y) in enumerate(zip(a, b, strict=True)):
        conversion.same(x, y, f"dim {axis}")
