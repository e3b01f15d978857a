"""A few rows times a computed right side: each vector is computed once, and never stored.

lanes along columns     for each k:          sums[row, columns] += left[row, k] * g(k, columns)
lanes along k           for vectors of k:    sums[row, column] += left[row, k] . g(k, column)
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product

from relax_mlir.bindings import ir, memref
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    least_fitting,
    less,
    mask,
    minimum,
    mod,
    mul,
    parallel_range,
    scratch,
    store,
    sub,
    value,
)
from relax_mlir.schedule.cpu.blocking import Blocking

from .computed_operand import ComputedSide, tail_of
from .few_rows import add_across, left_rows
from .packing import Matrix
from .product import Product
from .row_starts import RowStarts

MAX_VECTORS = 8
"""Vectors of columns that one row is multiplied with at a time."""
MAX_TOGETHER = 4
"""Vectors of steps along k that are computed together."""
MAX_SUMS = 16
"""Vectors of sums."""


def emit_computed_rows(
    blocking: Blocking, problem: Product, side: ComputedSide, max_rows: int
) -> None:
    """Emits the loop over strips of columns, each one task; there are 1 to `max_rows` rows."""
    width = MAX_VECTORS * blocking.lanes
    strips = ceil_div(problem.columns, width)
    heights = [1 << i for i in range((max_rows - 1).bit_length() + 1)]
    with ExitStack() as outer:
        left = left_rows(blocking, problem, outer)

        def task(index: ir.Value) -> None:
            batch_at = floor_div(index, strips)
            batch = problem.batch_index(batch_at)
            column = mul(mod(index, strips), width)
            columns = minimum(sub(problem.columns, column), width)
            with scratch(heights[-1] * width, problem.step.total) as sums:
                rows, starts = left(batch_at, batch)
                strip = _Strip(blocking, side, batch, rows, starts, column, columns, sums)
                least_fitting(problem.rows, heights, strip.emit)
                problem.epilogue(Block(batch, 0, problem.rows, column, columns, (sums,), width))

        parallel_range(mul(problem.batch_size, strips), 1, task)


@dataclass(frozen=True)
class _Strip:
    """The rows times a strip of columns; rows beyond the last one repeat it."""

    blocking: Blocking
    side: ComputedSide
    batch: Sequence[Index]
    lhs: Matrix
    starts: RowStarts
    column: Index
    columns: Index
    sums: ir.Value

    def emit(self, height: int) -> None:
        """Emits the sums of `height` rows."""
        last = sub(self.lhs.rows, 1)
        rows = [minimum(row, last) for row in range(height)]
        self._along_depth(rows) if self.side.product.along_depth else self._along_columns(rows)

    @property
    def _pitch(self) -> int:
        """The distance between rows of the sums."""
        return MAX_VECTORS * self.blocking.lanes

    def _along_columns(self, rows: Sequence[Index]) -> None:
        """For lanes along columns, several vectors at a time."""
        vectors, lanes = min(MAX_VECTORS, MAX_SUMS // len(rows)), self.blocking.lanes
        together = self.side.together(vectors)

        def block(j: ir.Value, is_whole: bool) -> None:
            begins = [
                tail_of(self.side, add(self.column, j, v * lanes), together, is_whole)
                for v in range(0, vectors, together)
            ]

            def along(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                factors = [
                    broadcast(memref.load(self.lhs.buffer, [value(self.lhs.at(row, k))]), lanes)
                    for row in rows
                ]
                result = list(sums)
                rights = [
                    right
                    for at, keep in begins
                    for right in self.side.along_columns(self.batch, at, k, keep, together)
                ]
                for n, (left, right) in enumerate(product(factors, rights)):
                    result[n] = self.side.step(left, right, result[n])
                return result

            initial = [self.starts.load(row) for row in rows for _ in range(vectors)]
            totals = for_range(0, self.lhs.depth, 1, along, initial)
            for n, total in enumerate(totals):
                r, v = divmod(n, vectors)
                store(total, self.sums, add(j, r * self._pitch + v * lanes))

        self._blocks(vectors * lanes, block)

    def _blocks(self, width: int, emit: Callable[[ir.Value, bool], None]) -> None:
        """Emits blocks of the strip, of whole vectors if all columns exist."""
        if_else(
            less(add(self.column, self._pitch - 1), self.side.columns),
            lambda: for_range(0, self.columns, width, lambda j: emit(j, True)),
            lambda: for_range(0, self.columns, width, lambda j: emit(j, False)),
        )

    def _along_depth(self, rows: Sequence[Index]) -> None:
        """For lanes along k, several columns at a time."""
        step, depth = self.side.step, self.lhs.depth
        lanes, together = self.blocking.lanes, self.side.together(MAX_TOGETHER)
        width = lanes * together
        count = min(self.blocking.family.few_rows.columns_at_once, lanes, MAX_SUMS // len(rows))
        last = sub(self.side.columns, 1)

        def block(j: ir.Value) -> None:
            columns = [minimum(add(self.column, j, c), last) for c in range(count)]

            def along(k: Index, sums: Sequence[ir.Value], is_whole: bool) -> list[ir.Value]:
                result = list(sums)
                some = None if is_whole else mask(sub(depth, k), width)
                offsets = [add(k, u * lanes) for u in range(together)]
                keeps = [None if is_whole else mask(sub(depth, at), lanes) for at in offsets]
                for c, column in enumerate(columns):
                    rights = self.side.along_depth(self.batch, column, k, some, together)
                    for right, at, keep in zip(rights, offsets, keeps, strict=True):
                        for r, row in enumerate(rows):
                            left = self.lhs.load(self.lhs.at(row, at), lanes, keep)
                            n = r * count + c
                            result[n] = step(left, right, result[n])
                return result

            full = sub(depth, mod(depth, width))
            zeros = [step.splat(0)] * (count * len(rows))
            sums = for_range(0, full, width, lambda k, *sums: along(k, sums, True), zeros)
            sums = for_range(full, depth, width, lambda k, *sums: along(k, sums, False), sums)
            for r, row in enumerate(rows):
                own = sums[r * count : (r + 1) * count]
                total = step.add(self.starts.load(row, count), add_across(own, step.add))
                store(total, self.sums, add(j, r * self._pitch))

        for_range(0, self.columns, count, block)
