"""Rewrites ops for x86 that MLIR lowers alike for all machines: multiply-adds, bf16."""

from relax_mlir.bindings import arith, ir, llvm
from relax_mlir.target import Cpu

_BF16_PRODUCTS = ("llvm.x86.avx512bf16.dpbf16ps.512", "llvm.x86.tdpbf16ps")
_ROUND_TO_BF16 = "llvm.x86.avx512bf16.cvtneps2bf16.512"


def use_instructions(module: ir.Module, cpu: Cpu) -> None:
    """Rewrites ops of a module, in place, by the features of an x86 CPU."""
    if not cpu.has("fma"):
        _replace_fma(module)
    if cpu.vector_bytes == 64 and cpu.has("avx512bf16"):
        _round_by_instruction(module)


def _replace_fma(module: ir.Module) -> None:
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


def _round_by_instruction(module: ir.Module) -> None:
    """Rounds vectors to bf16 by the instruction for it, in place, in products of bf16 elements.

    It flushes subnormal inputs to zero, but so do those products. Elsewhere ten integer ops round
    and keep them.
    """
    for function in module.body.operations:
        targets: list[ir.Operation] = []
        multiplies = False

        def visit(op: ir.Operation, targets: list[ir.Operation] = targets) -> ir.WalkResult:
            nonlocal multiplies
            if op.name == "llvm.call_intrinsic":
                multiplies |= ir.StringAttr(op.attributes["intrin"]).value in _BF16_PRODUCTS
            elif op.name == "arith.truncf":
                types = str(op.operands[0].type), str(op.results[0].type)
                if types == ("vector<16xf32>", "vector<16xbf16>"):
                    targets.append(op)
            return ir.WalkResult.ADVANCE

        function.operation.walk(visit)
        for op in targets if multiplies else ():
            with op.location, ir.InsertionPoint(op):
                rounded = llvm.call_intrinsic(
                    op.results[0].type, _ROUND_TO_BF16, list(op.operands), [], []
                )
            op.results[0].replace_all_uses_with(rounded)
            op.erase()
