"""What sums of rows begin with: a number, and a factor times the sum of the row of the left side.

Machines want 8-bit elements of one side biased; what that adds to each sum is taken away here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, vector
from relax_mlir.schedule.build.loops import Index, add, broadcast, load, mul, splat_of, store
from relax_mlir.schedule.cpu.isa.step import Step


@dataclass(frozen=True)
class RowStarts:
    """What the sums of rows begin with: `initial + factor * the sum of the row`, in every lane.

    That of row r is at `lanes * (first + r)` of a buffer, or is a constant where there is none.
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
        found = [vector.reduction(self.step.total, vector.CombiningKind.ADD, x) for x in sums]
        self._store([broadcast(x, self.step.lanes) for x in found], row)

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
        """Where the start of a row is."""
        return mul(add(self.first, row), self.step.lanes)

    def load(self, row: Index, count: int | None = None) -> ir.Value:
        """What so many sums of a row begin with, or as many as there are lanes."""
        count = count or self.step.lanes
        if self.buffer is None:
            return splat_of(self.initial, count, self.step.total)
        return load(self.buffer, self.at(row), count)
