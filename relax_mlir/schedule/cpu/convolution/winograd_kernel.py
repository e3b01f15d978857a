"""The kernel for 3x3 windows: four pixels of the result by 16 products.

    for each (block of tiles, group of panels) in parallel
      for each channel: pad its rows with zeros; v = B' d B for each tile        (the L2 cache)
      for each panel of filters
        u = G g G' for each channel and filter                                   (the L2 cache)
        for each strip of `VECTORS * lanes` tiles
          for each of 16 elements, for each `height` filters of the panel, for each channel
            height x vectors m += u[filter] * v[tile]                            (registers)
          y = A' m A, two rows of pixels for each row of tiles; epilogue

A tile is 4x4 pixels of the image, on which 2x2 pixels of the result depend: 36 products for each
channel and filter become 16. Lanes run along the tiles of all rows and images, so that neither ends
of rows nor small images leave lanes unused.

Rounding errors are no greater than those of sums of products, but relative to the maximum of a tile
rather than of a window; a value that is not finite makes all pixels of its tiles NaN.

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015, F(2x2, 3x3).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    least_fitting,
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
from relax_mlir.schedule.cpu.blocking import Blocking

from .convolution_problem import Filters, Image, Problem, find_panel, saturating_sub, share_panels
from .pixel_tile import VECTORS, PixelTile
from .winograd_transforms import (
    OUT_SIDE,
    PRODUCTS,
    SIDE,
    WINDOW,
    transform_filters,
    transform_results,
    transform_tiles,
)


def can_emit_winograd(blocking: Blocking, problem: Problem) -> bool:
    """Whether the kernel may be used, supports such windows, and has enough channels to pay."""
    dense = problem.strides == problem.dilation == (1, 1)
    sizes = problem.channels, problem.filters
    min_size = blocking.family.winograd.min_size
    many = all(isinstance(size, int) and size >= min_size for size in sizes)
    known = problem.window == (WINDOW, WINDOW) and problem.initial == 0
    return problem.algebraic and known and dense and many and not problem.grouped


def pays_winograd(blocking: Blocking, problem: Problem) -> bool | ir.Value:
    """Whether it has fewer products, with padding and unused lanes, than a direct convolution."""
    images = mul(*problem.batch)
    tiles = round_up(mul(images, *_grid(problem)), blocking.lanes)
    outside = WINDOW - 1 if problem.padded else 0
    inside = (saturating_sub(mul(size, WINDOW), outside) for size in problem.pixels)
    costs = blocking.family.winograd
    transformed = add(mul(tiles, costs.tile), mul(images, costs.image), costs.filter)
    return less(transformed, mul(images, *inside))


def emit_winograd(blocking: Blocking, problem: Problem, filters: Filters) -> None:
    """Emits the loop nest at the insertion point; no dim of the result is empty."""
    _Winograd(blocking, problem, filters, _grid(problem)).emit()


def _grid(problem: Problem) -> tuple[Index, Index]:
    """Rows and columns of tiles in an image."""
    rows, columns = (ceil_div(size, OUT_SIDE) for size in problem.pixels)
    return rows, columns


@dataclass(frozen=True)
class _Winograd:
    """What all tasks share. Sizes are computed when the kernel runs."""

    blocking: Blocking
    problem: Problem
    filters: Filters
    grid: tuple[Index, Index]

    @property
    def width(self) -> int:
        """Tiles of a strip."""
        return VECTORS * self.blocking.lanes

    @property
    def u_slab(self) -> int:
        """Distance between the 16 elements in u: a vector more, so that they map to other sets."""
        channels = self.problem.channels
        assert isinstance(channels, int), "Winograd's kernels are for known channels"
        return channels * self.blocking.columns + self.blocking.lanes

    @property
    def m_slab(self) -> int:
        """Distance between the 16 elements in m."""
        return self.blocking.columns * self.width + self.blocking.lanes

    def emit(self) -> None:
        """Emits the loop over tasks, which divide vectors of tiles."""
        blocking, problem = self.blocking, self.problem
        tiles = mul(*problem.batch, *self.grid)
        vectors = ceil_div(tiles, blocking.lanes)
        channels = problem.channels
        assert isinstance(channels, int), "Winograd's kernels are for known channels"
        sizes = blocking.family.winograd
        fitting = max(sizes.tile_bytes // 4 // (PRODUCTS * channels * self.width), 1) * VECTORS
        min_blocks = minimum(sizes.tasks, ceil_div(vectors, VECTORS))
        blocks = maximum(ceil_div(vectors, fitting), min_blocks)
        panels, group, groups = share_panels(blocking, problem, blocks, sizes.group_tasks)
        max_tiles = mul(ceil_div(vectors, blocks), blocking.lanes)

        def emit_task(task: ir.Value) -> None:
            block, panel = floor_div(task, groups), mul(mod(task, groups), group)
            begin, end = (
                mul(floor_div(mul(add(block, i), vectors), blocks), blocking.lanes)
                for i in range(2)
            )
            part = _Task.of(self, max_tiles, begin, minimum(end, tiles))
            part.emit(panel, minimum(add(panel, group), panels))

        parallel_range(mul(blocks, groups), 1, emit_task)


@dataclass(frozen=True)
class _Task:
    """Tiles from `begin` to `end`.

    In v, channels are `pitch` elements apart and the 16 elements of tiles `v_slab`. The copy of a
    channel's receptive field has `lines` rows of `line` elements.
    """

    winograd: _Winograd
    begin: Index
    end: Index
    pitch: Index
    v_slab: Index
    line: Index
    lines: Index

    @staticmethod
    def of(winograd: _Winograd, max_tiles: Index, begin: Index, end: Index) -> "_Task":
        """A task of up to `max_tiles` tiles."""
        lanes, (grid_rows, grid_columns) = winograd.blocking.lanes, winograd.grid
        # An odd number of vectors, so that channels map to other sets of the L1 cache.
        pitch = add(round_up(add(max_tiles, lanes), 2 * lanes), lanes)
        slab = add(mul(winograd.problem.channels, pitch), lanes)
        line = round_up(add(mul(OUT_SIDE, round_up(grid_columns, lanes)), SIDE), lanes)
        rows = minimum(add(ceil_div(max_tiles, grid_columns), 1), grid_rows)
        return _Task(
            winograd, begin, end, pitch, slab, line, add(mul(OUT_SIDE, rows), SIDE - OUT_SIDE)
        )

    def emit(self, first: Index, last: Index) -> None:
        """Emits the body of a task for panels from `first` to `last`."""
        winograd, f32 = self.winograd, ir.F32Type.get()
        blocking, size = winograd.blocking, mul(*winograd.grid)
        with (
            scratch(mul(PRODUCTS, self.v_slab), f32) as v,
            scratch(mul(self.lines, self.line), f32) as patch,
            scratch(PRODUCTS * winograd.u_slab, f32) as u,
            scratch(PRODUCTS * winograd.m_slab, f32) as m,
            scratch(blocking.columns * OUT_SIDE * OUT_SIDE * winograd.width, f32) as y,
        ):
            self._clear(patch, 0, mul(self.lines, self.line))
            images = floor_div(self.begin, size), ceil_div(self.end, size)
            for_range(*images, 1, lambda image: self._transform(image, patch, v))

            def panel(p: ir.Value) -> None:
                at, filter_, num_filters = find_panel(
                    blocking, winograd.problem, winograd.filters, (), p
                )
                channels = winograd.problem.channels
                transform_filters(blocking, winograd.filters, channels, at, u, winograd.u_slab)

                def strip(t: ir.Value) -> None:
                    count = minimum(sub(self.end, t), winograd.width)
                    part = _Strip(self, t, count, filter_, num_filters)
                    part.multiply(u, v, m)
                    part.finish(m, y)

                for_range(self.begin, self.end, winograd.width, strip)

            for_range(first, last, 1, panel)

    def part_of_row(self, row: Index, begin: Index, end: Index) -> tuple[Index, Index]:
        """The columns of the tiles of a row that are in `begin` to `end`."""
        grid_columns = self.winograd.grid[1]
        first = mul(row, grid_columns)
        return saturating_sub(begin, first), sub(minimum(add(first, grid_columns), end), first)

    def _transform(self, image: Index, patch: ir.Value, v: ir.Value) -> None:
        """Transforms the tiles of an image, channel by channel."""
        problem, lanes = self.winograd.problem, self.winograd.blocking.lanes
        (grid_rows, grid_columns), source = self.winograd.grid, problem.image((image,))
        before = mul(image, grid_rows)
        top = saturating_sub(floor_div(self.begin, grid_columns), before)
        bottom = minimum(sub(ceil_div(self.end, grid_columns), before), grid_rows)

        def channel(c: ir.Value) -> None:
            own = replace(source, offset=add(source.offset, mul(c, source.channel_stride)))
            self._copy(own, mul(OUT_SIDE, top), mul(OUT_SIDE, sub(bottom, top)), patch)

            def row(r: ir.Value) -> None:
                grid_row = add(before, r)
                to = add(sub(mul(grid_row, grid_columns), self.begin), mul(c, self.pitch))
                at = mul(OUT_SIDE, sub(r, top), self.line)

                def tiles(x: ir.Value) -> None:
                    tile_at = add(at, mul(OUT_SIDE, x))
                    transform_tiles(lanes, patch, tile_at, self.line, v, add(to, x), self.v_slab)

                for_range(*self.part_of_row(grid_row, self.begin, self.end), lanes, tiles)

            for_range(top, bottom, 1, row)

        for_range(0, problem.channels, 1, channel)

    def _copy(self, image: Image, first: Index, count: Index, patch: ir.Value) -> None:
        """Copies the receptive field of `count` rows of pixels from `first` on, of one channel.

        Columns left and right of the image are zero already.
        """
        problem, lanes = self.winograd.problem, self.winograd.blocking.lanes
        (height, width), (top, left) = problem.sizes, problem.padding
        count = add(count, SIDE - OUT_SIDE)
        begin = minimum(saturating_sub(top, first), count)
        end = maximum(minimum(count, saturating_sub(add(height, top), first)), begin)
        full = sub(width, mod(width, lanes))

        def row(i: ir.Value) -> None:
            source = add(image.offset, mul(sub(add(first, i), top), image.row_stride))
            to = add(mul(i, self.line), left)

            def copy(j: Index, keep: ir.Value | None) -> None:
                store(image.load(add(source, j), lanes, keep), patch, add(to, j), keep)

            for_range(0, full, lanes, lambda j: copy(j, None))
            if_else(less(full, width), lambda: copy(full, mask(sub(width, full), lanes)))

        self._clear(patch, 0, mul(begin, self.line))
        for_range(begin, end, 1, row)
        self._clear(patch, mul(end, self.line), mul(count, self.line))

    def _clear(self, patch: ir.Value, begin: Index, end: Index) -> None:
        """Stores vectors of zeros."""
        lanes = self.winograd.blocking.lanes
        zero = splat(0.0, lanes, ir.F32Type.get())
        for_range(begin, end, lanes, lambda i: store(zero, patch, i))


@dataclass(frozen=True)
class _Strip:
    """`count` tiles from `tile` on by `num_filters` filters from `filter` on."""

    task: _Task
    tile: Index
    count: Index
    filter: Index
    num_filters: Index

    def multiply(self, u: ir.Value, v: ir.Value, m: ir.Value) -> None:
        """Emits m = the sums over channels of u times v."""
        winograd = self.task.winograd
        lanes, width = winograd.blocking.lanes, winograd.width
        height = PixelTile(winograd.blocking, u, 0.0, winograd.problem.epilogue).height

        def element(e: ir.Value, vectors: int) -> None:
            def some(f: ir.Value) -> None:
                sums = self._sums(e, f, vectors, u, v)
                to = add(mul(e, winograd.m_slab), mul(f, width))
                for i, x in enumerate(sums):
                    row, part = divmod(i, vectors)
                    store(x, m, add(to, row * width + part * lanes))

            self._fetch(e)
            for_range(0, self.num_filters, height, some)

        def products(vectors: int) -> None:
            for_range(0, PRODUCTS, 1, lambda e: element(e, vectors))

        least_fitting(self.count, range(1, VECTORS + 1), products, unit=lanes)

    def _sums(self, e: Index, f: Index, vectors: int, u: ir.Value, v: ir.Value) -> list[ir.Value]:
        """The sums of a tile's filters from `f` on and the first vectors of the strip."""
        task, winograd = self.task, self.task.winograd
        tile = PixelTile(winograd.blocking, u, 0.0, winograd.problem.epilogue)
        tiles_at = add(mul(e, task.v_slab), sub(self.tile, task.begin))
        filters_at = add(mul(e, winograd.u_slab), f)

        def channel(c: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            filter_at = add(filters_at, mul(c, winograd.blocking.columns))
            return tile.step(v, add(tiles_at, mul(c, task.pitch)), filter_at, sums)

        return for_range(0, winograd.problem.channels, 1, channel, tile.start(vectors))

    def finish(self, m: ir.Value, y: ir.Value) -> None:
        """Emits the pixels of the tiles, and the epilogue."""
        winograd = self.task.winograd
        lanes, width = winograd.blocking.lanes, winograd.width
        stride = OUT_SIDE * OUT_SIDE * width

        def filter_(f: ir.Value) -> None:
            def tiles(x: ir.Value) -> None:
                at, to = add(mul(f, width), x), add(mul(f, stride), mul(OUT_SIDE, x))
                transform_results(lanes, m, at, winograd.m_slab, y, to, OUT_SIDE * width)

            for_range(0, self.count, lanes, tiles)

        for_range(0, self.num_filters, 1, filter_)
        block = Block((), self.filter, self.num_filters, 0, 0, (y,), stride)
        self._each_row(block, winograd.problem.epilogue)

    def _fetch(self, e: Index) -> None:
        """Prefetches a sixteenth of the output."""
        winograd = self.task.winograd
        lanes, epilogue = winograd.blocking.lanes, winograd.problem.epilogue
        share = -(-winograd.blocking.columns // PRODUCTS)
        first = mul(e, share)
        rows = minimum(saturating_sub(self.num_filters, first), share)

        def prefetch(block: Block) -> None:
            def line(j: ir.Value) -> None:
                epilogue.prefetch(replace(block, column=add(block.column, j)), rows, 1)

            for_range(0, block.columns, lanes, line)

        self._each_row(Block((), add(self.filter, first), rows, 0, 0, (), 0), prefetch)

    def _each_row(self, block: Block, emit: Callable[[Block], None]) -> None:
        """Calls `emit` for each row of pixels of the tiles; `block` has all their sums."""
        task, winograd = self.task, self.task.winograd
        pixels, (grid_rows, grid_columns) = winograd.problem.pixels, winograd.grid
        end = add(self.tile, self.count)

        def row(r: ir.Value) -> None:
            first, last = task.part_of_row(r, self.tile, end)
            column = mul(OUT_SIDE, first)
            columns = minimum(mul(OUT_SIDE, sub(last, first)), sub(pixels[1], column))
            start = mul(OUT_SIDE, sub(add(mul(r, grid_columns), first), self.tile))

            def line(a: ir.Value) -> None:
                out_row = add(mul(OUT_SIDE, mod(r, grid_rows)), a)
                part = replace(
                    block, batch=(floor_div(r, grid_rows), out_row), column=column, columns=columns,
                    start=add(start, mul(a, OUT_SIDE * winograd.width)),
                )  # fmt: skip
                if_else(less(out_row, pixels[0]), lambda: emit(part))

            for_range(0, OUT_SIDE, 1, line)

        for_range(floor_div(self.tile, grid_columns), ceil_div(end, grid_columns), 1, row)
