"""The kernel for convolutions with a window of one place: filters times places, along the places.

    for each (image, block of strips of `vectors * lanes` places, group of panels) in parallel
      copy the block, strip by strip: for each channel its places             (the L2 cache)
      for each strip, for each panel of filters, for each `height` of them
        for each channel
          height x vectors sums += filter[:] * places[:]                      (registers)
        epilogue: elementwise part from registers, stores along the places

Rows of the copy follow one another without a gap, so lanes run along all of its places: sums need
not be transposed, and no row ends within a vector.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from collections.abc import Sequence
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
from relax_mlir.schedule.build.strided import every
from relax_mlir.schedule.cpu.blocking import Blocking

from .convolution_problem import (
    Filters,
    Image,
    Problem,
    above,
    find_panel,
    patch_elements,
    share_panels,
)
from .place_tile import PlaceTile

FETCHES = 8
"""Parts of a tile's channels, each of which asks for some of the memory of the next tile."""
LEAST_STRIPS = 2
"""Strips that are worth a task."""


def emit_pointwise(blocking: Blocking, problem: Problem, filters: Filters) -> None:
    """Emits the whole loop nest at the insertion point; filters are f32."""
    _Strips(blocking, problem, filters).emit()


@dataclass(frozen=True)
class _Strips:
    """How filters and places are cut; sizes are chosen when the kernel runs."""

    blocking: Blocking
    problem: Problem
    filters: Filters

    @property
    def tile(self) -> PlaceTile:
        """The tiles that a strip is made of."""
        problem = self.problem
        return PlaceTile(self.blocking, self.filters.buffer, problem.initial, problem.epilogue)

    @property
    def width(self) -> int:
        """Places of a strip."""
        return self.tile.width

    def emit(self) -> None:
        """Emits the whole loop nest at the insertion point."""
        problem, tasks = self.problem, self.blocking.family.convolutions.row_tasks
        places, channels = mul(*problem.places), maximum(problem.channels, 1)
        images = maximum(mul(1, *problem.batch), 1)
        strips = ceil_div(places, self.width)
        fitting = maximum(floor_div(patch_elements(self.blocking), mul(channels, self.width)), 1)
        wanted = minimum(ceil_div(tasks, images), ceil_div(strips, LEAST_STRIPS))
        blocks = maximum(maximum(ceil_div(strips, fitting), wanted), 1)
        others = mul(images, blocks)
        panels, group, groups = share_panels(self.blocking, problem, others, tasks)
        most = ceil_div(strips, blocks)

        def task(number: ir.Value) -> None:
            first = mul(mod(number, groups), group)
            rest = floor_div(number, groups)
            block = mod(rest, blocks)
            batch = problem.batch_index(floor_div(rest, blocks))
            begin = floor_div(mul(block, strips), blocks)
            end = floor_div(mul(add(block, 1), strips), blocks)
            kinds = ir.F32Type.get()
            with (
                scratch(mul(most, channels, self.width), kinds) as copied,
                scratch(self.tile.size, kinds) as sums,
                scratch(self._room(most), kinds) as line,
            ):
                self._copy(problem.image(batch), begin, end, line, copied)
                last = minimum(add(first, group), panels)

                def strip(s: ir.Value) -> None:
                    left = _Strip(self, batch, mul(s, self.width), copied, sums)
                    at = mul(sub(s, begin), channels, self.width)
                    for_range(first, last, 1, lambda p: left.emit(at, p))

                for_range(begin, end, 1, strip)

        count = mul(mul(1, *problem.batch), blocks, groups)
        parallel_range(count, 1, task)

    @property
    def _is_dense(self) -> bool:
        """Whether neighbours of the result are made of neighbours of the image."""
        return self.problem.strides == (1, 1)

    def _room(self, strips: Index) -> Index:
        """Numbers of the rows that so many strips are in."""
        rows = mul(2, self.problem.places[1])
        return 0 if self._is_dense else add(mul(strips, self.width), rows, self.blocking.lanes)

    def _copy(
        self, image: Image, begin: Index, end: Index, line: ir.Value, copied: ir.Value
    ) -> None:
        """Copies strips, channel by channel of the image, to strip by strip.

        Places that lie apart are gathered in `line` first.
        """
        places, lanes = mul(*self.problem.places), self.blocking.lanes
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
                        keep = None if is_whole else mask(above(places, at), lanes)
                        store(dense.load(add(dense.offset, at), lanes, keep), copied, add(to, v))

                whole = less(add(first, self.width - 1), places)
                if_else(whole, lambda: copy(True), lambda: copy(False))

            for_range(begin, end, 1, strip)

        for_range(0, self.problem.channels, 1, channel)

    def _gather(self, image: Image, begin: Index, end: Index, line: ir.Value) -> Image:
        """Writes the places of strips, and others of their rows, to `line`: place 0 would be there.

        The result is an image of one row that follows the offset; `image` has one channel.
        """
        problem, lanes = self.problem, self.blocking.lanes
        columns, (down, right) = problem.places[1], problem.strides
        some = maximum(columns, 1)
        top = floor_div(mul(begin, self.width), some)
        bottom = minimum(ceil_div(mul(end, self.width), some), problem.places[0])

        def row(y: ir.Value) -> None:
            source = add(image.offset, mul(y, down, image.row_stride))
            to = mul(sub(y, top), columns)

            def vector_(x: ir.Value) -> None:
                first = mul(x, right)
                parts = []
                for v in range(0, right * lanes, lanes):
                    keep = mask(above(problem.sizes[1], add(first, v)), lanes)
                    parts.append(image.load(add(source, first, v), lanes, keep))
                store(every(parts), line, add(to, x))

            for_range(0, columns, lanes, vector_)

        for_range(top, bottom, 1, row)
        return Image(line, sub(0, mul(top, columns)), 0, 0)


@dataclass(frozen=True)
class _Strip:
    """The places of a strip, copied, and all filters of a panel."""

    strips: _Strips
    batch: Sequence[Index]
    place: Index
    copied: ir.Value
    sums: ir.Value

    def emit(self, at: Index, panel: Index) -> None:
        """Emits what a panel makes of the strip that is copied to `at`."""
        strips = self.strips
        blocking, problem, filters = strips.blocking, strips.problem, strips.filters
        start, filter_, kept = find_panel(blocking, problem, filters, self.batch, panel)
        count = minimum(sub(mul(*problem.places), self.place), strips.width)

        height = strips.tile.height

        def tile(f: ir.Value) -> None:
            rows = minimum(sub(kept, f), height)
            block = Block(
                tuple(self.batch), add(filter_, f), rows, self.place, count, (self.sums,),
                strips.width,
            )  # fmt: skip
            next_ = add(block.row, height)
            is_last = less(problem.filters, add(next_, 1))
            following = replace(
                block,
                row=select(is_last, value(0), value(next_)),
                column=add(self.place, select(is_last, value(strips.width), value(0))),
            )
            strips.tile.emit(block, lambda n: self._sums(n, at, add(start, f), following))

        for_range(0, kept, height, tile)

    def _sums(self, vectors: int, at: Index, filters_at: Index, following: Block) -> list[ir.Value]:
        """The sums of a tile's filters from an offset on and the first vectors of the strip.

        Meanwhile it asks for the memory of the tile that follows.
        """
        tile, channels = self.strips.tile, self.strips.problem.channels

        def channel(c: ir.Value, *held: ir.Value) -> list[ir.Value]:
            place = add(at, mul(c, tile.width))
            return tile.step(
                self.copied, place, add(filters_at, mul(c, tile.blocking.columns)), held
            )

        def part(number: ir.Value, *held: ir.Value) -> list[ir.Value]:
            tile.fetch(following, number, FETCHES)
            first = floor_div(mul(number, channels), FETCHES)
            last = floor_div(mul(add(number, 1), channels), FETCHES)
            return for_range(first, last, 1, channel, held)

        return for_range(0, FETCHES, 1, part, tile.start(vectors))
