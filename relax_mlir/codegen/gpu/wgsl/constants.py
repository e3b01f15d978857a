"""Constants as WGSL writes them."""

import struct

import numpy as np

from relax_mlir.bindings import ir

from .kinds import kind_of

_SMALLEST, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def literal(value: ir.Attribute) -> str:
    """A literal of an attribute; an infinity or NaN is a call of `f32_of_bits`."""
    kind = kind_of(value.type)
    assert kind is not None
    if kind.name == "i1":
        return "true" if ir.IntegerAttr(value).value else "false"
    if kind.name == "f32":
        return float_literal(ir.FloatAttr(value).value)
    if kind.name == "f64":
        return _words(int.from_bytes(struct.pack("<d", ir.FloatAttr(value).value), "little"))
    if kind.name == "f16":
        return f"{np.float16(ir.FloatAttr(value).value).view(np.uint16)}u"
    if kind.name == "bf16":
        bits = int(np.float32(ir.FloatAttr(value).value).view(np.uint32))
        return f"{bits >> 16}u"
    bits = ir.IntegerAttr(value).value
    if kind.name == "i64":
        return _words(bits & (2**64 - 1))
    return "i32(-2147483648)" if bits == -(2**31) else f"i32({bits})"


def float_literal(value: float) -> str:
    """A literal of f32, to the bit."""
    x = np.float32(value)
    bits = int(x.view(np.uint32))
    if not np.isfinite(x):
        return f"f32_of_bits(0x{bits:08x}u)"
    if bits == 0 or abs(float(x)) >= _SMALLEST:
        # The shortest text of the largest one is beyond it, which WGSL refuses.
        text = str(x) if abs(float(str(x))) <= _LARGEST else repr(float(x))
        return f"f32({text})" if bits == 0 else f"{text}f"
    return f"bitcast<f32>(0x{bits:08x}u)"


def _words(bits: int) -> str:
    return f"vec2<u32>(0x{bits & 0xFFFFFFFF:08x}u, 0x{bits >> 32:08x}u)"
