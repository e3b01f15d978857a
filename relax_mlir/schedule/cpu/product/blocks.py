"""Cache blocking: blocks of rows that fit the L2 cache, even blocks of k, and tasks of columns.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

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
    round_up,
    select,
)
from relax_mlir.schedule.cpu.blocking import Blocking

from .product import Product

COPIED_ROWS = 16
"""Rows of the left side that are packed together."""


@dataclass(frozen=True)
class Blocks:
    """Block sizes, computed when the kernel runs."""

    tiles: Index  # register blocks in the rows of a matrix
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
        """Rows that the packed copy of a block of rows has room for."""
        return add(self.row_block, COPIED_ROWS)


def split(blocking: Blocking, product: Product) -> Blocks:
    """Cuts rows so that a block fits the cache, k evenly, and columns into tasks of enough work."""
    height, depth, batch = blocking.rows, product.depth, product.batch_size
    products = blocking.products
    k_blocks = select(
        less(blocking.products.max_k, depth), ceil_div(depth, blocking.products.k_block), 1
    )
    k_block = round_up(ceil_div(depth, k_blocks), max(blocking.lanes, product.k_unit))
    panels, tiles = ceil_div(product.columns, blocking.columns), ceil_div(product.rows, height)
    some_panels = maximum(panels, 1)
    strip = mul(maximum(depth, 1), blocking.columns)  # multiply-adds of one row with a panel
    fitting = floor_div(
        blocking.left_bytes // product.step.bytes, mul(maximum(k_block, 512), height)
    )
    if product.n_is_innermost and not blocking.in_tiles:
        fitting = 1
    wanted = floor_div(mul(product.rows, strip, panels), products.task_products)
    wanted = minimum(wanted, products.tasks)
    wanted = ceil_div(wanted, maximum(mul(some_panels, batch), 1))
    row_blocks = maximum(minimum(maximum(ceil_div(tiles, fitting), wanted), tiles), 1)
    row_block = maximum(mul(ceil_div(tiles, row_blocks), height), 1)
    group = add(floor_div(products.task_products, mul(row_block, strip)), 1)
    shared_panels = minimum(
        floor_div(mul(panels, batch, row_blocks), products.tasks), products.panels
    )
    group = maximum(group, select(less(1, k_blocks), shared_panels, 1))
    groups = ceil_div(panels, group)
    at_once = add(floor_div(products.region_products, mul(row_block, strip, some_panels)), 1)
    at_once = maximum(ceil_div(products.region_tasks, maximum(groups, 1)), at_once)
    at_once = maximum(minimum(at_once, mul(batch, row_blocks)), 1)
    return Blocks(tiles, row_blocks, row_block, panels, group, groups, k_block, k_blocks, at_once)
