"""Transposes squares in registers, for reads that are contiguous along another axis than the lanes.

    for each square: as many rows, along the tile axis, as lanes
      load its columns, which are contiguous; transpose                      (see `evaluate`)
      for each row: body, store

The last squares overlap the ones before, so that they are whole. Extents below a square use masked
parts of squares, if the machine has masks; otherwise, and for very few rows, rows are gathered.
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
_L2_ELEMENTS = 1 << 17  # elements that are transposed within the L2 cache

Some = Callable[[Point, Index, Index, Index], None]
"""Emits rows of squares: (point, first row, first lane, end of lanes)."""


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

    def emit_by_size(self, emit: Callable[[Some], None], gathered: Some) -> None:
        """Emits code for extents of a square or more, and for smaller ones.

        `emit` makes parallel loops of a function that emits some rows; `gathered` is one without
        squares. Each has its own loops, since LLVM would hoist the addresses of all out of one.
        """
        lanes, extent, width = self.lanes, self.extent, self.width

        def squares() -> None:
            fits_l2 = loops.less(loops.mul(extent, width), _L2_ELEMENTS)
            loops.if_else(
                fits_l2,
                lambda: emit(partial(self._whole, prefetches=False)),
                lambda: emit(partial(self._whole, prefetches=True)),
            )

        def parts() -> None:
            few = loops.less(extent, _FEW_ROWS) if self.has_masks else True
            loops.if_else(few, lambda: emit(gathered), lambda: emit(self._parts))

        fits = loops.and_(loops.less(lanes - 1, extent), loops.less(lanes - 1, width))
        loops.if_else(fits, squares, parts)

    def _whole(
        self, point: Point, first: Index, start: Index, stop: Index, prefetches: bool
    ) -> None:
        """Emits whole squares, from lane `start` to `stop`."""
        lanes = self.lanes
        first_row = loops.value(loops.minimum(first, loops.sub(self.extent, lanes)))

        def square(base: ir.Value) -> None:
            first_lane = loops.minimum(base, loops.sub(self.width, lanes))
            rows = [Uniform(loops.add(first_row, i)) for i in range(lanes)]
            column = Ramp(loops.value(first_lane), 1, 1, True)
            tile = Tile(rows, Ramp(first_row, 1, 1, True), column, prefetches)
            self._rows(point, tile, range(lanes))

        loops.for_range(start, stop, lanes, square)

    def _parts(self, point: Point, first: Index, start: Index, stop: Index) -> None:
        """Emits parts of squares, of the least height and width that fit."""
        lanes, extent, width = self.lanes, self.extent, self.width
        heights, widths = (lanes // 2, lanes), (lanes // 4, lanes // 2, lanes)

        def strip(columns: int | None, rows: int) -> None:
            loops.for_range(
                start, stop, lanes, lambda base: self._part(point, first, base, rows, columns)
            )

        def narrow() -> None:
            # Extents below a square begin at lane 0.
            loops.if_else(
                loops.less(extent, lanes),
                lambda: loops.least_fitting(extent, heights, partial(strip, lanes)),
                lambda: loops.least_fitting(
                    width, widths, partial(self._part, point, first, 0, None)
                ),
            )

        loops.if_else(
            loops.less(width, lanes),
            narrow,
            lambda: loops.least_fitting(extent, heights, partial(strip, None)),
        )

    def _part(
        self, point: Point, first: Index, base: Index, max_rows: int | None, columns: int | None
    ) -> None:
        """Emits the valid part of a square, of at most so many rows and columns.

        None stands for those of a square, of which the last one overlaps the one before.
        """
        lanes, extent, width = self.lanes, self.extent, self.width
        rows_left = columns_left = mask = None
        if max_rows is None:
            first = loops.minimum(first, loops.sub(extent, lanes))
        else:
            rows_left = loops.minimum(loops.sub(extent, first), lanes)
        if columns is None:
            base = loops.minimum(base, loops.sub(width, lanes))
        else:
            columns_left = loops.minimum(loops.sub(width, base), lanes)
            mask = loops.mask(columns_left, lanes)

        last = loops.sub(extent, 1)
        indices = range(max_rows or lanes)
        row_indices = [loops.add(first, i) for i in indices]
        rows = [Uniform(p if rows_left is None else loops.minimum(p, last)) for p in row_indices]
        along_rows, column = (
            Ramp(loops.value(first), 1, 1, True),
            Ramp(loops.value(base), 1, 1, True),
        )
        tile = Tile(rows, along_rows, column, False, rows_left, columns_left, columns)
        self._rows(point, tile, indices if rows_left is None else indices[::-1], mask)

    def _rows(
        self, point: Point, tile: Tile, indices: Sequence[int], mask: ir.Value | None = None
    ) -> None:
        """Emits rows of a square, in the given order."""
        for i in indices:
            index: dict[int, IndexLane] = {
                **point.index, self.axis: tile.rows[i], self.lane_axis: tile.column,
            }  # fmt: skip
            self.row(Point(self.lanes, mask, index, tile=tile, row=i))
