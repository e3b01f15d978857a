"""Products of few rows, as of one token: threads share the sums of a column.

    thread (column, slice):      sums of its k = slice, slice + slices, .. for each row
    slices next to each other:   a total of their sums; slice r has the epilogue of row r
    others:                      stored; thread (row, column) adds up those of its element

An element of the right side is read, and decoded, once for all rows. Threads next to each other
read elements next to each other: slices of a column whose k is contiguous, columns otherwise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir, memref
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.launch import Group, barrier, for_groups, unraveled
from relax_mlir.schedule.gpu.teams import Combination, Team, Values
from relax_mlir.target import Device

from .sides import (
    FEW_ROWS,
    Product,
    Side,
    added,
    initial_sum,
    is_short,
    multiply_add,
    total_type,
    widened,
)

ROWS = (1, FEW_ROWS)
"""Rows that there is a launch for."""
ALONG_K, ALONG_COLUMNS = (32, 4), (8, 16)
"""(slices, columns) of a group, if elements along k are next to each other, and if not."""


def emit(product: Product, device: Device, otherwise: Callable[[], object]) -> None:
    """Emits a launch for each count of rows that is few, and `otherwise` for more."""
    slices, columns = ALONG_K if product.right[0].contiguous else ALONG_COLUMNS
    if is_short(product.depth) or slices * columns > device.workgroup:
        otherwise()
        return

    def launch(rows: int) -> None:
        few = product.tiled(rows, columns)

        def tile(group: Group) -> None:
            *at, _, column = unraveled(group.index, few.counts)
            _Columns(few, group, at, loops.mul(column, columns), rows, slices).emit()

        for_groups(loops.mul(1, *few.counts), slices * columns, device, tile)

    loops.least_fitting(product.left.extent, ROWS, launch, otherwise)


@dataclass(frozen=True)
class _Columns:
    """All rows of some columns, from `first` on, of the matrices at `batch`."""

    product: Product
    group: Group
    batch: Sequence[Index]
    first: Index
    rows: int
    slices: int

    @property
    def columns(self) -> int:
        """Columns of the group."""
        return self.product.right[0].width

    @property
    def total(self) -> ir.Type:
        """The type of sums."""
        return total_type(self.product.contractions[0].stage.results[0].element)

    def emit(self) -> None:
        """Emits the sums of a thread, those of the group, and the epilogue."""
        product = self.product
        slice_, column = self._own
        count = self.rows * len(product.right)
        start = [initial_sum(product.contractions[0], self.total)] * count
        zero = initial_sum(None, self.total)
        # Only one slice begins with what sums begin with.
        begin = [loops.select(loops.less(slice_, 1), x, zero) for x in start]
        at = self._clamped(loops.add(self.first, column), product.right[0])

        def step(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            left = [self._element(product.left, row, k) for row in self._rows]
            rights = [self._element(side, at, k) for side in product.right]
            return [
                multiply_add(sums[i * self.rows + row], left[row], right)
                for i, right in enumerate(rights)
                for row in range(self.rows)
            ]

        sums = loops.for_range(slice_, product.depth, self.slices, step, begin)
        if product.right[0].contiguous:
            self._finish_by_lanes(slice_, column, sums)
        else:
            self._finish_by_memory(slice_, column, sums)

    @property
    def _own(self) -> tuple[Index, Index]:
        """The slice and the column of a thread."""
        thread = self.group.thread
        if self.product.right[0].contiguous:
            return loops.mod(thread, self.slices), loops.floor_div(thread, self.slices)
        return loops.floor_div(thread, self.columns), loops.mod(thread, self.columns)

    @property
    def _rows(self) -> list[Index]:
        """Rows of the left side; those that it does not have are its last one."""
        return [self._clamped(row, self.product.left) for row in range(self.rows)]

    def _clamped(self, at: Index, side: Side) -> Index:
        return loops.minimum(at, loops.sub(side.extent, 1))

    def _element(self, side: Side, at: Index, k: Index) -> ir.Value:
        """What is multiplied, in the type of the sums."""
        along = self.product.along(side, at)
        position = self.product.position(side, self.batch, along, k)
        x = self.product.element(side, position, side.factor.value)
        return widened(x, self.total)

    def _finish_by_lanes(self, slice_: Index, column: Index, sums: Sequence[ir.Value]) -> None:
        """Emits the totals of all slices, and the epilogue: slice r has that of row r."""

        def added_all(earlier: Values, later: Values) -> Values:
            return list(map(added, earlier, later))

        team = Team.of(self.group, self.slices)
        totals = team.total(sums, Combination(added_all, is_symmetric=True))

        def values() -> list[ir.Value]:
            parts = (totals[i : i + self.rows] for i in range(0, len(totals), self.rows))
            return [self._of_row(slice_, part) for part in parts]

        self._finish(slice_, column, values)

    def _of_row(self, row: Index, values: Sequence[ir.Value]) -> ir.Value:
        """The value of a row; the last one, if there is no such row."""
        chosen = values[-1]
        for i, x in reversed(list(enumerate(values[:-1]))):
            chosen = loops.select(loops.less(row, i + 1), x, chosen)
        return chosen

    def _finish_by_memory(self, slice_: Index, column: Index, sums: Sequence[ir.Value]) -> None:
        """Stores the sums; emits the epilogue, whose threads add up those of an element."""
        group, count = self.group, len(self.product.right)
        memory = group.memory(len(sums) * group.threads, self.total, 0)
        own = loops.add(loops.mul(column, self.slices), slice_)
        for i, x in enumerate(sums):
            memref.store(x, memory, [loops.value(loops.add(own, i * group.threads))])
        barrier()
        row = loops.floor_div(group.thread, self.columns)
        column = loops.mod(group.thread, self.columns)

        def values() -> list[ir.Value]:
            first = loops.add(loops.mul(row, group.threads), loops.mul(column, self.slices))
            firsts = [loops.add(first, i * self.rows * group.threads) for i in range(count)]
            return [self._total(memory, at) for at in firsts]

        self._finish(row, column, values)

    def _total(self, memory: ir.Value, first: Index) -> ir.Value:
        """The total of all slices: of halves, of their halves, and so on."""
        parts = [memref.load(memory, [loops.value(loops.add(first, i))])
                 for i in range(self.slices)]  # fmt: skip
        while len(parts) > 1:
            half = len(parts) // 2
            parts = list(map(added, parts[:half], parts[half:]))
        return parts[0]

    def _finish(self, row: Index, column: Index, values: Callable[[], list[ir.Value]]) -> None:
        """Emits the epilogue of an element of the group's columns, if there is such a one."""
        product, at = self.product, loops.add(self.first, column)
        is_inside = loops.and_(
            loops.less(row, loops.minimum(product.left.extent, self.rows)),
            loops.less(at, product.right[0].extent),
        )

        def of_element() -> None:
            block = Block(tuple(self.batch), row, 1, at, 1, (), 1)
            product.epilogue.of_element(block, values())

        loops.if_else(is_inside, of_element)
