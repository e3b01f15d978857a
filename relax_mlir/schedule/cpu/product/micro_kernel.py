"""A tile of a matrix product: sums in registers, an outer product for each step along k.

    for each k
      rows x columns sums += left[:, k] * panel[k, :]

Numbers of the left side are read one at a time into all lanes, from a copy or from where they lie;
a panel has the numbers of all columns side by side for each k.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir, memref
from relax_mlir.schedule.build.block import Block, Epilogue
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    both,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    less,
    load,
    minimum,
    mod,
    mul,
    pick,
    sub,
    value,
    vector_type,
)
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.multiply_add import Bf16Pairs, halves
from relax_mlir.schedule.cpu.isa.pointers import again, load_behind, own_register
from relax_mlir.schedule.cpu.isa.step import Step


@dataclass(frozen=True)
class Panel:
    """A panel of the right side, from an offset of a flat buffer on.

    `convert` turns loaded vectors into f32; None where they are what is multiplied. With `halved`,
    the panel is of pairs of bf16 numbers, which become f32 numbers of two steps along k. A tile of
    some height asks for what lies `ahead` elements behind the vectors that it loads.
    """

    buffer: ir.Value
    offset: Index
    convert: Callable[[ir.Value], ir.Value] | None = None
    halved: bool = False
    ahead: Index | None = None

    @property
    def converts(self) -> bool:
        """Whether loaded vectors are not what is multiplied."""
        return self.halved or self.convert is not None

    @property
    def steps(self) -> int:
        """Steps along k of one load."""
        return 2 if self.halved else 1

    def load(self, at: Index, count: int, step: int, is_kept: bool) -> ir.Value:
        """The vector of one step of a load, of `count` elements from one on.

        Unless it `is_kept`, what is loaded is loaded again for a second step.
        """
        place = add(self.offset, at)
        if self.halved and step and not is_kept:
            kind = vector_type(count, ir.MemRefType(self.buffer.type).element_type)
            loaded = load_behind(own_register(self.buffer, place), 0, kind)
        else:
            loaded = load(self.buffer, place, count)
        if self.halved:
            return halves(loaded)[step]
        return self.convert(loaded) if self.convert else loaded

    def prefetch(self, at: Index) -> None:
        """Asks for the cache line ahead of an element; it need not exist."""
        if self.ahead is not None:
            place = add(self.offset, self.ahead, at)
            memref.prefetch(self.buffer, [value(place)], False, 2, True)


@dataclass(frozen=True)
class Left:
    """Rows of the left side along one block of k, from an offset of a flat buffer on.

    Rows are `stride` elements apart, steps along k `pitch` elements.
    """

    buffer: ir.Value
    offset: Index
    stride: Index
    pitch: int = 1

    def at(self, row: Index) -> "Left":
        """The rows from a row on."""
        return Left(self.buffer, add(self.offset, mul(row, self.stride)), self.stride, self.pitch)


@dataclass(frozen=True)
class MicroKernel:
    """Code for a tile of `height` rows and `vectors` vectors of a panel's columns."""

    blocking: Blocking
    step: Step
    height: int
    vectors: int

    @property
    def apart(self) -> int:
        """How many k are summed apart: few rows would wait for their own last addition."""
        return -(-8 // (self.height * self.vectors))

    def sums(
        self, depth: Index, left: Left, last: Index, right: Panel, initial: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The vectors of initial + left * right along `depth` steps, row by row.

        `last` is the number of the last row that there is: `height - 1`, or one less.
        """
        count, apart = self.height * self.vectors, self.apart
        depth = floor_div(depth, right.steps)
        in_turn = self.blocking.streams_of(self.height, right.converts)
        in_parts, places = in_turn > 1, max(apart, in_turn)
        part = floor_div(depth, places) if in_parts else 1
        rows = [mul(r, left.stride) for r in (*range(self.height - 1), last)]

        def step(k: Index, sums: Sequence[ir.Value]) -> list[ir.Value]:
            return self.step_along(k, left, rows, right, sums)

        def steps(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            result = list(sums)
            for place in range(places):
                begin = place % apart * count
                own = slice(begin, begin + count)
                result[own] = step(add(k, mul(place, part)), result[own])
            return result

        zero = self.step.splat(0)
        main = depth if places == 1 else sub(depth, mod(depth, places))
        sums = [*initial, *[zero] * (count * (apart - 1))]
        # In a longer body LLVM reorders loads, and bf16 comes from memory more slowly.
        as_it_is = isinstance(self.step, Bf16Pairs) and places > 1
        repeats = 1 if as_it_is else self.blocking.repeats(count, places)
        end, stride = (part, 1) if in_parts else (main, places)
        sums = for_range(0, end, stride, steps, sums, repeats)
        total = sums[:count]
        if places > 1:
            total = for_range(main, depth, 1, lambda k, *s: step(k, s), total)
            for u in range(1, apart):
                part_sums = sums[u * count : (u + 1) * count]
                total = [self.step.add(a, b) for a, b in zip(total, part_sums, strict=True)]
        return total

    def step_along(
        self, k: Index, left: Left, rows: Sequence[Index], right: Panel, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The next sums, one load along k further."""
        width = self.step.width * right.steps
        at = mul(k, self.blocking.vectors * width)
        if self.blocking.prefetches(self.height, right.converts):
            for v in range(0, self.vectors, self.blocking.vectors_per_line):
                right.prefetch(add(at, v * width))
        held = (self.height * self.apart + right.steps) * self.vectors
        for number in range(right.steps):
            places = [add(at, v * width) for v in range(self.vectors)]
            loaded = [
                right.load(place, width, number, held < self.blocking.registers) for place in places
            ]
            vectors = [self.step.right_of(x) for x in loaded]
            start = add(left.offset, mul(k, right.steps * left.pitch), number * left.pitch)
            operands = left_operands(
                self.step, self.blocking, left.buffer, start, rows, self.vectors
            )
            result = []
            for r, xs in enumerate(operands):
                own = sums[r * self.vectors : (r + 1) * self.vectors]
                result += [self.step(*of) for of in zip(xs, vectors, own, strict=True)]
            sums = result
        return list(sums)


def left_operands(
    step: Step,
    blocking: Blocking,
    buffer: ir.Value,
    start: Index,
    rows: Sequence[Index],
    vectors: int,
) -> Iterator[list[ir.Value]]:
    """Yields what each row of a tile has at one step along k, for each of its vectors.

    Rows are offsets from `start` on. See `Blocking.is_operand` for whether an instruction that
    multiplies reads it from memory by itself.
    """
    addresses: list[ir.Value] = []
    if blocking.is_operand(0, len(rows) * vectors):
        first = own_register(buffer, start)
        addresses = [first, *(again(first) for _ in range(vectors - 1))]
    size = ir.MemRefType(buffer.type).element_type.width // 8
    for r, row in enumerate(rows):
        if isinstance(row, int) and blocking.is_operand(r, len(rows) * vectors):
            yield [step.left_behind(address, row * size) for address in addresses]
        else:
            yield [step.left_at(buffer, add(start, row))] * vectors


def each_register_block(
    blocking: Blocking, rows: Index, emit: Callable[[Index, Index], None]
) -> None:
    """Emits `emit(first row, number of rows)` for all rows of a block."""
    height, count = blocking.rows, ceil_div(rows, blocking.rows)
    rest = mod(rows, height)
    # A last tile of few rows would wait for its columns: it gets some of the tile before. One in
    # tile registers has as many rows as they have at least.
    least = amx.ROWS if blocking.in_tiles else height // 3
    few = both(both(less(0, rest), less(rest, least)), less(height, rows))
    moved = pick(few, sub(amx.ROWS, rest) if blocking.in_tiles else least, 0)

    def one(i: ir.Value) -> None:
        is_last, is_before = less(count, add(i, 2)), less(count, add(i, 3))
        first = sub(mul(i, height), pick(is_last, moved, 0))
        end = sub(minimum(mul(add(i, 1), height), rows), pick(is_before, moved, 0))
        emit(first, sub(pick(is_last, rows, end), first))

    for_range(0, count, 1, one)


def with_epilogue(
    blocking: Blocking,
    epilogue: Epilogue,
    block: Block,
    is_last: bool | ir.Value,
    emit_sums: Callable[[], None],
) -> None:
    """Emits the sums of a block, into memory, and where they are the last ones what follows."""
    columns = blocking.columns

    def finish() -> None:
        if_else(
            less(columns - 1, block.columns),
            lambda: epilogue.of_whole_rows(block, blocking.vectors),
            lambda: epilogue(block),
        )

    if not epilogue.is_short:
        rows = value(block.rows)
        if_else(is_last, lambda: epilogue.fetch(block, rows, blocking.vectors))
    emit_sums()
    if_else(is_last, finish)
