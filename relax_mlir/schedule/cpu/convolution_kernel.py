"""The convolution kernel: a block of places of the result times panels of filters, in registers.

    for each (image, block of rows, block of columns, group of panels) in parallel
      copy the part of the image that the block sees                       (stays in the L2 cache)
      for each panel of `columns` filters
        for each row of the block, for each tile of `rows` places
          for each place of the window that is in the image, and each channel
            rows x columns sums += image[place] * panel[:]                 (registers)
        transpose the sums; epilogue: elementwise part, stores along the row

Lanes run along filters, so strides and narrow images cost nothing: what varies along a row is read
one number at a time. No copy of the image has an element for each place of the window.

Source: Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures", 2018, on plain layouts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir

from .convolution_problem import (
    LEAST_ROWS,
    PATCH_ELEMENTS,
    Filters,
    Problem,
    above,
    find_panel,
    share_panels,
)
from .convolution_tiles import TILES, Tiles
from .gemm_kernel import Block, Tiling
from .loops import (
    Index,
    add,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    less,
    mask,
    maximum,
    minimum,
    mod,
    mul,
    parallel_range,
    round_up,
    scratch,
    splat,
    store,
    sub,
)

TASKS = 8
"""Tasks worth having, so that every thread finds some."""


@dataclass(frozen=True)
class _Blocks:
    """Sizes that are chosen when the kernel runs."""

    rows: Index
    row_blocks: Index
    columns: Index
    column_blocks: Index
    panels: Index
    group: Index  # panels of one task
    groups: Index
    pitch: Index  # of one channel of a row of the copied image
    line: Index  # of a row of it


def _split(tiling: Tiling, problem: Problem) -> _Blocks:
    """Cuts the result so that what a task sees of the image fits the cache, into enough tasks."""
    (high, wide), (down, right) = problem.extents, problem.strides
    (height, width), channels = problem.places, maximum(problem.channels, 1)
    images = maximum(mul(1, *problem.batch), 1)
    tile = tiling.rows
    across = floor_div(above(floor_div(PATCH_ELEMENTS, mul(channels, high)), wide), right)
    fitting = mul(maximum(floor_div(add(across, 1), tile), 1), tile)
    wanted = ceil_div(TASKS, mul(images, maximum(height, 1)))
    wanted = minimum(wanted, ceil_div(width, TILES * tile))
    column_blocks = maximum(maximum(ceil_div(width, fitting), wanted), 1)
    columns = minimum(round_up(ceil_div(width, column_blocks), tile), width)
    columns = maximum(columns, 1)
    column_blocks = ceil_div(width, columns)
    pitch = add(mul(sub(columns, 1), right), wide)
    fitting = add(floor_div(above(floor_div(PATCH_ELEMENTS, mul(channels, pitch)), high), down), 1)
    wanted = ceil_div(TASKS, mul(images, maximum(column_blocks, 1)))
    wanted = minimum(wanted, ceil_div(height, LEAST_ROWS))
    row_blocks = maximum(maximum(ceil_div(height, fitting), wanted), 1)
    rows = maximum(ceil_div(height, row_blocks), 1)
    row_blocks = ceil_div(height, rows)
    tasks = maximum(mul(images, row_blocks, column_blocks), 1)
    shared = share_panels(tiling, problem, tasks, TASKS)
    return _Blocks(rows, row_blocks, columns, column_blocks, *shared, pitch, mul(channels, pitch))


def emit_convolution(tiling: Tiling, problem: Problem, filters: Filters) -> None:
    """Emits the whole loop nest at the insertion point."""
    blocks = _split(tiling, problem)
    images = mul(1, *problem.batch)
    tasks = mul(images, blocks.row_blocks, blocks.column_blocks, blocks.groups)
    parallel_range(tasks, 1, lambda task: _Task(tiling, problem, blocks, filters).emit(task))


@dataclass(frozen=True)
class _Task:
    """One block of the result of one image, for one group of panels."""

    tiling: Tiling
    problem: Problem
    blocks: _Blocks
    filters: Filters

    def emit(self, task: ir.Value) -> None:
        """Emits everything that a task does."""
        problem, blocks, tiling = self.problem, self.blocks, self.tiling
        group = mod(task, blocks.groups)
        rest = floor_div(task, blocks.groups)
        column = mul(mod(rest, blocks.column_blocks), blocks.columns)
        rest = floor_div(rest, blocks.column_blocks)
        row = mul(mod(rest, blocks.row_blocks), blocks.rows)
        batch = problem.batch_index(floor_div(rest, blocks.row_blocks))
        rows = minimum(blocks.rows, sub(problem.places[0], row))
        columns = minimum(blocks.columns, sub(problem.places[1], column))
        f32, lanes = ir.F32Type.get(), tiling.lanes
        first = mul(group, blocks.group)
        last = minimum(add(first, blocks.group), blocks.panels)
        patch_rows = add(mul(sub(blocks.rows, 1), problem.strides[0]), problem.extents[0])
        turned_stride = TILES * tiling.rows + lanes
        # The last tile may reach beyond the places that there are.
        room = tiling.rows * problem.strides[1] + lanes
        with (
            scratch(add(mul(patch_rows, blocks.line), room), f32) as patch,
            scratch(-(-tiling.rows // lanes) * lanes * tiling.columns, f32) as sums,
            scratch(tiling.columns * turned_stride, f32) as turned,
        ):
            self._copy_image(batch, row, column, patch_rows, patch)

            def panel(p: ir.Value) -> None:
                at, filter_, kept = find_panel(tiling, problem, self.filters, batch, p)

                def chunk(y: ir.Value, x: ir.Value) -> None:
                    count = minimum(sub(columns, x), TILES * tiling.rows)
                    place = add(row, y), add(column, x)
                    begin = add(mul(y, problem.strides[0], blocks.line), mul(x, problem.strides[1]))
                    tiles = Tiles(
                        tiling,
                        problem,
                        self.filters,
                        blocks.pitch,
                        blocks.line,
                        place,
                        patch,
                        begin,
                        at,
                        sums,
                    )
                    block = Block(
                        (*batch, place[0]), filter_, kept, place[1], count, (turned,), turned_stride
                    )
                    tiles.emit(block)
                    problem.epilogue(block)

                def line(y: ir.Value) -> None:
                    for_range(0, columns, TILES * tiling.rows, lambda x: chunk(y, x))

                for_range(0, rows, 1, line)

            for_range(first, last, 1, panel)

    def _copy_image(
        self,
        batch: Sequence[Index],
        row: Index,
        column: Index,
        patch_rows: Index,
        patch: ir.Value,
    ) -> None:
        """Copies what the block sees of every channel, with zeros to the left and to the right.

        Row i of the copy is row `row * stride + i - top` of the image; the others are not read.
        """
        problem, blocks, lanes = self.problem, self.blocks, self.tiling.lanes
        ahead = self.tiling.channels_ahead
        image = problem.image(batch)
        (height, width), (top, left) = problem.sizes, problem.padding
        first_row, first_column = mul(row, problem.strides[0]), mul(column, problem.strides[1])
        begin = above(top, first_row) if problem.padded else 0
        end = minimum(patch_rows, above(add(height, top), first_row))
        skipped = minimum(above(left, first_column), blocks.pitch) if problem.padded else 0
        right = minimum(blocks.pitch, above(add(width, left), first_column))
        kept = above(right, skipped)
        zero = splat(0.0, lanes, ir.F32Type.get())

        def channel(i: ir.Value, c: ir.Value) -> None:
            source = add(image.offset, mul(c, image.channel_stride))
            source = add(source, mul(sub(add(first_row, i), top), image.row_stride))
            source = add(source, sub(add(first_column, skipped), left))
            start = add(mul(i, blocks.line), mul(c, blocks.pitch))

            def fill(j: ir.Value, stop: Index) -> None:
                store(zero, patch, add(start, j), mask(sub(stop, j), lanes))

            def copy(j: Index, keep: ir.Value | None) -> None:
                loaded = image.load(add(source, j), lanes, keep)
                store(loaded, patch, add(start, skipped, j), keep)

            if problem.padded:
                for_range(0, skipped, lanes, lambda j: fill(j, skipped))
                outside = add(skipped, kept)
                for_range(outside, blocks.pitch, lanes, lambda j: fill(j, blocks.pitch))
            if ahead:
                image.fetch(add(source, mul(ahead, image.channel_stride)), kept)
            full = sub(kept, mod(kept, lanes))
            for_range(0, full, lanes, lambda j: copy(j, None))
            if_else(less(full, kept), lambda: copy(full, mask(sub(kept, full), lanes)))

        def row_after_row(c: ir.Value) -> None:
            for_range(begin, end, 1, lambda i: channel(i, c))

        def channel_after_channel(i: ir.Value) -> None:
            for_range(0, problem.channels, 1, lambda c: channel(i, c))

        if ahead:  # rows of a channel follow one another in memory
            for_range(0, problem.channels, 1, row_after_row)
        else:
            for_range(begin, end, 1, channel_after_channel)
