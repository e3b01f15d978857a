"""What is computed from the sums of a warp, by threads of the group that store next to each other.

    for each 16 rows of a warp's tile:
      sums -> memory of the group -> each thread: the epilogue of an element at a time

Sums are spread over threads as matrices are. The epilogue is emitted once for 16 rows.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir, memref, vector
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.launch import Group, barrier

from .fragments import COLUMNS, ROWS, WARP, WARPS
from .sides import Product

_SPACE = 8
"""Elements between rows, so that fewer rows are in the same banks of memory."""


def finish(
    product: Product,
    group: Group,
    batch: Sequence[Index],
    first: tuple[Index, Index],
    sums: Sequence[ir.Value],
) -> None:
    """Emits the epilogue of a group's tile, from an element of the result on."""
    height, width = product.left.width // WARPS, product.right[0].width
    pitch, slots = width + _SPACE, len(product.right)
    memory = [
        group.memory(WARPS * ROWS * pitch, ir.F32Type.get(), len(product.right) + 1 + i)
        for i in range(slots)
    ]
    parts = height // ROWS
    per_part = width // WARPS // COLUMNS

    def element(step: ir.Value, part: int) -> None:
        flat = loops.add(group.thread, loops.mul(step, group.threads))
        i, j = loops.floor_div(flat, width), loops.mod(flat, width)
        warp, own = loops.floor_div(i, ROWS), loops.mod(i, ROWS)
        row = loops.add(first[0], loops.mul(warp, height), own, part * ROWS)
        column = loops.add(first[1], j)
        is_inside = loops.and_(
            loops.less(row, product.left.extent), loops.less(column, product.right[0].extent)
        )

        def compute() -> None:
            at = [loops.value(loops.add(loops.mul(i, pitch), j))]
            values = [memref.load(x, at) for x in memory]
            block = Block(tuple(batch), row, 1, column, 1, (), 1)
            product.epilogue.of_element(block, values)

        loops.if_else(is_inside, compute)

    for part in range(parts):
        if part:
            barrier()
        for slot in range(slots):
            begin = (slot * parts + part) * per_part
            _store(group.thread, sums[begin : begin + per_part], memory[slot], pitch)
        barrier()
        count = WARPS * ROWS * width // group.threads
        loops.for_range(0, count, 1, lambda step, part=part: element(step, part))


def _store(thread: ir.Value, sums: Sequence[ir.Value], memory: ir.Value, pitch: int) -> None:
    """Stores 16 rows of sums of a warp."""
    warp, lane = loops.floor_div(thread, WARP), loops.mod(thread, WARP)
    row = loops.add(loops.mul(loops.floor_div(warp, WARPS), ROWS), loops.floor_div(lane, 4))
    column = loops.add(
        loops.mul(loops.mod(warp, WARPS), len(sums) * COLUMNS), loops.mul(loops.mod(lane, 4), 2)
    )
    first = loops.add(loops.mul(row, pitch), column)
    for matrix, total in enumerate(sums):
        for half in range(2):
            for position in range(2):
                x = vector.extract(total, [], [half, position])
                at = loops.add(first, half * 8 * pitch + matrix * COLUMNS + position)
                memref.store(x, memory, [loops.value(at)])
