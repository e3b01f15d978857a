"""Copies blocks of matrices into the layouts that the matmul kernels read.

A block of the left side is copied row by row, so that one row follows another at a fixed distance
that is no multiple of a power of two (rows of a large matrix would fall into one cache set). A
block of the right side becomes a panel: for each k the `columns` values of one tile side by side.
"""

from collections.abc import Callable
from dataclasses import dataclass

from relax_mlir.bindings import ir, vector

from .loops import (
    Index,
    add,
    floor_div,
    for_range,
    load,
    mask,
    minimum,
    mod,
    mul,
    store,
    sub,
)
from .multiply_add import MultiplyAdd

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


def transpose(rows: list[ir.Value]) -> list[ir.Value]:
    """The transpose of a square of vectors, by swapping ever smaller off-diagonal blocks."""
    lanes = len(rows)
    distance = lanes // 2
    while distance:
        low = [j if not j & distance else j - distance + lanes for j in range(lanes)]
        high = [j + distance if not j & distance else j + lanes for j in range(lanes)]
        swapped = list(rows)
        for i in range(lanes):
            if not i & distance:
                pair = rows[i], rows[i + distance]
                swapped[i] = vector.shuffle(*pair, low)
                swapped[i + distance] = vector.shuffle(*pair, high)
        rows = swapped
        distance //= 2
    return rows


def copy_rows(
    source: Matrix,
    row: Index,
    rows: Index,
    k: Index,
    depth: Index,
    step: MultiplyAdd,
    target: ir.Value,
    start: Index,
    stride: int,
) -> None:
    """Copies `rows` rows of `depth` steps, from step k on, to `target`.

    Row after row is at distance `stride`, and filled up to a multiple of the vectors; rows past
    the end of the source repeat its last one.
    """
    lanes = step.lanes
    k, depth = mul(k, step.per_lane), mul(depth, step.per_lane)
    last = sub(source.rows, 1)

    def along_k(i: ir.Value) -> None:
        begin = source.at(minimum(add(row, i), last), k)
        to = add(start, mul(i, stride))

        def copy(j: ir.Value, keep: ir.Value | None = None) -> None:
            loaded = source.load(add(begin, j), lanes, keep)
            store(step.pack(loaded), target, add(to, floor_div(j, step.per_lane)))

        def several(j: ir.Value) -> None:
            for part in range(COPIED_AT_ONCE):
                copy(add(j, part * lanes))

        full = sub(depth, mod(depth, COPIED_AT_ONCE * lanes))
        for_range(0, full, COPIED_AT_ONCE * lanes, several)
        for_range(full, depth, lanes, lambda j: copy(j, mask(sub(depth, j), lanes)))

    def along_rows(block: ir.Value) -> None:
        def squares(j: ir.Value) -> None:
            begin = mul(block, lanes)
            keep = mask(sub(source.rows, add(row, begin)), lanes)
            limit = sub(source.depth, 1)
            vectors = [
                source.load(source.at(add(row, begin), minimum(add(k, j, i), limit)), lanes, keep)
                for i in range(lanes)
            ]
            for i, v in enumerate(transpose(vectors)):
                at = add(start, mul(add(begin, i), stride), floor_div(j, step.per_lane))
                store(step.pack(v), target, at)

        for_range(0, depth, lanes, squares)

    if source.k_is_innermost:
        for_range(0, rows, 1, along_k)
    else:
        for_range(0, floor_div(add(rows, lanes - 1), lanes), 1, along_rows)


def copy_panel(
    source: Matrix,
    row: Index,
    k: Index,
    depth: Index,
    lanes: int,
    vectors: int,
    target: ir.Value,
    start: Index,
) -> None:
    """Copies `vectors * lanes` rows of `depth` values to `target` as a panel.

    The panel is `depth` rounded up to `lanes` deep. What lies past the last row of the source
    is unspecified: no kernel stores what it computes from that.
    """
    columns = vectors * lanes

    def from_columns() -> None:
        keeps = [mask(sub(source.rows, add(row, v * lanes)), lanes) for v in range(vectors)]

        def one(j: ir.Value) -> None:
            begin = source.at(row, add(k, j))
            for v in range(vectors):
                loaded = source.load(add(begin, v * lanes), lanes, keeps[v])
                store(loaded, target, add(start, mul(j, columns), v * lanes))

        for_range(0, depth, 1, one)

    def from_rows() -> None:
        last = sub(source.rows, 1)

        def strip(v: ir.Value) -> None:
            at = add(row, mul(v, lanes))
            begins = [source.at(minimum(add(at, i), last), k) for i in range(lanes)]
            to = add(start, mul(v, lanes))

            def square(j: ir.Value) -> None:
                keep = mask(sub(depth, j), lanes)
                loaded = [source.load(add(b, j), lanes, keep) for b in begins]
                for i, column in enumerate(transpose(loaded)):
                    store(column, target, add(to, mul(add(j, i), columns)))

            for_range(0, depth, lanes, square)

        for_range(0, vectors, 1, strip)

    from_rows() if source.k_is_innermost else from_columns()
