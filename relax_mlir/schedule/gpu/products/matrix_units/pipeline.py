"""The loop along k of a group that multiplies a step while later ones are copied.

the first steps are copied
for each step:
  wait until it is there
  multiply it, while one more is copied
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, nvvm
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.launch import Group, barrier, for_groups
from relax_mlir.target import Device

from ..sides import Product
from ..split import Parts, split
from .copies import Copier, SidePlan

GROUPS = 128
"""So many groups that multiply matrices occupy a device."""

Sums = Sequence[ir.Value]
Emit = Callable[[], object]
Copies = Callable[[Index, Index], object]
"""Begins to copy the step at k to a slot of memory."""


def for_tiles(
    product: Product, device: Device, threads: int, emit: Callable[["Tile"], object],
    step: int = 1, groups: int = 1,
) -> None:  # fmt: skip
    """Launches a group of threads for each tile of the result, or for parts of its sums.

    Parts are multiples of `step` along k; there are several if fewer than `groups` have a tile.
    """
    load_dialects()
    with split(product, step, groups) as parts:
        for_groups(
            parts.groups, threads, device, lambda group: emit(Tile.of(parts, group, group.index))
        )
        parts.combine(device)


def load_dialects() -> None:
    """Loads dialects, whose ops have no names before."""
    for name in ("llvm", "nvgpu", "nvvm", "vector"):
        ir.Context.current.dialects[name]


def join_warp() -> None:
    """Has the threads of a warp wait for each other, as what a warp does at once needs."""
    everyone = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), -1)
    nvvm.bar_warp_sync(arith.constant(everyone.type, everyone))


@dataclass(frozen=True)
class Tile:
    """The tile of a group: of the matrices at `batch`, from the row and column `first` on.

    The group has a `part` of its sums.
    """

    product: Product
    group: Group
    batch: Sequence[Index]
    first: tuple[Index, Index]
    parts: Parts
    part: Index

    @property
    def range(self) -> tuple[Index, Index]:
        """The first element along k, and that after the last one."""
        return self.parts.range(self.part)

    def finish(self, block: Block, sums: Sequence[ir.Value]) -> None:
        """Emits what becomes of an element's sums."""
        self.parts.finish(self.part, block, sums)

    @staticmethod
    def of(parts: Parts, group: Group, index: Index) -> "Tile":
        """The tile with an index among those of all parts."""
        product = parts.product
        part, batch, row, column = parts.tile_of(index)
        first = loops.mul(row, product.left.width), loops.mul(column, product.right[0].width)
        return Tile(product, group, batch, first, parts, part)


@dataclass(frozen=True)
class Pipeline:
    """The steps of a tile, of which memory of the group has `stages` at once.

    When a step is multiplied, the `copied` ones after it are on their way; those that are left are
    earlier ones, which may still be read.
    """

    tile: Tile
    plans: Sequence[SidePlan]
    stages: int
    copied: int

    def memory(self) -> list[ir.Value]:
        """Memory of the group for each side."""
        return [
            self.tile.group.memory(self.stages * plan.elements, plan.element, slot)
            for slot, plan in enumerate(self.plans)
        ]

    def run(self, initial: Sums, multiply: Callable[[Index, Sums, Emit], Sums]) -> Sums:
        """Emits the loop, and returns its sums.

        `multiply` gets the slot of a step, the sums, and what begins to copy a later step, which it
        has to emit once, and after which threads of a warp are together.
        """
        depth, later = self.plans[0].depth, self.copied
        first, end = self.tile.range
        copies = self._copies()
        for step in range(later):
            self._copy(copies, loops.add(first, step * depth), step, end)

        def one(k: ir.Value, *sums: ir.Value) -> Sums:
            step = loops.floor_div(loops.sub(k, first), depth)
            self.wait(step)
            barrier()

            def copy_later() -> None:
                slot = loops.mod(loops.add(step, later), self.stages)
                self._copy(copies, loops.add(k, later * depth), slot, end)
                join_warp()

            return multiply(loops.mod(step, self.stages), sums, copy_later)

        return loops.for_range(first, end, depth, one, initial)

    def _copies(self) -> Copies:
        """Emits what all copies have in common; returns what begins to copy a step."""
        tile = self.tile
        copiers = [
            Copier.of(tile.product, plan, tile.group, tile.batch, tile.first[min(i, 1)])
            for i, plan in enumerate(self.plans)
        ]

        def copies(k: Index, slot: Index) -> None:
            for copier, memory in zip(copiers, self.memory(), strict=True):
                copier.copy(k, memory, loops.mul(slot, copier.plan.elements))

        return copies

    def wait(self, step: Index) -> None:
        """Has a thread wait for what it copied of a step; others see that after a barrier."""
        if self._is_asynchronous:
            nvvm.cp_async_wait_group(self.copied - 1)

    @property
    def _is_asynchronous(self) -> bool:
        """Whether any copy may go on while threads do something else."""
        return any(plan.is_direct is not False for plan in self.plans)

    def _copy(self, copies: Copies, k: Index, slot: Index, end: Index) -> None:
        """Begins to copy a step, if there is one at k."""
        loops.if_else(loops.less(k, end), lambda: copies(k, slot))
        if self._is_asynchronous:
            nvvm.cp_async_commit_group()
