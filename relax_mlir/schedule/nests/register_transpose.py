"""Transposes squares in registers, where reads are contiguous along another axis than the lanes.

    for each square: as many rows, along the tile axis, as lanes
      load it column by column, as memory has it; transpose                  (see `evaluate`)
      for each row: body, store

The last squares are moved back, to where they fit, and overlap the ones before. Where none fits,
there are parts of squares, by masks, if the machine loads and stores by them; otherwise, and where
rows are very few, each row is gathered.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import ir
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane
from relax_mlir.schedule.build.evaluate import Point, Tile
from relax_mlir.schedule.build.lanes import Ramp, Uniform
from relax_mlir.schedule.build.loops import Index

_FEW_ROWS = 5  # fewer are faster to gather than to transpose
_NEAR = 1 << 17  # elements that are transposed within the second-level cache

Some = Callable[[Point, Index, Index, Index], None]
"""Emits the rows of squares from one on, and from a lane to another one."""


@dataclass(frozen=True)
class Squares:
    """Squares of a nest: `extent` rows along the tile `axis`, `width` lanes along `lane_axis`.

    `row` emits all stages for a point.
    """

    lanes: int
    axis: int
    lane_axis: int
    extent: Index
    width: Index
    has_masks: bool
    row: Callable[[Point], None]

    def by_room(self, emit: Callable[[Some], None], gathered: Some) -> None:
        """Emits code for what squares are as large as, and for what has no room for one.

        `emit` makes parallel loops of what emits some rows; `gathered` does that without squares.
        Each has loops of its own: LLVM would compute places for all in front of one loop.
        """
        lanes, extent, width = self.lanes, self.extent, self.width

        def squares() -> None:
            is_near = loops.less(loops.mul(extent, width), _NEAR)
            loops.if_else(
                is_near,
                lambda: emit(partial(self._whole, fetches=False)),
                lambda: emit(partial(self._whole, fetches=True)),
            )

        def parts() -> None:
            few = loops.less(extent, _FEW_ROWS) if self.has_masks else True
            loops.if_else(few, lambda: emit(gathered), lambda: emit(self._parts))

        fits = loops.and_(loops.less(lanes - 1, extent), loops.less(lanes - 1, width))
        loops.if_else(fits, squares, parts)

    def _whole(self, point: Point, first: Index, start: Index, stop: Index, fetches: bool) -> None:
        """Whole squares, side by side."""
        lanes = self.lanes
        top = loops.value(loops.minimum(first, loops.sub(self.extent, lanes)))

        def square(base: ir.Value) -> None:
            moved = loops.minimum(base, loops.sub(self.width, lanes))
            rows = [Uniform(loops.add(top, i)) for i in range(lanes)]
            column = Ramp(loops.value(moved), 1, 1, True)
            tile = Tile(rows, Ramp(top, 1, 1, True), column, fetches)
            self._rows(point, tile, range(lanes))

        loops.for_range(start, stop, lanes, square)

    def _parts(self, point: Point, first: Index, start: Index, stop: Index) -> None:
        """Parts of squares, by the least code that has all rows and columns that there are."""
        lanes, extent, width = self.lanes, self.extent, self.width
        heights, widths = (lanes // 2, lanes), (lanes // 4, lanes // 2, lanes)

        def along(columns: int | None, rows: int) -> None:
            loops.for_range(
                start, stop, lanes, lambda base: self._part(point, first, base, rows, columns)
            )

        def narrow() -> None:
            # What is narrower than a square begins at lane 0.
            loops.if_else(
                loops.less(extent, lanes),
                lambda: loops.least_fitting(extent, heights, partial(along, lanes)),
                lambda: loops.least_fitting(
                    width, widths, partial(self._part, point, first, 0, None)
                ),
            )

        loops.if_else(
            loops.less(width, lanes),
            narrow,
            lambda: loops.least_fitting(extent, heights, partial(along, None)),
        )

    def _part(
        self, point: Point, first: Index, base: Index, most_rows: int | None, columns: int | None
    ) -> None:
        """The part of a square that there is, of so many rows and columns at most.

        None stands for as many as a square has: the last ones are moved back to where they fit.
        """
        lanes, extent, width = self.lanes, self.extent, self.width
        here = there = mask = None
        if most_rows is None:
            first = loops.minimum(first, loops.sub(extent, lanes))
        else:
            here = loops.minimum(loops.sub(extent, first), lanes)
        if columns is None:
            base = loops.minimum(base, loops.sub(width, lanes))
        else:
            there = loops.minimum(loops.sub(width, base), lanes)
            mask = loops.mask(there, lanes)

        last = loops.sub(extent, 1)
        numbers = range(most_rows or lanes)
        places = [loops.add(first, i) for i in numbers]
        rows = [Uniform(p if here is None else loops.minimum(p, last)) for p in places]
        down, column = Ramp(loops.value(first), 1, 1, True), Ramp(loops.value(base), 1, 1, True)
        tile = Tile(rows, down, column, False, here, there, columns)
        self._rows(point, tile, numbers if here is None else numbers[::-1], mask)

    def _rows(
        self, point: Point, tile: Tile, numbers: Sequence[int], mask: ir.Value | None = None
    ) -> None:
        """The rows of a square, in an order."""
        for i in numbers:
            index: dict[int, IndexLane] = {
                **point.index, self.axis: tile.rows[i], self.lane_axis: tile.column,
            }  # fmt: skip
            self.row(Point(self.lanes, mask, index, tile=tile, row=i))
