"""Tasks of one column, where those of CPUs have a block of them: a thread has one.

    scf.forall (%j) = (0) to (%n) step (64)            scf.forall (%j) = (0) to (%n) step (1)
      %size = arith.minsi %c64, %n - %j {tir.block}     ->      %size = 1

Neighbouring threads access neighbouring columns. A total that a block had in memory becomes a value
that the loop carries, so that columns are scans as rows are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, func, ir, memref, scf
from relax_mlir.dialects.tir import BLOCK
from relax_mlir.rewriting import defining_op, walk_ops
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import constant_of
from relax_mlir.schedule.nests.tasks import TASKS


def narrow_blocks(function: func.FuncOp) -> None:
    """Makes marked blocks of loops over tasks columns."""
    for size in walk_ops(function, arith.MinSIOp):
        loop = size.operation.parent.opview
        if BLOCK not in size.operation.attributes or not isinstance(loop, scf.ForallOp):
            continue
        dim = _dim(loop, size)
        if dim is not None:
            _narrow(loop, dim)
            with ir.InsertionPoint(size), size.location:
                size.result.replace_all_uses_with(loops.value(1))
            size.operation.erase()


def _dim(loop: scf.ForallOp, size: arith.MinSIOp) -> int | None:
    """The dim of a loop of which a size is what is left, or a step; None if it is neither."""
    for step, rest in ((size.lhs, size.rhs), (size.rhs, size.lhs)):
        left = defining_op(rest, arith.SubIOp)
        indices = list(loop.induction_variables)
        if left is None or left.rhs not in indices:
            continue
        dim = indices.index(left.rhs)
        static, operand = _step(loop, dim)
        is_step = constant_of(step) == static if operand is None else loop.operands[operand] == step
        if is_step:
            return dim
    return None


def _step(loop: scf.ForallOp, dim: int) -> tuple[int, int | None]:
    """A step that is static, or that is an operand of the loop."""
    before = 0
    for name in ("staticLowerBound", "staticUpperBound", "staticStep"):
        known = list(ir.DenseI64ArrayAttr(loop.attributes[name]))
        count = len(known) if name != "staticStep" else dim
        before += sum(n == ir.ShapedType.get_dynamic_size() for n in known[:count])
    is_known = known[dim] != ir.ShapedType.get_dynamic_size()
    return known[dim], None if is_known else before


def _narrow(loop: scf.ForallOp, dim: int) -> None:
    _, operand = _step(loop, dim)
    if operand is not None:
        with ir.InsertionPoint(loop), loop.location:
            loop.operation.operands[operand] = loops.value(1)
        return
    steps = list(ir.DenseI64ArrayAttr(loop.attributes["staticStep"]))
    steps[dim] = 1
    loop.attributes["staticStep"] = ir.DenseI64ArrayAttr.get(steps)


def carry_elements(function: func.FuncOp) -> None:
    """Replaces memory of one element that a loop updates by a value that the loop carries."""
    for made in walk_ops(function, memref.AllocOp, memref.AllocaOp):
        element = _Element.of(made.memref)
        if element is not None:
            element.carry()


@dataclass(frozen=True)
class _Element:
    """Memory of one element: accesses before a loop, then in each iteration, all unconditional."""

    buffer: ir.Value
    loop: scf.ForOp
    before: Sequence[ir.OpView]
    inside: Sequence[ir.OpView]

    @staticmethod
    def of(buffer: ir.Value) -> "_Element | None":
        """The accesses in order; None if there are others, or if they do not begin by a store."""
        users = [use.owner.opview for use in buffer.uses]
        accesses = [op for op in users if isinstance(op, memref.LoadOp | memref.StoreOp)]
        freed = [op for op in users if isinstance(op, memref.DeallocOp)]
        kind, block = ir.MemRefType(buffer.type), buffer.owner.operation.block
        if len(accesses) + len(freed) < len(users) or list(kind.shape) not in ([], [1]):
            return None
        if any(isinstance(op, memref.StoreOp) and op.value == buffer for op in accesses):
            return None
        loops_ = {op.operation.block.owner for op in accesses if op.operation.block != block}
        if len(loops_) != 1:
            return None
        loop = loops_.pop().opview
        if not isinstance(loop, scf.ForOp) or TASKS in loop.operation.attributes:
            return None
        if loop.operation.block != block:
            return None
        own = [op for op in loop.body.operations if op in accesses]
        others = [op for op in block.operations if op in accesses or op == loop]
        if len(own) + len(others) != len(accesses) + 1 or others[-1] != loop:
            return None
        if not isinstance(others[0], memref.StoreOp):
            return None
        return _Element(buffer, loop, others[:-1], own)

    def carry(self) -> None:
        """Rewrites the loop, and erases the memory."""
        old = self.loop
        first = _forwarded(self.before, None)
        with ir.InsertionPoint(old), old.location:
            made = scf.ForOp(old.lowerBound, old.upperBound, old.step, [*old.initArgs, first])
        *carried, total = made.inner_iter_args
        replaced = [old.induction_variable, *old.inner_iter_args, *old.results]
        by = [made.induction_variable, *carried, *list(made.results)[:-1]]
        for value, other in zip(replaced, by, strict=True):
            value.replace_all_uses_with(other)
        last = _forwarded(self.inside, total)
        *ops, end = old.body.operations
        with ir.InsertionPoint(made.body), old.location:
            after = scf.YieldOp([*end.operands, last])
        for op in ops:
            op.operation.move_before(after.operation)
        for use in list(self.buffer.uses):
            use.owner.erase()
        old.operation.erase()
        self.buffer.owner.erase()


def _forwarded(accesses: Sequence[ir.OpView], current: ir.Value | None) -> ir.Value:
    """What memory has after accesses in order, whose loads become values."""
    for op in accesses:
        if isinstance(op, memref.StoreOp):
            current = op.value
        else:
            assert current is not None, "memory is stored to first"
            op.result.replace_all_uses_with(current)
    assert current is not None, "memory is stored to"
    return current
