"""The convolution kernel: a block of places of the result times panels of filters, in registers.

    for each (image, block of rows, block of columns, group of panels) in parallel
      copy the part of the image that the block sees, with its padding     (stays in the L2 cache)
      for each panel of `columns` filters
        for each row of the block, for each tile of `rows` places
          for each channel and place of the window
            rows x columns sums += image[place] * panel[:]                 (registers)
        transpose the sums; epilogue: elementwise part, stores along the row

Lanes run along filters, so strides and narrow images cost nothing: what varies along a row is read
one number at a time. No copy of the image has an element for each place of the window.

Source: Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures", 2018, on plain layouts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir, memref, vector

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
TASKS = 16
"""Tasks worth having, so that every thread finds some."""
TILES = 4
"""Tiles of a row whose sums are transposed before the epilogue runs over them."""
LEAST_ROWS = 4
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
    """Panels of filters: channel after channel, place after place, `columns` numbers each.

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
    pitch: Index  # of a row of the copied image
    plane: Index  # of a channel of it


def _split(tiling: Tiling, problem: Problem) -> _Blocks:
    """Cuts the result so that what a task sees of the image fits the cache, into enough tasks."""
    (high, wide), (down, right) = problem.extents, problem.strides
    (height, width), channels = problem.places, maximum(problem.channels, 1)
    images = maximum(mul(1, *problem.batch), 1)
    tile = tiling.rows
    across = floor_div(_above(floor_div(PATCH_ELEMENTS, mul(channels, high)), wide), right)
    fitting = mul(maximum(floor_div(add(across, 1), tile), 1), tile)
    wanted = ceil_div(TASKS, mul(images, maximum(height, 1)))
    wanted = minimum(wanted, ceil_div(width, TILES * tile))
    column_blocks = maximum(maximum(ceil_div(width, fitting), wanted), 1)
    columns = minimum(round_up(ceil_div(width, column_blocks), tile), width)
    columns = maximum(columns, 1)
    column_blocks = ceil_div(width, columns)
    pitch = add(mul(sub(columns, 1), right), wide)
    fitting = add(floor_div(_above(floor_div(PATCH_ELEMENTS, mul(channels, pitch)), high), down), 1)
    wanted = ceil_div(TASKS, mul(images, maximum(column_blocks, 1)))
    wanted = minimum(wanted, ceil_div(height, LEAST_ROWS))
    row_blocks = maximum(maximum(ceil_div(height, fitting), wanted), 1)
    rows = maximum(ceil_div(height, row_blocks), 1)
    row_blocks = ceil_div(height, rows)
    panels = ceil_div(problem.filters, tiling.columns)
    tasks = maximum(mul(images, row_blocks, column_blocks), 1)
    group = maximum(ceil_div(panels, ceil_div(TASKS, tasks)), 1)
    plane = mul(add(mul(sub(rows, 1), down), high), pitch)
    return _Blocks(
        rows, row_blocks, columns, column_blocks, panels, group, ceil_div(panels, group), pitch,
        plane,
    )  # fmt: skip


def _above(a: Index, b: Index) -> Index:
    """a - b, or 0 if that is negative."""
    return sub(maximum(a, b), b)


def pack_filters(
    tiling: Tiling,
    groups: Index,
    matrix: Callable[[Index], Matrix],
    out: ir.Value,
    problem: Problem,
) -> Filters:
    """Copies the filters of every group, [filters, depth] each, to `out` as panels."""
    count = ceil_div(problem.filters, tiling.columns)
    stride = panel_stride(tiling, problem)

    def panel(number: ir.Value) -> None:
        row = mul(mod(number, maximum(count, 1)), tiling.columns)
        source = matrix(floor_div(number, maximum(count, 1)))
        copy_panel(
            source, row, 0, problem.depth, tiling.lanes, tiling.vectors, out, mul(number, stride)
        )

    parallel_range(mul(groups, count), 1, panel)
    return Filters(out, 0, count, stride)


def panel_stride(tiling: Tiling, problem: Problem) -> Index:
    """Elements from one panel that `pack_filters` makes to the next."""
    return mul(round_up(problem.depth, tiling.lanes), tiling.columns)


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
        taps = problem.window[0] * problem.window[1]
        size = add(mul(problem.channels, blocks.plane), lanes)
        turned_stride = TILES * tiling.rows + lanes
        with (
            scratch(size, f32) as patch,
            scratch(taps, ir.IndexType.get()) as offsets,
            scratch(-(-tiling.rows // lanes) * lanes * tiling.columns, f32) as sums,
            scratch(tiling.columns * turned_stride, f32) as turned,
        ):
            self._copy_image(batch, row, column, patch, size)
            self._write_offsets(offsets)

            def panel(p: ir.Value) -> None:
                number = p if not problem.grouped else add(mul(batch[-1], blocks.panels), p)
                at = add(self.filters.offset, mul(number, self.filters.stride))
                filter_ = mul(p, tiling.columns)
                kept = minimum(sub(problem.filters, filter_), tiling.columns)

                def chunk(y: ir.Value, x: ir.Value) -> None:
                    count = minimum(sub(columns, x), TILES * tiling.rows)
                    begin = add(
                        mul(y, problem.strides[0], blocks.pitch), mul(x, problem.strides[1])
                    )
                    self._emit_tiles(patch, begin, count, offsets, at, sums, turned, turned_stride)
                    problem.epilogue(
                        Block(
                            (*batch, add(row, y)), filter_, kept, add(column, x), count, (turned,),
                            turned_stride,
                        )
                    )  # fmt: skip

                def line(y: ir.Value) -> None:
                    for_range(0, columns, TILES * tiling.rows, lambda x: chunk(y, x))

                for_range(0, rows, 1, line)

            for_range(first, last, 1, panel)

    def _copy_image(
        self, batch: Sequence[Index], row: Index, column: Index, patch: ir.Value, size: Index
    ) -> None:
        """Copies what the block sees of every channel, with zeros around the image."""
        problem, blocks, lanes = self.problem, self.blocks, self.tiling.lanes
        image = problem.image(batch)
        (height, width), (top, left) = problem.sizes, problem.padding
        first_row, first_column = mul(row, problem.strides[0]), mul(column, problem.strides[1])
        patch_rows = add(mul(sub(blocks.rows, 1), problem.strides[0]), problem.extents[0])
        if problem.padded:
            zero = splat(0.0, lanes, ir.F32Type.get())
            for_range(0, sub(size, lanes - 1), lanes, lambda i: store(zero, patch, i))
        # Row i of the patch is row `first_row + i - top` of the image, if there is one.
        begin = _above(top, first_row) if problem.padded else 0
        end = minimum(patch_rows, _above(add(height, top), first_row))
        skipped = _above(left, first_column) if problem.padded else 0
        kept = _above(minimum(blocks.pitch, _above(add(width, left), first_column)), skipped)

        def channel(c: ir.Value) -> None:
            source = add(image.offset, mul(c, image.channel_stride))
            source = add(source, sub(add(first_column, skipped), left))
            target = add(mul(c, blocks.plane), skipped)

            def line(i: ir.Value) -> None:
                at = add(source, mul(sub(add(first_row, i), top), image.row_stride))
                to = add(target, mul(i, blocks.pitch))

                def copy(j: Index, keep: ir.Value | None) -> None:
                    store(image.load(add(at, j), lanes, keep), patch, add(to, j), keep)

                full = sub(kept, mod(kept, lanes))
                for_range(0, full, lanes, lambda j: copy(j, None))
                if_else(less(full, kept), lambda: copy(full, mask(sub(kept, full), lanes)))

            for_range(begin, end, 1, line)

        for_range(0, problem.channels, 1, channel)

    def _write_offsets(self, offsets: ir.Value) -> None:
        """Distance of each place of the window from its first, in the copied image."""
        rows, columns = self.problem.window
        for place in range(rows * columns):
            u, v = divmod(place, columns)
            at = add(
                mul(u * self.problem.dilation[0], self.blocks.pitch), v * self.problem.dilation[1]
            )
            memref.store(value(at), offsets, [value(place)])

    def _emit_tiles(
        self,
        patch: ir.Value,
        begin: Index,
        count: Index,
        offsets: ir.Value,
        filters_at: Index,
        sums: ir.Value,
        turned: ir.Value,
        turned_stride: int,
    ) -> None:
        """Emits the sums of up to `TILES` tiles of a row, transposed to [filter, place]."""
        tiling, step = self.tiling, self.problem.strides[1]

        def tile(height: int, at: Index) -> None:
            self._emit_tile(height, patch, add(begin, mul(at, step)), offsets, filters_at, sums)

        def remainder(height: int, at: Index, rest: Index) -> None:
            if height == tiling.rows:
                tile(height, at)
                return
            if_else(
                less(rest, height + 1),
                lambda: tile(height, at),
                lambda: remainder(height + 1, at, rest),
            )

        def one(at: ir.Value) -> None:
            remainder(1, at, sub(count, at))
            self._turn(sums, turned, at, turned_stride)

        for_range(0, count, tiling.rows, one)

    def _turn(self, sums: ir.Value, turned: ir.Value, at: Index, stride: int) -> None:
        """Transposes one tile of sums, [place, filter], to [filter, place]."""
        lanes, columns = self.tiling.lanes, self.tiling.columns
        for top in range(0, self.tiling.rows, lanes):
            for left in range(0, columns, lanes):
                square = [load(sums, (top + i) * columns + left, lanes) for i in range(lanes)]
                for i, x in enumerate(transpose(square)):
                    store(x, turned, add(at, (left + i) * stride + top))

    def _emit_tile(
        self,
        height: int,
        patch: ir.Value,
        begin: Index,
        offsets: ir.Value,
        filters_at: Index,
        out: ir.Value,
    ) -> None:
        """out[height, columns] = initial + the products of `height` windows with a panel."""
        lanes, vectors, columns = self.tiling.lanes, self.tiling.vectors, self.tiling.columns
        taps = self.problem.window[0] * self.problem.window[1]
        filters, plane = self.filters, self.blocks.plane

        def step(at: Index, number: Index, sums: Sequence[ir.Value]) -> list[ir.Value]:
            panel = add(filters_at, mul(number, columns))
            right = []
            for v in range(vectors):
                loaded = load(filters.buffer, add(panel, v * lanes), lanes)
                right.append(filters.convert(loaded) if filters.convert else loaded)
            result = []
            for r in range(height):
                left = memref.load(patch, [value(add(at, r * self.problem.strides[1]))])
                left = broadcast(left, lanes)
                result += [
                    vector.fma(left, right[v], sums[r * vectors + v]) for v in range(vectors)
                ]
            return result

        def channel(c: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            at = add(begin, mul(c, plane))
            if taps == 1:
                return step(at, c, sums)
            first = mul(c, taps)

            def place(t: ir.Value, *held: ir.Value) -> list[ir.Value]:
                return step(add(at, memref.load(offsets, [t])), add(first, t), held)

            return for_range(0, taps, 1, place, sums)

        start = splat(self.problem.initial, lanes, ir.F32Type.get())
        found = for_range(0, self.problem.channels, 1, channel, [start] * (height * vectors))
        for i, x in enumerate(found):
            store(x, out, i * lanes)
