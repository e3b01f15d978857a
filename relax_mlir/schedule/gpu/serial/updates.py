"""Outermost loops that nobody marked as tasks, though no iteration needs another.

    scf.for %k = 0 to %n {                              scf.for %k = 0 to %n {
      %i = load %indices[%k]                              %i = load %indices[%k]
      %old = load %out[%i]                        ->      memref.atomic_rmw addi %x, %out[%i]
      store %old + %x, %out[%i]                         } {tir.tasks}

Those that store to a slice of their own, as copies do, and those that update elements by an
integer operation whose order does not matter, for which devices have atomic updates. Floats stay in
order, since sums depend on it, as do stores to one element, of which the last one counts.
"""

from collections.abc import Sequence

from relax_mlir.bindings import arith, func, ir, memref, scf
from relax_mlir.rewriting import defining_op, walk
from relax_mlir.schedule.build.affine import constant_of
from relax_mlir.schedule.nests.tasks import TASKS
from relax_mlir.target import Device

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
) -> list[tuple[ir.Operation, list[memref.StoreOp]]]:
    """Marks outermost loops whose iterations threads may share.

    Returns them, each with the stores that have to be atomic then.
    """
    shared = []
    for op in function.entry_block.operations:
        if not isinstance(op, scf.ForOp) or TASKS in op.attributes or op.results:
            continue
        count = constant_of(op.upperBound)
        is_counted = constant_of(op.lowerBound) == 0 and constant_of(op.step) == 1
        if not is_counted or (count is not None and count < FEWEST):
            continue
        updates = _updates(op, device)
        if updates is None:
            continue
        op.operation.attributes[TASKS] = ir.UnitAttr.get()
        shared.append((op.operation, updates))
    return shared


def _updates(loop: scf.ForOp, device: Device) -> list[memref.StoreOp] | None:
    """The stores of a loop that have to be atomic; None if iterations may need one another."""
    inside = [op.opview for op in walk(loop) if op != loop.operation]
    every = [op for op in inside if isinstance(op, memref.LoadOp | memref.StoreOp)]
    others = [op.operation.name for op in inside if op not in every]
    if not all(name in _CONTROL or name.startswith(_PURE) for name in others):
        return None
    if not all(_is_apart(op.memref) for op in every):
        return None
    updates: list[memref.StoreOp] = []
    for buffer in dict.fromkeys(op.memref for op in every if isinstance(op, memref.StoreOp)):
        accesses = [op for op in every if op.memref == buffer]
        if _has_slices(loop, accesses):
            continue
        if device.atomics and _are_updates(accesses):
            updates += accesses[1::2]
        else:
            return None
    return updates


def _is_apart(buffer: ir.Value) -> bool:
    """Whether memory is an argument, or made on its own: no two of them overlap."""
    return isinstance(buffer.owner, ir.Block) or isinstance(buffer.owner.opview, _MAKERS)


def _has_slices(loop: scf.ForOp, accesses: Sequence[memref.LoadOp | memref.StoreOp]) -> bool:
    """Whether each iteration accesses a slice of its own: its index is that along a dim."""
    index, rank = loop.induction_variable, ir.MemRefType(accesses[0].memref.type).rank
    return any(all(op.indices[dim] == index for op in accesses) for dim in range(rank))


def _are_updates(accesses: Sequence[memref.LoadOp | memref.StoreOp]) -> bool:
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


def make_atomic(store: memref.StoreOp) -> None:
    """Replaces an update by an atomic one."""
    combined, load, kind = store.value.owner.opview, _loaded(store), _kind(store)
    assert load is not None, "it is an update"
    assert kind is not None, "it is one that devices have"
    (value,) = (x for x in combined.operation.operands if x != load.result)
    with ir.InsertionPoint(store), store.location:
        memref.atomic_rmw(kind, value, store.memref, list(store.indices))
    for op in (store, combined, load):
        op.operation.erase()
