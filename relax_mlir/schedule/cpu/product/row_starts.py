"""Initial values of the sums of rows: a constant, plus a multiple of the sum of the left row.

The multiple corrects for the bias that some instructions need on 8-bit elements of the right side.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, vector
from relax_mlir.schedule.build.loops import Index, add, broadcast, load, mul, splat_of, store
from relax_mlir.schedule.cpu.isa.step import Step


@dataclass(frozen=True)
class RowStarts:
    """The initial value of each row: `initial + factor * sum of the row`, in every lane.

    That of row r is at `lanes * (first + r)` of the buffer; without a buffer it is a constant.
    """

    step: Step
    initial: float
    factor: int
    buffer: ir.Value | None
    first: Index = 0

    def begin(self) -> list[ir.Value]:
        """See `RowSums`."""
        return [self.step.splat(0)] if self.factor else []

    def add_up(self, packed: ir.Value, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """See `RowSums`."""
        return [self.step.add_up(packed, x) for x in sums]

    def finish(self, sums: Sequence[ir.Value], row: Index) -> None:
        """See `RowSums`."""
        totals = [vector.reduction(self.step.total, vector.CombiningKind.ADD, x) for x in sums]
        self._store([broadcast(x, self.step.lanes) for x in totals], row)

    def finish_rows(self, sums: Sequence[ir.Value], row: Index, lanes: int) -> None:
        """See `RowSums`."""
        for i in range(lanes):
            self._store([vector.shuffle(x, x, [i] * lanes) for x in sums], add(row, i))

    def _store(self, sums: Sequence[ir.Value], row: Index) -> None:
        if self.buffer is None:
            return
        start = self.step.splat(self.initial)
        for x in sums:
            start = arith.addi(arith.muli(x, self.step.splat(self.factor)), start)
        store(start, self.buffer, self.at(row))

    def at(self, row: Index) -> Index:
        """Offset of the initial value of a row."""
        return mul(add(self.first, row), self.step.lanes)

    def load(self, row: Index, count: int | None = None) -> ir.Value:
        """The initial values of `count` sums of a row, as many as there are lanes by default."""
        count = count or self.step.lanes
        if self.buffer is None:
            return splat_of(self.initial, count, self.step.total)
        return load(self.buffer, self.at(row), count)
