"""Conversions to half precision that round once, where machines go by way of singles.

    arith.truncf %x : f64 to bf16       f64 -> f32, rounded to odd -> bf16
    arith.sitofp %n : i64 to bf16       i64 -> f64, rounded to odd -> f32, rounded to odd -> bf16

A number that is rounded to odd says by its last bit that something was cut off, so that no number
that was not halfway between two of the narrower type is taken for one that is.
"""

from relax_mlir.bindings import arith, ir
from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    absolute,
    has_lanes,
    ops_named,
    select,
    truth_as_integer,
)
from relax_mlir.target import Cpu

_FROM_INTEGERS = {"arith.sitofp": arith.sitofp, "arith.uitofp": arith.uitofp}
_EXACT_BITS = 16
_DOUBLE_BITS = 53
_CUT = 12


def round_once(module: ir.Module, cpu: Cpu) -> None:
    """Replaces a module's conversions of doubles and integers to half precision."""
    for op in ops_named(module, {"arith.truncf", *_FROM_INTEGERS}):
        element = _element(op.results[0].type)
        if not has_lanes(op.results[0].type) or ir.FloatType(element).width != 16:
            continue
        x = Lanes(op.operands[0], cpu)
        if x.is_float and x.width != 64:
            continue
        with ir.InsertionPoint(op), op.location:
            result = _narrowed(x if x.is_float else _as_float(op.name, x), element)
        op.results[0].replace_all_uses_with(result.value)
        op.erase()


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind


def _as_float(name: str, x: Lanes) -> Lanes:
    """An integer as a single if that holds all of the type's, else as a double rounded to odd."""
    convert = _FROM_INTEGERS[name]
    if x.width <= _EXACT_BITS:
        return x.wrap(convert(x.retyped(ir.F32Type.get()), x.value))
    if x.width > _DOUBLE_BITS:
        x = select(_is_long(name, x), _cut(x), x)
    return x.wrap(convert(x.retyped(ir.F64Type.get()), x.value))


def _is_long(name: str, x: Lanes) -> Lanes:
    """Whether an integer has more bits than a double's mantissa."""
    limit = 1 << _DOUBLE_BITS
    moved = x + limit if name == "arith.sitofp" else x
    return (moved >> (_DOUBLE_BITS + (name == "arith.sitofp"))).differs(0)


def _cut(x: Lanes) -> Lanes:
    """An integer without its last bits; where one was set, the first of them is."""
    last = (1 << _CUT) - 1
    lost = truth_as_integer((x & last).differs(0), x)
    return (x & ~last) | (lost << (_CUT - 1))


def _narrowed(x: Lanes, element: ir.Type) -> Lanes:
    return (_to_odd(x) if x.width == 64 else x).converted(element)


def _to_odd(x: Lanes) -> Lanes:
    """A double as a single: itself, or of the two next to it the one whose last bit is set."""
    single = x.converted(ir.F32Type.get())
    back = single.converted(x.element)
    bits = single.bits()
    bits = bits - truth_as_integer(absolute(back) > absolute(x), bits)
    return (bits | truth_as_integer(back.differs(x), bits)).float_from_bits()
