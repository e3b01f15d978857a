"""A block of rows in attention: its state, for any kernel that multiplies it by blocks of keys.

    transposed[d][row]   the queries times the scale, or pairs [d / 2][row][2] without it
    scores[key][row]     of a block of keys, and their mask
    row_max, total[row]  the maximum of scores, and sums of exponentials of scores minus that
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
    """Buffers of a task for its rows; `mask` is [key][row] like the scores, if it differs by row.

    `limit` is the number of keys that a row attends to.
    """

    transposed: ir.Value
    scores: ir.Value
    sums: ir.Value
    row_max: ir.Value
    total: ir.Value
    limit: ir.Value
    mask: ir.Value | None

    @staticmethod
    def allocate(problem: Problem, mask: Mask | None, keys: int, stack: ExitStack) -> "RowState":
        """Allocates it, with scores of `keys` keys, until `stack` is closed."""
        f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)

        def take(count: int, element: ir.Type = f32) -> ir.Value:
            return stack.enter_context(scratch(count, element))

        differs = mask is not None and not mask.is_shared(problem.group)
        return RowState(
            transposed=take(problem.depth * ROWS, ir.BF16Type.get() if problem.pairs else f32),
            scores=take(keys * ROWS),
            sums=take(ROWS * problem.width),
            row_max=take(ROWS),
            total=take(ROWS),
            limit=take(ROWS, i32),
            mask=take(keys * ROWS) if differs else None,
        )


@dataclass(frozen=True)
class RowBlock:
    """`num_rows` rows of a kv head from `first` on, against `size` keys from `begin` on.

    `cache` is the index of the head's first key.
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
    num_rows: Index
    cache: Index
    begin: Index
    size: Index

    @property
    def vectors(self) -> Index:
        """Vectors of rows."""
        return ceil_div(self.num_rows, self.problem.lanes)

    @property
    def end(self) -> Index:
        """The first key that no row attends to."""
        p, end = self.problem, self.lengths.length
        if p.causal:
            last = floor_div(add(self.first, self.num_rows, -1), p.group)
            end = minimum(end, add(self.lengths.position, last, 1))
        return minimum(end, add(self.begin, self.size))

    def keys_from(self, start: Index) -> Left:
        """The keys from an index on."""
        p = self.problem
        at = add(mul(self.cache, p.depth), mul(start, p.key_step))
        return Left(self.keys.buffer, at, p.key_step)

    def values_from(self, start: Index) -> Left:
        """The values from an index on."""
        p = self.problem
        at = add(mul(self.cache, p.width), mul(start, p.value_step))
        return Left(self.values.buffer, at, p.value_step)

    def start(self, lowest: float) -> None:
        """Emits the initial state, before the first block of keys."""
        p, s = self.problem, self.state
        zero = splat(0.0, p.lanes, ir.F32Type.get())

        def start(v: ir.Value) -> None:
            at = mul(v, p.lanes)
            store(splat(lowest, p.lanes, ir.F32Type.get()), s.row_max, at)
            store(zero, s.total, at)
            self._transpose_queries(at)

        for_range(0, self.vectors, 1, start)
        for_range(0, ROWS, 1, self._start_row)

    def _start_row(self, row: ir.Value) -> None:
        """Clears the sums of a row, and stores its limit."""
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

    def _query_and_head(self, row: Index) -> tuple[Index, Index]:
        """Query and head of a row."""
        group = self.problem.group
        row = add(self.first, row)
        return floor_div(row, group), add(mul(self.head, group), mod(row, group))

    def _element(self, row: Index, width: int) -> Index:
        """Offset of a row in the queries, or in the output."""
        query, head = self._query_and_head(row)
        query = add(mul(self.sequence, self.lengths.count), query)
        return mul(add(mul(query, self.problem.heads), head), width)

    def _transpose_queries(self, at: Index) -> None:
        """Transposes the queries of a vector of rows; rows after the last one repeat it."""
        p = self.problem
        last = sub(self.num_rows, 1)
        begins = [self._element(minimum(add(at, i), last), p.depth) for i in range(p.lanes)]
        if p.pairs:
            for_range(
                0, p.depth // 2, p.lanes, lambda pair: self._transpose_pairs(begins, pair, at)
            )
            return
        scale = splat(p.scale, p.lanes, ir.F32Type.get())

        def square(column: ir.Value) -> None:
            loaded = [self.query.load(add(begin, column), p.lanes) for begin in begins]
            for i, x in enumerate(transpose(loaded)):
                offset = add(mul(add(column, i), ROWS), at)
                store(arith.mulf(x, scale), self.state.transposed, offset)

        for_range(0, p.depth, p.lanes, square)

    def _transpose_pairs(self, begins: Sequence[Index], pair: Index, at: Index) -> None:
        """The same for a square of pairs, not scaled."""
        lanes = self.problem.lanes
        two, i32 = 2 * lanes, ir.IntegerType.get_signless(32)
        column = mul(pair, 2)
        loaded = [load(self.query.buffer, add(begin, column), two) for begin in begins]
        loaded = [vector.bitcast(vector_type(lanes, i32), x) for x in loaded]
        for i, x in enumerate(transpose(loaded)):
            offset = mul(add(mul(add(pair, i), ROWS), at), 2)
            x = vector.bitcast(vector_type(two, ir.BF16Type.get()), x)
            store(x, self.state.transposed, offset)

    def transpose_masks(self, start: Index, count: Index) -> None:
        """Transposes the mask for `count` keys, if it differs by row."""
        p = self.problem
        if self.state.mask is not None:
            for_range(
                0, self.vectors, 1, lambda v: self._transpose_mask(mul(v, p.lanes), start, count)
            )

    def _transpose_mask(self, at: Index, start: Index, count: Index) -> None:
        """The same for a vector of rows."""
        p, mask, last = self.problem, self.mask, sub(self.num_rows, 1)
        buffer = self.state.mask
        assert mask is not None
        assert buffer is not None
        indices = [self._query_and_head(minimum(add(at, i), last)) for i in range(p.lanes)]
        rows = [mask.row(self.sequence, head, query) for query, head in indices]

        def square(key: ir.Value) -> None:
            keep = keep_lanes(sub(count, key), p.lanes)
            begins = [add(row, start, key) for row in rows]
            loaded = [mask.reader.load(begin, p.lanes, keep) for begin in begins]
            for i, x in enumerate(transpose(loaded)):
                store(x, buffer, add(mul(add(key, i), ROWS), at))

        for_range(0, count, p.lanes, square)

    def add_mask(self, x: ir.Value, key: Index, start: Index, count: Index, row: Index) -> ir.Value:
        """Scores of a key of the block and a vector of rows, plus the mask."""
        lanes, mask = self.problem.lanes, self.mask
        if mask is None:
            return x
        if self.state.mask is not None:
            return arith.addf(x, load(self.state.mask, add(mul(key, ROWS), row), lanes))
        at = add(mask.row(self.sequence, self.head, 0), start, minimum(key, sub(count, 1)))
        return arith.addf(x, mask.reader.broadcast_at(at, lanes))

    def hide(self, x: ir.Value, key: Index, limit: ir.Value) -> ir.Value:
        """Scores with -inf in the rows that do not attend to a key."""
        lanes = self.problem.lanes
        i32 = ir.IntegerType.get_signless(32)
        index = broadcast(arith.index_cast(i32, value(key)), lanes)
        seen = arith.cmpi(arith.CmpIPredicate.slt, index, limit)
        return arith.select(seen, x, splat(float("-inf"), lanes, ir.F32Type.get()))

    def finish(self, row: ir.Value, parts: Parts, slot: Index, part: Index, out: ir.Value) -> None:
        """Stores a row, see `finish_row`."""
        p, s = self.problem, self.state
        row_max, total = (memref.load(buffer, [row]) for buffer in (s.row_max, s.total))
        source = (s.sums, mul(row, p.width))
        target = self._element(row, p.width)
        finish_row(p, parts, (slot, part, row), source, row_max, total, out, target)


def pair_values(
    values: Left, pairs: Index, last: Index, width: int, lanes: int, target: ir.Value
) -> None:
    """target[key / 2][d] = the elements of two keys, zeros after key `last`."""
    two, half = 2 * lanes, ir.BF16Type.get()

    def interleave_keys(pair: ir.Value, keys: Sequence[Callable[[int], ir.Value]]) -> None:
        for column in range(0, width, two):
            rows = [key(column) for key in keys]
            for i, x in enumerate(interleave(*rows)):
                store(x, target, mul(add(mul(pair, width), column + i * lanes), 2))

    def key_at(index: Index) -> Callable[[int], ir.Value]:
        begin = values.at(index).offset
        return lambda column: load(values.buffer, add(begin, column), two)

    def whole(pair: ir.Value) -> None:
        interleave_keys(pair, [key_at(add(mul(pair, 2), i)) for i in range(2)])

    def part(pair: ir.Value) -> None:
        first = mul(pair, 2)
        is_valid, key = less(first, add(last, 1)), key_at(minimum(first, last))
        zero = splat(0.0, two, half)
        interleave_keys(pair, [lambda column: select(is_valid, key(column), zero), lambda _: zero])

    complete = minimum(pairs, floor_div(add(last, 1), 2))
    for_range(0, complete, 1, whole)
    for_range(complete, pairs, 1, part)


def greater(row_max: ir.Value, x: ir.Value) -> ir.Value:
    """The greater of two vectors by one comparison; a NaN reaches the total anyway."""
    return arith.select(arith.cmpf(arith.CmpFPredicate.OGT, x, row_max), x, row_max)
