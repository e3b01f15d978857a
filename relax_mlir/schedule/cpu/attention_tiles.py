"""Attention of many rows: blocks of 48 rows, each a query head of a query, against blocks of keys.

    turned[d][row]       the queries, transposed once, times the scale
    scores[key][row]     tiles of keys by vectors of rows: keys are read as they lie, one number
                         at a time, so no key is ever transposed
    softmax              rows are lanes: greatest scores and totals are vectors, nothing goes across
    sums[row][d]         tiles of rows by vectors of features: values as they lie

Keys and values that are not f32 are decoded a block at a time. With pairs of bf16, two neighbours
along d, or two keys, make one lane (`multiply_add.py`), and values are interleaved by two.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

from relax_mlir.bindings import arith, ir, memref, vector

from .attention_cache import Reader
from .attention_parts import (
    LOWEST,
    Lengths,
    Mask,
    Parts,
    Problem,
    finish_row,
    power,
    run_parts,
)
from .loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    floor_div,
    for_range,
    load,
    minimum,
    mod,
    mul,
    round_up,
    scratch,
    splat,
    store,
    sub,
    value,
    vector_type,
)
from .loops import mask as keep_lanes
from .multiply_add import MultiplyAdd, interleave, load_pair, round_to_bf16
from .packing import transpose

ROWS = 48
_KEYS = 64
_STRIP = 3
_LOW = 4


def emit_tiles(
    problem: Problem, buffers: Mapping[int, ir.Value], lengths: Lengths, mask: Mask | None = None
) -> None:
    """Emits attention by blocks of `ROWS` rows."""
    out = buffers[problem.out.position]
    operands = problem.operands
    readers = operands.readers(buffers)
    rows = mul(lengths.count, problem.group)
    blocks = ceil_div(rows, ROWS)

    def slot_of(query: Index, head: Index) -> tuple[Index, Index]:
        sequence, query = lengths.split(query)
        row = add(mul(query, problem.group), mod(head, problem.group))
        shared = add(mul(sequence, problem.kv_heads), floor_div(head, problem.group))
        return add(mul(shared, blocks), floor_div(row, ROWS)), mod(row, ROWS)

    def task(parts: Parts, number: Index, part: Index) -> None:
        shared = floor_div(number, blocks)
        block = _folded(mod(number, blocks), blocks)
        slot = add(mul(shared, blocks), block)
        sequence, head = 0, shared
        if problem.batched:
            sequence, head = floor_div(shared, problem.kv_heads), mod(shared, problem.kv_heads)
        first = mul(block, ROWS)
        with ExitStack() as stack:
            buffers = _Scratch.allocate(problem, readers, mask, stack)
            tile = _Block(
                problem, *readers, mask, buffers, lengths, sequence, head, first,
                minimum(ROWS, sub(rows, first)), problem.first_key(lengths, sequence, head),
                mul(part, parts.size), parts.size,
            )  # fmt: skip
            tile.emit()
            for_range(0, tile.held, 1, lambda r: tile.finish(r, parts, slot, part, out))

    slots = mul(lengths.batch, problem.kv_heads, blocks)
    run_parts(problem, lengths, slots, ROWS, slot_of, out, task)


def _folded(number: Index, count: Index) -> Index:
    """Numbers from both ends in turn.

    Causal work grows with the block, and each run of neighbours should have its share.
    """
    half = floor_div(number, 2)
    odd = mod(number, 2)
    back = sub(sub(count, 1), mul(2, half))
    return add(half, mul(odd, back))


@dataclass(frozen=True)
class _Scratch:
    """Memory of a task.

    `keys` and `values` hold a decoded or interleaved block; None where the cache is read. `weights`
    are the exponentials, in place of the `scores` unless they are rounded. `mask` is [key][row]
    like the scores, if rows differ in it.
    """

    turned: ir.Value
    scores: ir.Value
    weights: ir.Value
    sums: ir.Value
    top: ir.Value
    total: ir.Value
    factor: ir.Value
    limit: ir.Value
    keys: ir.Value | None
    values: ir.Value | None
    mask: ir.Value | None

    @staticmethod
    def allocate(
        problem: Problem, readers: Sequence[Reader], mask: Mask | None, stack: ExitStack
    ) -> "_Scratch":
        """Takes it from the thread's scratch memory until `stack` is closed."""
        f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)

        def take(count: int, element: ir.Type = f32) -> ir.Value:
            return stack.enter_context(scratch(count, element))

        half, widths = ir.BF16Type.get(), (problem.depth, problem.width)
        scores = take(_KEYS * ROWS)
        if problem.pairs:
            keys, values = None, take(_KEYS * problem.width, half)
            turned, weights = (take(count * ROWS, half) for count in (problem.depth, _KEYS))
        else:
            held = zip(readers[1:], widths, strict=True)
            keys, values = (None if r.is_f32 else take(_KEYS * width) for r, width in held)
            turned, weights = take(problem.depth * ROWS), scores
        sums, top, total, factor = (take(x) for x in (ROWS * problem.width, ROWS, ROWS, ROWS))
        differs = mask is not None and not mask.is_shared(problem.group)
        masks = take(_KEYS * ROWS) if differs else None
        return _Scratch(
            turned, scores, weights, sums, top, total, factor, take(ROWS, i32), keys, values, masks
        )


@dataclass(frozen=True)
class _Block:
    """`held` rows of a kv head from `first` on, against `size` keys from `begin` on.

    `cache` is the number of vectors in front of the head's first key.
    """

    problem: Problem
    query: Reader
    keys: Reader
    values: Reader
    mask: Mask | None
    memory: _Scratch
    lengths: Lengths
    sequence: Index
    head: Index
    first: Index
    held: Index
    cache: Index
    begin: Index
    size: Index

    @property
    def tile(self) -> tuple[int, int]:
        """Keys, and vectors of rows, of a tile of scores."""
        return (8 if self.problem.registers >= 32 else 4), _STRIP

    def emit(self) -> None:
        """Emits the loop over blocks of keys."""
        p, m = self.problem, self.memory
        vectors = ceil_div(self.held, p.lanes)
        zero = splat(0.0, p.lanes, ir.F32Type.get())
        lowest = splat(LOWEST, p.lanes, ir.F32Type.get())

        def start(v: ir.Value) -> None:
            at = mul(v, p.lanes)
            store(lowest, m.top, at)
            store(zero, m.total, at)
            self._turn_queries(at)

        for_range(0, vectors, 1, start)
        for_range(0, ROWS, 1, self._start_row)
        last = floor_div(add(self.first, self.held, -1), p.group)
        end = self.lengths.length
        if p.causal:
            end = minimum(end, add(self.lengths.position, last, 1))
        end = minimum(end, add(self.begin, self.size))
        for_range(self.begin, end, _KEYS, lambda at: self._run(at, sub(end, at), vectors))

    def _start_row(self, row: ir.Value) -> None:
        """Clears what a row has summed, and keeps the number of keys that it sees."""
        p, m = self.problem, self.memory
        zero = splat(0.0, p.lanes, ir.F32Type.get())
        for at in p.columns:
            store(zero, m.sums, add(mul(row, p.width), at))
        limit = self.lengths.length
        if p.causal:
            query = floor_div(add(self.first, row), p.group)
            limit = minimum(limit, add(self.lengths.position, query, 1))
        i32 = ir.IntegerType.get_signless(32)
        memref.store(arith.index_cast(i32, value(limit)), m.limit, [row])

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
        scale = splat(p.scale, p.lanes, ir.F32Type.get())

        def pairs(pair: ir.Value) -> None:
            two, i32 = 2 * p.lanes, ir.IntegerType.get_signless(32)
            column = mul(pair, 2)
            loaded = [load(self.query.buffer, add(begin, column), two) for begin in begins]
            loaded = [vector.bitcast(vector_type(p.lanes, i32), x) for x in loaded]
            for i, x in enumerate(transpose(loaded)):
                place = mul(add(mul(add(pair, i), ROWS), at), 2)
                x = vector.bitcast(vector_type(two, ir.BF16Type.get()), x)
                store(x, self.memory.turned, place)

        def square(column: ir.Value) -> None:
            loaded = [self.query.load(add(begin, column), p.lanes) for begin in begins]
            for i, x in enumerate(transpose(loaded)):
                place = add(mul(add(column, i), ROWS), at)
                store(arith.mulf(x, scale), self.memory.turned, place)

        if p.pairs:
            for_range(0, p.depth // 2, p.lanes, pairs)
        else:
            for_range(0, p.depth, p.lanes, square)

    def _run(self, start: Index, left: Index, vectors: Index) -> None:
        """One block of keys, of which `left` or fewer are to be seen."""
        p, m = self.problem, self.memory
        count = minimum(_KEYS, left)
        keys = self._held(self.keys, m.keys, start, count, p.depth)
        if m.mask is not None:
            for_range(0, vectors, 1, lambda v: self._turn_mask(mul(v, p.lanes), start, count))
        wide = sub(vectors, mod(vectors, _STRIP))
        for_range(0, wide, _STRIP, lambda v: self._score_strip(keys, v, _STRIP, start, count))
        for_range(wide, vectors, 1, lambda v: self._score_strip(keys, v, 1, start, count))
        if p.pairs:
            self._pair_values(start, count)
            self._add_values(m.values, 0, p.width, count)
            return
        buffer, begin = self._held(self.values, m.values, start, count, p.width)
        step = p.value_step if m.values is None else p.width
        self._add_values(buffer, begin(0), step, count)

    def _turn_mask(self, at: Index, start: Index, count: Index) -> None:
        """Turns the masks of a vector of rows into columns, for a block of keys."""
        p, mask, last = self.problem, self.mask, sub(self.held, 1)
        assert mask is not None
        places = [self._place(minimum(add(at, i), last)) for i in range(p.lanes)]
        rows = [mask.row(self.sequence, head, query) for query, head in places]

        def square(key: ir.Value) -> None:
            keep = keep_lanes(sub(count, key), p.lanes)
            begins = [add(row, start, key) for row in rows]
            loaded = [mask.reader.load(begin, p.lanes, keep) for begin in begins]
            for i, x in enumerate(transpose(loaded)):
                store(x, self.memory.mask, add(mul(add(key, i), ROWS), at))

        for_range(0, count, p.lanes, square)

    def _pair_values(self, start: Index, count: Index) -> None:
        """values[key / 2][d] = the numbers of two keys; the last one may be there twice."""
        p, m = self.problem, self.memory
        first = add(mul(self.cache, p.width), mul(start, p.value_step))

        def one(number: ir.Value) -> None:
            key = mul(number, 2)
            begins = [
                add(first, mul(k, p.value_step)) for k in (key, minimum(add(key, 1), sub(count, 1)))
            ]
            for column in range(0, p.width, 2 * p.lanes):
                rows = [load(self.values.buffer, add(at, column), 2 * p.lanes) for at in begins]
                for i, x in enumerate(interleave(*rows)):
                    at = add(mul(number, p.width), column + i * p.lanes)
                    store(x, m.values, mul(at, 2))

        for_range(0, ceil_div(count, 2), 1, one)

    def _held(
        self, reader: Reader, target: ir.Value | None, start: Index, count: Index, width: int
    ) -> tuple[ir.Value, Callable[[Index], Index]]:
        """A buffer with the block's keys, of `width` features, and where each of them begins.

        Of keys past the end, the last one is repeated.
        """
        p = self.problem
        last = sub(count, 1)
        step = width * (p.kv_heads if p.batched else 1)
        first = add(mul(self.cache, width), mul(start, step))
        if target is None:
            return reader.buffer, lambda key: add(first, mul(minimum(key, last), step))

        def decode(key: ir.Value) -> None:
            begin = add(first, mul(key, step))
            for at in range(0, width, p.lanes):
                store(reader.load(add(begin, at), p.lanes), target, add(mul(key, width), at))

        for_range(0, count, 1, decode)
        return target, lambda key: mul(minimum(key, last), width)

    def _score_strip(
        self,
        keys: tuple[ir.Value, Callable[[Index], Index]],
        first: Index,
        vectors: int,
        start: Index,
        count: Index,
    ) -> None:
        """Scores of a block for some vectors of rows, from vector `first` on; then the softmax."""
        p, m = self.problem, self.memory
        height, _ = self.tile
        at = mul(first, p.lanes)
        places = [add(at, v * p.lanes) for v in range(vectors)]
        limits = [load(m.limit, place, p.lanes) for place in places]
        before = [load(m.top, place, p.lanes) for place in places]
        # A key that repeats the last one changes no greatest score; weights end at the last one.
        repeats = not p.causal and not p.pairs and m.mask is None

        def tile(key: ir.Value, *tops: ir.Value) -> list[ir.Value]:
            sums = self._products(keys, key, height, places)
            top = list(tops)
            for i, x in enumerate(sums):
                k, v = divmod(i, vectors)
                if p.pairs:  # queries are as they lie
                    x = arith.mulf(x, splat(p.scale, p.lanes, ir.F32Type.get()))
                if self.mask is not None:
                    added = self._mask(self.mask, add(key, k), start, count, places[v])
                    x = arith.addf(x, added)
                if not repeats:
                    x = self._masked(x, add(start, key, k), limits[v])
                top[v] = _greater(top[v], x)
                store(x, m.scores, add(mul(add(key, k), ROWS), places[v]))
            return top

        top = for_range(0, count, height, tile, before)
        factors = [power(a, b) for a, b in zip(before, top, strict=True)]
        totals = []
        for place, new, factor in zip(places, top, factors, strict=True):
            store(new, m.top, place)
            store(factor, m.factor, place)
            totals.append(arith.mulf(load(m.total, place, p.lanes), factor))

        weigh = self._power_of_pair if p.pairs else self._power_of_key

        def powers(key: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            rows = zip(places, top, totals, strict=True)
            return [weigh(key, place, shift, total) for place, shift, total in rows]

        totals = for_range(0, count, 2 if p.pairs else 1, powers, totals)
        for place, total in zip(places, totals, strict=True):
            store(total, m.total, place)

    def _mask(self, mask: Mask, key: Index, start: Index, count: Index, place: Index) -> ir.Value:
        """What is added to the scores of a key of the block and a vector of rows."""
        lanes = self.problem.lanes
        if self.memory.mask is not None:
            return load(self.memory.mask, add(mul(key, ROWS), place), lanes)
        at = add(mask.row(self.sequence, self.head, 0), start, minimum(key, sub(count, 1)))
        return mask.reader.everywhere(at, lanes)

    def _power_of_key(self, key: Index, place: Index, shift: ir.Value, total: ir.Value) -> ir.Value:
        """Exponentiates a vector of scores; returns the total with it."""
        p, m = self.problem, self.memory
        at = add(mul(key, ROWS), place)
        x = power(load(m.scores, at, p.lanes), shift)
        store(x, m.scores, at)
        return arith.addf(total, x)

    def _power_of_pair(
        self, key: Index, place: Index, shift: ir.Value, total: ir.Value
    ) -> ir.Value:
        """The same for two keys, whose exponentials are rounded to bf16, and added up as such."""
        p, m = self.problem, self.memory
        rounded = []
        for i in range(2):
            at = add(mul(add(key, i), ROWS), place)
            rounded.append(round_to_bf16(power(load(m.scores, at, p.lanes), shift)))
        order = [x for i in range(p.lanes) for x in (i, p.lanes + i)]
        pairs = vector.shuffle(*rounded, order)
        store(pairs, m.weights, add(mul(key, ROWS), mul(place, 2)))
        ones = splat(1.0, 2 * p.lanes, ir.BF16Type.get())
        return MultiplyAdd(p.lanes, p.pairs)(ones, pairs, total)

    def _products(
        self,
        keys: tuple[ir.Value, Callable[[Index], Index]],
        key: Index,
        height: int,
        places: Sequence[Index],
    ) -> list[ir.Value]:
        """Dot products of `height` keys with vectors of rows, key by key."""
        p, m = self.problem, self.memory
        buffer, begin_of = keys
        begins = [begin_of(add(key, k)) for k in range(height)]

        fma = MultiplyAdd(p.lanes, p.pairs)
        deep = fma.per_lane

        def step(d: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            at = [mul(add(mul(d, ROWS), place), deep) for place in places]
            rows = [load(m.turned, x, deep * p.lanes) for x in at]
            result = []
            for k, begin in enumerate(begins):
                x = self._everywhere(buffer, add(begin, mul(d, deep)))
                for v, row in enumerate(rows):
                    result.append(fma(x, row, sums[k * len(rows) + v]))
            return result

        zero = splat(0.0, p.lanes, ir.F32Type.get())
        return for_range(0, p.depth // deep, 1, step, [zero] * (height * len(places)))

    def _everywhere(self, buffer: ir.Value, at: Index) -> ir.Value:
        """The number or pair at an offset, in every lane."""
        lanes = self.problem.lanes
        if self.problem.pairs:
            return load_pair(buffer, at, lanes)
        return broadcast(memref.load(buffer, [value(at)]), lanes)

    def _masked(self, x: ir.Value, key: Index, limit: ir.Value) -> ir.Value:
        """Minus infinity in the rows that do not see a key."""
        lanes = self.problem.lanes
        i32 = ir.IntegerType.get_signless(32)
        place = broadcast(arith.index_cast(i32, value(key)), lanes)
        seen = arith.cmpi(arith.CmpIPredicate.slt, place, limit)
        return arith.select(seen, x, splat(float("-inf"), lanes, ir.F32Type.get()))

    def _add_values(self, buffer: ir.Value, begin: Index, apart: int, count: Index) -> None:
        """sums[row..] = sums * factor + p[key][row..] * values[key], over a block.

        Values are `apart` from each other.
        """
        p = self.problem
        height, vectors = _shape(p)

        def tiles(first: Index, last: Index, height: int) -> None:
            def tile(row: ir.Value) -> None:
                for column in range(0, p.width, vectors * p.lanes):
                    columns = range(column, column + vectors * p.lanes, p.lanes)
                    self._add_tile(buffer, begin, apart, count, row, height, columns)

            for_range(first, last, height, tile)

        low = min(height, _LOW)
        whole = sub(self.held, mod(self.held, height)) if low < height else 0
        tiles(0, whole, height)
        tiles(whole, add(whole, round_up(sub(self.held, whole), low)), low)

    def _add_tile(
        self,
        buffer: ir.Value,
        begin: Index,
        apart: int,
        count: Index,
        row: Index,
        height: int,
        columns: Sequence[int],
    ) -> None:
        p, m = self.problem, self.memory
        fma = MultiplyAdd(p.lanes, p.pairs)
        deep, vectors = fma.per_lane, len(columns)
        rows = [add(row, r) for r in range(height)]
        places = [[add(mul(r, p.width), column) for column in columns] for r in rows]

        def step(number: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            key = mul(number, apart)
            at = [mul(add(begin, key, column), deep) for column in columns]
            right = [load(buffer, x, deep * p.lanes) for x in at]
            result = []
            for i, r in enumerate(rows):
                x = self._everywhere(m.weights, mul(add(mul(number, ROWS), r), deep))
                own = sums[i * vectors : (i + 1) * vectors]
                result += [fma(x, y, total) for y, total in zip(right, own, strict=True)]
            return result

        sums = []
        for r, line in zip(rows, places, strict=True):
            factor = broadcast(memref.load(m.factor, [value(r)]), p.lanes)
            sums += [arith.mulf(load(m.sums, place, p.lanes), factor) for place in line]
        sums = for_range(0, ceil_div(count, deep), 1, step, sums)
        for place, x in zip(chain(*places), sums, strict=True):
            store(x, m.sums, place)

    def finish(self, row: ir.Value, parts: Parts, slot: Index, part: Index, out: ir.Value) -> None:
        """Stores what is known of a row."""
        p, m = self.problem, self.memory
        top, total = (memref.load(buffer, [row]) for buffer in (m.top, m.total))
        source = (m.sums, mul(row, p.width))
        target = self._element(row, p.width)
        finish_row(p, parts, (slot, part, row), source, top, total, out, target)


def _greater(top: ir.Value, x: ir.Value) -> ir.Value:
    """The greater of two numbers, by one comparison; a NaN reaches the total anyway."""
    return arith.select(arith.cmpf(arith.CmpFPredicate.OGT, x, top), x, top)


def _shape(problem: Problem) -> tuple[int, int]:
    """Rows and vectors of a tile of sums: most products for each load that registers allow."""
    most = 24 if problem.registers >= 32 else 12
    shapes = [
        (r, v)
        for r in range(1, ROWS + 1)
        for v in range(1, 7)
        if ROWS % r == 0 and problem.vectors % v == 0 and r * v <= most
    ]
    return max(shapes, key=lambda s: (s[0] * s[1] / (s[0] + s[1]), s[0] * s[1]))
