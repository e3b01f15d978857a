"""Floats of 8 and 4 bits, whose bits are i8: encode_float, decode_float, cast_float8.

    f8E4M3FN   f8E5M2   f8E4M3FNUZ   f8E5M2FNUZ   f4E2M1FN, in the lower half of a byte

Source: arXiv 2209.05433, 2206.02915; OCP Microscaling Formats; ONNX `Cast`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.dialects.graph.elementwise import is_float

from .emit import (
    Operand,
    add,
    astype,
    binary,
    element_of,
    emit,
    greater,
    less,
    multiply,
    scalar,
    subtract,
    where,
    widen,
)


@dataclass(frozen=True)
class _Format:
    """A float of some bits: a sign, an exponent, then digits; `largest` is its greatest code.

    Codes of values that are too great, and of NaN, are those of `overflow` and `nan`; without
    negative zeros a sign alone is NaN.
    """

    bits: int
    digits: int
    bias: int
    largest: int
    overflow: int
    nan: int
    has_negative_zero: bool = True

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)


FORMATS: Mapping[str, _Format] = {
    "f8E4M3FN": _Format(8, 3, 7, largest=0x7E, overflow=0x7F, nan=0x7F),
    "f8E5M2": _Format(8, 2, 15, largest=0x7B, overflow=0x7C, nan=0x7F),
    "f8E4M3FNUZ": _Format(8, 3, 8, largest=0x7F, overflow=0x80, nan=0x80, has_negative_zero=False),
    "f8E5M2FNUZ": _Format(8, 2, 16, largest=0x7F, overflow=0x80, nan=0x80, has_negative_zero=False),
    "f4E2M1FN": _Format(4, 1, 1, largest=0x7, overflow=0x7, nan=0x7),
}


_DIGITS, _BIAS = 23, 127
"""Those of f32."""


def _format(name: str) -> _Format:
    if name not in FORMATS:
        raise ShapeError(f"expects one of {', '.join(FORMATS)}, but got '{name}'")
    return FORMATS[name]


def decode_float(codes: ir.Value, kind: str, element: ir.Type) -> ir.Value:
    """The values of codes, i8, in a wider type: exact in each."""
    own = _format(kind)
    if element_of(codes) != ir.IntegerType.get_signless(8):
        raise ShapeError(f"expects codes of i8, but got {element_of(codes)}")
    if not is_float(element):
        raise ShapeError(f"expects a float element type, but got {element}")
    i32, f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
    code = binary(graph.BitwiseAndOp, astype(codes, i32), (1 << own.bits) - 1)
    size = binary(graph.BitwiseAndOp, code, own.sign - 1)
    bits = binary(graph.LeftShiftOp, size, _DIGITS - own.digits)
    normal = emit(graph.BitcastOp, add(bits, (_BIAS - own.bias) << _DIGITS), dtype=f32)
    multiples = multiply(astype(size, f32), 2.0 ** (1 - own.bias - own.digits))
    value = where(less(size, 1 << own.digits), multiples, normal)
    if own.largest < own.nan < own.sign:
        value = where(greater(size, own.largest), math.nan, value)
    if own.largest < own.overflow < own.nan:
        value = where(binary(graph.EqualOp, size, own.overflow), math.inf, value)
    value = where(greater(code, own.sign - 1), emit(graph.NegativeOp, value), value)
    if not own.has_negative_zero:
        value = where(binary(graph.EqualOp, code, own.sign), math.nan, value)
    return astype(value, element)


def encode_float(x: ir.Value, kind: str, *, saturate: bool = True) -> ir.Value:
    """The codes, i8, of the nearest values, of two as near the one whose last digit is 0.

    What is too great becomes the greatest value, or infinity or NaN without `saturate`; f4E2M1FN
    has neither, and NaN is its greatest value.
    """
    own = _format(kind)
    if not is_float(element_of(x)):
        raise ShapeError(f"expects floats, but got {element_of(x)}")
    values = widen(x)
    size = emit(graph.AbsOp, values)
    code = _nearest(size, own)
    beyond = own.largest if saturate else own.overflow
    code = where(greater(code, own.largest), beyond, code)
    negative = emit(graph.SignbitOp, values)
    if not own.has_negative_zero:
        negative = binary(graph.LogicalAndOp, negative, greater(code, 0))
    sign = where(negative, scalar(own.sign, element_of(code)), 0)
    code = where(emit(graph.IsnanOp, values), own.nan, binary(graph.BitwiseOrOp, code, sign))
    return astype(code, ir.IntegerType.get_signless(8))


def cast_float8(x: ir.Value, element: ir.Type, *, saturate: bool = True) -> ir.Value:
    """A conversion from or to a float of 8 bits that is an element type: by its codes.

    What is too great becomes the greatest value, or infinity or NaN without `saturate`. Source:
    ONNX `Cast`.
    """
    source, i8 = element_of(x), ir.IntegerType.get_signless(8)
    if source == element:
        return x
    if graph.is_small_float(source):
        codes = emit(graph.BitcastOp, x, dtype=i8)
        x = decode_float(codes, str(source), ir.F32Type.get())
    if not graph.is_small_float(element):
        return astype(x, element)
    values = x if is_float(element_of(x)) else astype(x, ir.F64Type.get())
    codes = encode_float(values, str(element), saturate=saturate)
    return emit(graph.BitcastOp, codes, dtype=element)


def _nearest(size: ir.Value, own: _Format) -> ir.Value:
    """Codes of magnitudes, as if there were any exponent: of bits, or of multiples of the least."""
    is_double = isinstance(element_of(size), ir.F64Type)
    integer = ir.IntegerType.get_signless(64 if is_double else 32)
    digits, bias = (52, 1023) if is_double else (_DIGITS, _BIAS)
    dropped = digits - own.digits
    bits = emit(graph.BitcastOp, size, dtype=integer)
    odd = binary(graph.BitwiseAndOp, _shifted(bits, dropped), 1)
    rounded = _shifted(add(add(bits, odd), (1 << (dropped - 1)) - 1), dropped)
    normal = subtract(rounded, (bias - own.bias) << own.digits)
    least = 2.0 ** (1 - own.bias)
    multiples = emit(graph.RoundOp, multiply(size, 2.0 ** (own.bias - 1 + own.digits)))
    return where(less(size, least), astype(multiples, integer), normal)


def _shifted(bits: ir.Value, count: Operand) -> ir.Value:
    return binary(graph.LogicalRightShiftOp, bits, count)
