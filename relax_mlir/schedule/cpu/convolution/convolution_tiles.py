"""Tiles of a convolution whose lanes run along filters: pixels of a row by a panel of filters.

    for each tap of the window that is in the image, and each channel
      rows x columns sums += image[pixel] * panel[:]                 (registers)
    transpose the sums, so that pixels of a filter are contiguous

Source: Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures", 2018, on plain layouts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import ir, memref, scf, vector
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    less,
    load,
    minimum,
    mod,
    mul,
    splat,
    store,
    sub,
    value,
)
from relax_mlir.schedule.build.transposes import transpose
from relax_mlir.schedule.cpu.blocking import Blocking

from .convolution_image import CopiedImage
from .convolution_problem import Filters, Problem, rows_of_window

TILES = 4
"""Tiles of a row whose sums are transposed before the epilogue runs over them."""


@dataclass(frozen=True)
class Tiles:
    """Up to `TILES` tiles of one row of the result, from `pixel` (row, column) on, for one panel.

    The first window begins at `begin` in the copied image, the panel at `filters_at`; `sums` is a
    buffer for one tile.
    """

    image: CopiedImage
    filters: Filters
    pixel: tuple[Index, Index]
    begin: Index
    filters_at: Index
    sums: ir.Value

    @property
    def blocking(self) -> Blocking:
        """The sizes of tiles."""
        return self.image.blocking

    @property
    def problem(self) -> Problem:
        """The convolution."""
        return self.image.problem

    @property
    def step(self) -> int:
        """Distance between windows of adjacent pixels in the copied image."""
        return self.problem.strides[1] * self.blocking.channel_block

    @property
    def heights(self) -> list[int]:
        """Heights of tiles, in pixels, that have code of their own."""
        rows = self.blocking.rows
        if self.blocking.registers == 16:
            return list(range(1, rows + 1))
        return sorted({1, 2, 4, rows // 2, rows * 3 // 4, rows})

    def emit(self, block: Block) -> None:
        """Emits the sums of a block, transposed to its buffer, and prefetches the output."""
        count = block.columns
        height = self._height_of(count)

        def some(heights: Sequence[int], at: Index, rest: Index, part: Block) -> None:
            *lower, highest = heights
            tile = _Tile(self, highest, at, part)
            if not lower:
                tile.emit()
                return
            if_else(less(lower[-1], rest), tile.emit, lambda: some(lower, at, rest, part))

        def tile(at: ir.Value) -> None:
            part = replace(block, column=add(block.column, at))
            some(self.heights, at, minimum(sub(count, at), height), part)
            self._transpose(block.buffers[0], at, block.stride)

        for_range(0, count, height, tile)

    def _height_of(self, count: Index) -> Index:
        """Height of the tiles of `count` pixels: with few registers, tiles are of even height.

        A tile with too few sums would be bound by the latency of multiply-adds.
        """
        rows = self.blocking.rows
        return ceil_div(count, ceil_div(count, rows)) if self.blocking.registers == 16 else rows

    def _transpose(self, transposed: ir.Value, at: Index, stride: int) -> None:
        """Transposes one tile of sums, [pixel, filter], to [filter, pixel]."""
        lanes, columns = self.blocking.lanes, self.blocking.columns
        for top in range(0, self.blocking.rows, lanes):
            for left in range(0, columns, lanes):
                square = [load(self.sums, (top + i) * columns + left, lanes) for i in range(lanes)]
                for i, x in enumerate(transpose(square)):
                    store(x, transposed, add(at, (left + i) * stride + top))


@dataclass(frozen=True)
class _Tile:
    """sums[height, columns] = initial + products of the windows from `at` on with a panel.

    `block` describes where the epilogue stores them.
    """

    tiles: Tiles
    height: int
    at: Index
    block: Block

    def emit(self) -> None:
        """Emits the sums, and prefetches the output meanwhile."""
        tiles, problem = self.tiles, self.tiles.problem
        lanes, width = tiles.blocking.lanes, problem.window[1]
        initial = splat(problem.initial, lanes, ir.F32Type.get())
        sums = [initial] * (self.height * tiles.blocking.vectors)
        rows = rows_of_window(problem, tiles.pixel[0])
        first = add(tiles.begin, mul(self.at, tiles.step))
        if width == 1:
            self._fetch(0)
            result = self._column(rows, first, 0, sums, range(self.height))
        else:

            def column(v: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                self._fetch(v)
                return self._column_of_pixels(
                    v, lambda inside: self._column(rows, first, v, sums, inside)
                )

            result = for_range(0, width, 1, column, sums)
        for i, x in enumerate(result):
            store(x, tiles.sums, i * lanes)

    def _column_of_pixels(
        self, v: Index, column: Callable[[range], list[ir.Value]]
    ) -> list[ir.Value]:
        """The sums plus a column of the windows, for the pixels whose columns are in the image.

        Borders have code of their own where they are a large part of a tile.
        """
        blocking, all_pixels = self.tiles.blocking, range(self.height)
        borders = (blocking.rows, blocking.rows // 2)
        if not self.tiles.problem.padded or self.height not in borders:
            return column(all_pixels)
        left, right = self._is_outside(v)
        kinds = [ir.VectorType.get([blocking.lanes], ir.F32Type.get())]
        kinds *= self.height * blocking.vectors
        return _branch(
            left,
            kinds,
            lambda: column(all_pixels[1:]),
            lambda: _branch(
                right, kinds, lambda: column(all_pixels[:-1]), lambda: column(all_pixels)
            ),
        )

    def _column(
        self,
        rows: tuple[Index, Index],
        first: Index,
        v: Index,
        sums: Sequence[ir.Value],
        inside: range,
    ) -> list[ir.Value]:
        """The sums plus column `v` of the windows `inside`: the given rows, all channels."""
        tiles, problem = self.tiles, self.tiles.problem
        channel_block, image = tiles.blocking.channel_block, tiles.image
        begin = add(first, mul(v, problem.dilation[1], channel_block))
        index, channels = mul(v, problem.window[0], problem.channels), problem.channels
        blocks, rest = floor_div(channels, channel_block), mod(channels, channel_block)

        def walk(start: Index, stop: Index, at: Index, index: Index, sums):
            """Emits the loop over blocks of channels that are contiguous in the copied image."""

            def block(i: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                offset, first = add(at, mul(i, image.pitch)), add(index, mul(i, channel_block))
                result = list(sums)
                for c in range(channel_block):
                    result = self._step(inside, add(offset, c), add(first, c), result)
                return result

            return for_range(start, stop, 1, block, sums)

        if problem.dilation[0] == 1 and rest == 0:
            return walk(mul(rows[0], blocks), mul(rows[1], blocks), begin, index, sums)

        def row(u: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            at = add(begin, mul(u, problem.dilation[0], image.line))
            first = add(index, mul(u, channels))
            sums = walk(0, blocks, at, first, sums)
            at, first = add(at, mul(blocks, image.pitch)), add(first, mul(blocks, channel_block))

            def channel(c: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                return self._step(inside, add(at, c), add(first, c), sums)

            return for_range(0, rest, 1, channel, sums)

        return for_range(*rows, 1, row, sums)

    def _step(
        self, inside: range, image_at: Index, index: Index, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Adds the products of one element of the windows `inside` and one of each filter."""
        tiles = self.tiles
        blocking, filters = tiles.blocking, tiles.filters
        lanes, vectors = blocking.lanes, blocking.vectors
        at = add(tiles.filters_at, mul(index, blocking.columns))
        panel = []
        for v in range(vectors):
            loaded = load(filters.buffer, add(at, v * lanes), lanes)
            panel.append(filters.convert(loaded) if filters.convert else loaded)
        # Filters come from memory for the first rows of an image.
        if self.height >= blocking.family.convolutions.prefetch_rows:
            for v in range(0, vectors, blocking.vectors_per_line):
                prefetched = value(add(at, blocking.products.prefetch_bytes // 4 + v * lanes))
                memref.prefetch(filters.buffer, [prefetched], False, 2, True)
        result = list(sums)
        for r in inside:
            at = value(add(image_at, r * tiles.step))
            left = broadcast(memref.load(tiles.image.buffer, [at]), lanes)
            for i, right in enumerate(panel, r * vectors):
                result[i] = vector.fma(left, right, sums[i])
        return result

    def _fetch(self, v: Index) -> None:
        """Prefetches the output of a block's first pixel, some filters with each column."""
        problem, block = self.tiles.problem, self.block
        width = problem.window[1]
        first = floor_div(mul(v, block.rows), width)
        last = floor_div(mul(add(v, 1), block.rows), width)
        some = replace(block, row=add(block.row, first))
        problem.epilogue.prefetch(some, sub(last, first), 1)

    def _is_outside(self, v: Index) -> tuple[bool | ir.Value, bool | ir.Value]:
        """Whether column `v` is left of the image in the first window, right of it in the last."""
        problem, (_, column) = self.tiles.problem, self.tiles.pixel
        left, step = problem.padding[1], problem.strides[1]
        first = add(mul(add(column, self.at), step), mul(v, problem.dilation[1]))
        last = add(first, (self.height - 1) * step)
        return less(first, left), less(add(problem.sizes[1], left - 1), last)


def _branch(
    condition: bool | ir.Value,
    kinds: Sequence[ir.Type],
    then: Callable[[], Sequence[ir.Value]],
    otherwise: Callable[[], Sequence[ir.Value]],
) -> list[ir.Value]:
    """A branch with results of these types, or just one side if the condition is constant."""
    if isinstance(condition, bool):
        return list(then() if condition else otherwise())
    branch = scf.IfOp(condition, list(kinds), has_else=True)
    for block, body in ((branch.then_block, then), (branch.else_block, otherwise)):
        with ir.InsertionPoint(block):
            scf.YieldOp(list(body()))
    return list(branch.results)
