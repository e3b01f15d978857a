"""Rewrites ops for 32-bit Arm that LLVM cannot select there: maxima and minima of f64.

    %r = llvm.intr.maximum(%x, %y) : f64
      ->
    %r = select (%x > %y), %x, %y, but %x & %y as bits if they are equal, and %x + %y if one is NaN

The bits make 0.0 greater than -0.0. Reductions of vectors become a chain of these.

Needs and leaves: the LLVM dialect.
"""

from collections.abc import Callable
from functools import reduce

from relax_mlir.bindings import ir, llvm

_MAXIMA = {"llvm.intr.maximum", "llvm.intr.vector.reduce.fmaximum"}
_EXTREMA = _MAXIMA | {name.replace("max", "min") for name in _MAXIMA}


def expand_extrema(module: ir.Module) -> None:
    """Rewrites the maxima and minima of f64 in a module, in place."""
    targets: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in _EXTREMA and _element(op.operands[0].type) == ir.F64Type.get():
            targets.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in targets:
        with op.location, ir.InsertionPoint(op):
            extremum = _extremum(op.name in _MAXIMA)
            operands = _lanes(op.operands[0]) if "reduce" in op.name else op.operands
            op.results[0].replace_all_uses_with(reduce(extremum, operands))
        op.erase()


def _element(kind: ir.Type) -> ir.Type:
    return ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind


def _lanes(x: ir.Value) -> list[ir.Value]:
    """The elements of a vector."""
    i32 = ir.IntegerType.get_signless(32)
    positions = [ir.IntegerAttr.get(i32, lane) for lane in range(ir.VectorType(x.type).shape[0])]
    return [llvm.extractelement(x, llvm.mlir_constant(lane)) for lane in positions]


def _extremum(is_max: bool) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """A function that emits the maximum or minimum of two values."""
    better = llvm.FCmpPredicate.ogt if is_max else llvm.FCmpPredicate.olt
    combine = llvm.and_ if is_max else llvm.or_

    def emit(x: ir.Value, y: ir.Value) -> ir.Value:
        integer: ir.Type = ir.IntegerType.get_signless(64)
        if isinstance(x.type, ir.VectorType):
            integer = ir.VectorType.get(ir.VectorType(x.type).shape, integer)
        bits = combine(llvm.bitcast(integer, x), llvm.bitcast(integer, y))
        chosen = llvm.select(llvm.fcmp(better, x, y), x, y)
        are_equal = llvm.fcmp(llvm.FCmpPredicate.oeq, x, y)
        chosen = llvm.select(are_equal, llvm.bitcast(x.type, bits), chosen)
        has_nan = llvm.fcmp(llvm.FCmpPredicate.uno, x, y)
        return llvm.select(has_nan, llvm.fadd(x, y), chosen)

    return emit
