"""Products of few rows, as of one token: threads share the sums of a column.

    thread (column, slice):  sums of its k = slice, slice + slices, .. for each row
    memory of the group:     a tree over the slices
    threads (row, column):   the epilogue of an element

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
        product, group = self.product, self.group
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
        memory = group.memory(count * group.threads, self.total, 0)
        own = loops.add(loops.mul(column, self.slices), slice_)
        for i, x in enumerate(sums):
            memref.store(x, memory, [loops.value(loops.add(own, i * group.threads))])
        barrier()
        self._add_slices(memory, own, slice_, count)
        self._finish(memory)

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

    def _add_slices(self, memory: ir.Value, own: Index, slice_: Index, count: int) -> None:
        """Adds up the sums of all slices, in the first one."""
        width = self.slices // 2
        while width:

            def add(width: int = width) -> None:
                for i in range(count):
                    at = loops.add(own, i * self.group.threads)
                    both = [memref.load(memory, [loops.value(loops.add(at, w))])
                            for w in (0, width)]  # fmt: skip
                    memref.store(added(*both), memory, [loops.value(at)])

            loops.if_else(loops.less(slice_, width), add)
            if width > 1 or not self._finishes_own:
                barrier()
            width //= 2

    @property
    def _finishes_own(self) -> bool:
        """Whether the thread of an element's sum is the one that finishes it."""
        return self.rows == 1 and not self.product.right[0].contiguous

    def _finish(self, memory: ir.Value) -> None:
        """Emits the epilogue: a thread for each element."""
        product, group = self.product, self.group
        row = loops.floor_div(group.thread, self.columns)
        own = loops.mod(group.thread, self.columns)
        column = loops.add(self.first, own)
        is_inside = loops.and_(
            loops.less(row, loops.minimum(product.left.extent, self.rows)),
            loops.less(column, product.right[0].extent),
        )

        def of_element() -> None:
            first = loops.add(loops.mul(row, group.threads), loops.mul(own, self.slices))
            ats = (
                loops.add(first, i * self.rows * group.threads) for i in range(len(product.right))
            )
            values = [memref.load(memory, [loops.value(at)]) for at in ats]
            block = Block(tuple(self.batch), row, 1, column, 1, (), 1)
            product.epilogue.of_element(block, values)

        loops.if_else(is_inside, of_element)
