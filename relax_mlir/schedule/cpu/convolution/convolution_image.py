"""The receptive field of a block of a convolution's result, copied with its zero padding.

    copy[row, block of channels, column, channel] = image[channel, row - top, column - left]

A block has `Blocking.channel_block` channels: one, so that rows are copied unchanged, or a vector
of them, by transposing squares. Channels of the last block that the image does not have are not
read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    ceil_div,
    for_range,
    if_else,
    less,
    mask,
    minimum,
    mod,
    mul,
    splat,
    store,
    sub,
)
from relax_mlir.schedule.build.transposes import transpose
from relax_mlir.schedule.cpu.blocking import Blocking

from .convolution_problem import Image, Problem, saturating_sub


@dataclass(frozen=True)
class CopiedImage:
    """The copy of `columns` columns, in a flat buffer of f32 elements."""

    blocking: Blocking
    problem: Problem
    columns: Index
    buffer: ir.Value

    @staticmethod
    def line_of(blocking: Blocking, problem: Problem, columns: Index) -> Index:
        """Elements of a row."""
        blocks = ceil_div(problem.channels, blocking.channel_block)
        return mul(blocks, columns, blocking.channel_block)

    def copy(self, batch: Sequence[Index], row: Index, column: Index, rows: Index) -> None:
        """Copies `rows` rows for the pixels from (row, column) of the result on.

        Row i of the copy is row `row * stride + i - top` of the image; rows outside of the image
        are not written.
        """
        problem, channel_block = self.problem, self.blocking.channel_block
        pitch, line = self.pitch, self.line
        image = problem.image(batch)
        (height, width), (top, left) = problem.sizes, problem.padding
        first_row, first_column = mul(row, problem.strides[0]), mul(column, problem.strides[1])
        begin = saturating_sub(top, first_row) if problem.padded else 0
        end = minimum(rows, saturating_sub(add(height, top), first_row))
        skipped = minimum(saturating_sub(left, first_column), self.columns) if problem.padded else 0
        right = minimum(self.columns, saturating_sub(add(width, left), first_column))
        copied = saturating_sub(right, skipped)
        distance = self.blocking.family.convolutions.prefetched_channels

        def source(i: Index, c: Index) -> Index:
            start = add(image.offset, mul(c, image.channel_stride))
            start = add(start, mul(sub(add(first_row, i), top), image.row_stride))
            return add(start, sub(add(first_column, skipped), left))

        def channel(i: ir.Value, c: ir.Value) -> None:
            at = source(i, c)
            if distance:
                image.prefetch(add(at, mul(distance, image.channel_stride)), copied)
            self._copy_channel(image, at, add(mul(i, line), mul(c, pitch)), skipped, copied)

        def several(i: ir.Value, b: ir.Value) -> None:
            last = sub(problem.channels, 1)
            channels = [minimum(add(mul(b, channel_block), c), last) for c in range(channel_block)]
            sources = [source(i, c) for c in channels]
            self._copy_channels(image, sources, add(mul(i, line), mul(b, pitch)), skipped, copied)

        count = ceil_div(problem.channels, channel_block)
        if channel_block > 1:
            for_range(begin, end, 1, lambda i: for_range(0, count, 1, lambda b: several(i, b)))
        elif distance:  # rows of a channel are contiguous
            for_range(0, count, 1, lambda c: for_range(begin, end, 1, lambda i: channel(i, c)))
        else:
            for_range(begin, end, 1, lambda i: for_range(0, count, 1, lambda c: channel(i, c)))

    @property
    def pitch(self) -> Index:
        """Elements of a block of channels in one row."""
        return mul(self.columns, self.blocking.channel_block)

    @property
    def line(self) -> Index:
        """See `line_of`."""
        return self.line_of(self.blocking, self.problem, self.columns)

    def _copy_channel(
        self, image: Image, source: Index, to: Index, skipped: Index, copied: Index
    ) -> None:
        """Copies a row of a channel: `skipped` zeros, then `copied` columns."""
        lanes = self.blocking.lanes
        zero = splat(0.0, lanes, ir.F32Type.get())

        def fill(j: ir.Value, stop: Index) -> None:
            store(zero, self.buffer, add(to, j), mask(sub(stop, j), lanes))

        def copy(j: Index, keep: ir.Value | None) -> None:
            store(image.load(add(source, j), lanes, keep), self.buffer, add(to, skipped, j), keep)

        if self.problem.padded:
            outside = add(skipped, copied)
            for_range(0, skipped, lanes, lambda j: fill(j, skipped))
            for_range(outside, self.columns, lanes, lambda j: fill(j, self.columns))
        self._vectors(copied, copy)

    def _copy_channels(
        self, image: Image, sources: Sequence[Index], to: Index, skipped: Index, copied: Index
    ) -> None:
        """Copies a row of a block of channels: `skipped` zeros, then `copied` columns.

        Squares overrun the last column, into elements that are written later: those of the next
        block of the row, or of the next row.
        """
        lanes = self.blocking.lanes
        zero = splat(0.0, lanes, ir.F32Type.get())

        def fill(j: ir.Value) -> None:
            store(zero, self.buffer, add(to, mul(j, lanes)))

        def copy(j: Index, keep: ir.Value | None) -> None:
            square = transpose([image.load(add(at, j), lanes, keep) for at in sources])
            for i, x in enumerate(square):
                store(x, self.buffer, add(to, mul(add(skipped, j, i), lanes)))

        if self.problem.padded:
            for_range(0, skipped, 1, fill)
        self._vectors(copied, copy)
        if self.problem.padded:
            for_range(add(skipped, copied), self.columns, 1, fill)

    def _vectors(self, count: Index, emit: Callable[[Index, ir.Value | None], None]) -> None:
        """Emits whole vectors of columns, then the masked rest."""
        lanes = self.blocking.lanes
        full = sub(count, mod(count, lanes))
        for_range(0, full, lanes, lambda j: emit(j, None))
        if_else(less(full, count), lambda: emit(full, mask(sub(count, full), lanes)))
