"""Memory that each task has for itself, in the memory of its group of threads.

    scf.for %t = 0 to %n {                        gpu.launch .. workgroup(%all : memref<2048xf32>) {
      %own = memref.alloc() : memref<8xf32>   ->
      memref.store %x, %own[%i]                     memref.store %x, %all[%i * 256 + %thread]

Neighbours of a thread access neighbours of what it accesses. A group has as many threads as its
memory is enough for; if these are few, tasks have memory of the device: see `flat_memory.py`.
"""

from dataclasses import dataclass, field

from relax_mlir.bindings import ir, memref
from relax_mlir.dialects.graph import element_bits
from relax_mlir.rewriting import walk_ops
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import constant_of
from relax_mlir.target import Device

from ..launch import POINT_THREADS, Group

MIN_THREADS = 32


@dataclass
class OwnMemory:
    """What the tasks of a loop allocate in the memory of their group, flat, and its threads."""

    allocations: list[ir.Value]
    threads: int
    buffers: list[ir.Value] = field(default_factory=list)

    @staticmethod
    def of(loop: ir.Operation, device: Device, is_leaf: bool) -> "OwnMemory":
        """Plans for a loop of tasks: for all that it allocates of static size, or nothing.

        Operators, as sorts, keep their tables in device memory, of which they copy unwritten parts.
        """
        count = constant_of(loop.operands[1])
        most = min(POINT_THREADS, device.workgroup, *(() if count is None else (count or 1,)))
        values = [op.memref for op in walk_ops(loop, memref.AllocOp, memref.AllocaOp)]
        kinds = [ir.MemRefType(value.type) for value in values]
        if not is_leaf or not kinds or not all(_is_plain(kind, device) for kind in kinds):
            return OwnMemory([], most)
        size = sum(_elements(kind) * element_bits(kind.element_type) // 8 for kind in kinds)
        threads = most
        while threads * size > device.shared_bytes:
            threads //= 2
        fits = MIN_THREADS * size <= device.shared_bytes  # also of a loop of fewer tasks
        return OwnMemory(values, threads) if fits else OwnMemory([], most)

    def allocate(self, value: ir.Value) -> ir.Value:
        """Flat memory of a task at the insertion point, which `share` replaces."""
        kind = ir.MemRefType(value.type)
        flat = ir.MemRefType.get([_elements(kind)], kind.element_type)
        self.buffers.append(memref.alloca(flat, [], []))
        return self.buffers[-1]

    def share(self, group: Group) -> None:
        """Has the threads of a group that runs the loop's tasks access what they share."""
        for slot, buffer in enumerate(self.buffers):
            kind = ir.MemRefType(buffer.type)
            shared = group.memory(kind.shape[0] * self.threads, kind.element_type, slot)
            for use in list(buffer.uses):
                _access(use.owner.opview, shared, self.threads, group.thread)
            buffer.owner.erase()


def _access(op: ir.OpView, shared: ir.Value, threads: int, thread: ir.Value) -> None:
    """Has a load or a store access the part of a thread."""
    with ir.InsertionPoint(op), op.location:
        (index,) = op.indices
        at = [loops.value(loops.add(loops.mul(index, threads), thread))]
        if isinstance(op, memref.StoreOp):
            memref.store(op.value, shared, at)
        else:
            op.result.replace_all_uses_with(memref.load(shared, at))
    op.operation.erase()


def _elements(kind: ir.MemRefType) -> int:
    count = 1
    for extent in kind.shape:
        count *= extent
    return count


def _is_plain(kind: ir.MemRefType, device: Device) -> bool:
    """Whether a group's memory may have such elements, which every device accesses alone."""
    element = str(kind.element_type)
    is_word = element in device.elements and element_bits(kind.element_type) >= 32
    return kind.has_static_shape and is_word and _elements(kind) > 0
