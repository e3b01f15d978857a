"""Conversions of narrow floats for which machines have no instructions."""

from relax_mlir.bindings import arith, ir, math
from relax_mlir.rewriting import walk_ops

_HALF_SIGN_AND_BITS = -0x70002000
"""In an f32: the sign, and the 15 bits that an f16 has after it, 13 to the left."""
_SCALE, _FIRST_SPECIAL = 2.0**112, 2.0**16
"""What such an f32 is smaller by, and what infinity is then."""
_INFINITY = 0x7F800000


def widen_in_steps(module: ir.Module) -> None:
    """Widens bf16 to f64 by f32, in place; each step is exact.

    %0 = arith.extf %x : bf16 to f64   ->   arith.extf (arith.extf %x : bf16 to f32) : f32 to f64
    """
    for op in walk_ops(module.operation, arith.ExtFOp):
        if _element(op.in_.type) == ir.BF16Type.get() and _element(op.out.type) == ir.F64Type.get():
            with op.location, ir.InsertionPoint(op):
                single = _like(op.in_.type, ir.F32Type.get())
                op.operation.operands[0] = arith.extf(single, op.in_)


def widen_halves(module: ir.Module) -> None:
    """Widens f16 to f32 and f64 by integers, in place, where LLVM would call a function for each.

    %0 = arith.extf %x : f16 to f32
      ->
    %y = the sign of %x, and its other bits 13 to the left, as f32: less than %x by 2^112
    %0 = select |%y * 2^112| < 2^16, %y * 2^112, %y with the exponent of infinity
    """
    for op in walk_ops(module.operation, arith.ExtFOp):
        if _element(op.in_.type) != ir.F16Type.get():
            continue
        with op.location, ir.InsertionPoint(op):
            wide = _widened_half(op.in_)
            if wide.type != op.out.type:
                wide = arith.extf(op.out.type, wide)
        op.out.replace_all_uses_with(wide)
        op.operation.erase()


def _widened_half(x: ir.Value) -> ir.Value:
    """An f16, or a vector of them, as f32."""
    i16, i32 = (_like(x.type, ir.IntegerType.get_signless(bits)) for bits in (16, 32))
    f32 = _like(x.type, ir.F32Type.get())
    bits = arith.extsi(i32, arith.bitcast(i16, x))
    bits = arith.andi(arith.shli(bits, _splat(i32, 13)), _splat(i32, _HALF_SIGN_AND_BITS))
    scaled = arith.mulf(arith.bitcast(f32, bits), _splat(f32, _SCALE))
    special = arith.bitcast(f32, arith.ori(bits, _splat(i32, _INFINITY)))
    is_finite = arith.cmpf(arith.CmpFPredicate.OLT, math.absf(scaled), _splat(f32, _FIRST_SPECIAL))
    return arith.select(is_finite, scaled, special)


def _element(kind: ir.Type) -> ir.Type:
    return ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind


def _like(kind: ir.Type, element: ir.Type) -> ir.Type:
    """The type with other elements."""
    return ir.VectorType.get(kind.shape, element) if isinstance(kind, ir.VectorType) else element


def _splat(kind: ir.Type, x: float) -> ir.Value:
    element = _element(kind)
    is_float = isinstance(element, ir.FloatType)
    one = ir.FloatAttr.get(element, x) if is_float else ir.IntegerAttr.get(element, int(x))
    is_vector = isinstance(kind, ir.VectorType)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, one) if is_vector else one)
