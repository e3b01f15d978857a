"""What is computed from the sums of warps, by threads of the group that store next to each other.

    for each part of the tile:
      sums -> memory of the group -> each thread: the epilogue of an element at a time

Sums are spread over threads as matrices are. The epilogue is emitted once for a part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from relax_mlir.bindings import ir, memref
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.shuffles import WARP

from ..sides import total_type
from .pipeline import Tile

_SPACE = 8
"""Elements between rows, so that fewer rows are in the same banks of memory."""


class Stored(Protocol):
    """A matrix of sums, as the threads that have it store it."""

    def store(self, memory: ir.Value, pitch: int) -> None:
        """Stores what the thread has, to memory of a part whose rows are `pitch` apart."""
        ...


@dataclass(frozen=True)
class Matrix:
    """A matrix of 16 x 8 sums of a warp, from a row and a column of its part on.

    Lane l has two elements of row l / 4, from column 2 (l % 4) on, and those 8 rows below.
    """

    thread: ir.Value
    row: Index
    column: Index
    elements: Sequence[ir.Value]

    def store(self, memory: ir.Value, pitch: int) -> None:
        """See `Stored`."""
        lane = loops.mod(self.thread, WARP)
        row = loops.add(self.row, loops.floor_div(lane, 4))
        column = loops.add(self.column, loops.mul(loops.mod(lane, 4), 2))
        first = loops.add(loops.mul(row, pitch), column)
        for position, x in enumerate(self.elements):
            at = loops.add(first, position // 2 * 8 * pitch + position % 2)
            memref.store(x, memory, [loops.value(at)])


@dataclass(frozen=True)
class Part:
    """Sums that are in memory of the group at once, `rows` x `columns` for each product.

    `position` are the row and column of the tile that an element has. `matrices` are those of a
    thread's warp, by products.
    """

    rows: int
    columns: int
    position: Callable[[Index, Index], tuple[Index, Index]]
    matrices: Sequence[Sequence[Stored]]


def finish(tile: Tile, parts: Sequence[Part], is_again: bool = False) -> None:
    """Emits the epilogue of a tile; `is_again` if the group may have had one before."""
    group, pitch = tile.group, parts[0].columns + _SPACE
    count, slots = parts[0].rows * pitch, len(tile.product.right)
    total = total_type(tile.product.contractions[0].stage.results[0].element)
    memory = [group.memory(count, total, slots + 1 + i) for i in range(slots)]
    for index, part in enumerate(parts):
        if index or is_again:
            group.barrier()
        for slot, matrices in enumerate(part.matrices):
            for matrix in matrices:
                matrix.store(memory[slot], pitch)
        group.barrier()
        one = partial(_compute, tile, part, memory, pitch)
        loops.for_range(0, part.rows * part.columns // group.threads, 1, one)


def _compute(
    tile: Tile, part: Part, memory: Sequence[ir.Value], pitch: int, step: ir.Value
) -> None:
    """Emits the epilogue of one of a thread's elements, if it is one of the result."""
    product, group = tile.product, tile.group
    flat = loops.add(group.thread, loops.mul(step, group.threads))
    i, j = loops.floor_div(flat, part.columns), loops.mod(flat, part.columns)
    row, column = (loops.add(a, b) for a, b in zip(tile.first, part.position(i, j), strict=True))
    is_inside = loops.and_(
        loops.less(row, product.left.extent), loops.less(column, product.right[0].extent)
    )

    def compute() -> None:
        at = [loops.value(loops.add(loops.mul(i, pitch), j))]
        values = [memref.load(x, at) for x in memory]
        block = Block(tuple(tile.batch), row, 1, column, 1, (), 1)
        tile.finish(block, values)

    loops.if_else(is_inside, compute)
