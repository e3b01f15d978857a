"""The kernel for convolutions of few products a pixel: lanes run along rows of the result.

    for each (image, block of rows, group of panels) in parallel
      copy the receptive field of the block with its zero padding, and deinterleave columns by
      the stride                                                              (the L2 cache)
      for each panel of filters, row of the block, `VECTORS` vectors of the row, some filters
        for each tap of the window that is in the image, and each channel
          sums += filter[:] * pixels[:]                                       (registers)
        epilogue: elementwise part from registers, stores along the row

`convolution_kernel` transposes sums, which takes a tenth of the time of 147 products a pixel; here,
rows that are no multiple of a vector cost up to a vector each.

Source: Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures", 2018, on plain layouts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.deinterleave import load_strided
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    and_,
    ceil_div,
    floor_div,
    for_range,
    less,
    mask,
    maximum,
    minimum,
    mod,
    mul,
    parallel_range,
    round_up,
    scratch,
    select,
    splat,
    store,
    sub,
    value,
)
from relax_mlir.schedule.cpu.blocking import Blocking

from .convolution_problem import (
    Filters,
    Image,
    Problem,
    find_panel,
    patch_elements,
    rows_of_window,
    saturating_sub,
    share_panels,
)
from .pixel_tile import PixelTile, fills_vectors


def can_emit_rows(blocking: Blocking, problem: Problem, filters: Filters) -> bool:
    """Whether the kernel supports such windows, and pixels have few products."""
    max_products = blocking.family.convolutions.row_products
    few = isinstance(problem.depth, int) and problem.depth <= max_products
    return few and problem.dilation[0] == 1 and filters.convert is None


def fits_rows(blocking: Blocking, problem: Problem) -> bool | ir.Value:
    """Whether rows fill their vectors, and the rows that a window covers fit the cache."""
    full = fills_vectors(blocking, problem.pixels[1], problem.depth)
    rows = problem.extents[0] + problem.strides[0]
    return and_(full, less(mul(_Rows.line_of(blocking, problem), rows), patch_elements(blocking)))


def emit_rows(blocking: Blocking, problem: Problem, filters: Filters) -> None:
    """Emits the loop nest at the insertion point."""
    _Rows(blocking, problem, filters).emit()


@dataclass(frozen=True)
class _Rows:
    """How the result is divided into blocks of rows; sizes are computed when the kernel runs.

    The copied image is [row, channel, phase, column]: phase p has the columns p, p + stride, ..
    """

    blocking: Blocking
    problem: Problem
    filters: Filters

    @staticmethod
    def pitch_of(blocking: Blocking, problem: Problem) -> Index:
        """Elements of a phase: one for each lane, and those that windows overrun."""
        reach = (problem.extents[1] - 1) // problem.strides[1]
        return round_up(add(round_up(problem.pixels[1], blocking.lanes), reach), blocking.lanes)

    @staticmethod
    def line_of(blocking: Blocking, problem: Problem) -> Index:
        """Elements of a row of the copied image."""
        pitch = _Rows.pitch_of(blocking, problem)
        return mul(pitch, problem.strides[1], problem.channels)

    @property
    def tile(self) -> PixelTile:
        """The tiles of a row."""
        problem = self.problem
        return PixelTile(self.blocking, self.filters.buffer, problem.initial, problem.epilogue)

    def emit(self) -> None:
        """Emits the loop over tasks."""
        problem, blocking, f32 = self.problem, self.blocking, ir.F32Type.get()
        (high, _), (down, right) = problem.extents, problem.strides
        height = maximum(problem.pixels[0], 1)
        images = maximum(mul(1, *problem.batch), 1)
        line, pitch = self.line_of(blocking, problem), self.pitch_of(blocking, problem)
        sizes = blocking.family.convolutions
        fitting = floor_div(patch_elements(blocking), maximum(line, 1))
        fitting = floor_div(sub(fitting, high), down)
        min_blocks = minimum(ceil_div(sizes.row_tasks, images), ceil_div(height, sizes.min_rows))
        row_blocks = maximum(ceil_div(height, add(fitting, 1)), min_blocks)
        rows = ceil_div(height, row_blocks)
        row_blocks = ceil_div(height, rows)
        others = mul(images, row_blocks)
        panels, group, groups = share_panels(blocking, problem, others, sizes.row_tasks)
        patch_rows = add(mul(sub(rows, 1), down), high)

        def emit_task(task: ir.Value) -> None:
            first = mul(mod(task, groups), group)
            rest = floor_div(task, groups)
            row = mul(mod(rest, row_blocks), rows)
            batch = problem.batch_index(floor_div(rest, row_blocks))
            here = minimum(rows, saturating_sub(problem.pixels[0], row))
            with (
                scratch(mul(patch_rows, line), f32) as patch,
                scratch(add(mul(pitch, right), blocking.lanes), f32) as padded_row,
                scratch(self.tile.size, f32) as sums,
            ):
                self._copy(batch, row, patch_rows, patch, padded_row)
                last = minimum(add(first, group), panels)

                def panel(p: ir.Value) -> None:
                    part = _Panel(self, batch, row, patch, sums, p)
                    for_range(0, here, 1, part.emit)

                for_range(first, last, 1, panel)

        count = mul(mul(1, *problem.batch), row_blocks, groups)
        parallel_range(count, 1, emit_task)

    def _copy(
        self,
        batch: Sequence[Index],
        row: Index,
        count: Index,
        patch: ir.Value,
        padded_row: ir.Value,
    ) -> None:
        """Copies the receptive field of a block; rows outside of the image are not read.

        Each row is first written to `padded_row`, between zeros.
        """
        problem, blocking = self.problem, self.blocking
        image, lanes, right = problem.image(batch), blocking.lanes, problem.strides[1]
        (height, width), (top, left) = problem.sizes, problem.padding
        pitch = self.pitch_of(blocking, problem)
        length = mul(pitch, right)
        first = mul(row, problem.strides[0])
        begin = saturating_sub(top, first)
        end = minimum(count, saturating_sub(add(height, top), first))
        copied = minimum(width, saturating_sub(length, left))
        zero = splat(0.0, lanes, ir.F32Type.get())
        for_range(0, length, lanes, lambda j: store(zero, padded_row, j))

        def line(i: ir.Value, c: ir.Value) -> None:
            source = add(image.offset, mul(c, image.channel_stride))
            source = add(source, mul(sub(add(first, i), top), image.row_stride))
            to = add(mul(i, problem.channels, length), mul(c, length))
            self._copy_line(image, source, copied, padded_row)
            for phase in range(right):

                def vector_(j: ir.Value, phase: int = phase) -> None:
                    loaded = load_strided(padded_row, add(mul(j, right), phase), right, lanes)
                    store(loaded, patch, add(to, mul(pitch, phase), j))

                for_range(0, pitch, lanes, vector_)

        def lines(i: ir.Value) -> None:
            for_range(0, problem.channels, 1, lambda c: line(i, c))

        for_range(begin, end, 1, lines)

    def _copy_line(self, image: Image, source: Index, copied: Index, padded_row: ir.Value) -> None:
        """Copies a row of the image after the padding."""
        lanes, left = self.blocking.lanes, self.problem.padding[1]
        full = sub(copied, mod(copied, lanes))

        def copy(j: Index, keep: ir.Value | None) -> None:
            store(image.load(add(source, j), lanes, keep), padded_row, add(j, left), keep)

        for_range(0, full, lanes, lambda j: copy(j, None))
        for_range(full, copied, lanes, lambda j: copy(j, mask(sub(copied, j), lanes)))


@dataclass(frozen=True)
class _Panel:
    """A panel of filters and a block of rows from `row` on, copied to `patch`."""

    rows: _Rows
    batch: Sequence[Index]
    row: Index
    patch: ir.Value
    sums: ir.Value
    panel: Index

    def emit(self, y: ir.Value) -> None:
        """Emits a row of the block."""
        rows, tile = self.rows, self.rows.tile
        blocking, problem, filters = rows.blocking, rows.problem, rows.filters
        line, batch = rows.line_of(blocking, problem), tuple(self.batch)
        start, filter_, num_filters = find_panel(blocking, problem, filters, batch, self.panel)
        out_row, width = add(self.row, y), problem.pixels[1]
        begin = mul(y, problem.strides[0], line)
        window_rows = rows_of_window(problem, out_row)

        def strip(x: ir.Value) -> None:
            count = minimum(sub(width, x), tile.width)

            def some(f: ir.Value) -> None:
                block = Block(
                    (*batch, out_row), add(filter_, f), minimum(sub(num_filters, f), tile.height),
                    x, count, (self.sums,), tile.width,
                )  # fmt: skip
                at, filters_at = add(begin, x), add(start, f)
                following = self._following(block, f, num_filters)
                tile.emit(block, lambda n: self._sums(n, window_rows, at, filters_at, following))

            for_range(0, num_filters, tile.height, some)

        for_range(0, width, tile.width, strip)

    def _following(self, block: Block, f: Index, num_filters: Index) -> Block:
        """The tile after a block whose first filter is filter `f` of the panel's `num_filters`."""
        tile, width = self.rows.tile, self.rows.problem.pixels[1]
        is_last = less(num_filters, add(f, tile.height + 1))
        next_ = add(block.column, tile.width)
        ends = and_(is_last, less(width, add(next_, 1)))
        column = select(is_last, value(next_), value(block.column))
        *batch, row = block.batch
        return replace(
            block,
            batch=(*batch, select(ends, value(add(row, 1)), value(row))),
            row=add(block.row, select(is_last, value(sub(0, f)), value(tile.height))),
            column=select(ends, value(0), column),
        )

    def _sums(
        self,
        vectors: int,
        window_rows: tuple[Index, Index],
        at: Index,
        filters_at: Index,
        following: Block,
    ) -> list[ir.Value]:
        """The sums of a tile, over columns of the window, its rows and channels.

        Meanwhile the output of the next tile is prefetched.
        """
        rows, tile, problem = self.rows, self.rows.tile, self.rows.problem
        pitch, right = rows.pitch_of(rows.blocking, problem), problem.strides[1]
        distance = mul(pitch, right)
        first, last = (mul(u, problem.channels) for u in window_rows)

        def column(v: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            tile.prefetch(following, v, problem.window[1])
            reach = mul(v, problem.dilation[1])
            begin = add(at, mul(mod(reach, right), pitch), floor_div(reach, right))
            index = mul(v, problem.window[0], problem.channels)

            def step(i: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                element_at = add(filters_at, mul(add(index, i), rows.blocking.columns))
                return tile.step(self.patch, add(begin, mul(i, distance)), element_at, sums)

            return for_range(first, last, 1, step, sums)

        return for_range(0, problem.window[1], 1, column, tile.start(vectors))
