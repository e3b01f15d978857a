"""What convolution kernels compute: images, panels of filters, and what both are made of.

    result[n, (g), f, y, x] = epilogue(initial + sum over c, u, v of image * filter)

Panels have the numbers of as many filters as a tile is wide side by side, in the order in which
kernels read them: column of the window after column, its rows, and the channels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir, memref
from relax_mlir.schedule.build.block import Epilogue
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    ceil_div,
    floor_div,
    for_range,
    load,
    maximum,
    minimum,
    mod,
    mul,
    parallel_range,
    round_up,
    scratch,
    store,
    sub,
    unravel,
    value,
)
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa.multiply_add import MultiplyAdd
from relax_mlir.schedule.cpu.product.packing import LINE_BITS, Matrix, copy_panel


@dataclass(frozen=True)
class Image:
    """Channels, rows and columns of a flat buffer; columns are neighbours in memory.

    `convert` turns loaded vectors into f32; None where they are that.
    """

    buffer: ir.Value
    offset: Index
    channel_stride: Index
    row_stride: Index
    convert: Callable[[ir.Value], ir.Value] | None = None

    def load(self, at: Index, lanes: int, keep: ir.Value | None) -> ir.Value:
        """A vector from an offset; lanes outside of `keep` are not read."""
        loaded = load(self.buffer, at, lanes, keep)
        return self.convert(loaded) if self.convert else loaded

    def fetch(self, at: Index, count: Index) -> None:
        """Asks for so many columns from an offset on, which need not exist."""
        line = LINE_BITS // ir.MemRefType(self.buffer.type).element_type.width

        def ask(j: ir.Value) -> None:
            memref.prefetch(self.buffer, [value(add(at, j))], False, 3, True)

        for_range(0, count, line, ask)


@dataclass(frozen=True)
class Filters:
    """Panels of filters: column of the window after column, its rows, and for each the channels.

    For each of these a panel has `columns` numbers, those of as many filters.

    Panel `p` of group `g` is at `offset + (g * count + p) * stride` of a flat buffer.
    """

    buffer: ir.Value
    offset: Index
    count: Index
    stride: Index
    convert: Callable[[ir.Value], ir.Value] | None = None


@dataclass(frozen=True)
class Problem:
    """What to compute, for every index of the batch: images, and groups of channels if there are.

    `sizes` are rows and columns of the image, `places` those of the result; strides, dilation,
    window and padding (top, left) are for rows and columns too. `filters` are those of a group.
    Where it is `algebraic`, equal expressions will do, and numbers are taken to be finite. Where it
    is `flat`, all places are one row, which is no part of the epilogue's batch.
    """

    batch: tuple[Index, ...]
    grouped: bool
    channels: Index
    sizes: tuple[Index, Index]
    places: tuple[Index, Index]
    window: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    padded: bool
    algebraic: bool
    filters: Index
    image: Callable[[Sequence[Index]], Image]
    initial: float
    epilogue: Epilogue
    flat: bool = False

    @property
    def extents(self) -> tuple[int, int]:
        """Rows and columns that a window covers."""
        pairs = zip(self.window, self.dilation, strict=True)
        rows, columns = ((size - 1) * step + 1 for size, step in pairs)
        return rows, columns

    @property
    def depth(self) -> Index:
        """Numbers of a filter."""
        return mul(self.channels, *self.window)

    def batch_index(self, linear: Index) -> tuple[Index, ...]:
        """The index of the batch that has this number, counted row by row."""
        return unravel(linear, self.batch)


def patch_elements(blocking: Blocking) -> int:
    """Elements of the image that one task keeps in the L2 cache."""
    return blocking.family.convolutions.patch_bytes // 4


def share_panels(
    blocking: Blocking, problem: Problem, others: Index, tasks: int
) -> tuple[Index, Index, Index]:
    """Panels of filters, those of one task, and groups of so many.

    `others` are the parts, one or more, that the result is cut into besides; `tasks` are wanted.
    """
    panels = ceil_div(problem.filters, blocking.columns)
    group = maximum(ceil_div(panels, ceil_div(tasks, others)), 1)
    return panels, group, ceil_div(panels, group)


def find_panel(
    blocking: Blocking, problem: Problem, filters: Filters, batch: Sequence[Index], panel: Index
) -> tuple[Index, Index, Index]:
    """Where a panel begins, its first filter, and how many filters it has."""
    number = panel
    if problem.grouped:
        panels = ceil_div(problem.filters, blocking.columns)
        number = add(mul(batch[-1], panels), panel)
    first = mul(panel, blocking.columns)
    kept = minimum(sub(problem.filters, first), blocking.columns)
    return add(filters.offset, mul(number, filters.stride)), first, kept


def above(a: Index, b: Index) -> Index:
    """a - b, or 0 if that is negative."""
    return sub(maximum(a, b), b)


def rows_of_window(problem: Problem, row: Index) -> tuple[Index, Index]:
    """The first row of a window that is in the image, and the one behind the last.

    The window is that of a place in this row of the result.
    """
    high, step = problem.window[0], problem.dilation[0]
    if not problem.padded:
        return 0, high
    top = problem.padding[0]
    first = mul(row, problem.strides[0])
    begin = minimum(ceil_div(above(top, first), step), high)
    end = minimum(ceil_div(above(add(problem.sizes[0], top), first), step), high)
    return begin, maximum(begin, end)


def pack_filters(
    blocking: Blocking,
    groups: Index,
    matrix: Callable[[Index], Matrix],
    out: ir.Value,
    problem: Problem,
) -> Filters:
    """Copies the filters of every group, [filters, channels * rows * columns] each, as panels."""
    count = ceil_div(problem.filters, blocking.columns)
    stride = mul(problem.depth, blocking.columns)
    (rows, columns), lanes = problem.window, blocking.lanes
    taps = rows * columns

    def panel(number: ir.Value) -> None:
        row = mul(mod(number, maximum(count, 1)), blocking.columns)
        source = matrix(floor_div(number, maximum(count, 1)))
        start = mul(number, stride)
        room = mul(round_up(problem.depth, lanes), blocking.columns)
        with scratch(room, ir.F32Type.get()) as plain:
            step = MultiplyAdd(lanes)
            copy_panel(step, source, row, 0, problem.depth, blocking.vectors, plain)

            def channel(c: ir.Value) -> None:
                for tap in range(taps):
                    u, v = divmod(tap, columns)
                    at = mul(add(mul(c, taps), tap), blocking.columns)
                    to = add(mul(v * rows + u, problem.channels), c)
                    to = add(start, mul(to, blocking.columns))
                    for half in range(0, blocking.columns, lanes):
                        store(load(plain, add(at, half), lanes), out, add(to, half))

            for_range(0, problem.channels, 1, channel)

    parallel_range(mul(groups, count), 1, panel)
    return Filters(out, 0, count, stride)
