"""Pairs of tensors that a loop exchanges in each round, so that they never are the same memory.

    scf.for ... iter_args(%now = %a, %next = %b) { ... scf.yield %next, %now }

By its roots alone, each of the two may be `%a` and may be `%b`.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir, scf
from relax_mlir.dialects.graph import MatchCastOp, ViewOp

from .memory import Memory


def base(value: ir.Value) -> ir.Value:
    """The value that brings a tensor's memory into a round of a loop, or into the function.

    Views and casts are looked through, what a while loop's first region hands to its second, and
    loops that pass a value on as it is.
    """
    while True:
        if isinstance(value, ir.BlockArgument):
            handed = _handed(value)
            if handed is None:
                return value
            value = handed
            continue
        op = value.owner.opview
        before = op.input if isinstance(op, ViewOp | MatchCastOp) else _carried(op, value)
        if before is None:
            return value
        value = before


def alternatives(value: ir.Value) -> list[ir.Value]:
    """The bases that a tensor may have: what each branch yields, of one that branches decide."""
    origin = base(value)
    op = None if isinstance(origin, ir.BlockArgument) else origin.owner.opview
    if not isinstance(op, scf.IfOp | scf.IndexSwitchOp):
        return [origin]
    index = list(op.operation.results).index(origin)
    ends = [last_op(region.blocks[0]) for region in op.operation.regions]
    return [each for end in ends for each in alternatives(end.operands[index])]


def _handed(argument: ir.BlockArgument) -> ir.Value | None:
    loop = argument.owner.owner.opview
    if not isinstance(loop, scf.WhileOp) or argument.owner == first_block(loop):
        return None
    return last_op(first_block(loop)).operands[argument.arg_number + 1]


def _carried(loop: ir.OpView, result: ir.Value) -> ir.Value | None:
    """What enters a loop that passes it on in each round, and returns it."""
    if not isinstance(loop, scf.ForOp | scf.WhileOp):
        return None
    index = list(loop.operation.results).index(result) + 1
    block = first_block(loop)
    is_for = isinstance(loop, scf.ForOp)
    leaving = block.arguments[index] if is_for else base(last_op(block).operands[index])
    if leaving not in block.arguments:
        return None
    entering, passed = _slot(loop, ir.BlockArgument(leaving).arg_number)
    return entering if base(passed) == leaving else None


def first_block(loop: ir.OpView) -> ir.Block:
    """The block that what a loop carries enters."""
    return loop.operation.regions[0].blocks[0]


def last_op(block: ir.Block) -> ir.OpView:
    """The terminator of a block."""
    return block.operations[len(block.operations) - 1]


def never_same(memory: Memory, a: ir.Value, b: ir.Value) -> bool:
    """Whether a loop exchanges two tensors that are different memory when they enter it."""
    bases = [base(a), base(b)]
    pair = [ir.BlockArgument(value) for value in bases if isinstance(value, ir.BlockArgument)]
    if len(pair) < 2 or pair[0] == pair[1]:
        return False
    block = pair[0].owner
    loop = block.owner.opview
    if pair[1].owner != block or not isinstance(loop, scf.ForOp | scf.WhileOp):
        return False
    entering, passed = zip(*(_slot(loop, value.arg_number) for value in pair))
    if [base(value) for value in passed] != pair[::-1]:
        return False
    roots = [memory.roots(value) for value in entering]
    return roots[0].isdisjoint(roots[1])


def _slot(loop: ir.OpView, index: int) -> tuple[ir.Value, ir.Value]:
    """What enters a loop as that argument of its first block, and what a round passes on as it."""
    blocks: Sequence[ir.Block] = [region.blocks[0] for region in loop.operation.regions]
    end, operands = last_op(blocks[-1]), list(loop.operation.operands)
    from_last = len(blocks[0].arguments) - index
    return operands[-from_last], list(end.operands)[-from_last]
