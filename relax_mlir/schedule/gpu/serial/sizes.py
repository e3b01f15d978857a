"""Sizes of memory that loops allocate, or bounds of them, computed in front of the loops.

scf.for %t = %c0 to %n {
%size = arith.minsi %rest, %c64           ->      64
%b = memref.alloc(%size)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, scf
from relax_mlir.schedule.build.affine import constant_of

_EXACT = {
    f"arith.{name}"
    for name in ("addi", "subi", "muli", "minsi", "minui", "maxsi", "maxui", "select", "cmpi",
                 "index_cast", "index_castui", "extsi", "extui", "trunci", "andi", "ori")
}  # fmt: skip
"""Ops that may be computed where they were not before."""
_GROWING = ("arith.addi", "arith.muli", "arith.maxsi", "arith.maxui")
_LESSER = ("arith.minsi", "arith.minui")


@dataclass(frozen=True)
class Sizes:
    """Computes sizes at the insertion point, from what is known in a block."""

    block: ir.Block

    def bound(self, x: ir.Value) -> ir.Value | None:
        """A value that is not negative, or one that is no less than it; None if none is known."""
        known = self._exact(x)
        if known is not None:
            return known
        if isinstance(x.owner, ir.Block):
            loop = x.owner.owner.opview
            is_index = isinstance(loop, scf.ForOp) and x == loop.induction_variable
            return self.bound(loop.upperBound) if is_index else None
        op = x.owner.operation
        bounds = [self.bound(y) for y in op.operands]
        if op.name in _LESSER:
            return next((y for y in bounds if y is not None), None)
        if op.name == "arith.select":
            bounds = bounds[1:]
        if any(y is None for y in bounds) or not bounds:
            return None
        if op.name == "arith.select":
            return arith.maxsi(*bounds)
        return _with_operands(op, bounds) if op.name in _GROWING else None

    def _exact(self, x: ir.Value) -> ir.Value | None:
        """The value itself, if it can be computed."""
        if isinstance(x.owner, ir.Block):
            return x if x.owner == self.block else None
        op = x.owner.operation
        if op.block == self.block:
            return x
        is_divided = op.name == "arith.divui" and (constant_of(op.operands[1]) or 0) > 0
        if op.name == "arith.constant":
            return op.clone().operation.results[0]
        if op.name not in _EXACT and not is_divided:
            return None
        operands = [self._exact(y) for y in op.operands]
        return None if any(y is None for y in operands) else _with_operands(op, operands)


def _with_operands(op: ir.Operation, operands: Sequence[ir.Value | None]) -> ir.Value:
    copy = op.clone().operation
    for i, operand in enumerate(operands):
        copy.operands[i] = operand
    return copy.results[0]
