"""The kernel for 1x1 convolutions: filters times pixels, with lanes along pixels.

    for each (image, block of strips of `vectors * lanes` pixels, group of panels) in parallel
      copy the block as [strip, channel, pixel]                               (the L2 cache)
      for each strip, for each panel of filters, for each `height` of them
        for each channel
          height x vectors sums += filter[:] * pixels[:]                      (registers)
        epilogue: elementwise part from registers, stores along the pixels

Rows of the copy are contiguous, so lanes run along all of its pixels: sums are not transposed, and
no row ends within a vector.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.deinterleave import deinterleave
from relax_mlir.schedule.build.loops import (
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
    scratch,
    select,
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
    saturating_sub,
    share_panels,
)
from .pixel_tile import PixelTile

PREFETCHES = 8
"""Parts of a tile's channels, each of which prefetches a share of the next tile's output."""
MIN_STRIPS = 2
"""Strips that are worth a task."""


def emit_pointwise(blocking: Blocking, problem: Problem, filters: Filters) -> None:
    """Emits the loop nest at the insertion point; filters are f32."""
    _Strips(blocking, problem, filters).emit()


@dataclass(frozen=True)
class _Strips:
    """How filters and pixels are divided; sizes are computed when the kernel runs."""

    blocking: Blocking
    problem: Problem
    filters: Filters

    @property
    def tile(self) -> PixelTile:
        """The tiles of a strip."""
        problem = self.problem
        return PixelTile(self.blocking, self.filters.buffer, problem.initial, problem.epilogue)

    @property
    def width(self) -> int:
        """Pixels of a strip."""
        return self.tile.width

    def emit(self) -> None:
        """Emits the loop nest at the insertion point."""
        problem, tasks = self.problem, self.blocking.family.convolutions.row_tasks
        pixels, channels = mul(*problem.pixels), maximum(problem.channels, 1)
        images = maximum(mul(1, *problem.batch), 1)
        strips = ceil_div(pixels, self.width)
        fitting = maximum(floor_div(patch_elements(self.blocking), mul(channels, self.width)), 1)
        min_blocks = minimum(ceil_div(tasks, images), ceil_div(strips, MIN_STRIPS))
        blocks = maximum(maximum(ceil_div(strips, fitting), min_blocks), 1)
        others = mul(images, blocks)
        panels, group, groups = share_panels(self.blocking, problem, others, tasks)
        max_strips = ceil_div(strips, blocks)

        def emit_task(task: ir.Value) -> None:
            first = mul(mod(task, groups), group)
            rest = floor_div(task, groups)
            block = mod(rest, blocks)
            batch = problem.batch_index(floor_div(rest, blocks))
            begin = floor_div(mul(block, strips), blocks)
            end = floor_div(mul(add(block, 1), strips), blocks)
            kinds = ir.F32Type.get()
            with (
                scratch(mul(max_strips, channels, self.width), kinds) as copied,
                scratch(self.tile.size, kinds) as sums,
                scratch(self._line_size(max_strips), kinds) as line,
            ):
                self._copy(problem.image(batch), begin, end, line, copied)
                last = minimum(add(first, group), panels)

                def strip(s: ir.Value) -> None:
                    left = _Strip(self, batch, mul(s, self.width), copied, sums)
                    at = mul(sub(s, begin), channels, self.width)
                    for_range(first, last, 1, lambda p: left.emit(at, p))

                for_range(begin, end, 1, strip)

        count = mul(mul(1, *problem.batch), blocks, groups)
        parallel_range(count, 1, emit_task)

    @property
    def _is_dense(self) -> bool:
        """Whether adjacent pixels of the result depend on adjacent pixels of the image."""
        return self.problem.strides == (1, 1)

    def _line_size(self, strips: Index) -> Index:
        """Elements of the rows that so many strips are in."""
        rows = mul(2, self.problem.pixels[1])
        return 0 if self._is_dense else add(mul(strips, self.width), rows, self.blocking.lanes)

    def _copy(
        self, image: Image, begin: Index, end: Index, line: ir.Value, copied: ir.Value
    ) -> None:
        """Copies [channel, strip, pixel] to [strip, channel, pixel].

        Strided pixels are gathered in `line` first.
        """
        pixels, lanes = mul(*self.problem.pixels), self.blocking.lanes
        step = mul(self.problem.channels, self.width)

        def channel(c: ir.Value) -> None:
            source = add(image.offset, mul(c, image.channel_stride))
            dense = replace(image, offset=source)
            if not self._is_dense:
                dense = self._gather(dense, begin, end, line)

            def strip(s: ir.Value) -> None:
                first = mul(s, self.width)
                to = add(mul(sub(s, begin), step), mul(c, self.width))

                def copy(is_whole: bool) -> None:
                    for v in range(0, self.width, lanes):
                        at = add(first, v)
                        keep = None if is_whole else mask(saturating_sub(pixels, at), lanes)
                        store(dense.load(add(dense.offset, at), lanes, keep), copied, add(to, v))

                whole = less(add(first, self.width - 1), pixels)
                if_else(whole, lambda: copy(True), lambda: copy(False))

            for_range(begin, end, 1, strip)

        for_range(0, self.problem.channels, 1, channel)

    def _gather(self, image: Image, begin: Index, end: Index, line: ir.Value) -> Image:
        """Gathers the rows that contain strips `begin` to `end` in `line`; `image` has one channel.

        The result is an image of one row, whose offset is that of pixel 0.
        """
        problem, lanes = self.problem, self.blocking.lanes
        columns, (down, right) = problem.pixels[1], problem.strides
        some = maximum(columns, 1)
        top = floor_div(mul(begin, self.width), some)
        bottom = minimum(ceil_div(mul(end, self.width), some), problem.pixels[0])

        def row(y: ir.Value) -> None:
            source = add(image.offset, mul(y, down, image.row_stride))
            to = mul(sub(y, top), columns)

            def vector_(x: ir.Value) -> None:
                first = mul(x, right)
                parts = []
                for v in range(0, right * lanes, lanes):
                    keep = mask(saturating_sub(problem.sizes[1], add(first, v)), lanes)
                    parts.append(image.load(add(source, first, v), lanes, keep))
                store(deinterleave(parts), line, add(to, x))

            for_range(0, columns, lanes, vector_)

        for_range(top, bottom, 1, row)
        return Image(line, sub(0, mul(top, columns)), 0, 0)


@dataclass(frozen=True)
class _Strip:
    """The pixels of a strip from `first` on, copied, and all filters of a panel."""

    strips: _Strips
    batch: Sequence[Index]
    first: Index
    copied: ir.Value
    sums: ir.Value

    def emit(self, at: Index, panel: Index) -> None:
        """Emits a panel times the strip whose copy is at `at`."""
        strips = self.strips
        blocking, problem, filters = strips.blocking, strips.problem, strips.filters
        start, filter_, num_filters = find_panel(blocking, problem, filters, self.batch, panel)
        count = minimum(sub(mul(*problem.pixels), self.first), strips.width)

        height = strips.tile.height

        def tile(f: ir.Value) -> None:
            rows = minimum(sub(num_filters, f), height)
            block = Block(
                tuple(self.batch), add(filter_, f), rows, self.first, count, (self.sums,),
                strips.width,
            )  # fmt: skip
            next_ = add(block.row, height)
            is_last = less(problem.filters, add(next_, 1))
            following = replace(
                block,
                row=select(is_last, value(0), value(next_)),
                column=add(self.first, select(is_last, value(strips.width), value(0))),
            )
            strips.tile.emit(block, lambda n: self._sums(n, at, add(start, f), following))

        for_range(0, num_filters, height, tile)

    def _sums(self, vectors: int, at: Index, filters_at: Index, following: Block) -> list[ir.Value]:
        """The sums of a tile's filters, from an offset on, and the first vectors of the strip.

        Meanwhile the output of the next tile is prefetched.
        """
        tile, channels = self.strips.tile, self.strips.problem.channels

        def channel(c: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            pixels_at = add(at, mul(c, tile.width))
            return tile.step(
                self.copied, pixels_at, add(filters_at, mul(c, tile.blocking.columns)), sums
            )

        def part(index: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            tile.prefetch(following, index, PREFETCHES)
            first = floor_div(mul(index, channels), PREFETCHES)
            last = floor_div(mul(add(index, 1), channels), PREFETCHES)
            return for_range(first, last, 1, channel, sums)

        return for_range(0, PREFETCHES, 1, part, tile.start(vectors))
