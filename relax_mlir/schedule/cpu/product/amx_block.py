"""A block of a matrix product in tile registers: up to 32 rows of a panel along one block of k.

    sums = those of the block of k before, or what rows begin with, or zero
    for each 16 steps along k
      2 x 2 tiles of sums += 2 tiles of rows * 2 tiles of the panel

A lower tile of less than 16 rows is moved up over the tile above it, whose rows it computes again:
tiles are never partly filled unless there are fewer rows than that in all. A last stretch of less
than 16 steps reads the panel from a copy that zeros fill up, and rows that are filled up likewise.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    both,
    choose,
    for_range,
    if_else,
    less,
    load,
    mod,
    mul,
    parallel_range,
    pick,
    scratch,
    store,
    sub,
    vector_type,
    zero_attr,
)
from relax_mlir.schedule.cpu.isa.amx import (
    LANE_BYTES,
    LANES,
    LEFT,
    RIGHT,
    ROWS,
    load_tile,
    multiply_tiles,
    store_tile,
)
from relax_mlir.schedule.cpu.isa.pointers import address, pointer

from .micro_kernel import Left, Panel
from .packing import Matrix

COLUMNS = 2
"""Tiles across a panel."""
TILE_ROW_BYTES = LANES * LANE_BYTES
PANEL_ROW_BYTES = COLUMNS * TILE_ROW_BYTES
BLOCK_ROWS = 2 * ROWS
"""Rows of a block."""
COPIED_ROWS, MOST_COPIED = 16, 1 << 25
"""Rows of a copy that are worth a thread, and numbers that are not worth one."""


@contextmanager
def aligned_rows(matrix: Matrix) -> Iterator[Matrix]:
    """Rows that begin with cache lines: `matrix`, or a copy if its rows begin within lines.

    Tiles of rows that lie across lines load twice as many of them. Rows are to be whole lines, a
    number of lines apart, with neighbours along k; too many of them stay where they are.
    """
    kind = ir.MemRefType(matrix.buffer.type)
    line = TILE_ROW_BYTES * 8 // kind.element_type.width
    rest = mod(address(matrix.buffer, matrix.offset), TILE_ROW_BYTES)
    size = mul(matrix.rows, matrix.row_stride)
    is_copied = both(less(0, rest), less(size, MOST_COPIED))
    with scratch(pick(is_copied, size, 0), kind.element_type) as copy:

        def row(i: ir.Value) -> None:
            begin, start = matrix.at(i, 0), mul(i, matrix.row_stride)

            def one(k: ir.Value) -> None:
                store(load(matrix.buffer, add(begin, k), line), copy, add(start, k))

            for_range(0, matrix.depth, line, one)

        parallel_range(pick(is_copied, matrix.rows, 0), COPIED_ROWS, row)
        buffer = choose(is_copied, memref.cast(kind, copy), matrix.buffer)
        yield replace(matrix, buffer=buffer, offset=pick(is_copied, 0, matrix.offset))


@contextmanager
def tail_for(depth: Index, per_lane: int, element: ir.Type) -> Iterator[ir.Value | None]:
    """Room for the last stretch of a panel of `depth` steps, None if there never is one."""
    if isinstance(depth, int) and depth % LANES == 0:
        yield None
        return
    with scratch(COLUMNS * LANES * LANES * per_lane, element) as tail:
        yield tail


Begin = Callable[[int, Index, Index], None]
"""Loads what a tile begins with, by its number, its first row, and where its sums are kept."""


@dataclass(frozen=True)
class TileBlock:
    """The products of a panel by instruction `name`; a number of 32 bits has `per_lane` of them.

    `tail` is the copy of a last stretch of the panel (`copy_tail`), None where there is none.
    """

    name: str
    per_lane: int
    depth: Index
    right: Panel
    tail: ir.Value | None

    def emit(
        self,
        left: Left,
        rows: Index,
        columns: Index,
        begin: Begin,
        sums: ir.Value,
        place: Index,
    ) -> None:
        """Emits the sums of `rows` by `columns` into `sums`, from an element on, in panel rows."""

        def tiles(high: int, wide: int) -> None:
            _Tiles(self, left, rows, high, wide, sums, place).emit(begin)

        def width(wide: int) -> None:
            if_else(less(rows, ROWS + 1), lambda: tiles(1, wide), lambda: tiles(2, wide))

        if_else(less(columns, LANES + 1), lambda: width(1), lambda: width(COLUMNS))

    def copy_tail(self) -> None:
        """Emits the copy of the last stretch of the panel."""
        if self.tail is None:
            return
        tail, kind = self.tail, ir.MemRefType(self.tail.type)
        width = LANES * self.per_lane
        row_type = vector_type(width, kind.element_type)
        zero = ir.DenseElementsAttr.get_splat(row_type, zero_attr(kind.element_type))
        nothing = arith.constant(row_type, zero)
        rest = mod(self.depth, LANES)
        first = mul(sub(self.depth, rest), COLUMNS * width)

        def each(row: ir.Value, numbers: Callable[[Index], ir.Value]) -> None:
            for v in range(COLUMNS):
                at = add(mul(row, COLUMNS * width), v * width)
                store(numbers(at), tail, at)

        def copied(at: Index) -> ir.Value:
            return load(self.right.buffer, add(self.right.offset, first, at), width)

        for_range(0, rest, 1, lambda row: each(row, copied))
        for_range(rest, LANES, 1, lambda row: each(row, lambda _: nothing))


@dataclass(frozen=True)
class _Tiles:
    """`high` by `wide` tiles of sums."""

    block: TileBlock
    left: Left
    rows: Index
    high: int
    wide: int
    sums: ir.Value
    place: Index

    def emit(self, begin: Begin) -> None:
        """Emits what sums begin with, the loop over k, and where they go."""
        block, panel = self.block, self.block.right
        for row in range(self.high):
            for v in range(self.wide):
                begin(COLUMNS * row + v, self._row(row), self._place(row, v))
        full = sub(block.depth, mod(block.depth, LANES))
        for_range(0, full, LANES, lambda k: self._step(k, panel, k))
        if block.tail is not None:
            rest = Panel(block.tail, 0)
            if_else(less(full, block.depth), lambda: self._step(full, rest, 0))
        for row in range(self.high):
            for v in range(self.wide):
                place = pointer(self.sums, self._place(row, v))
                store_tile(COLUMNS * row + v, place, PANEL_ROW_BYTES)

    def _place(self, row: int, v: int) -> Index:
        """Where a tile's sums are kept."""
        return add(self.place, mul(self._row(row), COLUMNS * LANES), v * LANES)

    def _row(self, row: int) -> Index:
        """The row of the block that a row of tiles begins with."""
        return sub(self.rows, ROWS) if row else 0

    def _step(self, k: Index, panel: Panel, panel_k: Index) -> None:
        """Adds the products of 16 steps along k."""
        left, width = self.left, LANES * self.block.per_lane
        left_bytes = ir.MemRefType(left.buffer.type).element_type.width // 8

        def load_right(v: int) -> None:
            at = add(panel.offset, mul(panel_k, COLUMNS * width), v * width)
            load_tile(RIGHT[v], pointer(panel.buffer, at), PANEL_ROW_BYTES)

        def load_left(row: int) -> None:
            at = add(left.offset, mul(self._row(row), left.stride), mul(k, left.pitch))
            load_tile(LEFT[row], pointer(left.buffer, at), left.stride * left_bytes)

        for row in range(self.high):
            load_left(row)
            for v in range(self.wide):
                if row == 0:
                    load_right(v)
                multiply_tiles(self.block.name, COLUMNS * row + v, LEFT[row], RIGHT[v])
