"""Loops of updates whose order matters: each thread makes, in order, those of its own elements.

    scf.for %k = 0 to %n {                         scf.for %t = 0 to ceil(%size / %share) {
      %i = load %indices[%k]                         scf.for %k = 0 to %n {
      %old = load %out[%i]                 ->          %i = load %indices[%k]
      store %old + %x, %out[%i]                        scf.if %i - %t * %share in [0, %share) {
    }                                                    ..
                                                   } {tir.tasks}

A thread reads all indices, which loads next to each other do at once; one thread for all updates
would wait for each element in turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_mlir.bindings import arith, ir, memref, scf
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

MOST_OWNERS = 1 << 14
"""Threads of a launch: enough to hide that each of them reads all indices."""

Access: TypeAlias = memref.LoadOp | memref.StoreOp


@dataclass(frozen=True)
class OwnedUpdates:
    """A loop of which an iteration accesses one element of a buffer, by ops of one block.

    `ops` are those from the first access to the last one, and what only these need. Nothing else
    does.
    """

    loop: scf.ForOp
    access: Access
    ops: Sequence[ir.Operation]

    @staticmethod
    def of(loop: scf.ForOp, accesses: Sequence[Access]) -> "OwnedUpdates | None":
        """The updates of a buffer, by all accesses to it; None if these are not of one element."""
        if accesses[0].memref.type.shape in ([], [1]):
            return None
        first, last = accesses[0].operation, accesses[-1].operation
        if any(op.operation.block != first.block for op in accesses):
            return None
        if any(list(op.indices) != list(accesses[0].indices) for op in accesses):
            return None
        block = [op.operation for op in first.block.operations]
        begin, end = block.index(first), block.index(last) + 1
        ops = block[begin:end]
        if not all(_are_for(op, ops) for op in ops):
            return None
        indices = [x.owner for x in accesses[0].indices]
        for op in reversed(block[:begin]):
            if op not in indices and _are_for(op, ops):
                ops.insert(0, op)
        return OwnedUpdates(loop, accesses[0], ops)

    def share(self) -> None:
        """Makes the loop one over threads, around what it was."""
        buffer = self.access.memref
        with ir.InsertionPoint(self.loop), self.loop.location:
            extents = [loops.dim(buffer, i) for i in range(ir.MemRefType(buffer.type).rank)]
            size = loops.mul(*extents)
            share = loops.maximum(loops.ceil_div(size, MOST_OWNERS), 1)
            owners = loops.value(loops.ceil_div(size, share))
            bounds = [loops.value(0), owners, loops.value(1)]
        self._nest(bounds)
        with ir.InsertionPoint.at_block_begin(self.loop.body), self.loop.location:
            first = loops.mul(self.loop.induction_variable, share)
        with ir.InsertionPoint(self.access), self.loop.location:
            at: Index = 0
            for index, extent in zip(self.access.indices, extents, strict=True):
                at = loops.add(loops.mul(at, extent), index)
            beyond = loops.sub(at, first)
            below = arith.CmpIPredicate.ult
            guard = scf.IfOp(arith.cmpi(below, loops.value(beyond), loops.value(share)))
            with ir.InsertionPoint(guard.then_block):
                end = scf.YieldOp([])
        for op in self.ops:
            op.move_before(end.operation)

    def _nest(self, bounds: Sequence[ir.Value]) -> None:
        """Moves the body to a loop of its own, which the loop over threads repeats."""
        loop = self.loop
        ops = list(loop.body.operations)[:-1]
        with ir.InsertionPoint.at_block_begin(loop.body), loop.location:
            inner = scf.ForOp(loop.lowerBound, loop.upperBound, loop.step)
            with ir.InsertionPoint(inner.body):
                inner_end = scf.YieldOp([])
        loop.induction_variable.replace_all_uses_with(inner.induction_variable)
        for op in ops:
            op.operation.move_before(inner_end.operation)
        for i, bound in enumerate(bounds):
            loop.operation.operands[i] = bound


def _are_for(op: ir.Operation, users: Sequence[ir.Operation]) -> bool:
    """Whether all that need an op are some of its block, or parts of these."""
    uses = (use.owner.operation for x in op.results for use in x.uses)
    return all(_in_block(user, op.block) in users for user in uses)


def _in_block(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The op of a block that another one is, or is part of."""
    while op is not None and op.block != block:
        op = op.parent
    return op
