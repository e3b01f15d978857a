"""Tiles of a convolution whose lanes run along filters: places of a row by a panel of filters.

    for each place of the window that is in the image, and each channel
      rows x columns sums += image[place] * panel[:]                 (registers)
    transpose the sums, so that places of a filter are neighbours

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
    """Up to `TILES` tiles of one row of the result, from `place` (row, column) on, for one panel.

    The row's first window begins at `begin` in the copied image; the panel is at `filters_at`;
    `sums` has room for one tile.
    """

    image: CopiedImage
    filters: Filters
    place: tuple[Index, Index]
    begin: Index
    filters_at: Index
    sums: ir.Value

    @property
    def blocking(self) -> Blocking:
        """How large tiles are."""
        return self.image.blocking

    @property
    def problem(self) -> Problem:
        """What they are part of."""
        return self.image.problem

    @property
    def step(self) -> int:
        """How far the windows of neighbours in a row are apart in the copied image."""
        return self.problem.strides[1] * self.blocking.channel_block

    @property
    def heights(self) -> list[int]:
        """The numbers of places that there is code for."""
        rows = self.blocking.rows
        if self.blocking.registers == 16:
            return list(range(1, rows + 1))
        return sorted({1, 2, 4, rows // 2, rows * 3 // 4, rows})

    def emit(self, block: Block) -> None:
        """Emits the sums of a block, transposed to its buffer, and asks for where they will go."""
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
            self._turn(block.buffers[0], at, block.stride)

        for_range(0, count, height, tile)

    def _height_of(self, count: Index) -> Index:
        """Places of each tile of so many: few registers have alike tiles, of which none is short.

        A tile with fewer sums than begin while one is added up waits for itself.
        """
        rows = self.blocking.rows
        return ceil_div(count, ceil_div(count, rows)) if self.blocking.registers == 16 else rows

    def _turn(self, turned: ir.Value, at: Index, stride: int) -> None:
        """Transposes one tile of sums, [place, filter], to [filter, place]."""
        lanes, columns = self.blocking.lanes, self.blocking.columns
        for top in range(0, self.blocking.rows, lanes):
            for left in range(0, columns, lanes):
                square = [load(self.sums, (top + i) * columns + left, lanes) for i in range(lanes)]
                for i, x in enumerate(transpose(square)):
                    store(x, turned, add(at, (left + i) * stride + top))


@dataclass(frozen=True)
class _Tile:
    """sums[height, columns] = initial + products of the windows from `at` on with a panel.

    `block` describes where they will be stored to.
    """

    tiles: Tiles
    height: int
    at: Index
    block: Block

    def emit(self) -> None:
        """Emits the sums; meanwhile it asks for the memory that they will be stored to."""
        tiles, problem = self.tiles, self.tiles.problem
        lanes, width = tiles.blocking.lanes, problem.window[1]
        start = splat(problem.initial, lanes, ir.F32Type.get())
        held = [start] * (self.height * tiles.blocking.vectors)
        rows = rows_of_window(problem, tiles.place[0])
        first = add(tiles.begin, mul(self.at, tiles.step))
        if width == 1:
            self._fetch(0)
            found = self._column(rows, first, 0, held, range(self.height))
        else:

            def column(v: ir.Value, *held: ir.Value) -> list[ir.Value]:
                self._fetch(v)
                return self._places(v, lambda inside: self._column(rows, first, v, held, inside))

            found = for_range(0, width, 1, column, held)
        for i, x in enumerate(found):
            store(x, tiles.sums, i * lanes)

    def _places(self, v: Index, column: Callable[[range], list[ir.Value]]) -> list[ir.Value]:
        """The sums with a column of the windows, for the places whose columns are in the image.

        Sides of the image are worth code of their own where they are a large part of a tile.
        """
        blocking, everything = self.tiles.blocking, range(self.height)
        borders = (blocking.rows, blocking.rows // 2)
        if not self.tiles.problem.padded or self.height not in borders:
            return column(everything)
        left, right = self._is_outside(v)
        kinds = [ir.VectorType.get([blocking.lanes], ir.F32Type.get())]
        kinds *= self.height * blocking.vectors
        return _choose(
            left,
            kinds,
            lambda: column(everything[1:]),
            lambda: _choose(
                right, kinds, lambda: column(everything[:-1]), lambda: column(everything)
            ),
        )

    def _column(
        self,
        rows: tuple[Index, Index],
        first: Index,
        v: Index,
        held: Sequence[ir.Value],
        inside: range,
    ) -> list[ir.Value]:
        """The sums with column `v` of the windows `inside`: those rows of it, and channels."""
        tiles, problem = self.tiles, self.tiles.problem
        together, image = tiles.blocking.channel_block, tiles.image
        begin = add(first, mul(v, problem.dilation[1], together))
        number, channels = mul(v, problem.window[0], problem.channels), problem.channels
        blocks, rest = floor_div(channels, together), mod(channels, together)

        def walk(start: Index, stop: Index, at: Index, number: Index, held):
            """Walks blocks of channels that lie one after the other in the copied image."""

            def block(i: ir.Value, *held: ir.Value) -> list[ir.Value]:
                place, first = add(at, mul(i, image.pitch)), add(number, mul(i, together))
                found = list(held)
                for c in range(together):
                    found = self._step(inside, add(place, c), add(first, c), found)
                return found

            return for_range(start, stop, 1, block, held)

        if problem.dilation[0] == 1 and rest == 0:
            return walk(mul(rows[0], blocks), mul(rows[1], blocks), begin, number, held)

        def row(u: ir.Value, *held: ir.Value) -> list[ir.Value]:
            at = add(begin, mul(u, problem.dilation[0], image.line))
            first = add(number, mul(u, channels))
            held = walk(0, blocks, at, first, held)
            at, first = add(at, mul(blocks, image.pitch)), add(first, mul(blocks, together))

            def channel(c: ir.Value, *held: ir.Value) -> list[ir.Value]:
                return self._step(inside, add(at, c), add(first, c), held)

            return for_range(0, rest, 1, channel, held)

        return for_range(*rows, 1, row, held)

    def _step(
        self, inside: range, place: Index, number: Index, held: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Adds the products of one number of the windows `inside` and one of each filter."""
        tiles = self.tiles
        blocking, filters = tiles.blocking, tiles.filters
        lanes, vectors = blocking.lanes, blocking.vectors
        at = add(tiles.filters_at, mul(number, blocking.columns))
        panel = []
        for v in range(vectors):
            loaded = load(filters.buffer, add(at, v * lanes), lanes)
            panel.append(filters.convert(loaded) if filters.convert else loaded)
        # The first rows of an image read the filters from memory.
        if self.height >= blocking.family.convolutions.prefetch_rows:
            for v in range(0, vectors, blocking.vectors_per_line):
                ahead = value(add(at, blocking.products.prefetch_bytes // 4 + v * lanes))
                memref.prefetch(filters.buffer, [ahead], False, 2, True)
        result = list(held)
        for r in inside:
            at = value(add(place, r * tiles.step))
            left = broadcast(memref.load(tiles.image.buffer, [at]), lanes)
            for i, right in enumerate(panel, r * vectors):
                result[i] = vector.fma(left, right, held[i])
        return result

    def _fetch(self, v: Index) -> None:
        """Asks for the memory of a block's first place: for filters in turn with columns `v`."""
        problem, block = self.tiles.problem, self.block
        width = problem.window[1]
        first = floor_div(mul(v, block.rows), width)
        last = floor_div(mul(add(v, 1), block.rows), width)
        some = replace(block, row=add(block.row, first))
        problem.epilogue.fetch(some, sub(last, first), 1)

    def _is_outside(self, v: Index) -> tuple[bool | ir.Value, bool | ir.Value]:
        """Whether column `v` of the first window is left of the image; the last, right of it."""
        problem, (_, column) = self.tiles.problem, self.tiles.place
        left, step = problem.padding[1], problem.strides[1]
        first = add(mul(add(column, self.at), step), mul(v, problem.dilation[1]))
        last = add(first, (self.height - 1) * step)
        return less(first, left), less(add(problem.sizes[1], left - 1), last)


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
