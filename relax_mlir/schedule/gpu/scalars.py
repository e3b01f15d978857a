"""Scalars that a program reads from tensors: each launch loads those that it needs.

    %s = memref.load %t[..]                     gpu.launch {
    %d = arith.addf %s, %one                      %s = memref.load %t[..]
    gpu.launch { use(%d) }             ->         %d = arith.addf %s, %one
                                                  use(%d) }

The host has no access to memory of the device. If a launch stores to what is loaded, one thread
copies the element first.
"""

from collections.abc import Iterator

from relax_mlir.bindings import ir, memref
from relax_mlir.rewriting import walk
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.target import Device

from .launch import for_threads

LAUNCH = "gpu.launch"


def load_in_launches(function: ir.Operation, device: Device) -> None:
    """Moves loads of the host, and what is computed from them, into the launches that use them.

    Raises Refusal if something else depends on them, as the extents of a grid do.
    """
    host = list(host_ops(function))
    loads = [op for op in host if op.name == "memref.load"]
    if not loads:
        return
    written = {root_of(store.operands[1]) for store in _stores(host)}
    for load in loads:
        if root_of(load.operands[0]) in written:
            _copy_first(load, device)
    loaded = _dependent(list(host_ops(function)))
    for op in host_ops(function):
        if op.name == LAUNCH:
            _clone_into(op, loaded)
    for op in reversed(loaded):
        op.erase()


def host_ops(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops below one that run on the host, each before those nested in it."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                if child.operation.name != LAUNCH:
                    yield from host_ops(child.operation)


def root_of(buffer: ir.Value) -> ir.Value:
    """The memory that a buffer is a view of."""
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name != "memref.alloc":
        sources = [x for x in buffer.owner.operation.operands if isinstance(x.type, ir.MemRefType)]
        if not sources:
            break
        buffer = sources[0]
    return buffer


def _stores(host: list[ir.Operation]) -> Iterator[ir.Operation]:
    launches = (op for op in host if op.name == LAUNCH)
    return (op for launch in launches for op in walk(launch) if op.name == "memref.store")


def _copy_first(load: ir.Operation, device: Device) -> None:
    """Has a thread copy an element to memory of its own, from which it is loaded."""
    buffer, *indices = load.operands
    with ir.InsertionPoint(load), load.location:
        own = loops.flat_buffer(1, load.results[0].type)

        def copy(index: loops.Index) -> None:
            memref.store(memref.load(buffer, indices), own, [loops.value(0)])

        for_threads(1, device, copy)
        load.results[0].replace_all_uses_with(memref.load(own, [loops.value(0)]))
    with ir.InsertionPoint.at_block_terminator(load.block), load.location:
        memref.dealloc(own)
    load.erase()


def _dependent(host: list[ir.Operation]) -> list[ir.Operation]:
    """The loads of the host, and the ops that depend on them; raises Refusal for other uses."""
    values: set[ir.Value] = set()
    loaded = []
    for op in host:
        is_load = op.name == "memref.load"
        if not is_load and not any(x in values for x in op.operands):
            continue
        if not is_load and (len(op.regions) or not op.name.startswith(("arith.", "math."))):
            raise Refusal(f"what {op.name} takes is read from a tensor")
        values.update(op.results)
        loaded.append(op)
    return loaded


def _clone_into(launch: ir.Operation, loaded: list[ir.Operation]) -> None:
    """Computes in a launch what it uses of the loaded ops."""
    made = {result: op for op in loaded for result in op.results}
    cloned: dict[ir.Value, ir.Value] = {}
    start = ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0])

    def clone(value: ir.Value) -> ir.Value:
        if value not in made:
            return value
        if value not in cloned:
            op = made[value]
            operands = [clone(x) for x in op.operands]
            copy = op.clone(ip=start)
            for i, operand in enumerate(operands):
                copy.operation.operands[i] = operand
            cloned.update(zip(op.results, copy.operation.results, strict=True))
        return cloned[value]

    for op in [inner for inner in walk(launch) if inner != launch]:
        for i, operand in enumerate(list(op.operands)):
            if operand in made:
                op.operands[i] = clone(operand)
