"""One row times packed weights, read in several interleaved streams.

    for each i below a quarter of the panels, in parallel                  (with four streams)
      for each step along k
        for each quarter of the panels: its panel i                      (streamed from memory)
          sums += left[k] * panel[k, :]                             (in registers)
      the epilogue of each of the panels

Consecutive tasks read consecutive panels, so each stream is a quarter of the weights. Panels that
are left over are read one by one. `Products.row_panels` says how many streams a machine wants.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    less,
    minimum,
    mod,
    mul,
    parallel_range,
    scratch,
    store,
    sub,
)
from relax_mlir.schedule.cpu.blocking import Blocking

from .few_rows import left_rows
from .micro_kernel import Left, MicroKernel
from .operands import Operand
from .packing import Matrix
from .product import Product
from .row_starts import RowStarts


def emit_packed_row(blocking: Blocking, product: Product) -> None:
    """Emits the loop over panels at the insertion point. Needs one row, and packed weights."""
    streams = blocking.products.row_panels
    panels = ceil_div(product.columns, blocking.columns)
    depth = product.depth if isinstance(product.depth, int) else 512
    grain = max(
        1, blocking.family.few_rows.task_elements // max(1, streams * depth * blocking.columns)
    )
    with ExitStack() as stack:
        left = left_rows(blocking, product, stack)

        def row(index: Index, panels: Streams) -> None:
            _Row(blocking, product, left, index, product.batch_index(index), panels).emit()

        each_stream(panels, streams, product.batch_size, grain, row)


@dataclass(frozen=True)
class Streams:
    """Panels that are read together: `count` of them, `distance` panels apart."""

    first: Index
    distance: Index
    count: int

    def __iter__(self) -> Iterator[Index]:
        """The panels."""
        return iter([self.at(index) for index in range(self.count)])

    def at(self, index: Index) -> Index:
        """One of the panels."""
        return add(self.first, mul(index, self.distance))


def each_stream(
    panels: Index,
    streams: int,
    batch: Index,
    grain: int,
    emit: Callable[[Index, Streams], None],
) -> None:
    """Emits `emit(index in the batch, panels)` for each set of panels, and for single ones.

    `grain` sets of panels are worth a thread.
    """
    each = floor_div(panels, streams)
    tasks = add(each, mod(panels, streams))

    def emit_task(task: ir.Value) -> None:
        index, i = floor_div(task, tasks), mod(task, tasks)
        if_else(
            streams == 1 or (each != 0 and less(i, each)),
            lambda: emit(index, Streams(i, each, streams)),
            lambda: emit(index, Streams(add(i, mul(each, streams - 1)), 0, 1)),
        )

    parallel_range(mul(batch, tasks), grain, emit_task)


@dataclass(frozen=True)
class _Row:
    """The row of one matrix of the batch times some panels."""

    blocking: Blocking
    product: Product
    left: Callable[[Index, Sequence[Index]], tuple[Matrix, RowStarts]]
    index: Index
    batch: tuple[Index, ...]
    panels: Streams

    def emit(self) -> None:
        """Emits the row times the panels, and the epilogues."""
        columns, product, panels = self.blocking.columns, self.product, self.panels
        size = panels.count * columns
        with ExitStack() as stack:
            total = product.step.total
            buffers = [stack.enter_context(scratch(size, total)) for _ in product.rhs]
            for side, buffer in zip(product.rhs, buffers, strict=True):
                for n, x in enumerate(self._sums(side)):
                    store(x, buffer, n * self.blocking.lanes)

            def finish(index: ir.Value) -> None:
                column, start = mul(panels.at(index), columns), mul(index, columns)
                here, sums = minimum(sub(product.columns, column), columns), tuple(buffers)
                product.epilogue(Block(self.batch, 0, 1, column, here, sums, columns, start))

            for_range(0, panels.count, 1, finish)

    def _sums(self, side: Operand) -> list[ir.Value]:
        """The sums of each panel, vector by vector."""
        blocking, product = self.blocking, self.product
        step, (lhs, starts) = product.step, self.left(self.index, self.batch)
        rights = [side.panel(self.batch, p, 0, product.depth, None) for p in self.panels]
        left = Left(lhs.buffer, lhs.at(0, 0), 0)
        kernel = MicroKernel(blocking, step, 1, blocking.vectors)
        initial = [starts.load(0)] * blocking.vectors
        if len(rights) == 1:
            return kernel.sums(product.depth, left, 0, rights[0], initial)

        def along(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            result = []
            for n, right in enumerate(rights):
                own = sums[n * blocking.vectors : (n + 1) * blocking.vectors]
                result += kernel.step_along(k, left, [0], right, own)
            return result

        steps = floor_div(product.depth, rights[0].steps)
        return for_range(0, steps, 1, along, initial * len(rights))
