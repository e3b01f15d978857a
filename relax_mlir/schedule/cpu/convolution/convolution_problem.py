"""The problem that convolution kernels solve: images, panels of filters, and how to pack them.

    result[n, (g), f, y, x] = epilogue(initial + sum over c, u, v of image * filter)

A panel interleaves as many filters as a tile has columns, in the order in which kernels read them:
by column of the window, row of the window, and channel.
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
    """Channels, rows and columns of a flat buffer; columns are contiguous.

    `convert` converts loaded vectors to f32; None if they are f32.
    """

    buffer: ir.Value
    offset: Index
    channel_stride: Index
    row_stride: Index
    convert: Callable[[ir.Value], ir.Value] | None = None

    def load(self, at: Index, lanes: int, keep: ir.Value | None) -> ir.Value:
        """The vector at an offset; lanes outside of the mask `keep` are not read."""
        loaded = load(self.buffer, at, lanes, keep)
        return self.convert(loaded) if self.convert else loaded

    def prefetch(self, at: Index, count: Index) -> None:
        """Prefetches so many columns from an offset on; they may be outside of the buffer."""
        line = LINE_BITS // ir.MemRefType(self.buffer.type).element_type.width

        def ask(j: ir.Value) -> None:
            memref.prefetch(self.buffer, [value(add(at, j))], False, 3, True)

        for_range(0, count, line, ask)


@dataclass(frozen=True)
class Filters:
    """Panels of filters: [column of the window, row of the window, channel, filter].

    Panel `p` of group `g` is at `offset + (g * count + p) * stride` of a flat buffer.
    """

    buffer: ir.Value
    offset: Index
    count: Index
    stride: Index
    convert: Callable[[ir.Value], ir.Value] | None = None


@dataclass(frozen=True)
class Problem:
    """What to compute for every index of the batch: images, and groups of channels if `grouped`.

    `sizes` are rows and columns of the image, `pixels` those of the result; strides, dilation,
    window and padding (top, left) are for rows and columns too. `filters` counts those of a group.
    If `algebraic`, reassociation is allowed, and values are assumed to be finite. If `flat`, all
    pixels are one row, which is no part of the epilogue's batch.
    """

    batch: tuple[Index, ...]
    grouped: bool
    channels: Index
    sizes: tuple[Index, Index]
    pixels: tuple[Index, Index]
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
        """Elements of a filter."""
        return mul(self.channels, *self.window)

    def batch_index(self, linear: Index) -> tuple[Index, ...]:
        """The index of the batch with this linear index, in row-major order."""
        return unravel(linear, self.batch)


def patch_elements(blocking: Blocking) -> int:
    """Elements of the image that a task keeps in the L2 cache."""
    return blocking.family.convolutions.patch_bytes // 4


def share_panels(
    blocking: Blocking, problem: Problem, others: Index, tasks: int
) -> tuple[Index, Index, Index]:
    """The number of panels of filters, of panels in a task, and of such groups.

    `others` is the number of parts along the other dims; there should be `tasks` tasks in all.
    """
    panels = ceil_div(problem.filters, blocking.columns)
    group = maximum(ceil_div(panels, ceil_div(tasks, others)), 1)
    return panels, group, ceil_div(panels, group)


def find_panel(
    blocking: Blocking, problem: Problem, filters: Filters, batch: Sequence[Index], panel: Index
) -> tuple[Index, Index, Index]:
    """The offset of a panel, its first filter, and its number of filters."""
    index = panel
    if problem.grouped:
        panels = ceil_div(problem.filters, blocking.columns)
        index = add(mul(batch[-1], panels), panel)
    first = mul(panel, blocking.columns)
    num_filters = minimum(sub(problem.filters, first), blocking.columns)
    return add(filters.offset, mul(index, filters.stride)), first, num_filters


def saturating_sub(a: Index, b: Index) -> Index:
    """a - b, or 0 if that is negative."""
    return sub(maximum(a, b), b)


def rows_of_window(problem: Problem, row: Index) -> tuple[Index, Index]:
    """The first row of a window that is in the image, and the one after the last.

    The window is that of pixels in this row of the result.
    """
    window_rows, step = problem.window[0], problem.dilation[0]
    if not problem.padded:
        return 0, window_rows
    top = problem.padding[0]
    first = mul(row, problem.strides[0])
    begin = minimum(ceil_div(saturating_sub(top, first), step), window_rows)
    end = minimum(ceil_div(saturating_sub(add(problem.sizes[0], top), first), step), window_rows)
    return begin, maximum(begin, end)


def pack_filters(
    blocking: Blocking,
    groups: Index,
    matrix: Callable[[Index], Matrix],
    out: ir.Value,
    problem: Problem,
) -> Filters:
    """Packs the filters of every group, [filters, channels * rows * columns] each, into panels."""
    count = ceil_div(problem.filters, blocking.columns)
    stride = mul(problem.depth, blocking.columns)
    (rows, columns), lanes = problem.window, blocking.lanes
    taps = rows * columns

    def emit_panel(index: ir.Value) -> None:
        row = mul(mod(index, maximum(count, 1)), blocking.columns)
        source = matrix(floor_div(index, maximum(count, 1)))
        start = mul(index, stride)
        size = mul(round_up(problem.depth, lanes), blocking.columns)
        with scratch(size, ir.F32Type.get()) as plain:
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

    parallel_range(mul(groups, count), 1, emit_panel)
    return Filters(out, 0, count, stride)
