"""Outermost loops of scalar code of which a tensor program says that no iteration needs another.

    scf.forall (%i, %j) in (%n, 4) { .. }             scf.for %t = 0 to %n * 4 { %i, %j = .. }
                                            ->
    scf.for %t = 0 to %count { .. } {tir.tasks}       scf.parallel (%t) .. {tir.grain}

First the one, while loops are lowered and memory is taken, then the other.
"""

from collections.abc import Iterator

from relax_mlir.bindings import arith, func, ir, scf
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

from .carried_indices import carry_indices

TASKS = "tir.tasks"
"""Marks loops of which no iteration needs another."""
_TASK_WORK = 1 << 14
"""Elements of the arguments that are worth a thread."""


def mark_tasks(function: func.FuncOp) -> None:
    """Makes each outermost `scf.forall` on memory one marked loop."""
    for op in _outermost(function, "scf.forall"):
        with ir.InsertionPoint(op), op.location:
            lower, extents, steps = _bounds(op)
            loop = scf.ForOp(loops.value(0), loops.value(loops.mul(*extents)), loops.value(1))
        loop.operation.attributes[TASKS] = ir.UnitAttr.get()
        block = op.regions[0].blocks[0]
        with ir.InsertionPoint(loop.body), op.location:
            end = scf.YieldOp([])
        with ir.InsertionPoint(end), op.location:
            indices = loops.unravel(loop.induction_variable, extents)
            for argument, first, index, step in zip(
                block.arguments, lower, indices, steps, strict=True
            ):
                at = loops.add(first, loops.mul(index, step))
                argument.replace_all_uses_with(loops.value(at))
        move_body(block, end.operation)
        op.erase()


def share_tasks(function: func.FuncOp) -> None:
    """Has threads share the iterations of marked loops."""
    for op in _outermost(function, "scf.for"):
        if TASKS not in op.attributes:
            continue
        loop = op.opview
        with ir.InsertionPoint(op), op.location:
            count = op.operands[1]
            work = loops.floor_div(_elements(function), loops.maximum(count, 1))
            rounds: list[scf.ForOp] = []

            def task(i: ir.Value, loop: scf.ForOp = loop, rounds: list[scf.ForOp] = rounds) -> None:
                anchor = arith.constant(ir.IndexType.get(), 0).owner
                move_body(loop.body, anchor)
                loop.induction_variable.replace_all_uses_with(i)
                anchor.erase()
                if isinstance(i.owner.owner.opview, scf.ForOp):
                    rounds.append(i.owner.owner.opview)

            loops.shared_range(count, work, _TASK_WORK, task)
        op.erase()
        for each in rounds:
            carry_indices(each)


def _outermost(function: func.FuncOp, name: str) -> list[ir.Operation]:
    return [op.operation for op in function.entry_block.operations if op.operation.name == name]


def _bounds(op: ir.Operation) -> tuple[list[Index], list[Index], list[Index]]:
    """Where the loops of an `scf.forall` begin, how many iterations they have, and their steps."""
    values = iter(op.operands)
    unknown = ir.ShapedType.get_dynamic_size()
    lower, upper, step = (
        [next(values) if n == unknown else n for n in ir.DenseI64ArrayAttr(op.attributes[name])]
        for name in ("staticLowerBound", "staticUpperBound", "staticStep")
    )
    extents = [
        loops.ceil_div(loops.sub(b, a), s) for a, b, s in zip(lower, upper, step, strict=True)
    ]
    return lower, extents, step


def _elements(function: func.FuncOp) -> Index:
    """The number of elements of all arguments."""
    buffers = [a for a in function.arguments if isinstance(a.type, ir.MemRefType)]
    return loops.add(*(loops.mul(*_extents(buffer)) for buffer in buffers))


def _extents(buffer: ir.Value) -> Iterator[Index]:
    return (loops.dim(buffer, axis) for axis in range(ir.MemRefType(buffer.type).rank))


def move_body(block: ir.Block, anchor: ir.Operation) -> None:
    """Moves all of a block but its terminator in front of an op."""
    for op in list(block.operations)[:-1]:
        op.move_before(anchor)
