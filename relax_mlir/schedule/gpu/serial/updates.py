"""Outermost loops that nobody marked as tasks, though no iteration needs another.

    scf.for %k = 0 to %n {                              scf.for %k = 0 to %n {
      %i = load %indices[%k]                              %i = load %indices[%k]
      %old = load %out[%i]                        ->      memref.atomic_rmw addi %x, %out[%i]
      store %old + %x, %out[%i]                         } {tir.tasks}

Those that store to a slice of their own, as copies do, and those that update elements by an
integer operation whose order does not matter, for which devices have atomic updates. Sums of floats
depend on it, as do stores to one element, of which the last one counts: see `owners.py`.
"""

from collections.abc import Callable, Sequence
from functools import partial

from relax_mlir.bindings import arith, func, ir, memref, scf
from relax_mlir.rewriting import defining_op, walk
from relax_mlir.schedule.build.affine import constant_of
from relax_mlir.schedule.nests.tasks import TASKS
from relax_mlir.target import Device

from .owners import Access, OwnedUpdates

FEWEST = 32
"""Loops of fewer iterations, where that is known, are for one thread."""
_KINDS = {
    arith.AddIOp: arith.AtomicRMWKind.addi,
    arith.MaxSIOp: arith.AtomicRMWKind.maxs,
    arith.MaxUIOp: arith.AtomicRMWKind.maxu,
    arith.MinSIOp: arith.AtomicRMWKind.mins,
    arith.MinUIOp: arith.AtomicRMWKind.minu,
    arith.AndIOp: arith.AtomicRMWKind.andi,
    arith.OrIOp: arith.AtomicRMWKind.ori,
}
_ELEMENTS = "i32", "i64"
_PURE = ("arith.", "math.")
_CONTROL = ("scf.for", "scf.if", "scf.yield")
_MAKERS = memref.AllocOp, memref.GetGlobalOp


def share_loops(
    function: func.FuncOp, device: Device
) -> list[tuple[ir.Operation, Callable[[], None]]]:
    """Marks outermost loops whose iterations threads may share.

    Returns them, each with what has to be done to it then.
    """
    shared = []
    for op in function.entry_block.operations:
        if not isinstance(op, scf.ForOp) or TASKS in op.attributes or op.results:
            continue
        count = constant_of(op.upperBound)
        is_counted = constant_of(op.lowerBound) == 0 and constant_of(op.step) == 1
        if not is_counted or (count is not None and count < FEWEST):
            continue
        finish = _updates(op, device)
        if finish is None:
            continue
        op.operation.attributes[TASKS] = ir.UnitAttr.get()
        shared.append((op.operation, finish))
    return shared


def _updates(loop: scf.ForOp, device: Device) -> Callable[[], None] | None:
    """What makes iterations of a loop tasks; None if they may need one another."""
    inside = [op.opview for op in walk(loop) if op != loop.operation]
    every = [op for op in inside if isinstance(op, Access)]
    others = [op.operation.name for op in inside if op not in every]
    if not all(name in _CONTROL or name.startswith(_PURE) for name in others):
        return None
    if not all(_is_apart(op.memref) for op in every):
        return None
    stored = dict.fromkeys(op.memref for op in every if isinstance(op, memref.StoreOp))
    accesses = [[op for op in every if op.memref == buffer] for buffer in stored]
    updates = [own for own in accesses if not _has_slices(loop, own)]
    if all(device.atomics and _are_updates(own) for own in updates):
        return partial(_make_atomic, [op for own in updates for op in own[1::2]])
    owned = OwnedUpdates.of(loop, updates[0]) if len(accesses) == 1 else None
    return None if owned is None else owned.share


def _is_apart(buffer: ir.Value) -> bool:
    """Whether memory is an argument, or made on its own: no two of them overlap."""
    return isinstance(buffer.owner, ir.Block) or isinstance(buffer.owner.opview, _MAKERS)


def _has_slices(loop: scf.ForOp, accesses: Sequence[Access]) -> bool:
    """Whether each iteration accesses a slice of its own: its index is that along a dim."""
    index, rank = loop.induction_variable, ir.MemRefType(accesses[0].memref.type).rank
    return any(all(op.indices[dim] == index for op in accesses) for dim in range(rank))


def _are_updates(accesses: Sequence[Access]) -> bool:
    """Whether accesses, in order, are a load and the store that updates it, of one kind each."""
    loads, stores = accesses[::2], accesses[1::2]
    if len(loads) != len(stores) or not all(isinstance(op, memref.StoreOp) for op in stores):
        return False
    kinds = {_kind(store) for store in stores}
    pairs = zip(loads, map(_loaded, stores), strict=True)
    return None not in kinds and len(kinds) == 1 and all(load == own for load, own in pairs)


def _kind(store: memref.StoreOp) -> arith.AtomicRMWKind | None:
    """What an element becomes with a value that does not need it; None if a store is no update."""
    if str(store.value.type) not in _ELEMENTS or isinstance(store.value.owner, ir.Block):
        return None
    combined, load = store.value.owner.opview, _loaded(store)
    if load is None or not all(_is_only_use(x, store) for x in (load, combined)):
        return None
    return _KINDS.get(type(combined))


def _is_only_use(op: ir.OpView, store: memref.StoreOp) -> bool:
    """Whether one op uses a value, in the block of the store."""
    uses = list(op.operation.results[0].uses)
    return len(uses) == 1 and op.operation.block == store.operation.block


def _loaded(store: memref.StoreOp) -> memref.LoadOp | None:
    """The load of the element that a store replaces, which one side of its value is."""
    for x in store.value.owner.operation.operands:
        load = defining_op(x, memref.LoadOp)
        if load is not None and load.memref == store.memref:
            return load if list(load.indices) == list(store.indices) else None
    return None


def _make_atomic(stores: Sequence[memref.StoreOp]) -> None:
    """Replaces updates by atomic ones."""
    for store in stores:
        combined, load, kind = store.value.owner.opview, _loaded(store), _kind(store)
        assert load is not None, "it is an update"
        assert kind is not None, "it is one that devices have"
        (value,) = (x for x in combined.operation.operands if x != load.result)
        with ir.InsertionPoint(store), store.location:
            memref.atomic_rmw(kind, value, store.memref, list(store.indices))
        for op in (store, combined, load):
            op.operation.erase()
