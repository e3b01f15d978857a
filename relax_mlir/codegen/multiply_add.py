"""Fused multiply-adds for machines without them."""

from relax_mlir.bindings import arith, ir


def replace_fma(module: ir.Module) -> None:
    """Computes fused multiply-adds in a wider type, in place, for machines without them.

        %0 = math.fma %a, %b, %c : f32
          ->
        %0 = truncf (extf %a * extf %b + extf %c) : f64 to f32

    The product is exact there; the result is rounded twice instead of once, which almost never
    shows. f64 has no wider type: these ops stay, and call the C library.
    """
    targets: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "math.fma":
            targets.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in targets:
        narrow = op.results[0].type
        vector = ir.VectorType(narrow) if isinstance(narrow, ir.VectorType) else None
        element = vector.element_type if vector else narrow
        if isinstance(element, ir.F64Type):
            continue
        wider: ir.Type = ir.F64Type.get() if isinstance(element, ir.F32Type) else ir.F32Type.get()
        if vector:
            wider = ir.VectorType.get(vector.shape, wider)
        with op.location, ir.InsertionPoint(op):
            a, b, c = (arith.extf(wider, operand) for operand in op.operands)
            result = arith.truncf(narrow, arith.addf(arith.mulf(a, b), c))
        op.results[0].replace_all_uses_with(result)
        op.erase()
