"""Rewrites ops for x86 that MLIR lowers alike for all machines: conversions to bf16, shifts."""

import operator

from relax_mlir.bindings import arith, ir, llvm, vector
from relax_mlir.target import Cpu

_BF16_PRODUCTS = ("llvm.x86.avx512bf16.dpbf16ps.512", "llvm.x86.tdpbf16ps")
_SHIFTS = {"arith.shli": arith.shli, "arith.shrui": arith.shrui}
_KEPT = {"arith.shli": operator.lshift, "arith.shrui": operator.rshift}
_BYTE = 0xFF
_FEW_SHIFTS = 4
"""So many shifts and selections take less time than one by a vector."""
_ROUND_TO_BF16 = "llvm.x86.avx512bf16.cvtneps2bf16.512"


def use_instructions(module: ir.Module, cpu: Cpu) -> None:
    """Rewrites ops of a module, in place, by the features of an x86 CPU."""
    _shift_bytes(module)
    if cpu.vector_bytes == 64 and cpu.has("avx512bf16"):
        _round_by_instruction(module)


def _shift_bytes(module: ir.Module) -> None:
    """Shifts vectors of bytes by few distinct constants as a whole, in place.

        %0 = arith.shrui %x, dense<[0, 4, 0, 4]> : vector<4xi8>
          ->
        %1 = bitcast (shrui (bitcast %x to vector<2xi16>), dense<4>) & dense<15>
        %0 = select [true, false, true, false], %x, %1

    No instruction shifts bytes: for a vector of shifts, LLVM would widen them to 16 bits and narrow
    them again, and it would make such a vector of shifts of bytes.
    """
    targets: list[tuple[ir.Operation, list[int]]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        amounts = _byte_shifts(op) if op.name in _SHIFTS else []
        if 1 < len(set(amounts)) <= _FEW_SHIFTS and len(amounts) % 2 == 0:
            targets.append((op, amounts))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op, amounts in targets:
        bits = ir.VectorType.get([len(amounts)], ir.IntegerType.get_signless(1))
        with op.location, ir.InsertionPoint(op):
            result, *others = [_shifted(op, x) for x in sorted(set(amounts))]
            for amount, other in zip(sorted(set(amounts))[1:], others, strict=True):
                chosen = _constant([x == amount for x in amounts], bits)
                result = arith.select(chosen, other, result)
        op.results[0].replace_all_uses_with(result)
        op.erase()


def _shifted(op: ir.Operation, amount: int) -> ir.Value:
    """A vector of bytes, shifted as `op` does, but by one amount, as words."""
    x = op.operands[0]
    if not amount:
        return x
    kind = ir.VectorType(x.type)
    words = ir.VectorType.get([kind.shape[0] // 2], ir.IntegerType.get_signless(16))
    by = _constant([amount] * words.shape[0], words)
    shifted = _SHIFTS[op.name](vector.bitcast(words, x), by)
    kept = _KEPT[op.name](_BYTE, amount) & _BYTE
    return arith.andi(vector.bitcast(kind, shifted), _constant([kept] * kind.shape[0], kind))


def _byte_shifts(op: ir.Operation) -> list[int]:
    """The constants by which a vector of bytes is shifted; none if they are not known."""
    kind, amount = op.results[0].type, op.operands[1].owner
    if not isinstance(kind, ir.VectorType) or isinstance(amount, ir.Block):
        return []
    kind = ir.VectorType(kind)
    if kind.rank != 1 or kind.element_type != ir.IntegerType.get_signless(8):
        return []
    if amount.name != "arith.constant":
        return []
    amounts = [int(x) for x in ir.DenseIntElementsAttr(amount.attributes["value"])]
    return amounts if all(0 <= x < _BYTE.bit_length() for x in amounts) else []


def _constant(values: list[int], kind: ir.VectorType) -> ir.Value:
    element = kind.element_type
    attributes = [ir.IntegerAttr.get(element, int(x)) for x in values]
    return arith.constant(kind, ir.DenseElementsAttr.get(attributes, kind))


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
