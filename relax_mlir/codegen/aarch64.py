"""Rewrites ops for 64-bit Arm that MLIR lowers alike for all machines: conversions to bf16."""

from relax_mlir.bindings import arith, ir, llvm
from relax_mlir.rewriting import walk_ops
from relax_mlir.target import Cpu

_BF16_PRODUCT = "llvm.aarch64.neon.bfdot"


def use_instructions(module: ir.Module, cpu: Cpu) -> None:
    """Rewrites ops of a module, in place, by the features of a 64-bit Arm."""
    if cpu.has("bf16"):
        _round_by_instruction(module)


def _round_by_instruction(module: ir.Module) -> None:
    """Rounds vectors to bf16 by the instruction for it, in place, in modules that have products.

    %0 = arith.truncf %x : vector<4xf32> to vector<4xbf16>
      ->
    %0 = llvm.fptrunc %x : vector<4xf32> to vector<4xbf16>

    Elsewhere ten integer ops round: a module without ops on bf16 moves its elements as integers.
    """
    calls = walk_ops(module.operation, llvm.CallIntrinsicOp)
    if not any(ir.StringAttr(op.attributes["intrin"]).value == _BF16_PRODUCT for op in calls):
        return
    for op in walk_ops(module.operation, arith.TruncFOp):
        source, target = op.in_.type, op.out.type
        if not isinstance(source, ir.VectorType) or ir.VectorType(source).rank != 1:
            continue
        elements = (ir.VectorType(source).element_type, ir.VectorType(target).element_type)
        if elements == (ir.F32Type.get(), ir.BF16Type.get()):
            with op.location, ir.InsertionPoint(op):
                rounded = llvm.fptrunc(target, op.in_)
            op.out.replace_all_uses_with(rounded)
            op.operation.erase()
