"""Long sums in parts: several groups for a tile, whose sums another launch adds up.

    group (p, tile):     sums of part p of k               -> memory of the device
    thread (i, j):       sums of part 0 + part 1 + .. of an element, and its epilogue

There are parts where tiles are few, and sums long. They depend on extents alone and are added in
order, so that results are the same each time.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from relax_mlir.bindings import ir, memref
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.launch import for_threads, unraveled
from relax_mlir.target import Device

from .sides import Product, added, total_type

SHORTEST = 256
"""Elements along k of a part, at least."""


@dataclass(frozen=True)
class Parts:
    """`count` parts of `size` elements along k; `memory` has the sums of all, if there are several.

    The sum of an element is at its row-major index among those of a part's product.
    """

    product: Product
    count: Index
    size: Index
    are_several: bool | ir.Value
    memory: ir.Value | None

    @property
    def groups(self) -> Index:
        """How many groups there are."""
        return loops.mul(1, self.count, *self.product.counts)

    def tile_of(self, group: Index) -> tuple[Index, list[Index], Index, Index]:
        """The part of a group, the matrices, and row and column of its tile in tiles."""
        part, *batch, row, column = loops.unravel(group, [self.count, *self.product.counts])
        return part, batch, row, column

    @property
    def extents(self) -> list[Index]:
        """The extents of a result."""
        sides = self.product.left, self.product.right[0]
        return [*self.product.batch, *(side.extent for side in sides)]

    @staticmethod
    def whole(product: Product) -> "Parts":
        """One part."""
        return Parts(product, 1, product.depth, False, None)

    def range(self, part: Index) -> tuple[Index, Index]:
        """The first element along k of a part, and that after its last one."""
        first = loops.mul(part, self.size)
        return first, loops.minimum(loops.add(first, self.size), self.product.depth)

    def finish(self, part: Index, block: Block, sums: Sequence[ir.Value]) -> None:
        """Emits what becomes of an element's sums: the epilogue, if there is one part."""

        def save() -> None:
            position = [*block.batch, block.row, block.column]
            element: Index = 0
            for index, extent in zip(position, self.extents, strict=True):
                element = loops.add(loops.mul(element, extent), index)
            for slot, x in enumerate(sums):
                memref.store(x, self.memory, [self._at(part, slot, element)])

        def compute() -> None:
            self.product.epilogue.of_element(block, sums)

        loops.if_else(self.are_several, save, compute)

    def combine(self, device: Device) -> None:
        """Launches a thread for each element of the result, if there are several parts."""

        def one(element: Index) -> None:
            *batch, row, column = unraveled(element, self.extents)
            sums = [self._sum(slot, element) for slot in range(len(self.product.right))]
            block = Block(tuple(batch), row, 1, column, 1, (), 1)
            self.product.epilogue.of_element(block, sums)

        count = loops.mul(1, *self.extents)
        loops.if_else(self.are_several, lambda: for_threads(count, device, one))

    def _sum(self, slot: int, element: Index) -> ir.Value:
        """The sum of an element over all parts."""

        def load(part: Index) -> ir.Value:
            return memref.load(self.memory, [self._at(part, slot, element)])

        def step(part: ir.Value, total: ir.Value) -> list[ir.Value]:
            return [added(total, load(part))]

        return loops.for_range(1, self.count, 1, step, [load(0)])[0]

    def _at(self, part: Index, slot: int, element: Index) -> ir.Value:
        before = loops.add(loops.mul(part, len(self.product.right)), slot)
        return loops.value(loops.add(loops.mul(before, *self.extents), element))


@contextmanager
def split(product: Product, step: int, groups: int) -> Iterator[Parts]:
    """The parts of a product, of whole steps along k, with memory if there are several.

    There are so many that up to `groups` occupy the device; one if sums do not begin with zero.
    """
    longest = loops.maximum(1, loops.floor_div(product.depth, SHORTEST))
    tiles = loops.maximum(1, loops.mul(1, *product.counts))
    count = loops.minimum(loops.maximum(1, loops.floor_div(groups, tiles)), longest)
    (first, *_) = product.contractions
    if 1 in (groups, longest, count) or first.initial:
        yield Parts.whole(product)
        return
    size = loops.round_up(loops.ceil_div(product.depth, count), step)
    count = loops.maximum(1, loops.ceil_div(product.depth, loops.maximum(1, size)))
    parts = Parts(product, count, size, loops.less(1, count), None)
    several = loops.minimum(1, loops.sub(count, 1))
    sums = loops.mul(several, count, len(product.right), *parts.extents)
    with loops.scratch(sums, total_type(first.stage.results[0].element)) as memory:
        yield replace(parts, memory=memory)
