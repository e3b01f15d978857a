"""The micro-kernel: a register block of sums, and an outer product for each step along k.

    for each k
      rows x columns sums += left[:, k] * panel[k, :]

Elements of the left side are broadcast to all lanes, from a packed copy or in place; a panel has
the elements of all columns next to each other for each k.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir, memref
from relax_mlir.schedule.build.block import Block, Epilogue
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    and_,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    less,
    load,
    minimum,
    mod,
    mul,
    select,
    sub,
    value,
    vector_type,
)
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.multiply_add import Bf16Pairs, halves
from relax_mlir.schedule.cpu.isa.pointers import clone_address, load_at_address, opaque_address
from relax_mlir.schedule.cpu.isa.step import Step


@dataclass(frozen=True)
class Panel:
    """A panel of the right side, at an offset of a flat buffer.

    `convert` turns loaded vectors into f32; None where they are multiplied as they are. With
    `halved`, the panel is of pairs of bf16 elements, which are widened to f32: two steps along k.
    `prefetch_distance` is in elements, from the vector that is loaded; None for no prefetches.
    """

    buffer: ir.Value
    offset: Index
    convert: Callable[[ir.Value], ir.Value] | None = None
    halved: bool = False
    prefetch_distance: Index | None = None

    @property
    def converts(self) -> bool:
        """Whether loaded vectors are converted before they are multiplied."""
        return self.halved or self.convert is not None

    @property
    def steps(self) -> int:
        """Steps along k that one load covers."""
        return 2 if self.halved else 1

    def load(self, at: Index, count: int, step: int, is_live: bool) -> ir.Value:
        """Step `step` of the `count` elements at offset `at` of the panel.

        Elements that are not live, for lack of registers, are loaded anew for the second step.
        """
        position = add(self.offset, at)
        if self.halved and step and not is_live:
            kind = vector_type(count, ir.MemRefType(self.buffer.type).element_type)
            loaded = load_at_address(opaque_address(self.buffer, position), 0, kind)
        else:
            loaded = load(self.buffer, position, count)
        if self.halved:
            return halves(loaded)[step]
        return self.convert(loaded) if self.convert else loaded

    def prefetch(self, at: Index) -> None:
        """Prefetches the line that is the prefetch distance after `at`; it need not exist."""
        if self.prefetch_distance is not None:
            position = add(self.offset, self.prefetch_distance, at)
            memref.prefetch(self.buffer, [value(position)], False, 2, True)


@dataclass(frozen=True)
class Left:
    """Rows of the left side along one block of k, at an offset of a flat buffer.

    Rows are `stride` elements apart, steps along k `pitch` elements.
    """

    buffer: ir.Value
    offset: Index
    stride: Index
    pitch: int = 1

    def at(self, row: Index) -> "Left":
        """The rows from `row` on."""
        return Left(self.buffer, add(self.offset, mul(row, self.stride)), self.stride, self.pitch)


@dataclass(frozen=True)
class MicroKernel:
    """The code of a register block of `height` rows and `vectors` vectors of columns."""

    blocking: Blocking
    step: Step
    height: int
    vectors: int

    @property
    def count(self) -> int:
        """Vectors of sums."""
        return self.height * self.vectors

    @property
    def partial_sums(self) -> int:
        """Partial sums of each element: few rows alone would not hide the latency of additions."""
        return -(-8 // (self.height * self.vectors))

    def sums(
        self, depth: Index, left: Left, last: Index, right: Panel, initial: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The vectors of initial + left * right along `depth` steps, in row-major order.

        `last` is the last row that exists: `height - 1`, or one less.
        """
        count, partial_sums = self.count, self.partial_sums
        depth = floor_div(depth, right.steps)
        streams = self.blocking.streams_of(self.height, right.converts)
        splits_k, positions = streams > 1, max(partial_sums, streams)
        part = floor_div(depth, positions) if splits_k else 1
        rows = [mul(r, left.stride) for r in (*range(self.height - 1), last)]

        def step(k: Index, sums: Sequence[ir.Value]) -> list[ir.Value]:
            return self.step_along(k, left, rows, right, sums)

        def steps(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            result = list(sums)
            for position in range(positions):
                begin = position % partial_sums * count
                own = slice(begin, begin + count)
                result[own] = step(add(k, mul(position, part)), result[own])
            return result

        zero = self.step.splat(0)
        main = depth if positions == 1 else sub(depth, mod(depth, positions))
        sums = [*initial, *[zero] * (count * (partial_sums - 1))]
        # In a longer body LLVM reorders loads, which slows reading bf16 elements from memory.
        as_it_is = isinstance(self.step, Bf16Pairs) and positions > 1
        repeats = 1 if as_it_is else self.blocking.repeats(count, positions)
        end, stride = (part, 1) if splits_k else (main, positions)
        sums = for_range(0, end, stride, steps, sums, repeats)
        total = sums[:count]
        if positions > 1:
            total = for_range(main, depth, 1, lambda k, *s: step(k, s), total)
            for u in range(1, partial_sums):
                part_sums = sums[u * count : (u + 1) * count]
                total = [self.step.add(a, b) for a, b in zip(total, part_sums, strict=True)]
        return total

    def step_along(
        self, k: Index, left: Left, rows: Sequence[Index], right: Panel, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums after one more load along k."""
        width = self.step.width * right.steps
        at = mul(k, self.blocking.vectors * width)
        self.prefetch(right, at, width)
        live = (self.height * self.partial_sums + right.steps) * self.vectors
        for index in range(right.steps):
            positions = [add(at, v * width) for v in range(self.vectors)]
            loaded = [
                right.load(position, width, index, live < self.blocking.registers)
                for position in positions
            ]
            vectors = [self.step.right_of(x) for x in loaded]
            start = add(left.offset, mul(k, right.steps * left.pitch), index * left.pitch)
            operands = left_operands(
                self.step, self.blocking, left.buffer, start, rows, self.vectors
            )
            result = []
            for r, xs in enumerate(operands):
                own = sums[r * self.vectors : (r + 1) * self.vectors]
                result += [self.step(*of) for of in zip(xs, vectors, own, strict=True)]
            sums = result
        return list(sums)

    def prefetch(self, right: Panel, at: Index, width: int) -> None:
        """Prefetches what follows the vectors of `width` elements that are loaded from `at` on."""
        if self.blocking.prefetches(self.height, right.converts):
            for v in range(0, self.vectors, self.blocking.vectors_per_line):
                right.prefetch(add(at, v * width))


def left_operands(
    step: Step,
    blocking: Blocking,
    buffer: ir.Value,
    start: Index,
    rows: Sequence[Index],
    vectors: int,
) -> Iterator[list[ir.Value]]:
    """Yields the factors of each row of a register block at one step along k, one for each vector.

    Rows are offsets from `start`. See `Blocking.is_operand` for which of them are memory operands
    of multiply-adds.
    """
    addresses: list[ir.Value] = []
    if blocking.is_operand(0, len(rows) * vectors):
        first = opaque_address(buffer, start)
        addresses = [first, *(clone_address(first) for _ in range(vectors - 1))]
    size = ir.MemRefType(buffer.type).element_type.width // 8
    for r, row in enumerate(rows):
        if isinstance(row, int) and blocking.is_operand(r, len(rows) * vectors):
            yield [step.left_at_address(address, row * size) for address in addresses]
        else:
            yield [step.left_at(buffer, add(start, row))] * vectors


def each_register_block(
    blocking: Blocking, rows: Index, emit: Callable[[Index, Index], None]
) -> None:
    """Emits `emit(first row, count of rows)` for each register block of a block of rows."""
    height, count = blocking.rows, ceil_div(rows, blocking.rows)
    rest = mod(rows, height)
    # A last block of few rows would be slow, so it takes some rows from the one before. One in tile
    # registers has at least as many rows as a tile.
    least = amx.ROWS if blocking.in_tiles else height // 3
    few = and_(and_(less(0, rest), less(rest, least)), less(height, rows))
    borrowed = select(few, sub(amx.ROWS, rest) if blocking.in_tiles else least, 0)

    def one(i: ir.Value) -> None:
        is_last, is_before = less(count, add(i, 2)), less(count, add(i, 3))
        first = sub(mul(i, height), select(is_last, borrowed, 0))
        end = sub(minimum(mul(add(i, 1), height), rows), select(is_before, borrowed, 0))
        emit(first, sub(select(is_last, rows, end), first))

    for_range(0, count, 1, one)


def with_epilogue(
    blocking: Blocking,
    epilogue: Epilogue,
    block: Block,
    is_last: bool | ir.Value,
    emit_sums: Callable[[], None],
) -> None:
    """Emits the sums of a block, to memory, and the epilogue if they are the last ones."""
    columns = blocking.columns

    def finish() -> None:
        if_else(
            less(columns - 1, block.columns),
            lambda: epilogue.of_whole_rows(block, blocking.vectors),
            lambda: epilogue(block),
        )

    if not epilogue.is_short:
        rows = value(block.rows)
        if_else(is_last, lambda: epilogue.prefetch(block, rows, blocking.vectors))
    emit_sums()
    if_else(is_last, finish)
