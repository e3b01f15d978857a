"""The kernel for windows of three by three places: four places of the result by 16 products.

    for each (block of tiles, group of panels) in parallel
      for each channel: its rows between zeros; v = B' d B for each tile         (the L2 cache)
      for each panel of filters
        u = G g G' for each channel and filter                                   (the L2 cache)
        for each strip of `VECTORS * lanes` tiles
          for each of 16 numbers, for each `height` filters of the panel, for each channel
            height x vectors m += u[filter] * v[tile]                            (registers)
          y = A' m A, two rows of places for each row of tiles; epilogue

A tile is 4 by 4 places of the image that 2 by 2 of the result are made of: 36 products for each
channel and filter become 16. Tiles count row after row and image after image, and lanes run along
them, so that neither ends of rows nor small images leave lanes unused.

Errors are no greater than those of adding up products, but relative to the greatest number of a
tile rather than of a window, and a number that is not finite makes all places of its tiles NaN.

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

from .convolution_problem import Filters, Image, Problem, above, find_panel, share_panels
from .place_tile import VECTORS, PlaceTile
from .winograd_transforms import (
    PLACES,
    PRODUCTS,
    SIDE,
    WINDOW,
    transform_filters,
    transform_results,
    transform_tiles,
)


def can_emit_winograd(blocking: Blocking, problem: Problem) -> bool:
    """Whether the kernel may and can compute such windows, and transforming tiles pays."""
    dense = problem.strides == problem.dilation == (1, 1)
    sizes = problem.channels, problem.filters
    least = blocking.family.winograd.least
    many = all(isinstance(size, int) and size >= least for size in sizes)
    known = problem.window == (WINDOW, WINDOW) and problem.initial == 0
    return problem.algebraic and known and dense and many and not problem.grouped


def pays_winograd(blocking: Blocking, problem: Problem) -> bool | ir.Value:
    """Whether products, of padding and unused lanes too, are fewer than those within the image."""
    images = mul(*problem.batch)
    tiles = round_up(mul(images, *_grid(problem)), blocking.lanes)
    outside = WINDOW - 1 if problem.padded else 0
    inside = (above(mul(size, WINDOW), outside) for size in problem.places)
    costs = blocking.family.winograd
    transformed = add(mul(tiles, costs.tile), mul(images, costs.image), costs.filter)
    return less(transformed, mul(images, *inside))


def emit_winograd(blocking: Blocking, problem: Problem, filters: Filters) -> None:
    """Emits the whole loop nest at the insertion point; no dim of the result is empty."""
    _Winograd(blocking, problem, filters, _grid(problem)).emit()


def _grid(problem: Problem) -> tuple[Index, Index]:
    """Rows and columns of tiles in an image."""
    rows, columns = (ceil_div(size, PLACES) for size in problem.places)
    return rows, columns


@dataclass(frozen=True)
class _Winograd:
    """What all tasks share. Sizes are chosen when the kernel runs."""

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
        """Numbers of u before the next of the 16: a line more, so that they are in other sets."""
        channels = self.problem.channels
        assert isinstance(channels, int), "Winograd's kernels are for known channels"
        return channels * self.blocking.columns + self.blocking.lanes

    @property
    def m_slab(self) -> int:
        """Numbers of m before the next of the 16."""
        return self.blocking.columns * self.width + self.blocking.lanes

    def emit(self) -> None:
        """Emits the loop over tasks: tiles are shared out by vectors."""
        blocking, problem = self.blocking, self.problem
        tiles = mul(*problem.batch, *self.grid)
        vectors = ceil_div(tiles, blocking.lanes)
        channels = problem.channels
        assert isinstance(channels, int), "Winograd's kernels are for known channels"
        sizes = blocking.family.winograd
        fitting = max(sizes.tile_bytes // 4 // (PRODUCTS * channels * self.width), 1) * VECTORS
        wanted = minimum(sizes.tasks, ceil_div(vectors, VECTORS))
        blocks = maximum(ceil_div(vectors, fitting), wanted)
        panels, group, groups = share_panels(blocking, problem, blocks, sizes.group_tasks)
        most = mul(ceil_div(vectors, blocks), blocking.lanes)

        def task(number: ir.Value) -> None:
            block, panel = floor_div(number, groups), mul(mod(number, groups), group)
            begin, end = (
                mul(floor_div(mul(add(block, i), vectors), blocks), blocking.lanes)
                for i in range(2)
            )
            part = _Task.of(self, most, begin, minimum(end, tiles))
            part.emit(panel, minimum(add(panel, group), panels))

        parallel_range(mul(blocks, groups), 1, task)


@dataclass(frozen=True)
class _Task:
    """Tiles from `begin` to `end`.

    `pitch` are numbers of v before the next channel, `v_slab` before the next of the 16, and `line`
    of a row in the copy of what is seen of a channel, which has `lines`.
    """

    winograd: _Winograd
    begin: Index
    end: Index
    pitch: Index
    v_slab: Index
    line: Index
    lines: Index

    @staticmethod
    def of(winograd: _Winograd, most: Index, begin: Index, end: Index) -> "_Task":
        """One that has `most` tiles or fewer."""
        lanes, (high, wide) = winograd.blocking.lanes, winograd.grid
        # An odd number of lines, so that channels are in other sets of the L1 cache.
        pitch = add(round_up(add(most, lanes), 2 * lanes), lanes)
        slab = add(mul(winograd.problem.channels, pitch), lanes)
        line = round_up(add(mul(PLACES, round_up(wide, lanes)), SIDE), lanes)
        rows = minimum(add(ceil_div(most, wide), 1), high)
        return _Task(winograd, begin, end, pitch, slab, line, add(mul(PLACES, rows), SIDE - PLACES))

    def emit(self, first: Index, last: Index) -> None:
        """Emits everything that a task does for panels from `first` to `last`."""
        winograd, f32 = self.winograd, ir.F32Type.get()
        blocking, size = winograd.blocking, mul(*winograd.grid)
        with (
            scratch(mul(PRODUCTS, self.v_slab), f32) as v,
            scratch(mul(self.lines, self.line), f32) as patch,
            scratch(PRODUCTS * winograd.u_slab, f32) as u,
            scratch(PRODUCTS * winograd.m_slab, f32) as m,
            scratch(blocking.columns * PLACES * PLACES * winograd.width, f32) as y,
        ):
            self._clear(patch, 0, mul(self.lines, self.line))
            images = floor_div(self.begin, size), ceil_div(self.end, size)
            for_range(*images, 1, lambda image: self._transform(image, patch, v))

            def panel(p: ir.Value) -> None:
                at, filter_, kept = find_panel(blocking, winograd.problem, winograd.filters, (), p)
                channels = winograd.problem.channels
                transform_filters(blocking, winograd.filters, channels, at, u, winograd.u_slab)

                def strip(t: ir.Value) -> None:
                    count = minimum(sub(self.end, t), winograd.width)
                    part = _Strip(self, t, count, filter_, kept)
                    part.multiply(u, v, m)
                    part.finish(m, y)

                for_range(self.begin, self.end, winograd.width, strip)

            for_range(first, last, 1, panel)

    def part_of_row(self, row: Index, begin: Index, end: Index) -> tuple[Index, Index]:
        """The columns of a row of tiles that are from `begin` to `end`."""
        wide = self.winograd.grid[1]
        first = mul(row, wide)
        return above(begin, first), sub(minimum(add(first, wide), end), first)

    def _transform(self, image: Index, patch: ir.Value, v: ir.Value) -> None:
        """Transforms the tiles of an image, channel by channel."""
        problem, lanes = self.winograd.problem, self.winograd.blocking.lanes
        (high, wide), source = self.winograd.grid, problem.image((image,))
        before = mul(image, high)
        top = above(floor_div(self.begin, wide), before)
        bottom = minimum(sub(ceil_div(self.end, wide), before), high)

        def channel(c: ir.Value) -> None:
            own = replace(source, offset=add(source.offset, mul(c, source.channel_stride)))
            self._copy(own, mul(PLACES, top), mul(PLACES, sub(bottom, top)), patch)

            def row(r: ir.Value) -> None:
                number = add(before, r)
                to = add(sub(mul(number, wide), self.begin), mul(c, self.pitch))
                at = mul(PLACES, sub(r, top), self.line)

                def tiles(x: ir.Value) -> None:
                    place = add(at, mul(PLACES, x))
                    transform_tiles(lanes, patch, place, self.line, v, add(to, x), self.v_slab)

                for_range(*self.part_of_row(number, self.begin, self.end), lanes, tiles)

            for_range(top, bottom, 1, row)

        for_range(0, problem.channels, 1, channel)

    def _copy(self, image: Image, first: Index, count: Index, patch: ir.Value) -> None:
        """Copies what rows of places, `count` from `first` on, see of a channel behind the padding.

        What the padding is left of, and right of the image, is zero and stays so.
        """
        problem, lanes = self.winograd.problem, self.winograd.blocking.lanes
        (height, width), (top, left) = problem.sizes, problem.padding
        count = add(count, SIDE - PLACES)
        begin = minimum(above(top, first), count)
        end = maximum(minimum(count, above(add(height, top), first)), begin)
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
        """Writes zeros to whole vectors."""
        lanes = self.winograd.blocking.lanes
        zero = splat(0.0, lanes, ir.F32Type.get())
        for_range(begin, end, lanes, lambda i: store(zero, patch, i))


@dataclass(frozen=True)
class _Strip:
    """Tiles of a task and filters of a panel: `count` from `tile`, `kept` from `filter` on."""

    task: _Task
    tile: Index
    count: Index
    filter: Index
    kept: Index

    def multiply(self, u: ir.Value, v: ir.Value, m: ir.Value) -> None:
        """m = the sums over channels of u times v."""
        winograd = self.task.winograd
        lanes, width = winograd.blocking.lanes, winograd.width
        height = PlaceTile(winograd.blocking, u, 0.0, winograd.problem.epilogue).height

        def number(e: ir.Value, vectors: int) -> None:
            def some(f: ir.Value) -> None:
                sums = self._sums(e, f, vectors, u, v)
                to = add(mul(e, winograd.m_slab), mul(f, width))
                for i, x in enumerate(sums):
                    row, part = divmod(i, vectors)
                    store(x, m, add(to, row * width + part * lanes))

            self._fetch(e)
            for_range(0, self.kept, height, some)

        def products(vectors: int) -> None:
            for_range(0, PRODUCTS, 1, lambda e: number(e, vectors))

        least_fitting(self.count, range(1, VECTORS + 1), products, unit=lanes)

    def _sums(self, e: Index, f: Index, vectors: int, u: ir.Value, v: ir.Value) -> list[ir.Value]:
        """The sums of some filters from `f` on and the first vectors of the strip."""
        task, winograd = self.task, self.task.winograd
        tile = PlaceTile(winograd.blocking, u, 0.0, winograd.problem.epilogue)
        tiles_at = add(mul(e, task.v_slab), sub(self.tile, task.begin))
        filters_at = add(mul(e, winograd.u_slab), f)

        def channel(c: ir.Value, *held: ir.Value) -> list[ir.Value]:
            number = add(filters_at, mul(c, winograd.blocking.columns))
            return tile.step(v, add(tiles_at, mul(c, task.pitch)), number, held)

        return for_range(0, winograd.problem.channels, 1, channel, tile.start(vectors))

    def finish(self, m: ir.Value, y: ir.Value) -> None:
        """The places of the tiles, and what is done with them."""
        winograd = self.task.winograd
        lanes, width = winograd.blocking.lanes, winograd.width
        stride = PLACES * PLACES * width

        def filter_(f: ir.Value) -> None:
            def tiles(x: ir.Value) -> None:
                at, to = add(mul(f, width), x), add(mul(f, stride), mul(PLACES, x))
                transform_results(lanes, m, at, winograd.m_slab, y, to, PLACES * width)

            for_range(0, self.count, lanes, tiles)

        for_range(0, self.kept, 1, filter_)
        block = Block((), self.filter, self.kept, 0, 0, (y,), stride)
        self._each_row(block, winograd.problem.epilogue)

    def _fetch(self, e: Index) -> None:
        """Asks for a sixteenth of the memory that the places will be stored to."""
        winograd = self.task.winograd
        lanes, epilogue = winograd.blocking.lanes, winograd.problem.epilogue
        share = -(-winograd.blocking.columns // PRODUCTS)
        first = mul(e, share)
        rows = minimum(above(self.kept, first), share)

        def fetch(block: Block) -> None:
            def line(j: ir.Value) -> None:
                epilogue.fetch(replace(block, column=add(block.column, j)), rows, 1)

            for_range(0, block.columns, lanes, line)

        self._each_row(Block((), add(self.filter, first), rows, 0, 0, (), 0), fetch)

    def _each_row(self, block: Block, emit: Callable[[Block], None]) -> None:
        """Emits something for each row of places that tiles have; `block` has all their sums."""
        task, winograd = self.task, self.task.winograd
        places, (high, wide) = winograd.problem.places, winograd.grid
        end = add(self.tile, self.count)

        def row(r: ir.Value) -> None:
            first, last = task.part_of_row(r, self.tile, end)
            column = mul(PLACES, first)
            columns = minimum(mul(PLACES, sub(last, first)), sub(places[1], column))
            start = mul(PLACES, sub(add(mul(r, wide), first), self.tile))

            def line(a: ir.Value) -> None:
                place = add(mul(PLACES, mod(r, high)), a)
                part = replace(
                    block, batch=(floor_div(r, high), place), column=column, columns=columns,
                    start=add(start, mul(a, PLACES * winograd.width)),
                )  # fmt: skip
                if_else(less(place, places[0]), lambda: emit(part))

            for_range(0, PLACES, 1, line)

        for_range(floor_div(self.tile, wide), ceil_div(end, wide), 1, row)
