"""The rule for everything else: a thread for each task, or one for all.

    scf.for %i = 0 to %n { .. } {tir.tasks}       a thread for each %i
    %s = memref.load ..; scf.for ..        ->     one thread

Programs become scalar loops, as on a CPU. Outermost loops of which no iteration needs another are
launches; what is between them is run by one thread, and all is if a value passes from one to the
other. What a task allocates for itself is memory of its group, if that is enough. A long scan has a
group of threads, be it a task or between them: see `scans/`.

Needs: a tensor program. Leaves: a scheduled kernel; fails at an op that MLIR cannot bufferize, or
that allocates memory of a size that only the device computes.
"""

from collections.abc import Sequence

from relax_mlir.bindings import arith, func, ir, memref
from relax_mlir.dialects.tir import OF_LEAF, PrimFunc
from relax_mlir.passes import PassFailure, run_upstream
from relax_mlir.rewriting import defining_op, walk_ops
from relax_mlir.schedule.build.affine import constant_of
from relax_mlir.schedule.build.loops import Index, value
from relax_mlir.schedule.nests.scalar import convert
from relax_mlir.schedule.nests.tasks import TASKS, move_body
from relax_mlir.target import Device

from ..launch import Group, for_groups, for_tasks
from ..scans.launches import launch_scans
from ..scans.scan import scan_threads
from .blocks import carry_elements, narrow_blocks
from .flat_memory import UNKNOWN_SIZE, flatten_memory, outermost
from .own_memory import OwnMemory
from .updates import share_loops

_FOLD = "builtin.module(fold-memref-alias-ops,lower-affine,canonicalize,cse)"
_CLEAN = "builtin.module(canonicalize,cse)"


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules any program that bufferizes; raises PassFailure at an op that does not."""
    is_leaf = OF_LEAF in prim_func.op.attributes
    narrow_blocks(prim_func.op)

    def finish(function: func.FuncOp) -> None:
        module = function.operation.parent
        run_upstream(_FOLD, module)
        carry_elements(function)
        if _drop_copies_to_itself(function):
            run_upstream(_CLEAN, module)
        loops = share_loops(function, device)
        tasks = _tasks(function)
        for loop, share in loops:
            if loop in tasks:
                share()
        own = [OwnMemory.of(loop, device, is_leaf) for loop in tasks]
        shared = [_threads_of_scan(part, tasks, device) for part in _parts(function, tasks)]
        flatten_memory(function, tasks, own)
        for part, threads in zip(_parts(function, tasks), shared, strict=True):
            if part[0] not in tasks:
                _launch_one(part, threads, device)
            elif threads is not None:
                _launch_groups(part[0], threads, device)
            else:
                _launch_tasks(part[0], own[tasks.index(part[0])], device)
        run_upstream(_CLEAN, module)

    convert(prim_func, finish)
    return True


def _on_device(function: func.FuncOp) -> list[ir.Operation]:
    """The outermost ops that access memory, and those that need what they compute."""
    computed: set[ir.Value] = set()
    result = []
    for view in list(function.entry_block.operations)[:-1]:
        op = view.operation
        accesses = op.name in ("memref.load", "memref.store") or len(op.regions) > 0
        if accesses or any(x in computed for x in op.operands):
            if op.name == "memref.alloc":
                raise PassFailure(op, UNKNOWN_SIZE)
            computed.update(op.results)
            result.append(op)
    return result


def _tasks(function: func.FuncOp) -> list[ir.Operation]:
    """The loops that threads share: none if a value passes from one part of the device to another.

    Values of the host pass to any part.
    """
    ops = _on_device(function)
    tasks = [op for op in ops if TASKS in op.attributes]
    parts = _parts(function, tasks)
    for part in parts:
        for op in part:
            users = (outermost(use.owner, function) for x in op.results for use in x.uses)
            if any(user not in part for user in users):
                return []
    return tasks


def _parts(function: func.FuncOp, tasks: Sequence[ir.Operation]) -> list[list[ir.Operation]]:
    """What each launch runs: a loop of tasks, or ops in order."""
    parts: list[list[ir.Operation]] = []
    for op in _on_device(function):
        if op in tasks or not parts or parts[-1][0] in tasks:
            parts.append([])
        parts[-1].append(op)
    return parts


def _drop_copies_to_itself(function: func.FuncOp) -> bool:
    """Erases stores of what has just been loaded from there, and says whether there were any.

    Bufferization copies to an output what was computed in it, if it does not know the size.
    """
    copies = [op for op in walk_ops(function, memref.StoreOp) if _is_copy_to_itself(op)]
    for op in copies:
        op.operation.erase()
    return bool(copies)


def _is_copy_to_itself(store: memref.StoreOp) -> bool:
    load = defining_op(store.value, memref.LoadOp)
    if load is None or load.memref != store.memref or list(load.indices) != list(store.indices):
        return False
    ops = [op.operation for op in store.operation.block.operations]
    at = ops.index(store.operation)
    return at > 0 and ops[at - 1] == load.operation


def _body(loop: ir.Operation) -> list[ir.Operation]:
    """The ops of a loop without its terminator."""
    return [op.operation for op in loop.opview.body.operations][:-1]


def _threads_of_scan(
    part: Sequence[ir.Operation], tasks: Sequence[ir.Operation], device: Device
) -> int | None:
    """Threads of a group for a part that is a scan, or for each of its tasks if these are scans."""
    if part[0] in tasks:
        return scan_threads(_body(part[0]), constant_of(part[0].operands[1]), device)
    return scan_threads(part, 1, device)


def _launch_one(part: Sequence[ir.Operation], threads: int | None, device: Device) -> None:
    """Has one thread, or groups for a scan, run some ops, where the last of them is."""

    def body(group: Group) -> None:
        anchor = arith.constant(ir.IndexType.get(), 0).owner
        for op in part:
            op.move_before(anchor)
        anchor.erase()

    with ir.InsertionPoint(part[-1]), part[-1].location:
        if threads is None:
            for_groups(1, 1, device, body)
        else:
            launch_scans(part, None, 1, threads, device)


def _launch_groups(loop: ir.Operation, threads: int, device: Device) -> None:
    """Has groups run each iteration of a loop, which is a scan."""
    row = loop.opview.induction_variable
    with ir.InsertionPoint(loop), loop.location:
        launch_scans(_body(loop), row, _count(loop), threads, device)
    loop.erase()


def _launch_tasks(loop: ir.Operation, own: OwnMemory, device: Device) -> None:
    """Has a thread run each iteration of a loop."""

    def body(index: Index, group: Group) -> None:
        anchor = arith.constant(ir.IndexType.get(), 0).owner
        move_body(loop.opview.body, anchor)
        loop.opview.induction_variable.replace_all_uses_with(value(index))
        anchor.erase()
        own.share(group)

    with ir.InsertionPoint(loop), loop.location:
        for_tasks(_count(loop), own.threads, device, body)
    loop.erase()


def _count(loop: ir.Operation) -> Index:
    """The iterations of a loop of tasks, which begins at zero, by steps of one."""
    count = constant_of(loop.operands[1])
    return loop.operands[1] if count is None else count
