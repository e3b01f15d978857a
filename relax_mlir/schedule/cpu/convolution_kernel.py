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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import ir, memref, scf, vector

from .gemm_kernel import Block, Epilogue, Tiling
from .loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    less,
    load,
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
    value,
)
from .packing import Matrix, copy_panel, transpose

PATCH_ELEMENTS = 65536
"""Elements of the image that one task keeps in the L2 cache (a quarter of a megabyte)."""
TASKS = 8
"""Tasks worth having, so that every thread finds some."""
TILES = 4
"""Tiles of a row whose sums are transposed before the epilogue runs over them."""
LEAST_ROWS = 7
"""Rows of the result that are worth a copy of the rows of the image around them."""


@dataclass(frozen=True)
class Image:
    """Channels, rows and columns of a flat buffer; columns are neighbours in memory.

    `convert` turns loaded vectors into f32; None where they are that.
    """

    buffer: ir.Value
    offset: Index
    channel_stride: Index
    row_stride: Index
    convert: Callable[[ir.Value], ir.Value] | None = None

    def load(self, at: Index, lanes: int, keep: ir.Value | None) -> ir.Value:
        """A vector from an offset; lanes outside of `keep` are not read."""
        loaded = load(self.buffer, at, lanes, keep)
        return self.convert(loaded) if self.convert else loaded


@dataclass(frozen=True)
class Filters:
    """Panels of filters: column of the window after column, its rows, and for each the channels.

    For each of these a panel has `columns` numbers, those of as many filters.

    Panel `p` of group `g` is at `offset + (g * count + p) * stride` of a flat buffer.
    """

    buffer: ir.Value
    offset: Index
    count: Index
    stride: Index
    convert: Callable[[ir.Value], ir.Value] | None = None


@dataclass(frozen=True)
class Problem:
    """What to compute, for every index of the batch: images, and groups of channels if there are.

    `sizes` are rows and columns of the image, `places` those of the result; strides, dilation,
    window and padding (top, left) are for rows and columns too. `filters` are those of a group.
    Where it is `algebraic`, equal expressions will do, and numbers are taken to be finite.
    """

    batch: tuple[Index, ...]
    grouped: bool
    channels: Index
    sizes: tuple[Index, Index]
    places: tuple[Index, Index]
    window: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    padded: bool
    algebraic: bool
    filters: Index
    image: Callable[[Sequence[Index]], Image]
    initial: float
    epilogue: Epilogue

    @property
    def extents(self) -> tuple[int, int]:
        """Rows and columns that a window covers."""
        pairs = zip(self.window, self.dilation, strict=True)
        rows, columns = ((size - 1) * step + 1 for size, step in pairs)
        return rows, columns

    @property
    def depth(self) -> Index:
        """Numbers of a filter."""
        return mul(self.channels, *self.window)

    def batch_index(self, linear: Index) -> tuple[Index, ...]:
        """The index of the batch that has this number, counted row by row."""
        found = []
        for extent in reversed(self.batch):
            found.append(mod(linear, extent))
            linear = floor_div(linear, extent)
        return tuple(reversed(found))


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


def _choose(
    condition: bool | ir.Value,
    kinds: Sequence[ir.Type],
    then: Callable[[], Sequence[ir.Value]],
    otherwise: Callable[[], Sequence[ir.Value]],
) -> list[ir.Value]:
    """A branch with results of these types; one side only where the condition is known."""
    if isinstance(condition, bool):
        return list(then() if condition else otherwise())
    branch = scf.IfOp(condition, list(kinds), has_else=True)
    for block, body in ((branch.then_block, then), (branch.else_block, otherwise)):
        with ir.InsertionPoint(block):
            scf.YieldOp(list(body()))
    return list(branch.results)


def share_panels(
    tiling: Tiling, problem: Problem, others: Index, tasks: int
) -> tuple[Index, Index, Index]:
    """Panels of filters, those of one task, and groups of so many.

    `others` are the parts, one or more, that the result is cut into besides; `tasks` are wanted.
    """
    panels = ceil_div(problem.filters, tiling.columns)
    group = maximum(ceil_div(panels, ceil_div(tasks, others)), 1)
    return panels, group, ceil_div(panels, group)


def find_panel(
    tiling: Tiling, problem: Problem, filters: Filters, batch: Sequence[Index], panel: Index
) -> tuple[Index, Index, Index]:
    """Where a panel begins, its first filter, and how many filters it has."""
    number = panel
    if problem.grouped:
        panels = ceil_div(problem.filters, tiling.columns)
        number = add(mul(batch[-1], panels), panel)
    first = mul(panel, tiling.columns)
    kept = minimum(sub(problem.filters, first), tiling.columns)
    return add(filters.offset, mul(number, filters.stride)), first, kept


def above(a: Index, b: Index) -> Index:
    """a - b, or 0 if that is negative."""
    return sub(maximum(a, b), b)


def rows_of_window(problem: Problem, row: Index) -> tuple[Index, Index]:
    """The first row of a window that is in the image, and the one behind the last.

    The window is that of a place in this row of the result.
    """
    high, step = problem.window[0], problem.dilation[0]
    if not problem.padded:
        return 0, high
    top = problem.padding[0]
    first = mul(row, problem.strides[0])
    begin = minimum(ceil_div(above(top, first), step), high)
    end = minimum(ceil_div(above(add(problem.sizes[0], top), first), step), high)
    return begin, maximum(begin, end)


def pack_filters(
    tiling: Tiling,
    groups: Index,
    matrix: Callable[[Index], Matrix],
    out: ir.Value,
    problem: Problem,
) -> Filters:
    """Copies the filters of every group, [filters, channels * rows * columns] each, as panels."""
    count = ceil_div(problem.filters, tiling.columns)
    stride = mul(problem.depth, tiling.columns)
    (rows, columns), lanes = problem.window, tiling.lanes
    taps = rows * columns

    def panel(number: ir.Value) -> None:
        row = mul(mod(number, maximum(count, 1)), tiling.columns)
        source = matrix(floor_div(number, maximum(count, 1)))
        start = mul(number, stride)
        room = mul(round_up(problem.depth, lanes), tiling.columns)
        with scratch(room, ir.F32Type.get()) as plain:
            copy_panel(source, row, 0, problem.depth, lanes, tiling.vectors, plain, 0)

            def channel(c: ir.Value) -> None:
                for tap in range(taps):
                    u, v = divmod(tap, columns)
                    at = mul(add(mul(c, taps), tap), tiling.columns)
                    to = add(mul(v * rows + u, problem.channels), c)
                    to = add(start, mul(to, tiling.columns))
                    for half in range(0, tiling.columns, lanes):
                        store(load(plain, add(at, half), lanes), out, add(to, half))

            for_range(0, problem.channels, 1, channel)

    parallel_range(mul(groups, count), 1, panel)
    return Filters(out, 0, count, stride)


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
                    tiles = _Tiles(self, place, patch, begin, at, sums)
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
            full = sub(kept, mod(kept, lanes))
            for_range(0, full, lanes, lambda j: copy(j, None))
            if_else(less(full, kept), lambda: copy(full, mask(sub(kept, full), lanes)))

        def line(i: ir.Value) -> None:
            for_range(0, problem.channels, 1, lambda c: channel(i, c))

        for_range(begin, end, 1, line)


@dataclass(frozen=True)
class _Tiles:
    """Up to `TILES` tiles of one row of the result, from `place` (row, column) on, for one panel.

    The row's first window begins at `begin` in the copied image, the panel at `filters_at`; `sums`
    has room for one tile.
    """

    task: _Task
    place: tuple[Index, Index]
    patch: ir.Value
    begin: Index
    filters_at: Index
    sums: ir.Value

    def emit(self, block: Block) -> None:
        """Emits the sums of a block, transposed to its buffer, and asks for where they will go."""
        tiling, count = self.task.tiling, block.columns

        heights = sorted({1, 2, 4, tiling.rows // 2, tiling.rows * 3 // 4, tiling.rows})

        def remainder(heights: Sequence[int], at: Index, rest: Index, part: Block) -> None:
            if len(heights) == 1:
                self._emit_tile(heights[0], at, part)
                return
            if_else(
                less(rest, heights[0] + 1),
                lambda: self._emit_tile(heights[0], at, part),
                lambda: remainder(heights[1:], at, rest, part),
            )

        def tile(at: ir.Value) -> None:
            rest = sub(count, at)
            part = replace(block, column=add(block.column, at))
            if_else(
                less(rest, tiling.rows),
                lambda: remainder(heights, at, rest, part),
                lambda: self._emit_tile(tiling.rows, at, part),
            )
            self._turn(block.buffers[0], at, block.stride)

        for_range(0, count, tiling.rows, tile)

    def _turn(self, turned: ir.Value, at: Index, stride: int) -> None:
        """Transposes one tile of sums, [place, filter], to [filter, place]."""
        lanes, columns = self.task.tiling.lanes, self.task.tiling.columns
        for top in range(0, self.task.tiling.rows, lanes):
            for left in range(0, columns, lanes):
                square = [load(self.sums, (top + i) * columns + left, lanes) for i in range(lanes)]
                for i, x in enumerate(transpose(square)):
                    store(x, turned, add(at, (left + i) * stride + top))

    def _emit_tile(self, height: int, at: Index, block: Block) -> None:
        """sums[height, columns] = initial + products of the windows from `at` on with a panel.

        Meanwhile it asks for the memory that they will be stored to, which `block` describes.
        """
        task, problem, lanes = self.task, self.task.problem, self.task.tiling.lanes
        start = splat(problem.initial, lanes, ir.F32Type.get())
        held = [start] * (height * task.tiling.vectors)
        rows = rows_of_window(problem, self.place[0])
        first = add(self.begin, mul(at, problem.strides[1]))

        # Sides of the image are worth code of their own where they are a large part of a tile.
        borders = (task.tiling.rows, task.tiling.rows // 2)

        def column(v: Index, held: Sequence[ir.Value], inside: range) -> list[ir.Value]:
            begin = add(first, mul(v, problem.dilation[1]))
            number = mul(v, problem.window[0], problem.channels)

            def walk(start: Index, stop: Index, at: Index, number: Index, held):
                """Walks rows of channels that lie one after the other in the copied image."""

                def line(i: ir.Value, *held: ir.Value) -> list[ir.Value]:
                    place = add(at, mul(i, task.blocks.pitch))
                    return self._step(inside, place, add(number, i), held)

                return for_range(start, stop, 1, line, held)

            channels = problem.channels
            if problem.dilation[0] == 1:
                return walk(mul(rows[0], channels), mul(rows[1], channels), begin, number, held)

            def row(u: ir.Value, *held: ir.Value) -> list[ir.Value]:
                at = add(begin, mul(u, problem.dilation[0], task.blocks.line))
                return walk(0, channels, at, add(number, mul(u, channels)), held)

            return for_range(*rows, 1, row, held)

        def inside(v: ir.Value, *held: ir.Value) -> list[ir.Value]:
            self._fetch(block, v)
            everything = range(height)
            if not problem.padded or height not in borders:
                return column(v, held, everything)
            left, right = self._is_outside(v, at, height)
            kinds = [x.type for x in held]
            return _choose(
                left,
                kinds,
                lambda: column(v, held, everything[1:]),
                lambda: _choose(
                    right,
                    kinds,
                    lambda: column(v, held, everything[:-1]),
                    lambda: column(v, held, everything),
                ),
            )

        width = problem.window[1]
        if width == 1:
            self._fetch(block, 0)
            found = column(0, held, range(height))
        else:
            found = for_range(0, width, 1, inside, held)
        for i, x in enumerate(found):
            store(x, self.sums, i * lanes)

    def _fetch(self, block: Block, v: Index) -> None:
        """Asks for the memory of a block's first place: for filters in turn with columns `v`."""
        width = self.task.problem.window[1]
        first = floor_div(mul(v, block.rows), width)
        last = floor_div(mul(add(v, 1), block.rows), width)
        some = replace(block, row=add(block.row, first))
        self.task.problem.epilogue.fetch(some, sub(last, first), 1)

    def _is_outside(self, v: Index, at: Index, height: int) -> tuple[ir.Value, ir.Value]:
        """Whether column `v` of the first window is left of the image; the last, right of it."""
        problem = self.task.problem
        left = problem.padding[1]
        first = add(mul(add(self.place[1], at), problem.strides[1]), mul(v, problem.dilation[1]))
        last = add(first, (height - 1) * problem.strides[1])
        return less(first, left), less(add(problem.sizes[1], left - 1), last)

    def _step(
        self, inside: range, place: Index, number: Index, held: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Adds the products of one number of the windows `inside` and one of each filter."""
        tiling, filters = self.task.tiling, self.task.filters
        lanes, vectors = tiling.lanes, tiling.vectors
        at = add(self.filters_at, mul(number, tiling.columns))
        panel = []
        for v in range(vectors):
            loaded = load(filters.buffer, add(at, v * lanes), lanes)
            panel.append(filters.convert(loaded) if filters.convert else loaded)
        result = list(held)
        for r in inside:
            at = value(add(place, r * self.task.problem.strides[1]))
            left = broadcast(memref.load(self.patch, [at]), lanes)
            for i, right in enumerate(panel, r * vectors):
                result[i] = vector.fma(left, right, held[i])
        return result
