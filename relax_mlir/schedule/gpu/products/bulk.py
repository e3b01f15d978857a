"""Steps that one thread has the device copy, box by box; barriers in memory count their bytes.

    barriers of 1 arrival each, one for a step in memory
    to copy a step:      thread 0 arrives, says how many bytes come, and names the boxes
    to wait for a step:  every thread waits until the phase of its barrier is complete

The barrier of a step begins its next phase when a step is copied to the same memory again.

Source: NVIDIA, PTX ISA 8.5, cp.async.bulk.tensor, mbarrier.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, llvm, memref, nvvm, scf
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.launch import barrier

from .descriptors import ROW, ROW_BYTES
from .pipeline import Copies, Emit, Pipeline
from .tensor_maps import MappedSide

_SLOT = 3
"""The memory of the group that has the barriers."""
_BARRIER_BYTES = 8
_SHARED, _CLUSTER = "!llvm.ptr<3>", "!llvm.ptr<7>"
"""Addresses of memory of a group, and those of all groups of a cluster, which is one group here."""


@dataclass(frozen=True)
class BulkPipeline(Pipeline):
    """See `Pipeline`; `maps` are what sides are as tensors, with the maps of the launch."""

    maps: Sequence[tuple[MappedSide, ir.Value]]

    def begin(self) -> Copies:
        """See `Pipeline`: makes the barriers; one thread begins to copy a step."""

        def init() -> None:
            for slot in range(self.stages):
                nvvm.mbarrier_init(self._barrier(slot), _i32(1))
            nvvm.fence_mbarrier_init()

        self._alone(init)
        barrier()
        return lambda k, slot: self._alone(lambda: self._name_boxes(k, slot))

    def wait(self, step: Index) -> None:
        """Waits until a step is there."""
        slot = loops.mod(step, self.stages)
        phase = _i32(loops.mod(loops.floor_div(step, self.stages), 2))
        address, i1 = self._barrier(slot), ir.IntegerType.get_signless(1)
        loop = scf.WhileOp([], [])
        with ir.InsertionPoint(loop.before.blocks.append()):
            done = nvvm.mbarrier_try_wait(address, phase, results=[i1])
            scf.ConditionOp(arith.xori(done, arith.constant(i1, 1)), [])
        with ir.InsertionPoint(loop.after.blocks.append()):
            scf.YieldOp([])

    def end_copies(self) -> None:
        """Nothing: barriers know which copies are of a step."""

    def _name_boxes(self, k: Index, slot: Index) -> None:
        """Begins to copy the step at k."""
        address = self._barrier(slot)
        total = sum(2 * plan.elements for plan in self.plans)
        nvvm.mbarrier_arrive_expect_tx(address, _i32(total), results=[])
        sides = zip(self.maps, self.memory(), self.tile.first, strict=True)
        for (side, made), buffer, first in sides:
            to = loops.add(_address(buffer), loops.mul(slot, 2 * side.plan.elements))
            for block in range(side.plan.inner // ROW):
                at = loops.add(to, block * side.plan.outer * ROW_BYTES)
                where = side.coordinates(self.tile.batch, first, k, block)
                nvvm.cp_async_bulk_tensor_shared_cluster_global(
                    _pointer(at, _CLUSTER),
                    _map_address(made),
                    [_i32(x) for x in reversed(where)],
                    address,
                    [],
                )

    def _alone(self, body: Emit) -> None:
        """Has one thread of the group do something."""
        loops.if_else(loops.less(self.tile.group.thread, 1), body)

    def _barrier(self, slot: Index) -> ir.Value:
        """The address of a barrier."""
        i64 = ir.IntegerType.get_signless(64)
        first = _address(self.tile.group.memory(self.stages, i64, _SLOT))
        return _pointer(loops.add(first, loops.mul(slot, _BARRIER_BYTES)), _SHARED)


def _address(buffer: ir.Value) -> ir.Value:
    return memref.extract_aligned_pointer_as_index(buffer)


def _pointer(address: Index, kind: str) -> ir.Value:
    """An address of memory of the group as a pointer."""
    pointer = llvm.inttoptr(ir.Type.parse(_SHARED), _i32(address))
    return pointer if kind == _SHARED else llvm.addrspacecast(ir.Type.parse(kind), pointer)


def _map_address(made: ir.Value) -> ir.Value:
    """The address of a map that the launch has as an argument."""
    pointer = ir.Type.parse("!llvm.ptr")
    cast = ir.Operation.create("builtin.unrealized_conversion_cast", [pointer], [made])
    return cast.results[0]


def _i32(x: Index) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    return arith.constant(i32, x) if isinstance(x, int) else arith.index_cast(i32, x)
