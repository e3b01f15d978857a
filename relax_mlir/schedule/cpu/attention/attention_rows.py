"""Attention of few rows: the heads of a query that share a kv head, against part of the keys.

    for each block of keys:  scores = dot products with the keys
                             exponentials, rescale the sums so far
                             sums[r] += p[r, key] * values[key]

Keys and values stream from memory, which is fastest in order: loops take one key at a time, since
LLVM reorders loads in longer bodies, and blocks are short, so that loads of keys and of values
alternate. Dot products leave a vector of partial sums a key, which are stored for a block and then
reduced in pairs of keys: 15 steps for 16 keys. With pairs of bf16 (`multiply_add.py`), values of
two keys are interleaved where they are used, and the keys of the next block are multiplied before
the exponentials of this one, which hides their latency.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain

from relax_mlir.bindings import arith, ir, memref, vector
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    floor_div,
    for_range,
    load,
    maximum,
    minimum,
    mod,
    mul,
    scratch,
    splat,
    store,
    sub,
    value,
    vector_type,
)
from relax_mlir.schedule.build.loops import mask as keep_lanes
from relax_mlir.schedule.cpu.isa.multiply_add import (
    Bf16Pairs,
    float_step,
    interleave,
    load_pair,
)

from .attention_block import greater
from .attention_parts import (
    LOWEST,
    Lengths,
    Mask,
    Parts,
    Problem,
    exponential,
    finish_row,
    reduce_lanes,
    run_parts,
)
from .attention_reader import Reader, readers_of

MAX_ROWS = 8
_KEYS = 16
_AT_ONCE = 4


def emit_rows(
    problem: Problem, buffers: Mapping[int, ir.Value], lengths: Lengths, mask: Mask | None = None
) -> None:
    """Emits attention a query at a time, which is for few rows of each sequence."""
    out = buffers[problem.out.position]
    operands = problem.operands
    readers = readers_of(operands, buffers)
    is_alone = not problem.batched

    def slot_of(query: Index, head: Index) -> tuple[Index, Index]:
        slot = add(mul(query, problem.kv_heads), floor_div(head, problem.group))
        return slot, mod(head, problem.group)

    def task(parts: Parts, slot: Index, part: Index) -> None:
        head = mod(slot, problem.kv_heads)
        linear = floor_div(slot, problem.kv_heads)
        sequence, query = lengths.split(linear)
        seen = add(lengths.position, query, 1) if problem.causal else lengths.length
        size = parts.size
        if is_alone:
            size = Parts.size_of(problem, minimum(seen, lengths.length))
        begin = mul(part, size)
        # A part without keys that this query attends to is empty: it begins at its end.
        end = minimum(seen, add(begin, size))
        begin = minimum(begin, end)
        group, width = problem.group, problem.width
        if problem.causal:  # the position of a query may be beyond the last key
            begin, end = minimum(begin, lengths.length), minimum(end, lengths.length)
        with ExitStack() as stack:
            scratches = scratches_of(problem, stack)
            first = add(mul(linear, problem.heads), mul(head, group))
            target = mul(first, width)
            cache = problem.first_key(lengths, sequence, head)
            source, first_key = (mul(x, problem.depth) for x in (first, cache))
            first_value = mul(cache, width)
            masks = []
            if mask is not None:
                first = mul(head, group)
                masks = [mask.row(sequence, add(first, r), query) for r in range(group)]
            rows = Rows(
                problem, *readers, mask, *scratches,
                source, first_key, first_value, masks, begin, end, sub(lengths.length, 1),
            )  # fmt: skip
            row_max, total = rows.emit()
            for r in range(group):
                finish_row(
                    problem, parts, (slot, part, r), (rows.sums, r * width),
                    row_max[r], total[r], out, add(target, r * width),
                )  # fmt: skip

    slots = mul(lengths.batch, lengths.count, problem.kv_heads)
    run_parts(problem, lengths, slots, problem.group, slot_of, out, task, is_alone)


def scratches_of(
    problem: Problem, stack: ExitStack
) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value, ir.Value, ir.Value]:
    """The buffers of `Rows`, from `scaled` on, until `stack` is closed."""
    group, f32 = problem.group, ir.F32Type.get()
    block = group * _KEYS

    def take(count: int, element: ir.Type = f32) -> ir.Value:
        return stack.enter_context(scratch(count, element))

    scaled, sums = take(group * problem.depth), take(group * problem.width)
    products, scores = take(block * problem.lanes), take(block)
    weights = take(block, ir.BF16Type.get() if problem.pairs else f32)
    return scaled, sums, products, scores, weights, take(group)


@dataclass(frozen=True)
class Rows:
    """`group` rows at offset `source` of the queries, and keys `begin` to `end` of a head.

    The last key of the head is key `last`. The head's keys and values begin at `first_key` and
    `first_value`, the rows' masks at `masks`. `scaled` has the queries times the scale, `sums` the
    outputs so far, `scores` those of one block of keys, `factors` the factors of its rows that
    rescale earlier sums.
    """

    problem: Problem
    query: Reader
    keys: Reader
    values: Reader
    mask: Mask | None
    scaled: ir.Value
    sums: ir.Value
    products: ir.Value
    scores: ir.Value
    weights: ir.Value
    factors: ir.Value
    source: Index
    first_key: Index
    first_value: Index
    masks: Sequence[Index]
    begin: Index
    end: Index
    last: Index

    def emit(self) -> tuple[list[ir.Value], list[ir.Value]]:
        """Emits the loop over blocks of keys; returns the maximum and total of each row."""
        p = self.problem
        f32 = ir.F32Type.get()
        zero, scale = (splat(x, p.lanes, f32) for x in (0.0, p.scale))
        for r in range(p.group):
            for at in () if p.pairs else p.key_columns:
                x = self.query.load(add(self.source, r * p.depth + at), p.lanes)
                store(arith.mulf(x, scale), self.scaled, r * p.depth + at)
            for at in p.columns:
                store(zero, self.sums, r * p.width + at)
        lowest = arith.constant(f32, ir.FloatAttr.get(f32, LOWEST))

        pipelined = p.pairs  # bound by latency within a block, rather than by memory

        def multiply(start: Index) -> None:
            count = minimum(_KEYS, sub(maximum(self.end, start), start))
            for rows in _pieces(p.group, _AT_ONCE):
                self._multiply_keys(start, count, rows)

        def block(start: ir.Value, *state: ir.Value) -> list[ir.Value]:
            count = minimum(_KEYS, sub(self.end, start))
            if not pipelined:
                multiply(start)
            self._sum_products(start, count)
            if pipelined:
                multiply(add(start, _KEYS))
            updated = self._exponentials(count, state)
            self._add_values(start, count)
            return updated

        if pipelined:
            multiply(self.begin)
        state = [lowest] * p.group + [zero] * p.group
        state = for_range(self.begin, self.end, _KEYS, block, state)
        row_max, totals = state[: p.group], state[p.group :]
        return row_max, [reduce_lanes([x], arith.addf, p.lanes) for x in totals]

    def _multiply_keys(self, start: Index, count: Index, rows: Sequence[int]) -> None:
        """Emits products[key, r] = partial sums of the dot product, key by key."""
        p = self.problem
        query = [self._query(r) for r in rows]

        def one(key: ir.Value) -> None:
            index = add(start, key)
            at = self._key(index)
            keys = self._vectors(self.keys, at)
            self._prefetch_key(index, at)
            for r, row in zip(rows, query, strict=True):
                product_at = add(mul(key, p.group * p.lanes), r * p.lanes)
                store(self._dot(row, keys), self.products, product_at)

        for_range(0, count, 1, one)

    def _query(self, row: int) -> list[ir.Value]:
        p = self.problem
        if p.pairs:
            return self._vectors(self.query, add(self.source, row * p.depth))
        return [load(self.scaled, row * p.depth + at, p.lanes) for at in p.key_columns]

    def _vectors(self, reader: Reader, begin: Index) -> list[ir.Value]:
        """The features at an offset: f32, or pairs of bf16."""
        p = self.problem
        if not p.pairs:
            return [reader.load(add(begin, at), p.lanes) for at in p.key_columns]
        columns = range(0, p.depth, 2 * p.lanes)
        return [load(reader.buffer, add(begin, at), 2 * p.lanes) for at in columns]

    def _key(self, index: Index) -> Index:
        """The offset of a key of the head."""
        return add(self.first_key, mul(index, self.problem.key_step))

    def _value(self, index: Index) -> Index:
        """The offset of a value of the head."""
        return add(self.first_value, mul(index, self.problem.value_step))

    def _key_after(self, index: Index, at: Index, rows: int) -> Index:
        """The offset of the key `rows` after key `index`, which is at an offset, or of the last."""
        return minimum(add(at, rows * self.problem.key_step), self._key(self.last))

    def _value_after(self, index: Index, at: Index, rows: int) -> Index:
        """The same of values."""
        return minimum(add(at, rows * self.problem.value_step), self._value(self.last))

    def _prefetch_key(self, index: Index, at: Index) -> None:
        """Prefetches the key at the prefetch distance from one at an offset."""
        p = self.problem
        if p.prefetch is not None:
            rows = self.keys.prefetch_rows(p.prefetch, p.depth)
            self.keys.prefetch(p.prefetch, self._key_after(index, at, rows), p.depth)

    def _prefetch_value(self, index: Index, at: Index) -> None:
        """Prefetches the value at the prefetch distance from one at an offset."""
        p = self.problem
        if p.prefetch is not None:
            rows = self.values.prefetch_rows(p.prefetch, p.width)
            self.values.prefetch(p.prefetch, self._value_after(index, at, rows), p.width)

    def _dot(self, row: Sequence[ir.Value], keys: Sequence[ir.Value]) -> ir.Value:
        """The dot product of two rows of vectors, as a vector of partial sums."""
        p = self.problem
        step = float_step(p.lanes, p.pairs)
        total = splat(0.0, p.lanes, ir.F32Type.get())
        for x, y in zip(row, keys, strict=True):
            total = step(x, y, total)
        return total

    def _sum_products(self, start: Index, count: Index) -> None:
        """Emits scores[r, key] of the block from key `start` on, -inf after the last one."""
        p = self.problem

        def group(first: ir.Value) -> None:
            for r in range(p.group):

                def product(i: int, r: int = r) -> ir.Value:
                    at = mul(add(first, i), p.group * p.lanes)
                    return load(self.products, add(at, r * p.lanes), p.lanes)

                sums = _sums([partial(product, i) for i in range(p.lanes)], p.lanes)
                if p.pairs:  # queries are not scaled
                    sums = arith.mulf(sums, splat(p.scale, p.lanes, ir.F32Type.get()))
                sums = self._finished(sums)
                if self.mask is not None:
                    mask_at = add(self.masks[r], start, first)
                    keep = keep_lanes(sub(count, first), p.lanes)
                    sums = arith.addf(sums, self.mask.reader.load(mask_at, p.lanes, keep))
                store(_masked(sums, sub(count, first)), self.scores, add(first, r * _KEYS))

        for_range(0, count, p.lanes, group)

    def _finished(self, scores: ir.Value) -> ir.Value:
        """What is computed of scaled scores before they are masked."""
        return scores

    def _exponentials(self, count: Index, state: Sequence[ir.Value]) -> list[ir.Value]:
        """Exponentiates a block of scores; returns maximum scores, and totals by lane."""
        p = self.problem
        before, totals = state[: p.group], state[p.group :]

        def greatest(at: ir.Value, *row_maxes: ir.Value) -> list[ir.Value]:
            loaded = [load(self.scores, add(at, r * _KEYS), p.lanes) for r in range(p.group)]
            return [greater(a, b) for a, b in zip(row_maxes, loaded, strict=True)]

        row_maxes = for_range(0, count, p.lanes, greatest, [broadcast(x, p.lanes) for x in before])
        row_maxes = [reduce_lanes([x], greater, p.lanes) for x in row_maxes]
        shifts = [broadcast(x, p.lanes) for x in row_maxes]
        scaled = []
        for r, (old, new, total) in enumerate(zip(before, row_maxes, totals, strict=True)):
            factor = exponential(old, new)
            memref.store(factor, self.factors, [value(r)])
            scaled.append(arith.mulf(total, broadcast(factor, p.lanes)))

        def weigh(at: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            result = []
            for r, (shift, total) in enumerate(zip(shifts, totals, strict=True)):
                score_at = add(at, r * _KEYS)
                x = exponential(load(self.scores, score_at, p.lanes), shift)
                if p.pairs:  # totals are of the rounded weights
                    rounded = Bf16Pairs(p.lanes, p.pairs).rounded(x)
                    store(rounded, self.weights, score_at)
                    x = arith.extf(x.type, rounded)
                else:
                    store(x, self.scores, score_at)
                result.append(arith.addf(total, x))
            return result

        return [*row_maxes, *for_range(0, count, p.lanes, weigh, scaled)]

    def _add_values(self, start: Index, count: Index) -> None:
        """sums[r] = sums[r] * factor + p[r, i] * values[i], over the keys of a block."""
        p = self.problem
        whole = 2 if p.pairs else 1
        # Sums, the weights of a key and a vector of its values have to fit the registers.
        widest, sums = (8, 20) if p.registers >= 32 else (4, 12)
        strip = max(v for v in range(whole, widest + 1, whole) if p.vectors % v == 0)
        height = max(1, sums // strip)
        for column in range(0, p.width, strip * p.lanes):
            columns = range(column, column + strip * p.lanes, p.lanes)
            for rows in _pieces(p.group, height):
                self._add_strip(start, count, rows, columns)

    def _add_strip(
        self, start: Index, count: Index, rows: Sequence[int], columns: Sequence[int]
    ) -> None:
        p = self.problem
        offsets = [[r * p.width + at for at in columns] for r in rows]
        before = []
        for r, row in zip(rows, offsets, strict=True):
            factor = broadcast(memref.load(self.factors, [value(r)]), p.lanes)
            before += [arith.mulf(load(self.sums, offset, p.lanes), factor) for offset in row]

        def key(index: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            return self._add_key(start, index, rows, columns, sums)

        def pair(index: ir.Value, *sums: ir.Value, is_whole: bool = True) -> list[ir.Value]:
            return self._add_pair(start, index, rows, columns, sums, is_whole)

        if p.pairs:
            whole, last = floor_div(count, 2), partial(pair, is_whole=False)
            after = for_range(0, whole, 1, pair, before)
            after = for_range(whole, ceil_div(count, 2), 1, last, after)
        else:
            after = for_range(0, count, 1, key, before)
        for offset, x in zip(chain(*offsets), after, strict=True):
            store(x, self.sums, offset)

    def _add_key(
        self,
        start: Index,
        key: Index,
        rows: Sequence[int],
        columns: Sequence[int],
        sums: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """One step of `_add_strip`."""
        p = self.problem
        index = add(start, key)
        at = self._value(index)
        self._prefetch_value(index, at)
        offsets = [add(at, column) for column in columns]
        if p.registers < 32:
            return self._add_key_by_columns(key, rows, offsets, sums)
        values = [self.values.load(offset, p.lanes) for offset in offsets]
        added = []
        for n, r in enumerate(rows):
            own = sums[n * len(columns) : (n + 1) * len(columns)]
            pairs = zip(values, own, strict=True)
            x = self._weight(key, r)
            added += [vector.fma(x, y, total) for y, total in pairs]
        return added

    def _add_key_by_columns(
        self, key: Index, rows: Sequence[int], offsets: Sequence[Index], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The same, one vector of values at a time, for few registers."""
        weights = [self._weight(key, r) for r in rows]
        added = list(sums)
        for v, offset in enumerate(offsets):
            y = self.values.load(offset, self.problem.lanes)
            own = slice(v, None, len(offsets))
            pairs = zip(weights, added[own], strict=True)
            added[own] = [vector.fma(x, y, total) for x, total in pairs]
        return added

    def _weight(self, key: Index, row: int) -> ir.Value:
        """The weight of a key of the block for a row, in every lane."""
        weight = memref.load(self.scores, [value(add(key, row * _KEYS))])
        return broadcast(weight, self.problem.lanes)

    def _add_pair(
        self,
        start: Index,
        index: Index,
        rows: Sequence[int],
        columns: Sequence[int],
        sums: Sequence[ir.Value],
        is_whole: bool,
    ) -> list[ir.Value]:
        """The same step for two keys, or for one and zeros."""
        p = self.problem
        key = mul(index, 2)
        indices = [add(start, k) for k in (key, add(key, 1))[: 1 + is_whole]]
        offsets = [self._value(index) for index in indices]
        for index, at in zip(indices, offsets, strict=True):
            self._prefetch_value(index, at)
        zeros = [splat(0.0, 2 * p.lanes, ir.BF16Type.get())] * (2 - len(offsets))
        values = []
        for column in columns[::2]:
            halves = [load(self.values.buffer, add(at, column), 2 * p.lanes) for at in offsets]
            values += interleave(*halves, *zeros)
        step = Bf16Pairs(p.lanes, p.pairs)
        added = []
        for n, r in enumerate(rows):
            x = load_pair(self.weights, add(key, r * _KEYS), p.lanes)
            own = sums[n * len(columns) : (n + 1) * len(columns)]
            added += [step(x, y, total) for y, total in zip(values, own, strict=True)]
        return added


def _pieces(count: int, limit: int) -> list[range]:
    """The indices below `count` in pieces of one size, at most `limit`, but for the last."""
    pieces = -(-count // limit)
    size = -(-count // pieces)
    return [range(begin, min(count, begin + size)) for begin in range(0, count, size)]


def _sums(vectors: Sequence[Callable[[], ir.Value]], lanes: int) -> ir.Value:
    """The horizontal sums of as many vectors as there are lanes, in order.

    Vectors are emitted when they are needed, so that few are live at a time.
    """
    if len(vectors) == 1:
        return vectors[0]()
    half = len(vectors) // 2
    first, second = (_sums(part, lanes) for part in (vectors[:half], vectors[half:]))
    width = lanes // half  # lanes of each sum so far
    begins = range(0, 2 * lanes, width)
    low = [begin + i for begin in begins for i in range(width // 2)]
    high = [i + width // 2 for i in low]
    return arith.addf(vector.shuffle(first, second, low), vector.shuffle(first, second, high))


def _masked(scores: ir.Value, count: Index) -> ir.Value:
    """Scores with -inf from lane `count` on."""
    lanes = ir.VectorType(scores.type).shape[0]
    i32 = ir.IntegerType.get_signless(32)
    kind = vector_type(lanes, i32)
    indices = [ir.IntegerAttr.get(i32, i) for i in range(lanes)]
    index = arith.constant(kind, ir.DenseElementsAttr.get(indices, kind))
    limit = broadcast(arith.index_cast(i32, value(count)), lanes)
    seen = arith.cmpi(arith.CmpIPredicate.slt, index, limit)
    return arith.select(seen, scores, splat(float("-inf"), lanes, ir.F32Type.get()))
