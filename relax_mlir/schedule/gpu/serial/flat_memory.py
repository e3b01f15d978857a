"""Memory of scalar kernels as devices access it: flat, and allocated before launches.

    memref.store %x, %out[%i, %j] : memref<?x4xf32>  ->  memref.store %x, %flat[%i * 4 + %j]
    scf.for %t = 0 to %n {                               %b = memref.alloc(%n * %k)
      %b = memref.alloc(%k) ..                       ->  scf.for %t = 0 to %n {
      memref.load %b[%i]                                   memref.load %b[%t * %k + %i]

Each task of a loop has a part of what the loop's tasks allocate, unless its group has memory for it
(`own_memory.py`). What is accessed of one of two
memories, by a condition, becomes a branch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, func, ir, memref, scf
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import is_unused, walk_ops
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import constant_of
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.memory import row_major

from .own_memory import OwnMemory
from .sizes import Sizes

UNKNOWN_SIZE = (
    "allocates memory of a size that is known on the device only; a device has memory of sizes "
    "that are known before a launch"
)

_MAKERS = memref.AllocOp, memref.AllocaOp, memref.GetGlobalOp, memref.CastOp, arith.SelectOp


def flatten_memory(
    function: func.FuncOp, tasks: Sequence[ir.Operation], own: Sequence[OwnMemory]
) -> None:
    """Makes all accesses of a function flat, in place; threads share iterations of `tasks`.

    `own` is what the iterations of each have in the memory of their group.

    Raises PassFailure at an op whose memory has a size that only the device computes, or that no
    argument or allocation is known to be.
    """
    _Flattener(function, tasks, own).run()


def outermost(op: ir.Operation | ir.OpView, function: func.FuncOp) -> ir.Operation:
    """The op of a function's own block that an op is, or is nested in."""
    inner = op.operation
    while inner.block != function.entry_block:
        inner = inner.block.owner.operation
    return inner


@dataclass(frozen=True)
class _Flat:
    """Memory of one dim: element i of the old one is at `start + sum(i * strides)`."""

    buffer: ir.Value
    strides: tuple[Index, ...]
    start: Index

    def at(self, indices: Sequence[ir.Value]) -> list[ir.Value]:
        """Where an element is."""
        terms = (loops.mul(i, s) for i, s in zip(indices, self.strides, strict=True))
        return [loops.value(loops.add(self.start, *terms))]


@dataclass
class _Flattener:
    function: func.FuncOp
    tasks: Sequence[ir.Operation]
    own: Sequence[OwnMemory]
    _known: dict[ir.Value, _Flat] = field(default_factory=dict)

    def run(self) -> None:
        """Rewrites all accesses, then erases what they replace."""
        for size in walk_ops(self.function, memref.DimOp):
            self._size_at_top(size)
        accesses = walk_ops(self.function, memref.LoadOp, memref.StoreOp)
        for update in walk_ops(self.function, memref.AtomicRMWOp):
            self._rewrite_update(update)
        for access in accesses:
            self._rewrite(access)
        for freed in walk_ops(self.function, memref.DeallocOp):
            if freed.memref in self._known:
                freed.operation.erase()
        for old in reversed(walk_ops(self.function, *_MAKERS)):
            if is_unused(old):
                old.operation.erase()
        self._free()

    def _size_at_top(self, op: memref.DimOp) -> None:
        """Replaces an extent of an argument by one that is read before all loops."""
        axis = constant_of(op.index)
        if axis is None or not isinstance(op.source.owner, ir.Block):
            return
        with ir.InsertionPoint.at_block_begin(self.function.entry_block), op.location:
            size = loops.value(loops.dim(op.source, axis))
        op.result.replace_all_uses_with(size)
        op.operation.erase()

    def _rewrite(self, op: memref.LoadOp | memref.StoreOp) -> None:
        stored = op.value if isinstance(op, memref.StoreOp) else None
        with ir.InsertionPoint(op), op.location:
            loaded = self._access(op.memref, list(op.indices), stored)
        if loaded is not None:
            op.results[0].replace_all_uses_with(loaded)
        op.operation.erase()

    def _rewrite_update(self, op: memref.AtomicRMWOp) -> None:
        with ir.InsertionPoint(op), op.location:
            flat = self._flat(op.memref)
            memref.atomic_rmw(op.kind, op.value, flat.buffer, flat.at(list(op.indices)))
        op.operation.erase()

    def _access(
        self, buffer: ir.Value, indices: Sequence[ir.Value], stored: ir.Value | None
    ) -> ir.Value | None:
        """Stores an element, or loads and returns one."""
        made = None if isinstance(buffer.owner, ir.Block) else buffer.owner.opview
        if isinstance(made, memref.CastOp):
            return self._access(made.source, indices, stored)
        if isinstance(made, arith.SelectOp):
            return self._branch(made, indices, stored)
        flat = self._flat(buffer)
        at = flat.at(indices)
        if stored is None:
            return memref.load(flat.buffer, at)
        memref.store(stored, flat.buffer, at)
        return None

    def _branch(
        self, choice: arith.SelectOp, indices: Sequence[ir.Value], stored: ir.Value | None
    ) -> ir.Value | None:
        kinds = [ir.MemRefType(choice.result.type).element_type] if stored is None else []
        branch = scf.IfOp(choice.condition, kinds, has_else=True)
        sides = (branch.then_block, choice.true_value), (branch.else_block, choice.false_value)
        for block, buffer in sides:
            with ir.InsertionPoint(block):
                loaded = self._access(buffer, indices, stored)
                scf.YieldOp([] if loaded is None else [loaded])
        return branch.results[0] if kinds else None

    def _flat(self, buffer: ir.Value) -> _Flat:
        if buffer not in self._known:
            self._known[buffer] = self._make(buffer)
        return self._known[buffer]

    def _make(self, buffer: ir.Value) -> _Flat:
        """The flat memory for an argument, a table of constants, or an allocation."""
        block, owner = self.function.entry_block, buffer.owner
        if isinstance(owner, ir.Block):
            if owner != block:
                raise PassFailure(owner.owner, "carries memory, which a device cannot")
            with ir.InsertionPoint.at_block_begin(block), self.function.location:
                return self._whole(buffer)
        op = owner.opview
        if isinstance(op, memref.GetGlobalOp):
            with ir.InsertionPoint.at_block_begin(block), op.location:
                return self._whole(op.operation.clone().results[0])
        if isinstance(op, memref.AllocOp | memref.AllocaOp):
            return self._allocated(op)
        raise PassFailure(op, "makes memory of an unknown origin, which a device cannot access")

    def _whole(self, buffer: ir.Value) -> _Flat:
        rank = ir.MemRefType(buffer.type).rank
        sizes = [loops.dim(buffer, axis) for axis in range(rank)]
        return _Flat(loops.flatten(buffer), row_major(sizes), 0)

    def _allocated(self, op: memref.AllocOp | memref.AllocaOp) -> _Flat:
        """Memory that is allocated before all loops: a part for each task."""
        kind, outer = ir.MemRefType(op.memref.type), outermost(op, self.function)
        own = self.own[self.tasks.index(outer)] if outer in self.tasks else None
        if own is not None and op.memref in own.allocations:
            with ir.InsertionPoint.at_block_begin(outer.opview.body), op.location:
                return _Flat(own.allocate(op.memref), row_major(kind.shape), 0)
        dynamic = iter(op.dynamicSizes)
        with ir.InsertionPoint(outer), op.location:
            sizes: list[Index] = [
                self._size(next(dynamic), op)
                if kind.is_dynamic_dim(axis)
                else kind.get_dim_size(axis)
                for axis in range(kind.rank)
            ]
            size = loops.mul(1, *sizes)
            start: Index = 0
            count: Index = outer.operands[1] if outer in self.tasks else 1
            buffer = loops.flat_buffer(loops.mul(count, size), kind.element_type)
            strides = row_major(sizes)
        if outer in self.tasks:
            loop = outer.opview
            with ir.InsertionPoint.at_block_begin(loop.body), op.location:
                start = loops.mul(loop.induction_variable, size)
        return _Flat(buffer, strides, start)

    def _size(self, x: ir.Value, user: ir.OpView) -> ir.Value:
        """The size of memory that an op allocates, or more, computed in front of all loops."""
        size = Sizes(self.function.entry_block).bound(x)
        if size is None:
            raise PassFailure(user, UNKNOWN_SIZE)
        if user.operation.block == self.function.entry_block:
            return size
        return arith.maxsi(size, loops.value(0))  # of a loop without iterations

    def _free(self) -> None:
        """Frees what was allocated, at the end."""
        block = self.function.entry_block
        made = [op for op in block.operations if isinstance(op, memref.AllocOp)]
        with ir.InsertionPoint.at_block_terminator(block), self.function.location:
            for op in reversed(made):
                memref.dealloc(op.memref)
