"""Conversions to half precision that round once, where machines convert through f32.

    arith.truncf %x : f64 to bf16       f64 -> f32, rounded to odd -> bf16
    arith.sitofp %n : i64 to bf16       i64 -> f64, rounded to odd -> f32, rounded to odd -> bf16

The last bit of a value that is rounded to odd says that bits were lost, so that it is never taken
for a tie of the narrower type when it was not one.
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
    """Replaces a module's conversions of f64 and integers to half precision."""
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
    """An integer as f32 if that is exact for its type, else as f64 rounded to odd."""
    convert = _FROM_INTEGERS[name]
    if x.width <= _EXACT_BITS:
        return x.wrap(convert(x.retyped(ir.F32Type.get()), x.value))
    if x.width > _DOUBLE_BITS:
        x = select(_is_long(name, x), _cut(x), x)
    return x.wrap(convert(x.retyped(ir.F64Type.get()), x.value))


def _is_long(name: str, x: Lanes) -> Lanes:
    """Whether an integer has more bits than the mantissa of f64."""
    limit = 1 << _DOUBLE_BITS
    biased = x + limit if name == "arith.sitofp" else x
    return (biased >> (_DOUBLE_BITS + (name == "arith.sitofp"))).differs(0)


def _cut(x: Lanes) -> Lanes:
    """Clears the last bits of an integer; sets the first of them if any was set."""
    last = (1 << _CUT) - 1
    lost = truth_as_integer((x & last).differs(0), x)
    return (x & ~last) | (lost << (_CUT - 1))


def _narrowed(x: Lanes, element: ir.Type) -> Lanes:
    return (_to_odd(x) if x.width == 64 else x).converted(element)


def _to_odd(x: Lanes) -> Lanes:
    """An f64 rounded to odd f32: exact, or the neighbour whose last bit is set."""
    single = x.converted(ir.F32Type.get())
    back = single.converted(x.element)
    bits = single.bits()
    bits = bits - truth_as_integer(absolute(back) > absolute(x), bits)
    return (bits | truth_as_integer(back.differs(x), bits)).float_from_bits()
