"""Packs blocks of matrices into the layouts that micro-kernels read.

A block of the left side is copied row by row to rows whose distance is an odd number of cache
lines, since the rows of a large matrix may map to one cache set. A block of the right side becomes
a panel: for each step along k the elements, or groups of them, of all columns of a register block.
Rows of the left side are padded with zeros along k, so the padding of panels is arbitrary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from relax_mlir.bindings import ir, memref, vector
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    less,
    load,
    mask,
    minimum,
    mod,
    mul,
    round_up,
    select,
    store,
    sub,
    value,
)
from relax_mlir.schedule.build.transposes import transpose
from relax_mlir.schedule.cpu.isa.multiply_add import halves
from relax_mlir.schedule.cpu.isa.step import Step

LINE_BITS = 512
PREFETCHED_SQUARES = 8
"""Prefetch distance of rows, in squares that are transposed."""
COPIED_AT_ONCE = 4
"""Vectors of a row that are copied in one iteration, without masks."""


@dataclass(frozen=True)
class Matrix:
    """Rows (of m or n) by k of a flat buffer.

    Element (row, k) is at `offset + row * row_stride + k * k_stride`; one stride is 1. `convert`
    turns loaded vectors into the factors of a `Step`; None where they are that already.
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
        """Whether the matrix is contiguous along k."""
        return isinstance(self.k_stride, int) and self.k_stride == 1

    def at(self, row: Index, k: Index) -> Index:
        """Offset of an element."""
        return add(self.offset, mul(row, self.row_stride), mul(k, self.k_stride))

    def load(self, offset: Index, lanes: int, keep: ir.Value | None = None) -> ir.Value:
        """A vector of factors from `offset` on; lanes outside of the mask `keep` are not read."""
        loaded = load(self.buffer, offset, lanes, keep)
        return self.convert(loaded) if self.convert else loaded

    def prefetch(self, offset: Index, count: int) -> None:
        """Prefetches `count` elements from `offset` on into the L2 cache; they need not exist."""
        bits = ir.MemRefType(self.buffer.type).element_type.width
        for at in range(0, count, LINE_BITS // bits):
            memref.prefetch(self.buffer, [value(add(offset, at))], False, 2, True)


class RowSums(Protocol):
    """Receives the sums of the rows of the left side while they are packed."""

    def begin(self) -> list[ir.Value]:
        """The initial values of the sums."""

    def add_up(self, packed: ir.Value, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums after adding packed elements of a row, lane by lane."""

    def finish(self, sums: Sequence[ir.Value], row: Index) -> None:
        """Takes the sums of a row, whose lanes are still to be reduced."""

    def finish_rows(self, sums: Sequence[ir.Value], row: Index, lanes: int) -> None:
        """Takes the sums of `lanes` rows from `row` on, one in each lane."""


class NoSums:
    """No sums are computed."""

    def begin(self) -> list[ir.Value]:
        """See `RowSums`."""
        return []

    def add_up(self, packed: ir.Value, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """See `RowSums`."""
        return []

    def finish(self, sums: Sequence[ir.Value], row: Index) -> None:
        """See `RowSums`."""

    def finish_rows(self, sums: Sequence[ir.Value], row: Index, lanes: int) -> None:
        """See `RowSums`."""


NO_SUMS = NoSums()


@dataclass(frozen=True)
class RowCopy:
    """The destination of rows of the left side, in blocks of `k_block` steps along k.

    Step k of row r is at `target[start + (k // k_block) * pitch + r * stride + k % k_block]`. Each
    row of a block is padded with zeros to a multiple of the lanes.
    """

    step: Step
    target: ir.Value
    start: Index
    stride: Index
    k_block: Index
    k_blocks: Index = 1
    pitch: Index = 0
    sums: RowSums = NO_SUMS

    def copy(self, source: Matrix, row: Index, rows: Index) -> None:
        """Copies `rows` rows from `row` on; rows past the end of the source repeat its last one.

        A source that is contiguous along rows is copied in whole vectors of rows.
        """
        if source.k_is_innermost:
            for_range(0, rows, 1, lambda i: self._row(source, row, i))
        else:
            lanes = self.step.lanes
            for_range(0, ceil_div(rows, lanes), 1, lambda i: self._rows(source, row, mul(i, lanes)))

    def _row(self, source: Matrix, row: Index, i: ir.Value) -> None:
        """Copies row `row + i`, which is contiguous."""
        step, width = self.step, self.step.copied
        begin = source.at(minimum(add(row, i), sub(source.rows, 1)), 0)
        start = add(self.start, mul(i, self.stride))

        def block(kb: Index, *sums: ir.Value) -> list[ir.Value]:
            first = mul(kb, self.k_block, step.group)
            depth = minimum(mul(self.k_block, step.group), sub(source.depth, first))
            to = add(start, mul(kb, self.pitch))

            def copy(
                j: Index, sums: Sequence[ir.Value], keep: ir.Value | None = None
            ) -> list[ir.Value]:
                packed = step.pack(source.load(add(begin, first, j), width, keep))
                store(packed, self.target, add(to, floor_div(j, step.group)))
                return self.sums.add_up(packed, sums)

            def several(j: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                for part in range(COPIED_AT_ONCE):
                    sums = tuple(copy(add(j, part * width), sums))
                return list(sums)

            def last(j: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                return copy(j, sums, mask(sub(depth, j), width))

            full = sub(depth, mod(depth, COPIED_AT_ONCE * width))
            result = for_range(0, full, COPIED_AT_ONCE * width, several, sums)
            whole = sub(depth, mod(depth, width))
            result = for_range(full, whole, width, lambda j, *sums: copy(j, sums), result)
            return for_range(whole, round_up(depth, step.width), width, last, result)

        sums = for_range(0, self.k_blocks, 1, block, self.sums.begin())
        self.sums.finish(sums, i)

    def _rows(self, source: Matrix, row: Index, begin: Index) -> None:
        """Copies `lanes` rows from `row + begin` on, of a source that is [k, rows]."""
        step, lanes = self.step, self.step.lanes
        start = add(self.start, mul(begin, self.stride))

        def block(kb: Index, *sums: ir.Value) -> list[ir.Value]:
            first = mul(kb, self.k_block)
            depth = minimum(self.k_block, sub(ceil_div(source.depth, step.group), first))
            to = add(start, mul(kb, self.pitch))

            def square(j: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                columns, result = [], list(sums)
                for i in range(lanes):
                    group = _across(step, source, add(row, begin), add(first, j, i), True)
                    columns.append(step.pack(group))
                    result = self.sums.add_up(columns[-1], result)
                for i, x in enumerate(transpose(columns)):
                    store(x, self.target, add(to, mul(i, self.stride), j))
                return result

            return for_range(0, depth, lanes, square, sums)

        sums = for_range(0, self.k_blocks, 1, block, self.sums.begin())
        self.sums.finish_rows(sums, begin, lanes)


def copy_panel(
    step: Step,
    source: Matrix,
    row: Index,
    k: Index,
    depth: Index,
    vectors: int,
    target: ir.Value,
    start: Index = 0,
) -> None:
    """Packs `vectors * lanes` rows of `depth` steps, from step k on, into a panel at `target`.

    The panel has `depth` steps, rounded up to `lanes`. Columns beyond the last row of the source
    are arbitrary: what is computed from them is never stored.
    """
    copy = _PanelCopy(step, source, row, k, vectors, target, start)
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
    """Widens a panel of pairs of bf16 elements to f32, from element k on, which is even.

    `target` gets `depth` steps of `vectors * lanes` elements, rounded up to an even number.
    """
    begin, columns = source.at(panel, floor_div(k, 2)), vectors * lanes

    def step(pair: ir.Value) -> None:
        at = mul(pair, 2 * columns)
        for v in range(vectors):
            loaded = load(source.buffer, add(begin, at, 2 * v * lanes), 2 * lanes)
            for i, x in enumerate(halves(loaded)):
                store(x, target, add(at, i * columns + v * lanes))

    for_range(0, ceil_div(depth, 2), 1, step)


@dataclass(frozen=True)
class _PanelCopy:
    """A call of `copy_panel`."""

    step: Step
    source: Matrix
    row: Index
    k: Index
    vectors: int
    target: ir.Value
    start: Index

    def _offset(self, j: Index, v: Index) -> Index:
        """Offset of vector `v` of step `j` of the panel."""
        return add(self.start, mul(add(mul(j, self.vectors), v), self.step.width))

    def from_columns(self, depth: Index) -> None:
        """Copies a source that is contiguous along rows, step by step."""
        source, step, lanes = self.source, self.step, self.step.lanes

        def one(j: ir.Value, keep: bool) -> None:
            for v in range(self.vectors):
                x = _across(step, source, add(self.row, v * lanes), add(self.k, j), keep)
                store(x, self.target, self._offset(j, v))

        # Masks only at the ends of rows and k: some machines take a branch for each masked lane.
        is_whole = less(add(self.row, self.vectors * lanes - 1), source.rows)
        inside = minimum(depth, sub(floor_div(source.depth, step.group), self.k))
        full = select(is_whole, inside, 0)
        for_range(0, full, 1, lambda j: one(j, False))
        for_range(full, depth, 1, lambda j: one(j, True))

    def from_rows(self, depth: Index) -> None:
        """Copies a source that is contiguous along k, by transposing squares in registers."""
        source, step, lanes, width = self.source, self.step, self.step.lanes, self.step.width
        last = sub(source.rows, 1)
        first = mul(self.k, step.group)
        end = minimum(mul(depth, step.group), sub(source.depth, first))

        def strip(v: ir.Value) -> None:
            at = add(self.row, mul(v, lanes))
            begins = [source.at(minimum(add(at, i), last), first) for i in range(lanes)]

            def square(j: Index, keep: ir.Value | None = None) -> None:
                loaded = [source.load(add(b, j), width, keep) for b in begins]
                for b in begins:
                    source.prefetch(add(b, j, PREFETCHED_SQUARES * width), width)
                for i, x in enumerate(transpose([step.groups(x) for x in loaded])):
                    offset = self._offset(add(floor_div(j, step.group), i), v)
                    store(step.ungrouped(x), self.target, offset)

            if step.has_masks:
                for_range(0, end, width, lambda j: square(j, mask(sub(end, j), width)))
                return
            full = sub(end, mod(end, width))
            for_range(0, full, width, square)
            if_else(less(full, end), lambda: square(full, mask(sub(end, full), width)))

        for_range(0, self.vectors, 1, strip)


def _across(step: Step, source: Matrix, row: Index, k: Index, keep: bool) -> ir.Value:
    """Step k of `lanes` contiguous rows; with `keep`, rows and k beyond the source are masked."""
    parts = []
    for i in range(step.group):
        at, some = add(mul(k, step.group), i), None
        if keep:
            count = select(less(at, source.depth), value(sub(source.rows, row)), value(0))
            some = mask(count, step.lanes)
            at = minimum(at, sub(source.depth, 1))
        parts.append(source.load(source.at(row, at), step.lanes, some))
    return _interleaved(parts)


def _interleaved(parts: list[ir.Value]) -> ir.Value:
    """Vectors a, b, .. as a[0], b[0], .., a[1], b[1], .."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [_zipped(parts[i], parts[i + half]) for i in range(half)]
    return parts[0]


def _zipped(first: ir.Value, second: ir.Value) -> ir.Value:
    count = ir.VectorType(first.type).shape[0]
    order = [x for i in range(count) for x in (i, count + i)]
    return vector.shuffle(first, second, order)
