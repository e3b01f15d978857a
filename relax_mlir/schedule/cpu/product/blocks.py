"""How a product is cut: rows so that a block fits the cache, k evenly, columns into tasks."""

from dataclasses import dataclass

from relax_mlir.schedule.build.loops import (
    Index,
    add,
    ceil_div,
    floor_div,
    less,
    maximum,
    minimum,
    mul,
    pick,
    round_up,
)

from .gemm_problem import Problem
from .gemm_tile import Tiling

LEFT_BYTES = 1 << 19
"""Bytes of the left side that one task keeps in the L2 cache."""
TILES_LEFT_BYTES = 1 << 20
"""The same of machines with tile registers, whose L2 caches are larger."""
WIDE_VECTORS = 64
"""Bytes of vectors of machines whose L2 caches hold a block of rows and some panels."""
TASKS = 16
"""Tasks worth having, so that every thread finds as much to do as the others."""
TASK_PRODUCTS, TILES_TASK_PRODUCTS = 1 << 17, 1 << 21
"""Multiply-adds of lanes that are worth a task of their own, and those in tile registers."""
REGION_TASKS = 256
"""Tasks worth having between two waits for all threads, of which each waits for half a task."""
REGION_PRODUCTS = 8388608
"""Multiply-adds that are worth a parallel region of their own."""
PANELS = 8
"""Panels of a task that share a block of k of the left side while it is in the L2 cache."""
COPIED_ROWS = 16
"""Rows of the left side that are copied together."""


@dataclass(frozen=True)
class Blocks:
    """Sizes that are chosen when the kernel runs."""

    tiles: Index  # tiles of rows of a matrix
    row_blocks: Index
    row_block: Index  # rows of the largest block
    panels: Index
    group: Index  # panels of one task
    groups: Index
    k_block: Index
    k_blocks: Index
    at_once: Index  # blocks of rows in one parallel region

    @property
    def copied_rows(self) -> Index:
        """Rows that a copy of a block of rows has room for."""
        return add(self.row_block, COPIED_ROWS)


def split(tiling: Tiling, problem: Problem) -> Blocks:
    """Cuts rows so that a block fits the cache, k evenly, and columns into tasks worth a call."""
    height, depth, batch = tiling.rows, problem.depth, problem.batch_size
    k_blocks = pick(less(tiling.most_k, depth), ceil_div(depth, tiling.block_k), 1)
    k_block = round_up(ceil_div(depth, k_blocks), tiling.lanes)
    panels, tiles = ceil_div(problem.columns, tiling.columns), ceil_div(problem.rows, height)
    some_panels = maximum(panels, 1)
    strip = mul(maximum(depth, 1), tiling.columns)  # products of one row with a panel
    kept = TILES_LEFT_BYTES if tiling.in_tiles else LEFT_BYTES
    fitting = floor_div(kept // problem.step.bytes, mul(maximum(k_block, 512), height))
    if problem.passes_rows_once and not tiling.in_tiles:
        fitting = 1
    worthwhile = TILES_TASK_PRODUCTS if tiling.in_tiles else TASK_PRODUCTS
    wanted = minimum(floor_div(mul(problem.rows, strip, panels), worthwhile), TASKS)
    wanted = ceil_div(wanted, maximum(mul(some_panels, batch), 1))
    row_blocks = maximum(minimum(maximum(ceil_div(tiles, fitting), wanted), tiles), 1)
    row_block = maximum(mul(ceil_div(tiles, row_blocks), height), 1)
    group = add(floor_div(worthwhile, mul(row_block, strip)), 1)
    shared = minimum(floor_div(mul(panels, batch, row_blocks), TASKS), PANELS)
    group = maximum(group, pick(less(1, k_blocks), shared, 1))
    groups = ceil_div(panels, group)
    at_once = add(floor_div(REGION_PRODUCTS, mul(row_block, strip, some_panels)), 1)
    at_once = maximum(ceil_div(REGION_TASKS, maximum(groups, 1)), at_once)
    at_once = maximum(minimum(at_once, mul(batch, row_blocks)), 1)
    return Blocks(tiles, row_blocks, row_block, panels, group, groups, k_block, k_blocks, at_once)
