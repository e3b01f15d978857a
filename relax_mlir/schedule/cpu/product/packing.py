"""Copies blocks of matrices into the layouts that the matmul kernels read.

A block of the left side is copied row by row, so that one row follows another at a fixed distance
that is no multiple of a power of two (rows of a large matrix would fall into one cache set). A
block of the right side becomes a panel: for each k the `columns` values of one tile side by side.
"""

from collections.abc import Callable
from dataclasses import dataclass

from relax_mlir.bindings import ir, memref
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    ceil_div,
    choose,
    floor_div,
    for_range,
    less,
    load,
    mask,
    minimum,
    mod,
    mul,
    round_up,
    store,
    sub,
    value,
)
from relax_mlir.schedule.build.transposes import transpose
from relax_mlir.schedule.cpu.isa.multiply_add import MultiplyAdd, halves, interleave

LINE_BITS = 512
SQUARES_AHEAD = 8
"""How far ahead of the square that is transposed the rows are fetched."""
COPIED_AT_ONCE = 4
"""Vectors of a row that are copied in one step, without masks."""


@dataclass(frozen=True)
class Matrix:
    """Rows (of m or n) by k of a flat buffer.

    Element (row, k) is at `offset + row * row_stride + k * k_stride`; one stride is 1. `convert`
    turns loaded vectors into what is multiplied (see `multiply_add`); None where they are that.
    """

    buffer: ir.Value
    offset: Index
    row_stride: Index
    k_stride: Index
    rows: Index
    depth: Index
    convert: Callable[[ir.Value], ir.Value] | None = None

    @property
    def k_is_innermost(self) -> bool:
        """Whether neighbours in memory are neighbours along k."""
        return isinstance(self.k_stride, int) and self.k_stride == 1

    def at(self, row: Index, k: Index) -> Index:
        """Offset of an element."""
        return add(self.offset, mul(row, self.row_stride), mul(k, self.k_stride))

    def load(self, offset: Index, lanes: int, keep: ir.Value | None = None) -> ir.Value:
        """A vector to multiply with from an offset; lanes outside of `keep` are not read."""
        loaded = load(self.buffer, offset, lanes, keep)
        return self.convert(loaded) if self.convert else loaded

    def prefetch(self, offset: Index, count: int) -> None:
        """Fetches `count` elements from an offset into the L2 cache; they need not exist."""
        bits = ir.MemRefType(self.buffer.type).element_type.width
        for at in range(0, count, LINE_BITS // bits):
            memref.prefetch(self.buffer, [value(add(offset, at))], False, 2, True)


def copy_rows(
    source: Matrix,
    row: Index,
    rows: Index,
    k: Index,
    depth: Index,
    step: MultiplyAdd,
    target: ir.Value,
    start: Index,
    stride: Index,
) -> None:
    """Copies `rows` rows of `depth` steps, from step k on, to `target`.

    Row after row is at distance `stride`, and filled up with zeros to a multiple of the lanes; rows
    past the end of the source repeat its last one.
    """
    k = mul(k, step.per_lane)
    depth = minimum(mul(depth, step.per_lane), sub(source.depth, k))
    copy = _RowCopy(source, row, k, depth, step, target, start, stride)
    if source.k_is_innermost:
        last = sub(source.rows, 1)
        for_range(0, rows, 1, lambda i: copy.along_k(i, last))
    else:
        for_range(0, floor_div(add(rows, step.lanes - 1), step.lanes), 1, copy.along_rows)


@dataclass(frozen=True)
class _RowCopy:
    """What `copy_rows` copies; `k` and `depth` count numbers, not steps."""

    source: Matrix
    row: Index
    k: Index
    depth: Index
    step: MultiplyAdd
    target: ir.Value
    start: Index
    stride: Index

    def along_k(self, i: ir.Value, last: Index) -> None:
        """Copies row i, whose numbers are neighbours; `last` is the last row that there is."""
        source, lanes = self.source, self.step.lanes
        begin = source.at(minimum(add(self.row, i), last), self.k)
        to = add(self.start, mul(i, self.stride))

        def copy(j: ir.Value, keep: ir.Value | None = None) -> None:
            loaded = source.load(add(begin, j), lanes, keep)
            packed = self.step.pack(loaded)
            store(packed, self.target, add(to, floor_div(j, self.step.per_lane)))

        def several(j: ir.Value) -> None:
            for part in range(COPIED_AT_ONCE):
                copy(value(add(j, part * lanes)))

        full = sub(self.depth, mod(self.depth, COPIED_AT_ONCE * lanes))
        for_range(0, full, COPIED_AT_ONCE * lanes, several)
        for_range(full, self._filled, lanes, lambda j: copy(j, mask(sub(self.depth, j), lanes)))

    def along_rows(self, block: ir.Value) -> None:
        """Copies as many rows as there are lanes, which are neighbours."""
        source, step, lanes = self.source, self.step, self.step.lanes

        def squares(j: ir.Value) -> None:
            begin = mul(block, lanes)
            count = sub(source.rows, add(self.row, begin))
            limit = sub(source.depth, 1)

            def column(i: int) -> ir.Value:
                at = add(self.k, j, i)
                there = choose(less(at, source.depth), value(count), value(0))
                first = source.at(add(self.row, begin), minimum(at, limit))
                return source.load(first, lanes, mask(there, lanes))

            vectors = [column(i) for i in range(lanes)]
            for i, v in enumerate(transpose(vectors)):
                to = add(self.start, mul(add(begin, i), self.stride), floor_div(j, step.per_lane))
                store(step.pack(v), self.target, to)

        for_range(0, self._filled, lanes, squares)

    @property
    def _filled(self) -> Index:
        """The numbers of a row together with the zeros behind them."""
        return round_up(self.depth, self.step.lanes * self.step.per_lane)


def copy_panel(
    source: Matrix,
    row: Index,
    k: Index,
    depth: Index,
    lanes: int,
    vectors: int,
    target: ir.Value,
    start: Index,
    pairs: bool = False,
) -> None:
    """Copies `vectors * lanes` rows of `depth` steps, from step k on, to `target` as a panel.

    The panel is `depth` rounded up to `lanes` deep. What lies past the last row of the source
    is unspecified: no kernel stores what it computes from that. With `pairs`, a step is a pair of
    bf16 numbers, and a last pair of one number gets a zero.
    """
    copy = _PanelCopy(source, row, k, vectors, MultiplyAdd(lanes, pairs), target, start)
    copy.from_rows(depth) if source.k_is_innermost else copy.from_columns(depth)


def widen_panel(
    source: Matrix,
    panel: Index,
    k: Index,
    depth: Index,
    lanes: int,
    vectors: int,
    target: ir.Value,
) -> None:
    """Copies a panel of pairs of bf16 numbers, from number k on, which is even, as f32 numbers.

    `target` gets `depth` steps of `vectors * lanes` numbers, or one more if that is odd.
    """
    begin, columns = source.at(panel, floor_div(k, 2)), vectors * lanes

    def step(pair: ir.Value) -> None:
        at = mul(pair, 2 * columns)
        for v in range(vectors):
            loaded = load(source.buffer, add(begin, at, 2 * v * lanes), 2 * lanes)
            for number, x in enumerate(halves(loaded)):
                store(x, target, add(at, number * columns + v * lanes))

    for_range(0, ceil_div(depth, 2), 1, step)


@dataclass(frozen=True)
class _PanelCopy:
    """What `copy_panel` copies; a vector is `width` numbers of the panel."""

    source: Matrix
    row: Index
    k: Index
    vectors: int
    step: MultiplyAdd
    target: ir.Value
    start: Index

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return self.step.lanes * self.step.per_lane

    def from_columns(self, depth: Index) -> None:
        """Copies rows that are neighbours, step by step."""
        source, step, lanes = self.source, self.step, self.step.lanes
        left = [sub(source.rows, add(self.row, v * lanes)) for v in range(self.vectors)]

        def one(j: ir.Value) -> None:
            to = add(self.start, mul(j, self.vectors * self.width))
            at = mul(add(self.k, j), step.per_lane)
            for v in range(self.vectors):
                parts = []
                for part in range(step.per_lane):
                    inside = less(add(at, part), source.depth)
                    count = choose(inside, value(left[v]), value(0)) if part else left[v]
                    begin = add(source.at(self.row, add(at, part)), v * lanes)
                    parts.append(source.load(begin, lanes, mask(count, lanes)))
                for half, x in enumerate(interleave(*parts) if step.pairs else parts):
                    store(x, self.target, add(to, v * self.width + half * lanes))

        for_range(0, depth, 1, one)

    def from_rows(self, depth: Index) -> None:
        """Copies rows whose steps are neighbours, by squares that are transposed."""
        source, step, lanes, width = self.source, self.step, self.step.lanes, self.width
        last = sub(source.rows, 1)

        def strip(v: ir.Value) -> None:
            at = add(self.row, mul(v, lanes))
            first = mul(self.k, step.per_lane)
            begins = [source.at(minimum(add(at, i), last), first) for i in range(lanes)]
            to = add(self.start, mul(v, width))

            def square(j: ir.Value) -> None:
                keep = mask(sub(source.depth, add(first, mul(j, step.per_lane))), width)
                loaded = [source.load(add(b, mul(j, step.per_lane)), width, keep) for b in begins]
                for b in begins:
                    ahead = add(b, mul(j, step.per_lane), SQUARES_AHEAD * width)
                    source.prefetch(ahead, width)
                for i, column in enumerate(transpose([step.pack(x) for x in loaded])):
                    place = add(to, mul(add(j, i), self.vectors * width))
                    store(step.unpack(column), self.target, place)

            for_range(0, depth, lanes, square)

        for_range(0, self.vectors, 1, strip)
