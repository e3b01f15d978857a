"""A block of keys and values in attention, in tile registers: both products, and the softmax.

    scores[key][row]   = keys as they lie * turned queries[d / 2][row][2]
    weights[row][key]    exponentials, by 16 rows, turned while they are in registers
    sums[row][d]      += weights[row][key / 2][2] * values[key / 2][d][2]

Numbers are bf16, scores and sums f32, registers those of `amx.py`. Blocks are so small that all of
it stays in the L1 cache. A last tile of keys is moved up over the one before, whose scores it
computes again; fewer keys than a tile has are copied. What the sums are relative to follows the
greatest score from some distance, so that they are seldom scaled.

Source: arXiv 2205.14135 (FlashAttention).
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, math, memref, vector
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    for_range,
    if_else,
    less,
    load,
    maximum,
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
from relax_mlir.schedule.build.transposes import transpose
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.amx import (
    LANE_BYTES,
    LANES,
    LEFT,
    PAIRS,
    RIGHT,
    ROWS,
    SUMS,
    load_tile,
    store_tile,
)
from relax_mlir.schedule.cpu.isa.multiply_add import Bf16Pairs, round_to_bf16
from relax_mlir.schedule.cpu.isa.pointers import pointer
from relax_mlir.schedule.cpu.product.micro_kernel import Left

from .attention_block import ROWS as BLOCK_ROWS
from .attention_block import RowBlock, greater, pair_values
from .attention_hidden import add_values
from .attention_parts import LOWEST, power

_STRIP = 3
"""Tiles of rows whose scores are computed together."""
_SLACK = 8.0
"""Scores may be so much greater than what they are relative to."""
_LOG2E = 1.4426950408889634
_PAIR = 2


@dataclass(frozen=True)
class TileKeys:
    """The work on blocks of keys for a block of rows; buffers are room for it.

    `few` is for the keys of a tile, `factors` has a number for each row.
    """

    rows: RowBlock
    few: ir.Value
    weights: ir.Value
    values: ir.Value
    factors: ir.Value

    COUNT = 32
    """Keys of a block: sixteen pairs, as many as a tile has lanes."""

    @staticmethod
    def allocate(rows: RowBlock, stack: ExitStack) -> "TileKeys":
        """Takes tile registers and memory until `stack` is closed."""
        problem, half = rows.problem, ir.BF16Type.get()

        def take(count: int, element: ir.Type) -> ir.Value:
            return stack.enter_context(scratch(count, element))

        few, weights = take(ROWS * problem.depth, half), take(BLOCK_ROWS * TileKeys.COUNT, half)
        values = take(TileKeys.COUNT * problem.width, half)
        factors = take(BLOCK_ROWS, ir.F32Type.get())
        stack.enter_context(amx.configured(ROWS, ROWS))
        return TileKeys(rows, few, weights, values, factors)

    @property
    def scales_first(self) -> bool:
        """Whether scores are scaled before their exponentials are taken, not at once with that."""
        return self.rows.mask is not None or self.rows.problem.scale <= 0

    @property
    def lowest(self) -> float:
        """What scores are relative to at first: a multiple of it has to be finite too."""
        return LOWEST if self.scales_first else LOWEST / 2

    def emit(self, start: Index, left: Index) -> None:
        """Emits a block of keys from `start` on, of which `left` or fewer are to be seen."""
        count = minimum(self.COUNT, left)
        self._score(self.rows.keys_from(start), count)
        self._finish_scores(start, count)
        for_range(0, self.rows.vectors, 1, lambda v: self._weigh(mul(v, LANES)))
        values = self.rows.values_from(start)
        add_values(
            self.rows,
            start,
            count,
            self.factors,
            self._weight,
            lambda: self._add_values(values, sub(count, 1)),
        )

    def _weight(self, key: Index, row: Index) -> ir.Value:
        """The weight of a key of the block for a row."""
        at = add(mul(row, self.COUNT), key)
        return arith.extf(ir.F32Type.get(), memref.load(self.weights, [value(at)]))

    def _score(self, keys: Left, count: Index) -> None:
        """Products of `count` keys, with anything behind them, and all tiles of rows."""
        keys, vectors = self._whole(keys, count), self.rows.vectors
        last = sub(maximum(count, ROWS), ROWS)

        def strip(first: Index, high: int) -> None:
            places = [mul(add(first, v), LANES) for v in range(high)]

            def tile(at: ir.Value) -> None:
                self._score_tile(keys, minimum(at, last), places)

            for_range(0, count, ROWS, tile)

        wide = sub(vectors, mod(vectors, _STRIP))
        for_range(0, wide, _STRIP, lambda v: strip(v, _STRIP))
        for_range(wide, vectors, 1, lambda v: strip(v, 1))

    def _score_tile(self, keys: Left, key: Index, places: Sequence[Index]) -> None:
        """Products of 16 keys and the tiles of rows that begin at `places`."""
        state, keys, pitch = self.rows.state, keys.at(key), BLOCK_ROWS * LANE_BYTES
        for v in range(len(places)):
            amx.clear_tile(SUMS[v])

        def step(pair: ir.Value) -> None:
            begin = add(keys.offset, mul(pair, _PAIR))
            load_tile(LEFT[0], pointer(keys.buffer, begin), mul(keys.stride, _PAIR))
            for v, place in enumerate(places):
                at = mul(add(mul(pair, BLOCK_ROWS), place), _PAIR)
                load_tile(RIGHT[v % 2], pointer(state.turned, at), pitch)
                amx.multiply_tiles(PAIRS, SUMS[v], LEFT[0], RIGHT[v % 2])

        for_range(0, self.rows.problem.depth // _PAIR, LANES, step)
        for v, place in enumerate(places):
            at = add(mul(key, BLOCK_ROWS), place)
            store_tile(SUMS[v], pointer(state.scores, at), pitch)

    def _whole(self, keys: Left, count: Index) -> Left:
        """At least as many keys as a tile has: a copy of fewer, with anything behind them."""
        is_few, depth = less(count, ROWS), self.rows.problem.depth

        def one(key: ir.Value) -> None:
            for d in range(0, depth, LANES * _PAIR):
                x = load(keys.buffer, add(keys.at(key).offset, d), LANES * _PAIR)
                store(x, self.few, add(mul(key, depth), d))

        if_else(is_few, lambda: for_range(0, count, 1, one))
        copy = memref.cast(keys.buffer.type, self.few)
        stride = keys.stride if keys.stride == depth else select(is_few, depth, keys.stride)
        return Left(select(is_few, copy, keys.buffer), select(is_few, 0, keys.offset), stride)

    def _finish_scores(self, start: Index, count: Index) -> None:
        """Masks scores where any is to be, and scales them if that comes first."""
        rows, scores = self.rows, self.rows.state.scores
        rows.turn_masks(start, count)

        def tile(v: ir.Value) -> None:
            at = mul(v, LANES)
            limit = load(rows.state.limit, at, LANES)

            def one(key: ir.Value) -> None:
                place = add(mul(key, BLOCK_ROWS), at)
                x = load(scores, place, LANES)
                if self.scales_first:
                    x = arith.mulf(x, _number(rows.problem.scale))
                x = rows.add_mask(x, key, start, count, at)
                store(rows.hide(x, add(start, key), limit), scores, place)

            for_range(0, self.COUNT, 1, one)

        # Rows see no fewer keys than those before them.
        fewest = arith.index_cast(ir.IndexType.get(), memref.load(rows.state.limit, [value(0)]))
        is_hidden = self.scales_first or less(fewest, add(start, self.COUNT))
        if_else(is_hidden, lambda: for_range(0, rows.vectors, 1, tile))

    def _weigh(self, at: Index) -> None:
        """The weights of a whole block for the 16 rows from `at` on."""
        state, scale = self.rows.state, self.rows.problem.scale
        places = [add(key * BLOCK_ROWS, at) for key in range(self.COUNT)]
        loaded = [load(state.scores, place, LANES) for place in places]
        before, top = load(state.top, at, LANES), _greatest(loaded)
        top = _raised(before, top if self.scales_first else arith.mulf(top, _number(scale)))
        store(top, state.top, at)
        change = power(before, top)
        store(change, self.factors, at)
        powers = [round_to_bf16(x) for x in self._powers(loaded, top)]
        order = [x for i in range(LANES) for x in (i, LANES + i)]
        pairs = [
            vector.shuffle(*pair, order) for pair in zip(powers[::2], powers[1::2], strict=True)
        ]
        total = arith.mulf(load(state.total, at, LANES), change)
        ones = splat(1.0, LANES * _PAIR, ir.BF16Type.get())
        for pair in pairs:
            total = Bf16Pairs(LANES)(ones, pair, total)
        store(total, state.total, at)
        self._keep_turned(pairs, at)

    def _powers(self, scores: Sequence[ir.Value], top: ir.Value) -> list[ir.Value]:
        """e^(score - top), of scores that are scaled or are not."""
        if self.scales_first:
            flag = arith.FastMathFlags.afn
            return [math.exp(arith.subf(x, top), fastmath=flag) for x in scores]
        scale = _number(self.rows.problem.scale * _LOG2E)
        shift = arith.negf(arith.mulf(top, _number(_LOG2E)))
        exponents = [vector.fma(x, scale, shift) for x in scores]
        return [math.exp2(x, fastmath=arith.FastMathFlags.afn) for x in exponents]

    def _keep_turned(self, pairs: Sequence[ir.Value], row: Index) -> None:
        """Stores the weights of 16 rows and pairs of keys row by row."""
        singles = vector_type(LANES, ir.IntegerType.get_signless(32))
        turned = transpose([vector.bitcast(singles, x) for x in pairs])
        for i, x in enumerate(turned):
            x = vector.bitcast(pairs[0].type, x)
            store(x, self.weights, mul(add(row, i), self.COUNT))

    def _add_values(self, values: Left, last: Index) -> None:
        """Sums of weights times values, of which `last` is the last one."""
        p, sums = self.rows.problem, self.rows.state.sums
        pair_values(values, self.COUNT // _PAIR, last, p.width, LANES, self.values)
        columns = range(0, p.width, LANES)

        def tile(v: ir.Value) -> None:
            row = mul(v, ROWS)
            self._scale(sums, row)
            for first in range(0, len(columns), len(SUMS)):
                self._sum_tiles(sums, row, columns[first : first + len(SUMS)])

        for_range(0, self.rows.vectors, 1, tile)

    def _scale(self, sums: ir.Value, row: Index) -> None:
        """Multiplies the sums of 16 rows by a factor each, if there is one that is not 1."""
        factors = load(self.factors, row, LANES)
        is_other = arith.cmpf(arith.CmpFPredicate.UNE, factors, _number(1.0))
        is_any = vector.reduction(is_other.type.element_type, vector.CombiningKind.OR, is_other)

        def one(i: ir.Value) -> None:
            factor = broadcast(memref.load(self.factors, [value(add(row, i))]), LANES)
            for column in range(0, self.rows.problem.width, LANES):
                at = add(mul(add(row, i), self.rows.problem.width), column)
                store(arith.mulf(load(sums, at, LANES), factor), sums, at)

        if_else(is_any, lambda: for_range(0, ROWS, 1, one))

    def _sum_tiles(self, sums: ir.Value, row: Index, columns: Sequence[int]) -> None:
        """Adds the products of a block to 16 rows of sums, 16 columns from each of `columns` on."""
        pitch = self.rows.problem.width * LANE_BYTES
        places = [
            pointer(sums, add(mul(row, self.rows.problem.width), column)) for column in columns
        ]
        load_tile(LEFT[0], pointer(self.weights, mul(row, self.COUNT)), self.COUNT * _PAIR)
        for n, column in enumerate(columns):
            load_tile(SUMS[n], places[n], pitch)
            load_tile(RIGHT[n % 2], pointer(self.values, column * _PAIR), pitch)
            amx.multiply_tiles(PAIRS, SUMS[n], LEFT[0], RIGHT[n % 2])
        for n, place in enumerate(places):
            store_tile(SUMS[n], place, pitch)


def _greatest(vectors: Sequence[ir.Value]) -> ir.Value:
    """The greatest of vectors, lane by lane."""
    found = list(vectors)
    while len(found) > 1:
        found = [greater(x, y) for x, y in zip(found[::2], found[1::2], strict=True)]
    return found[0]


def _raised(before: ir.Value, top: ir.Value) -> ir.Value:
    """What scores are relative to: what they were before, unless `top` is so much greater."""
    bound = arith.addf(before, _number(_SLACK))
    return arith.select(arith.cmpf(arith.CmpFPredicate.OGT, top, bound), top, before)


def _number(x: float) -> ir.Value:
    return splat(x, LANES, ir.F32Type.get())
