"""One row times packed weights, for machines that read memory faster from several places in turn.

    for each number i below a quarter of the panels, in parallel           (with four places)
      for each step along k
        for each quarter of the panels: its panel i                 (from memory, as it lies there)
          sums += left[k] * panel[k, :]                             (in registers)
      the epilogue of each of the panels

Neighbouring numbers read what follows, so that each place is as long as a quarter of the weights.
Panels behind the last quarter are taken one by one. How many places there are is the machine's
`Products.row_panels`.
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
    places = blocking.products.row_panels
    panels = ceil_div(product.columns, blocking.columns)
    depth = product.depth if isinstance(product.depth, int) else 512
    grain = max(
        1, blocking.family.few_rows.task_elements // max(1, places * depth * blocking.columns)
    )
    with ExitStack() as stack:
        left = left_rows(blocking, product, stack)

        def row(index: Index, panels: Places) -> None:
            _Row(blocking, product, left, index, product.batch_index(index), panels).emit()

        each_place(panels, places, product.batch_size, grain, row)


@dataclass(frozen=True)
class Places:
    """Panels that are read in turn: `count` of them, as far apart as `distance` panels."""

    first: Index
    distance: Index
    count: int

    def __iter__(self) -> Iterator[Index]:
        """The panels."""
        return iter([self.at(number) for number in range(self.count)])

    def at(self, number: Index) -> Index:
        """One of the panels."""
        return add(self.first, mul(number, self.distance))


def each_place(
    panels: Index,
    places: int,
    batch: Index,
    grain: int,
    emit: Callable[[Index, Places], None],
) -> None:
    """Emits `emit(number of the batch, panels)` for a panel of each place, and for single ones.

    `grain` times a panel of each place are worth a thread.
    """
    each = floor_div(panels, places)
    tasks = add(each, mod(panels, places))

    def task(number: ir.Value) -> None:
        index, i = floor_div(number, tasks), mod(number, tasks)
        if_else(
            places == 1 or (each != 0 and less(i, each)),
            lambda: emit(index, Places(i, each, places)),
            lambda: emit(index, Places(add(i, mul(each, places - 1)), 0, 1)),
        )

    parallel_range(mul(batch, tasks), grain, task)


@dataclass(frozen=True)
class _Row:
    """The row of one matrix of the batch times some panels."""

    blocking: Blocking
    product: Product
    left: Callable[[Index, Sequence[Index]], tuple[Matrix, RowStarts]]
    index: Index
    batch: tuple[Index, ...]
    panels: Places

    def emit(self) -> None:
        """Emits the row times the panels, and what is done with the sums."""
        columns, product, panels = self.blocking.columns, self.product, self.panels
        size = panels.count * columns
        with ExitStack() as stack:
            total = product.step.total
            buffers = [stack.enter_context(scratch(size, total)) for _ in product.rhs]
            for side, buffer in zip(product.rhs, buffers, strict=True):
                for n, x in enumerate(self._sums(side)):
                    store(x, buffer, n * self.blocking.lanes)

            def finish(number: ir.Value) -> None:
                column, start = mul(panels.at(number), columns), mul(number, columns)
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
            found = []
            for n, right in enumerate(rights):
                own = sums[n * blocking.vectors : (n + 1) * blocking.vectors]
                found += kernel.step_along(k, left, [0], right, own)
            return found

        steps = floor_div(product.depth, rights[0].steps)
        return for_range(0, steps, 1, along, initial * len(rights))
