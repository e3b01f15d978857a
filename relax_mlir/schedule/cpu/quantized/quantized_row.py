"""One row of 8-bit elements times quantised panels, read in one or more interleaved streams.

    for each i below a third of the panels, in parallel                  (with three streams)
      for each block of 32 k
        for each 4 k of the block, for each third of the panels: its panel i
          decode, multiply and accumulate             (see `quantized_weights`, in registers)
      the epilogue of each of the panels

See `packed_row` for the reason.
"""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph.quantized import PANEL
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    for_range,
    minimum,
    mul,
    scratch,
    splat,
    store,
    sub,
)
from relax_mlir.schedule.cpu.blocking import Quantized
from relax_mlir.schedule.cpu.product.packed_row import Streams, each_stream

from .quantized_panels import PackedLeft, PackedRows
from .quantized_weights import Arithmetic, Weights


@dataclass(frozen=True)
class RowReading:
    """How many panels are read in turn, one from each stream, and whether they are prefetched."""

    panels: int
    prefetches: bool = False

    @staticmethod
    def of(blocking: Quantized, bits: int) -> "RowReading | None":
        """For weights of `bits` bits; None if one row is treated as few rows."""
        panels = blocking.row_8 if bits == 8 else blocking.row
        if panels is None:
            return None
        return RowReading(panels, blocking.row_prefetches and bits < 8)


def emit_quantized_row(arithmetic: Arithmetic, copy: PackedLeft, reading: RowReading) -> None:
    """Emits the loop over panels at the insertion point; the copy is of one row."""
    problem = arithmetic.problem
    grain = max(1, problem.right.blocking.task_bytes // (reading.panels * problem.right.bytes))

    def row(_: Index, panels: Streams) -> None:
        _Row(arithmetic, copy, reading, panels).emit()

    each_stream(problem.panels, reading.panels, 1, grain, row)


@dataclass(frozen=True)
class _Row:
    """The row times some panels."""

    arithmetic: Arithmetic
    copy: PackedLeft
    reading: RowReading
    panels: Streams

    def emit(self) -> None:
        """Emits the totals and the epilogue."""
        problem, lanes, panels = self.arithmetic.problem, self.arithmetic.dot.lanes, self.panels
        with scratch(panels.count * PANEL, ir.F32Type.get()) as totals:
            for n, total in enumerate(self._totals()):
                store(total, totals, n * lanes)

            def finish(index: ir.Value) -> None:
                column, start = mul(panels.at(index), PANEL), mul(index, PANEL)
                columns = minimum(sub(problem.columns, column), PANEL)
                problem.epilogue(Block((), 0, 1, column, columns, (totals,), PANEL, start))

            for_range(0, panels.count, 1, finish)

    def _totals(self) -> list[ir.Value]:
        """The totals of each panel, vector by vector."""
        arithmetic, vectors = self.arithmetic, self.arithmetic.vectors
        problem, right = arithmetic.problem, arithmetic.problem.right

        def block(b: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            if self.reading.prefetches:
                for panel in self.panels:
                    right.prefetch(panel, b, problem.panels, is_few=True)
            row = PackedRows(self.copy, b, arithmetic.scheme.scales)
            return Weights.on_the_fly(arithmetic, list(self.panels), b).multiply(row, totals)

        zero = splat(0.0, arithmetic.dot.lanes, ir.F32Type.get())
        count = vectors * self.panels.count
        return for_range(0, right.blocks, 1, block, [zero] * count)
