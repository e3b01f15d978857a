"""Fused multiply-adds for machines without them."""

from relax_mlir.bindings import arith, ir, llvm


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


def allow_relaxed(module: ir.Module) -> None:
    """Lets LLVM choose relaxed multiply-adds, of which the engine decides how they round, in place.

        %0 = llvm.intr.fmuladd(%a, %b, %c)
          ->
        %0 = llvm.fadd (llvm.fmul %a, %b contract), %c contract

    LLVM makes the one instruction of such a pair only.
    """
    contract = ir.Attribute.parse("#llvm.fastmath<contract>")
    targets: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.intr.fmuladd":
            targets.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in targets:
        a, b, c = op.operands
        with op.location, ir.InsertionPoint(op):
            product = llvm.FMulOp(a, b, fastmathFlags=contract).result
            total = llvm.FAddOp(product, c, fastmathFlags=contract).result
        op.results[0].replace_all_uses_with(total)
        op.erase()
