"""The part of an image that a block of a convolution's result sees, copied with zeros around it.

    copy[row, block of channels, column, channel] = image[channel, row - top, column - left]

A block is as many channels as `Blocking.channel_block` says: one, so that rows are copied as
they are, or a vector of them, by transposing squares. Of the last block, channels that the image
does not have are never read.
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

from .convolution_problem import Image, Problem, above


@dataclass(frozen=True)
class CopiedImage:
    """Where the copy lies, `columns` wide, in a flat buffer of f32 numbers."""

    blocking: Blocking
    problem: Problem
    columns: Index
    buffer: ir.Value

    @staticmethod
    def line_of(blocking: Blocking, problem: Problem, columns: Index) -> Index:
        """The numbers of a row."""
        blocks = ceil_div(problem.channels, blocking.channel_block)
        return mul(blocks, columns, blocking.channel_block)

    def copy(self, batch: Sequence[Index], row: Index, column: Index, rows: Index) -> None:
        """Copies what so many rows and all columns see, from a place of the result on.

        Row i of the copy is row `row * stride + i - top` of the image; others than those of the
        image are not written.
        """
        problem, together = self.problem, self.blocking.channel_block
        pitch, line = self.pitch, self.line
        image = problem.image(batch)
        (height, width), (top, left) = problem.sizes, problem.padding
        first_row, first_column = mul(row, problem.strides[0]), mul(column, problem.strides[1])
        begin = above(top, first_row) if problem.padded else 0
        end = minimum(rows, above(add(height, top), first_row))
        skipped = minimum(above(left, first_column), self.columns) if problem.padded else 0
        right = minimum(self.columns, above(add(width, left), first_column))
        kept = above(right, skipped)
        ahead = self.blocking.family.convolutions.prefetched_channels

        def source(i: Index, c: Index) -> Index:
            start = add(image.offset, mul(c, image.channel_stride))
            start = add(start, mul(sub(add(first_row, i), top), image.row_stride))
            return add(start, sub(add(first_column, skipped), left))

        def channel(i: ir.Value, c: ir.Value) -> None:
            at = source(i, c)
            if ahead:
                image.fetch(add(at, mul(ahead, image.channel_stride)), kept)
            self._one(image, at, add(mul(i, line), mul(c, pitch)), skipped, kept)

        def several(i: ir.Value, b: ir.Value) -> None:
            last = sub(problem.channels, 1)
            channels = [minimum(add(mul(b, together), c), last) for c in range(together)]
            sources = [source(i, c) for c in channels]
            self._several(image, sources, add(mul(i, line), mul(b, pitch)), skipped, kept)

        count = ceil_div(problem.channels, together)
        if together > 1:
            for_range(begin, end, 1, lambda i: for_range(0, count, 1, lambda b: several(i, b)))
        elif ahead:  # rows of a channel follow one another in memory
            for_range(0, count, 1, lambda c: for_range(begin, end, 1, lambda i: channel(i, c)))
        else:
            for_range(begin, end, 1, lambda i: for_range(0, count, 1, lambda c: channel(i, c)))

    @property
    def pitch(self) -> Index:
        """The numbers of a block of channels in one row."""
        return mul(self.columns, self.blocking.channel_block)

    @property
    def line(self) -> Index:
        """See `line_of`."""
        return self.line_of(self.blocking, self.problem, self.columns)

    def _one(self, image: Image, source: Index, to: Index, skipped: Index, kept: Index) -> None:
        """Copies a row of a channel: so many columns behind zeros."""
        lanes = self.blocking.lanes
        zero = splat(0.0, lanes, ir.F32Type.get())

        def fill(j: ir.Value, stop: Index) -> None:
            store(zero, self.buffer, add(to, j), mask(sub(stop, j), lanes))

        def copy(j: Index, keep: ir.Value | None) -> None:
            store(image.load(add(source, j), lanes, keep), self.buffer, add(to, skipped, j), keep)

        if self.problem.padded:
            outside = add(skipped, kept)
            for_range(0, skipped, lanes, lambda j: fill(j, skipped))
            for_range(outside, self.columns, lanes, lambda j: fill(j, self.columns))
        self._vectors(kept, copy)

    def _several(
        self, image: Image, sources: Sequence[Index], to: Index, skipped: Index, kept: Index
    ) -> None:
        """Copies a row of a block of channels: so many columns behind zeros.

        Squares reach beyond the last column, into what is written afterwards: the block behind it
        in the same row, or in the next one.
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
        self._vectors(kept, copy)
        if self.problem.padded:
            for_range(add(skipped, kept), self.columns, 1, fill)

    def _vectors(self, count: Index, emit: Callable[[Index, ir.Value | None], None]) -> None:
        """Whole vectors of so many columns, then the rest with a mask."""
        lanes = self.blocking.lanes
        full = sub(count, mod(count, lanes))
        for_range(0, full, lanes, lambda j: emit(j, None))
        if_else(less(full, count), lambda: emit(full, mask(sub(count, full), lanes)))
