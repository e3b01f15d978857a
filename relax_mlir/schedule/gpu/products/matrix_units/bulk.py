"""Steps that one thread has the device copy, box by box; barriers in memory count their bytes.

    barriers of 1 arrival each, one for a step in memory
    to copy a step:      thread 0 arrives, says how many bytes come, and names the boxes
    to wait for a step:  every thread waits until the phase of its barrier is complete

The barrier of a step begins its next phase when a step is copied to the same memory again. A group
does one tile after another: while it computes what is left of one, the next one is copied.

Source: NVIDIA, PTX ISA 8.5, cp.async.bulk.tensor, mbarrier.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from relax_mlir.bindings import arith, ir, llvm, memref, nvvm, scf
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.launch import Group, barrier, for_groups
from relax_mlir.target import Device

from ..sides import Product
from ..split import Parts
from .descriptors import ROW, ROW_BYTES, SwizzledPlan
from .pipeline import Emit, Sums, Tile, load_dialects
from .tensor_maps import MappedSide

_SLOT = 3
"""The memory of the group that has the barriers."""
_BARRIER_BYTES = 8
_SHARED, _CLUSTER = "!llvm.ptr<3>", "!llvm.ptr<7>"
"""Addresses of memory of a group, and those of all groups of a cluster, which is one group here."""


RESIDENT = 132
"""Groups that run at once: multiprocessors of an H100; of fewer, some groups come later."""


def for_tiles_in_turn(
    product: Product,
    device: Device,
    threads: int,
    copies: "BoxCopies",
    emit: Callable[["BulkPipeline"], object],
) -> None:
    """Launches groups that do one tile after another, and begin to copy the next one before.

    Needs at least as many steps as are on their way.
    """
    load_dialects()
    parts = Parts.whole(product)
    tiles = loops.mul(1, *product.counts)
    groups = loops.minimum(tiles, RESIDENT)
    steps = loops.ceil_div(product.depth, copies.plans[0].depth)

    def run(group: Group) -> None:
        copies.begin(group)
        first = Tile.of(parts, group, group.index)
        for step in range(copies.distance):
            copies.copy(first, step, step)

        def one(turn: ir.Value) -> None:
            index = loops.add(group.index, loops.mul(turn, groups))
            later = loops.add(index, groups)
            after = Tile.of(parts, group, later), loops.less(later, tiles)
            tile = Tile.of(parts, group, index)
            emit(BulkPipeline(tile, copies, steps, loops.mul(turn, steps), after))

        loops.for_range(0, loops.ceil_div(loops.sub(tiles, group.index), groups), 1, one)

    for_groups(groups, threads, device, run)


@dataclass(frozen=True)
class BulkPipeline:
    """The steps of a tile; `begun` are those of all tiles of the group before it.

    `after` is the next tile of the group, and whether there is one.
    """

    tile: Tile
    copies: "BoxCopies"
    steps: Index
    begun: Index
    after: tuple[Tile, bool | ir.Value]

    def memory(self) -> list[ir.Value]:
        """Memory of the group for each side."""
        return self.copies.memory(self.tile.group)

    def run(self, initial: Sums, multiply: Callable[[Index, Sums, Emit], Sums]) -> Sums:
        """See `Pipeline`."""
        copies, group = self.copies, self.tile.group

        def one(own: ir.Value, *sums: ir.Value) -> Sums:
            step = loops.add(self.begun, own)
            copies.wait(group, step)
            barrier()

            def copy_later() -> None:
                self._copy(loops.add(own, copies.distance), loops.add(step, copies.distance))
                everyone = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), -1)
                nvvm.bar_warp_sync(arith.constant(everyone.type, everyone))

            return multiply(loops.mod(step, copies.stages), sums, copy_later)

        return loops.for_range(0, self.steps, 1, one, initial)

    def _copy(self, own: Index, step: Index) -> None:
        """Begins to copy a step of the tile, or of the next one."""
        is_own = loops.less(own, self.steps)
        after, is_there = self.after
        pairs = zip((*self.tile.batch, *self.tile.first), (*after.batch, *after.first), strict=True)
        *batch, row, column = [loops.select(is_own, a, b) for a, b in pairs]
        tile = replace(self.tile, batch=batch, first=(row, column))
        at = loops.select(is_own, own, loops.sub(own, self.steps))
        begin = partial(self.copies.copy, tile, at, step)
        loops.if_else(loops.or_(is_own, is_there), begin)


@dataclass(frozen=True)
class BoxCopies:
    """Copies of steps to memory of a group: `stages` are there, `distance` of them on their way.

    `maps` are what the sides are as tensors, with the maps of the launch.
    """

    maps: Sequence[tuple[MappedSide, ir.Value]]
    stages: int
    distance: int

    @property
    def plans(self) -> list[SwizzledPlan]:
        """How sides are in memory."""
        return [side.plan for side, _ in self.maps]

    def memory(self, group: Group) -> list[ir.Value]:
        """Memory of the group for each side."""
        return [
            group.memory(self.stages * plan.elements, plan.element, slot)
            for slot, plan in enumerate(self.plans)
        ]

    def begin(self, group: Group) -> None:
        """Makes the barriers, after the memory of sides."""
        self.memory(group)

        def init() -> None:
            for slot in range(self.stages):
                nvvm.mbarrier_init(self._barrier(group, slot), _i32(1))
            nvvm.fence_mbarrier_init()

        _alone(group, init)
        barrier()

    def wait(self, group: Group, step: Index) -> None:
        """Waits until a step is there."""
        slot = loops.mod(step, self.stages)
        phase = _i32(loops.mod(loops.floor_div(step, self.stages), 2))
        address, i1 = self._barrier(group, slot), ir.IntegerType.get_signless(1)
        loop = scf.WhileOp([], [])
        with ir.InsertionPoint(loop.before.blocks.append()):
            done = nvvm.mbarrier_try_wait(address, phase, results=[i1])
            scf.ConditionOp(arith.xori(done, arith.constant(i1, 1)), [])
        with ir.InsertionPoint(loop.after.blocks.append()):
            scf.YieldOp([])

    def copy(self, tile: Tile, own: Index, step: Index) -> None:
        """Begins to copy a step of a tile, which is a step of all of the group."""
        slot = loops.mod(step, self.stages)
        k = loops.mul(own, self.plans[0].depth)
        _alone(tile.group, lambda: self._name_boxes(tile, k, slot))

    def _name_boxes(self, tile: Tile, k: Index, slot: Index) -> None:
        address = self._barrier(tile.group, slot)
        total = sum(2 * plan.elements for plan in self.plans)
        nvvm.mbarrier_arrive_expect_tx(address, _i32(total), results=[])
        sides = zip(self.maps, self.memory(tile.group), tile.first, strict=True)
        for (side, made), buffer, first in sides:
            to = loops.add(_address(buffer), loops.mul(slot, 2 * side.plan.elements))
            for block in range(side.plan.inner // ROW):
                at = loops.add(to, block * side.plan.outer * ROW_BYTES)
                where = side.coordinates(tile.batch, first, k, block)
                nvvm.cp_async_bulk_tensor_shared_cluster_global(
                    _pointer(at, _CLUSTER),
                    _map_address(made),
                    [_i32(x) for x in reversed(where)],
                    address,
                    [],
                )

    def _barrier(self, group: Group, slot: Index) -> ir.Value:
        """The address of a barrier."""
        i64 = ir.IntegerType.get_signless(64)
        first = _address(group.memory(self.stages, i64, _SLOT))
        return _pointer(loops.add(first, loops.mul(slot, _BARRIER_BYTES)), _SHARED)


def _alone(group: Group, body: Emit) -> None:
    """Has one thread of the group do something."""
    loops.if_else(loops.less(group.thread, 1), body)


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
