"""The convolution kernel: register blocks of pixels times panels of filters.

    for each (image, block of rows, block of columns, group of panels) in parallel
      copy the receptive field of the block: `convolution_image`          (stays in the L2 cache)
      for each panel of `columns` filters
        for each row of the block, for each tile of `rows` pixels
          for each tap of the window that is in the image, and each channel
            rows x columns sums += image[pixel] * panel[:]                 (registers)
        transpose the sums; epilogue: elementwise part, stores along the row

Lanes run along filters, so strides and narrow images cost nothing: elements of the image are
broadcast. There is no im2col buffer, with an element for each tap of each window.

Source: Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures", 2018, on plain layouts.
"""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    ceil_div,
    floor_div,
    for_range,
    maximum,
    minimum,
    mod,
    mul,
    parallel_range,
    round_up,
    scratch,
    sub,
)
from relax_mlir.schedule.cpu.blocking import Blocking

from .convolution_image import CopiedImage
from .convolution_problem import (
    Filters,
    Problem,
    find_panel,
    patch_elements,
    saturating_sub,
    share_panels,
)
from .convolution_tiles import TILES, Tiles


@dataclass(frozen=True)
class _Blocks:
    """Sizes that are computed when the kernel runs."""

    rows: Index
    row_blocks: Index
    columns: Index
    column_blocks: Index
    panels: Index
    group: Index  # panels of one task
    groups: Index
    width: Index  # columns of the copied image


def _split(blocking: Blocking, problem: Problem) -> _Blocks:
    """Divides the result into enough tasks, whose receptive fields fit the cache."""
    (window_rows, window_columns), (down, right) = problem.extents, problem.strides
    height, width = problem.pixels
    channels = round_up(maximum(problem.channels, 1), blocking.channel_block)
    images = maximum(mul(1, *problem.batch), 1)
    tile, sizes = blocking.rows, blocking.family.convolutions
    across = floor_div(
        saturating_sub(
            floor_div(patch_elements(blocking), mul(channels, window_rows)), window_columns
        ),
        right,
    )
    fitting = mul(maximum(floor_div(add(across, 1), tile), 1), tile)
    min_blocks = ceil_div(sizes.tasks, mul(images, maximum(height, 1)))
    min_blocks = minimum(min_blocks, ceil_div(width, TILES * tile))
    column_blocks = maximum(maximum(ceil_div(width, fitting), min_blocks), 1)
    columns = minimum(round_up(ceil_div(width, column_blocks), tile), width)
    columns = maximum(columns, 1)
    column_blocks = ceil_div(width, columns)
    copied = add(mul(sub(columns, 1), right), window_columns)
    fitting = floor_div(patch_elements(blocking), mul(channels, copied))
    fitting = add(floor_div(saturating_sub(fitting, window_rows), down), 1)
    min_blocks = ceil_div(sizes.tasks, mul(images, maximum(column_blocks, 1)))
    min_blocks = minimum(min_blocks, ceil_div(height, sizes.min_rows))
    row_blocks = maximum(maximum(ceil_div(height, fitting), min_blocks), 1)
    rows = maximum(ceil_div(height, row_blocks), 1)
    row_blocks = ceil_div(height, rows)
    tasks = maximum(mul(images, row_blocks, column_blocks), 1)
    shared = share_panels(blocking, problem, tasks, sizes.tasks)
    return _Blocks(rows, row_blocks, columns, column_blocks, *shared, copied)


def emit_convolution(blocking: Blocking, problem: Problem, filters: Filters) -> None:
    """Emits the loop nest at the insertion point."""
    blocks = _split(blocking, problem)
    images = mul(1, *problem.batch)
    tasks = mul(images, blocks.row_blocks, blocks.column_blocks, blocks.groups)
    parallel_range(tasks, 1, lambda task: _Task(blocking, problem, blocks, filters).emit(task))


@dataclass(frozen=True)
class _Task:
    """One block of the result of one image, for one group of panels."""

    blocking: Blocking
    problem: Problem
    blocks: _Blocks
    filters: Filters

    def emit(self, task: ir.Value) -> None:
        """Emits the body of a task."""
        problem, blocks, blocking = self.problem, self.blocks, self.blocking
        group = mod(task, blocks.groups)
        rest = floor_div(task, blocks.groups)
        column = mul(mod(rest, blocks.column_blocks), blocks.columns)
        rest = floor_div(rest, blocks.column_blocks)
        row = mul(mod(rest, blocks.row_blocks), blocks.rows)
        batch = problem.batch_index(floor_div(rest, blocks.row_blocks))
        rows = minimum(blocks.rows, sub(problem.pixels[0], row))
        columns = minimum(blocks.columns, sub(problem.pixels[1], column))
        f32, lanes = ir.F32Type.get(), blocking.lanes
        first = mul(group, blocks.group)
        last = minimum(add(first, blocks.group), blocks.panels)
        patch_rows = add(mul(sub(blocks.rows, 1), problem.strides[0]), problem.extents[0])
        transposed_stride = TILES * blocking.rows + lanes
        line = CopiedImage.line_of(blocking, problem, blocks.width)
        step = blocking.channel_block * problem.strides[1]
        # The last tile may overrun the last pixel.
        slack = blocking.rows * step + lanes * blocking.channel_block
        with (
            scratch(add(mul(patch_rows, line), slack), f32) as patch,
            scratch(-(-blocking.rows // lanes) * lanes * blocking.columns, f32) as sums,
            scratch(blocking.columns * transposed_stride, f32) as transposed,
        ):
            image = CopiedImage(blocking, problem, blocks.width, patch)
            image.copy(batch, row, column, patch_rows)

            def panel(p: ir.Value) -> None:
                at, filter_, num_filters = find_panel(blocking, problem, self.filters, batch, p)

                def chunk(y: ir.Value, x: ir.Value) -> None:
                    count = minimum(sub(columns, x), TILES * blocking.rows)
                    pixel = add(row, y), add(column, x)
                    begin = add(mul(y, problem.strides[0], line), mul(x, step))
                    tiles = Tiles(image, self.filters, pixel, begin, at, sums)
                    index = batch if problem.flat else (*batch, pixel[0])
                    block = Block(
                        index,
                        filter_,
                        num_filters,
                        pixel[1],
                        count,
                        (transposed,),
                        transposed_stride,
                    )
                    tiles.emit(block)
                    problem.epilogue(block)

                def chunks(y: ir.Value) -> None:
                    for_range(0, columns, TILES * blocking.rows, lambda x: chunk(y, x))

                for_range(0, rows, 1, chunks)

            for_range(first, last, 1, panel)
