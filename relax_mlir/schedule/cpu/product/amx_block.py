"""A block of a matrix product in tile registers: up to 32 rows of a panel along one block of k.

    sums = those of the previous block of k, or the initial values of rows, or zero
    for each 16 steps along k
      2 x 2 tiles of sums += 2 tiles of rows * 2 tiles of the panel

A lower tile of fewer than 16 rows is shifted up to overlap the upper one, and recomputes its rows:
tiles are only partly filled if there are fewer than 16 rows in all. A tail of fewer than 16 steps
reads a zero-padded copy of the panel, and rows that are padded likewise.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    and_,
    for_range,
    if_else,
    less,
    load,
    mod,
    mul,
    parallel_range,
    scratch,
    select,
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
COPIED_ROWS, MAX_COPIED = 16, 1 << 25
"""Rows of a copy that are worth a thread, and elements that are too many to copy."""


@contextmanager
def aligned_rows(matrix: Matrix) -> Iterator[Matrix]:
    """`matrix`, or a copy of it whose rows are aligned to cache lines if its own are not.

    Tiles of unaligned rows load twice as many lines. Rows have to be whole lines, a multiple of
    lines apart and contiguous along k. Matrices that are too large are not copied.
    """
    kind = ir.MemRefType(matrix.buffer.type)
    line = TILE_ROW_BYTES * 8 // kind.element_type.width
    rest = mod(address(matrix.buffer, matrix.offset), TILE_ROW_BYTES)
    size = mul(matrix.rows, matrix.row_stride)
    is_copied = and_(less(0, rest), less(size, MAX_COPIED))
    with scratch(select(is_copied, size, 0), kind.element_type) as copy:

        def row(i: ir.Value) -> None:
            begin, start = matrix.at(i, 0), mul(i, matrix.row_stride)

            def one(k: ir.Value) -> None:
                store(load(matrix.buffer, add(begin, k), line), copy, add(start, k))

            for_range(0, matrix.depth, line, one)

        parallel_range(select(is_copied, matrix.rows, 0), COPIED_ROWS, row)
        buffer = select(is_copied, memref.cast(kind, copy), matrix.buffer)
        yield replace(matrix, buffer=buffer, offset=select(is_copied, 0, matrix.offset))


@contextmanager
def tail_for(depth: Index, per_lane: int, element: ir.Type) -> Iterator[ir.Value | None]:
    """A buffer for the tail of a panel of `depth` steps, None if there never is one."""
    if isinstance(depth, int) and depth % LANES == 0:
        yield None
        return
    with scratch(COLUMNS * LANES * LANES * per_lane, element) as tail:
        yield tail


Begin = Callable[[int, Index, Index], None]
"""Loads the initial sums of a tile, given its index, first row, and the offset of its sums."""


@dataclass(frozen=True)
class TileBlock:
    """The products of a panel by instruction `name`; each 32-bit lane has `per_lane` of them.

    `tail` is the zero-padded copy of the panel's tail (`copy_tail`), None where there is none.
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
        offset: Index,
    ) -> None:
        """Emits the sums of `rows` by `columns` to `sums`, from `offset` on, in rows of a panel."""

        def tiles(tile_rows: int, tile_columns: int) -> None:
            _Tiles(self, left, rows, tile_rows, tile_columns, sums, offset).emit(begin)

        def width(tile_columns: int) -> None:
            if_else(
                less(rows, ROWS + 1), lambda: tiles(1, tile_columns), lambda: tiles(2, tile_columns)
            )

        if_else(less(columns, LANES + 1), lambda: width(1), lambda: width(COLUMNS))

    def copy_tail(self) -> None:
        """Emits the zero-padded copy of the panel's tail."""
        if self.tail is None:
            return
        tail, kind = self.tail, ir.MemRefType(self.tail.type)
        width = LANES * self.per_lane
        row_type = vector_type(width, kind.element_type)
        zero = ir.DenseElementsAttr.get_splat(row_type, zero_attr(kind.element_type))
        nothing = arith.constant(row_type, zero)
        rest = mod(self.depth, LANES)
        first = mul(sub(self.depth, rest), COLUMNS * width)

        def each(row: ir.Value, vectors: Callable[[Index], ir.Value]) -> None:
            for v in range(COLUMNS):
                at = add(mul(row, COLUMNS * width), v * width)
                store(vectors(at), tail, at)

        def copied(at: Index) -> ir.Value:
            return load(self.right.buffer, add(self.right.offset, first, at), width)

        for_range(0, rest, 1, lambda row: each(row, copied))
        for_range(rest, LANES, 1, lambda row: each(row, lambda _: nothing))


@dataclass(frozen=True)
class _Tiles:
    """`tile_rows` by `tile_columns` tiles of sums."""

    block: TileBlock
    left: Left
    rows: Index
    tile_rows: int
    tile_columns: int
    sums: ir.Value
    offset: Index

    def emit(self, begin: Begin) -> None:
        """Emits the initial sums, the loop over k, and the stores."""
        block, panel = self.block, self.block.right
        for row in range(self.tile_rows):
            for v in range(self.tile_columns):
                begin(COLUMNS * row + v, self._row(row), self._offset(row, v))
        full = sub(block.depth, mod(block.depth, LANES))
        for_range(0, full, LANES, lambda k: self._step(k, panel, k))
        if block.tail is not None:
            rest = Panel(block.tail, 0)
            if_else(less(full, block.depth), lambda: self._step(full, rest, 0))
        for row in range(self.tile_rows):
            for v in range(self.tile_columns):
                offset = pointer(self.sums, self._offset(row, v))
                store_tile(COLUMNS * row + v, offset, PANEL_ROW_BYTES)

    def _offset(self, row: int, v: int) -> Index:
        """Offset of a tile's sums."""
        return add(self.offset, mul(self._row(row), COLUMNS * LANES), v * LANES)

    def _row(self, row: int) -> Index:
        """The first row of a row of tiles."""
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

        for row in range(self.tile_rows):
            load_left(row)
            for v in range(self.tile_columns):
                if row == 0:
                    load_right(v)
                multiply_tiles(self.block.name, COLUMNS * row + v, LEFT[row], RIGHT[v])
