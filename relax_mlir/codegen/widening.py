"""Conversions of bfloat16 to f64, by f32: LLVM has no instructions for them on some machines."""

from relax_mlir.bindings import arith, ir


def widen_in_steps(module: ir.Module) -> None:
    """Rewrites them in place; each step is exact.

    %0 = arith.extf %x : bf16 to f64   ->   arith.extf (arith.extf %x : bf16 to f32) : f32 to f64
    """
    found: list[ir.OpView] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "arith.extf":
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in found:
        wide = op.out.type
        shape = ir.VectorType(wide).shape if isinstance(wide, ir.VectorType) else None
        elements = [ir.VectorType(t).element_type if shape else t for t in (op.in_.type, wide)]
        if elements != [ir.BF16Type.get(), ir.F64Type.get()]:
            continue
        single: ir.Type = ir.F32Type.get()
        if shape:
            single = ir.VectorType.get(shape, single)
        with op.location, ir.InsertionPoint(op):
            op.operation.operands[0] = arith.extf(single, op.in_)
