"""The indices of a flattened nest: carried from round to round, not divided out in each.

scf.for %t = %a to %b {                %i0 = divui %a, %n ; %j0 = remui %a, %n
  %i = divui %t, %n                    scf.for %t = %a to %b iter_args(%i = %i0, %j = %j0) {
  %j = remui %t, %n               ->     ..
  ..                                     %k = %j + 1 ; %ends = %k == %n
}                                        yield %i + extui %ends, select %ends, 0, %k
                                       }
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, scf
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index


@dataclass(frozen=True)
class _Digit:
    """Indices of one extent: the remainder of a flat index, and the quotient, which goes on."""

    extent: ir.Value
    remainder: ir.Value | None
    quotient: ir.Value | None


def carry_indices(loop: scf.ForOp) -> None:
    """Replaces a loop of step 1 that carries nothing, if it divides its index by extents."""
    digits = _digits(loop)
    if not digits:
        return
    with ir.InsertionPoint(loop), loop.location:
        start = _start(loop.lowerBound, digits)
        made = scf.ForOp(loop.lowerBound, loop.upperBound, loop.step, start)
    loop.induction_variable.replace_all_uses_with(made.induction_variable)
    *least, most = made.inner_iter_args
    for digit, index in zip(digits, least, strict=True):
        if digit.remainder is not None:
            digit.remainder.replace_all_uses_with(index)
    if (last := digits[-1].quotient) is not None:
        last.replace_all_uses_with(most)
    with ir.InsertionPoint(made.body), loop.location:
        scf.YieldOp(_next(digits, least, most))
    first = made.body.operations[0].operation
    for op in list(loop.body.operations)[:-1]:
        op.operation.move_before(first)
    for digit in reversed(digits):
        for value in (digit.remainder, digit.quotient):
            if value is not None:
                value.owner.erase()
    loop.operation.erase()


def _digits(loop: scf.ForOp) -> list[_Digit]:
    """How a loop divides its index: by the extent of the innermost loop of a nest first."""
    digits: list[_Digit] = []
    flat: ir.Value | None = loop.induction_variable
    while flat is not None:
        divisions = [use.owner for use in flat.uses if _is_division(use.owner, flat, loop)]
        if not divisions:
            break
        extent = divisions[0].operands[1]
        own = {op.name: op.results[0] for op in divisions if op.operands[1] == extent}
        flat = own.get("arith.divui")
        digits.append(_Digit(extent, own.get("arith.remui"), flat))
    return digits


def _is_division(op: ir.Operation, flat: ir.Value, loop: scf.ForOp) -> bool:
    """Whether a body divides an index by what no round changes."""
    op = op.operation
    if op.name not in ("arith.divui", "arith.remui") or op.operands[0] != flat:
        return False
    owner = op.operands[1].owner
    block = owner if isinstance(owner, ir.Block) else owner.operation.block
    return op.block == loop.body and block != loop.body


def _start(first: ir.Value, digits: Sequence[_Digit]) -> list[ir.Value]:
    """The indices of the first round, which there need not be: extents may be 0."""
    flat: Index = first
    made = []
    for digit in digits:
        extent = loops.maximum(digit.extent, 1)
        made.append(loops.value(loops.mod(flat, extent)))
        flat = loops.floor_div(flat, extent)
    return [*made, loops.value(flat)]


def _next(digits: Sequence[_Digit], least: Sequence[ir.Value], most: ir.Value) -> list[ir.Value]:
    """The indices of the next round."""
    one, zero = loops.value(1), loops.value(0)
    step, made = one, []
    for digit, index in zip(digits, least, strict=True):
        longer = arith.addi(index, step)
        ends = arith.cmpi(arith.CmpIPredicate.eq, longer, digit.extent)
        made.append(arith.select(ends, zero, longer))
        step = arith.select(ends, one, zero)
    return [*made, arith.addi(most, step)]
