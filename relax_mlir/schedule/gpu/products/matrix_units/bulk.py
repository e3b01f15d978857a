"""Steps that a warp of its own has the device copy, box by box; barriers in memory say when.

    a warp copies:        for each step of each tile of the group:
                            wait until its memory is empty
                            say how many bytes come, and name the boxes
    others multiply:      for each tile of the group:
                            for each step: wait until it is there, multiply it
                              and arrive for the step before, whose memory is empty then
                            what is computed from the sums, while the next tile is copied

Of each step in memory, a barrier counts the bytes that come, and one the warps that have read them.
Either is complete once for each time that the memory is used, and parities tell these apart.

Source: NVIDIA, PTX ISA 8.5, cp.async.bulk.tensor, mbarrier.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.bindings import arith, ir, llvm, memref, nvvm, scf
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.launch import Group, for_groups
from relax_mlir.target import Device

from ..sides import Product
from ..split import Parts
from .descriptors import ROW, ROW_BYTES, SwizzledPlan
from .matrices import WARP
from .pipeline import Emit, Sums, Tile, join_warp, load_dialects
from .tensor_maps import MappedSide

_SLOT = 3
"""The memory of the group that has the barriers."""
_BARRIER_BYTES = 8
_SHARED, _CLUSTER = "!llvm.ptr<3>", "!llvm.ptr<7>"
"""Addresses of memory of a group, and those of all groups of a cluster, which is one group here."""


RESIDENT = 132
"""Groups that run at once: multiprocessors of an H100; of fewer, some groups come later."""


def most_tiles(product: Product) -> Index:
    """How many tiles the group has that has most of them."""
    return loops.ceil_div(loops.mul(1, *product.counts), RESIDENT)


def for_tiles_in_turn(
    product: Product,
    device: Device,
    threads: int,
    copies: "BoxCopies",
    emit: Callable[["BulkPipeline"], object],
) -> None:
    """Launches groups that do one tile after another: `threads` multiply, a warp more copies.

    Needs a step along k at least.
    """
    load_dialects()
    parts = Parts.whole(product)
    tiles = loops.mul(1, *product.counts)
    groups = loops.minimum(tiles, RESIDENT)
    steps = loops.ceil_div(product.depth, copies.plans[0].depth)

    def for_own(group: Group, body: Callable[[Tile, Index], object]) -> None:
        """Emits a loop over tiles; `body` gets one, and how many steps came before."""

        def one(turn: ir.Value) -> None:
            index = loops.add(group.index, loops.mul(turn, groups))
            body(Tile.of(parts, group, index), loops.mul(turn, steps))

        loops.for_range(0, loops.ceil_div(loops.sub(tiles, group.index), groups), 1, one)

    def run(group: Group) -> None:
        copies.begin(group, threads // WARP)
        own = group.first(threads)

        def multiply(tile: Tile, begun: Index) -> None:
            emit(BulkPipeline(tile, copies, steps, begun))

        def copy(tile: Tile, begun: Index) -> None:
            loops.for_range(0, steps, 1, lambda k: copies.copy(tile, k, loops.add(begun, k)))

        def copy_alone() -> None:
            is_first = loops.less(group.thread, threads + 1)
            loops.if_else(is_first, lambda: for_own(group, copy))

        multiplies = loops.less(group.thread, threads)
        loops.if_else(multiplies, lambda: for_own(own, multiply), copy_alone)

    for_groups(groups, threads + WARP, device, run)


@dataclass(frozen=True)
class BulkPipeline:
    """The steps of a tile as those who multiply see it; `begun` are those of tiles before."""

    tile: Tile
    copies: "BoxCopies"
    steps: Index
    begun: Index
    is_again: ClassVar[bool] = True
    """Whether the group may have had a tile before, whose epilogue had the same memory."""

    def memory(self) -> list[ir.Value]:
        """Memory of the group for each side."""
        return self.copies.memory(self.tile.group)

    def run(self, initial: Sums, multiply: Callable[[Index, Sums, Emit], Sums]) -> Sums:
        """See `Pipeline`; `multiply` waits until the step before is multiplied."""
        copies, group = self.copies, self.tile.group

        def one(own: ir.Value, *sums: ir.Value) -> Sums:
            step = loops.add(self.begun, own)
            copies.wait(group, step)
            result = multiply(loops.mod(step, copies.stages), sums, lambda: None)
            before = loops.add(step, copies.stages - 1)  # where the step before is, in memory
            copies.free(group, before, loops.less(0, own))
            return result

        join_warp()  # threads may have parted in the epilogue of the tile before
        return loops.for_range(0, self.steps, 1, one, initial)

    def end(self) -> None:
        """Emits what comes after the last product."""
        last = loops.add(self.begun, loops.sub(self.steps, 1))
        self.copies.free(self.tile.group, last)


@dataclass(frozen=True)
class BoxCopies:
    """Copies of steps to memory of a group, which has `stages` of them at once.

    `maps` are what the sides are as tensors, with the maps of the launch.
    """

    maps: Sequence[tuple[MappedSide, ir.Value]]
    stages: int

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

    def begin(self, group: Group, readers: int) -> None:
        """Makes the barriers, after the memory of sides; so many warps read each step."""
        self.memory(group)

        def init() -> None:
            for slot in range(self.stages):
                nvvm.mbarrier_init(self._full(group, slot), _i32(1))
                nvvm.mbarrier_init(self._empty(group, slot), _i32(readers))
            nvvm.fence_mbarrier_init()

        loops.if_else(loops.less(group.thread, 1), init)
        group.barrier()

    def copy(self, tile: Tile, own: Index, step: Index) -> None:
        """Begins to copy a step of a tile, which is a step of all of the group, once it may."""
        slot, turn = loops.mod(step, self.stages), loops.floor_div(step, self.stages)
        # The phase before the first one counts as complete: memory is empty then.
        _wait(self._empty(tile.group, slot), loops.add(turn, 1))
        self._name_boxes(tile, loops.mul(own, self.plans[0].depth), slot)

    def wait(self, group: Group, step: Index) -> None:
        """Waits until a step is there."""
        slot, turn = loops.mod(step, self.stages), loops.floor_div(step, self.stages)
        _wait(self._full(group, slot), turn)

    def free(self, group: Group, step: Index, condition: bool | ir.Value = True) -> None:
        """Has a warp say that it has read a step; its threads are together afterwards."""
        slot, lane = loops.mod(step, self.stages), loops.mod(group.thread, WARP)
        alone = loops.and_(condition, loops.less(lane, 1))
        loops.if_else(alone, lambda: nvvm.mbarrier_arrive(self._empty(group, slot), results=[]))
        join_warp()

    def _name_boxes(self, tile: Tile, k: Index, slot: Index) -> None:
        address = self._full(tile.group, slot)
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

    def _full(self, group: Group, slot: Index) -> ir.Value:
        """The address of the barrier that is complete when a step is there."""
        i64 = ir.IntegerType.get_signless(64)
        first = _address(group.memory(2 * self.stages, i64, _SLOT))
        return _pointer(loops.add(first, loops.mul(slot, _BARRIER_BYTES)), _SHARED)

    def _empty(self, group: Group, slot: Index) -> ir.Value:
        """The address of the barrier that is complete when a step has been read."""
        return self._full(group, loops.add(slot, self.stages))


def _wait(barrier: ir.Value, phase: Index) -> None:
    """Waits until a phase of a barrier is complete, of which parities say which it is."""
    parity, i1 = _i32(loops.mod(phase, 2)), ir.IntegerType.get_signless(1)
    loop = scf.WhileOp([], [])
    with ir.InsertionPoint(loop.before.blocks.append()):
        done = nvvm.mbarrier_try_wait(barrier, parity, results=[i1])
        scf.ConditionOp(arith.xori(done, arith.constant(i1, 1)), [])
    with ir.InsertionPoint(loop.after.blocks.append()):
        scf.YieldOp([])


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
