"""A block of rows in attention: what is kept of them, whatever multiplies them by blocks of keys.

    turned[d][row]       the queries, transposed once, times the scale; or pairs [d / 2][row][2]
    scores[key][row]     of a block of keys, and what is added to them
    top, total[row]      what scores are relative to, and sums of exponentials of the differences
    sums[row][d]         of values times exponentials

Source: arXiv 2205.14135 (FlashAttention).
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, memref, vector
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    floor_div,
    for_range,
    less,
    load,
    minimum,
    mod,
    mul,
    scratch,
    select,
    splat,
    store,
    sub,
    value,
    vector_type,
)
from relax_mlir.schedule.build.loops import mask as keep_lanes
from relax_mlir.schedule.build.transposes import transpose
from relax_mlir.schedule.cpu.isa.multiply_add import interleave
from relax_mlir.schedule.cpu.product.micro_kernel import Left

from .attention_parts import Lengths, Mask, Parts, Problem, finish_row
from .attention_reader import Reader

ROWS = 48


@dataclass(frozen=True)
class RowState:
    """Memory of a task for its rows; `mask` is [key][row] like the scores, if rows differ in it.

    `limit` is the number of keys that a row sees.
    """

    turned: ir.Value
    scores: ir.Value
    sums: ir.Value
    top: ir.Value
    total: ir.Value
    limit: ir.Value
    mask: ir.Value | None

    @staticmethod
    def allocate(problem: Problem, mask: Mask | None, keys: int, stack: ExitStack) -> "RowState":
        """Takes it, with scores of so many keys, until `stack` is closed."""
        f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)

        def take(count: int, element: ir.Type = f32) -> ir.Value:
            return stack.enter_context(scratch(count, element))

        differs = mask is not None and not mask.is_shared(problem.group)
        return RowState(
            turned=take(problem.depth * ROWS, ir.BF16Type.get() if problem.pairs else f32),
            scores=take(keys * ROWS),
            sums=take(ROWS * problem.width),
            top=take(ROWS),
            total=take(ROWS),
            limit=take(ROWS, i32),
            mask=take(keys * ROWS) if differs else None,
        )


@dataclass(frozen=True)
class RowBlock:
    """`held` rows of a kv head from `first` on, against `size` keys from `begin` on.

    `cache` is the number of vectors in front of the head's first key.
    """

    problem: Problem
    query: Reader
    keys: Reader
    values: Reader
    mask: Mask | None
    state: RowState
    lengths: Lengths
    sequence: Index
    head: Index
    first: Index
    held: Index
    cache: Index
    begin: Index
    size: Index

    @property
    def vectors(self) -> Index:
        """Vectors of rows."""
        return ceil_div(self.held, self.problem.lanes)

    @property
    def end(self) -> Index:
        """The first key that no row sees."""
        p, end = self.problem, self.lengths.length
        if p.causal:
            last = floor_div(add(self.first, self.held, -1), p.group)
            end = minimum(end, add(self.lengths.position, last, 1))
        return minimum(end, add(self.begin, self.size))

    def keys_from(self, start: Index) -> Left:
        """Keys as they lie."""
        p = self.problem
        at = add(mul(self.cache, p.depth), mul(start, p.key_step))
        return Left(self.keys.buffer, at, p.key_step)

    def values_from(self, start: Index) -> Left:
        """Values as they lie."""
        p = self.problem
        at = add(mul(self.cache, p.width), mul(start, p.value_step))
        return Left(self.values.buffer, at, p.value_step)

    def start(self, lowest: float) -> None:
        """Emits what is done before the first block of keys."""
        p, s = self.problem, self.state
        zero = splat(0.0, p.lanes, ir.F32Type.get())

        def start(v: ir.Value) -> None:
            at = mul(v, p.lanes)
            store(splat(lowest, p.lanes, ir.F32Type.get()), s.top, at)
            store(zero, s.total, at)
            self._turn_queries(at)

        for_range(0, self.vectors, 1, start)
        for_range(0, ROWS, 1, self._start_row)

    def _start_row(self, row: ir.Value) -> None:
        """Clears what a row has summed, and keeps the number of keys that it sees."""
        p, s = self.problem, self.state
        zero = splat(0.0, p.lanes, ir.F32Type.get())
        for at in p.columns:
            store(zero, s.sums, add(mul(row, p.width), at))
        limit = minimum(self.lengths.length, add(self.begin, self.size))
        if p.causal:
            query = floor_div(add(self.first, row), p.group)
            limit = minimum(limit, add(self.lengths.position, query, 1))
        i32 = ir.IntegerType.get_signless(32)
        memref.store(arith.index_cast(i32, value(limit)), s.limit, [row])

    def _place(self, row: Index) -> tuple[Index, Index]:
        """Query and head of a row."""
        group = self.problem.group
        row = add(self.first, row)
        return floor_div(row, group), add(mul(self.head, group), mod(row, group))

    def _element(self, row: Index, width: int) -> Index:
        """Offset of a row in the queries, or in the output."""
        query, head = self._place(row)
        query = add(mul(self.sequence, self.lengths.count), query)
        return mul(add(mul(query, self.problem.heads), head), width)

    def _turn_queries(self, at: Index) -> None:
        """Turns the rows of a vector into columns; those past the last one repeat it."""
        p = self.problem
        last = sub(self.held, 1)
        begins = [self._element(minimum(add(at, i), last), p.depth) for i in range(p.lanes)]
        if p.pairs:
            for_range(0, p.depth // 2, p.lanes, lambda pair: self._turn_pairs(begins, pair, at))
            return
        scale = splat(p.scale, p.lanes, ir.F32Type.get())

        def square(column: ir.Value) -> None:
            loaded = [self.query.load(add(begin, column), p.lanes) for begin in begins]
            for i, x in enumerate(transpose(loaded)):
                place = add(mul(add(column, i), ROWS), at)
                store(arith.mulf(x, scale), self.state.turned, place)

        for_range(0, p.depth, p.lanes, square)

    def _turn_pairs(self, begins: Sequence[Index], pair: Index, at: Index) -> None:
        """The same for a square of pairs, as they lie."""
        lanes = self.problem.lanes
        two, i32 = 2 * lanes, ir.IntegerType.get_signless(32)
        column = mul(pair, 2)
        loaded = [load(self.query.buffer, add(begin, column), two) for begin in begins]
        loaded = [vector.bitcast(vector_type(lanes, i32), x) for x in loaded]
        for i, x in enumerate(transpose(loaded)):
            place = mul(add(mul(add(pair, i), ROWS), at), 2)
            x = vector.bitcast(vector_type(two, ir.BF16Type.get()), x)
            store(x, self.state.turned, place)

    def turn_masks(self, start: Index, count: Index) -> None:
        """Turns what is added for `count` keys into columns, if rows differ in it."""
        p = self.problem
        if self.state.mask is not None:
            for_range(0, self.vectors, 1, lambda v: self._turn_mask(mul(v, p.lanes), start, count))

    def _turn_mask(self, at: Index, start: Index, count: Index) -> None:
        """The same for a vector of rows."""
        p, mask, last = self.problem, self.mask, sub(self.held, 1)
        buffer = self.state.mask
        assert mask is not None
        assert buffer is not None
        places = [self._place(minimum(add(at, i), last)) for i in range(p.lanes)]
        rows = [mask.row(self.sequence, head, query) for query, head in places]

        def square(key: ir.Value) -> None:
            keep = keep_lanes(sub(count, key), p.lanes)
            begins = [add(row, start, key) for row in rows]
            loaded = [mask.reader.load(begin, p.lanes, keep) for begin in begins]
            for i, x in enumerate(transpose(loaded)):
                store(x, buffer, add(mul(add(key, i), ROWS), at))

        for_range(0, count, p.lanes, square)

    def add_mask(
        self, x: ir.Value, key: Index, start: Index, count: Index, place: Index
    ) -> ir.Value:
        """Scores of a key of the block and a vector of rows, with what is added to them."""
        lanes, mask = self.problem.lanes, self.mask
        if mask is None:
            return x
        if self.state.mask is not None:
            return arith.addf(x, load(self.state.mask, add(mul(key, ROWS), place), lanes))
        at = add(mask.row(self.sequence, self.head, 0), start, minimum(key, sub(count, 1)))
        return arith.addf(x, mask.reader.everywhere(at, lanes))

    def hide(self, x: ir.Value, key: Index, limit: ir.Value) -> ir.Value:
        """Minus infinity in the rows that do not see a key."""
        lanes = self.problem.lanes
        i32 = ir.IntegerType.get_signless(32)
        place = broadcast(arith.index_cast(i32, value(key)), lanes)
        seen = arith.cmpi(arith.CmpIPredicate.slt, place, limit)
        return arith.select(seen, x, splat(float("-inf"), lanes, ir.F32Type.get()))

    def finish(self, row: ir.Value, parts: Parts, slot: Index, part: Index, out: ir.Value) -> None:
        """Stores what is known of a row."""
        p, s = self.problem, self.state
        top, total = (memref.load(buffer, [row]) for buffer in (s.top, s.total))
        source = (s.sums, mul(row, p.width))
        cpu = self._element(row, p.width)
        finish_row(p, parts, (slot, part, row), source, top, total, out, cpu)


def pair_values(
    values: Left, pairs: Index, last: Index, width: int, lanes: int, cpu: ir.Value
) -> None:
    """target[key / 2][d] = the elements of two keys; behind key `last` there are zeros."""
    two, half = 2 * lanes, ir.BF16Type.get()

    def keep(pair: ir.Value, keys: Sequence[Callable[[int], ir.Value]]) -> None:
        for column in range(0, width, two):
            rows = [key(column) for key in keys]
            for i, x in enumerate(interleave(*rows)):
                store(x, cpu, mul(add(mul(pair, width), column + i * lanes), 2))

    def key_at(number: Index) -> Callable[[int], ir.Value]:
        begin = values.at(number).offset
        return lambda column: load(values.buffer, add(begin, column), two)

    def whole(pair: ir.Value) -> None:
        keep(pair, [key_at(add(mul(pair, 2), i)) for i in range(2)])

    def part(pair: ir.Value) -> None:
        first = mul(pair, 2)
        is_there, key = less(first, add(last, 1)), key_at(minimum(first, last))
        zero = splat(0.0, two, half)
        keep(pair, [lambda column: select(is_there, key(column), zero), lambda _: zero])

    complete = minimum(pairs, floor_div(add(last, 1), 2))
    for_range(0, complete, 1, whole)
    for_range(complete, pairs, 1, part)


def greater(top: ir.Value, x: ir.Value) -> ir.Value:
    """The greater of two numbers, by one comparison; a NaN reaches the total anyway."""
    return arith.select(arith.cmpf(arith.CmpFPredicate.OGT, x, top), x, top)
