"""A block of keys and values in attention, in tile registers: both products, and the softmax.

    scores[key][row]   = keys * transposed queries[d / 2][row][2]
    weights[row][key]    exponentials, by 16 rows, transposed in registers
    sums[row][d]      += weights[row][key / 2][2] * values[key / 2][d][2]

Operands are bf16, scores and sums f32, registers those of `amx.py`. Blocks stay in the L1 cache.
The last tile of keys overlaps the one before and recomputes some of its scores; fewer keys than a
tile has are copied. The running maximum is raised only if scores exceed it by a margin, so that
sums are seldom rescaled.

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
from relax_mlir.schedule.build.online_softmax import LOWEST, exponential
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
from relax_mlir.schedule.cpu.isa.multiply_add import Bf16Pairs
from relax_mlir.schedule.cpu.isa.pointers import pointer
from relax_mlir.schedule.cpu.product.micro_kernel import Left

from .attention_block import ROWS as BLOCK_ROWS
from .attention_block import RowBlock, greater, pair_values
from .attention_hidden import add_values

_STRIP = 3
"""Tiles of rows whose scores are computed together."""
_MARGIN = 8.0
"""The margin by which scores may exceed the running maximum."""
_LOG2E = 1.4426950408889634
_PAIR = 2


@dataclass(frozen=True)
class TileKeys:
    """The work on blocks of keys for a block of rows, and its buffers.

    `copied_keys` is for the keys of a tile, `factors` has an element for each row.
    """

    rows: RowBlock
    copied_keys: ir.Value
    weights: ir.Value
    values: ir.Value
    factors: ir.Value

    COUNT = 32
    """Keys of a block: a pair for each lane of a tile."""

    @staticmethod
    def allocate(rows: RowBlock, stack: ExitStack) -> "TileKeys":
        """Allocates tile registers and buffers until `stack` is closed."""
        problem, half = rows.problem, ir.BF16Type.get()

        def take(count: int, element: ir.Type) -> ir.Value:
            return stack.enter_context(scratch(count, element))

        copied_keys, weights = (
            take(ROWS * problem.depth, half),
            take(BLOCK_ROWS * TileKeys.COUNT, half),
        )
        values = take(TileKeys.COUNT * problem.width, half)
        factors = take(BLOCK_ROWS, ir.F32Type.get())
        stack.enter_context(amx.configured(ROWS, ROWS))
        return TileKeys(rows, copied_keys, weights, values, factors)

    @property
    def scales_first(self) -> bool:
        """Whether scores are scaled before, rather than within, their exponentials."""
        return self.rows.mask is not None or self.rows.problem.scale <= 0

    @property
    def lowest(self) -> float:
        """The initial maximum of scores; a multiple of it has to be finite too."""
        return LOWEST if self.scales_first else LOWEST / 2

    def emit(self, start: Index, left: Index) -> None:
        """Emits a block of keys from `start` on, of which up to `left` are valid."""
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
        """Products of `count` keys, and undefined ones after them, with all tiles of rows."""
        keys, vectors = self._whole(keys, count), self.rows.vectors
        last = sub(maximum(count, ROWS), ROWS)

        def strip(first: Index, high: int) -> None:
            offsets = [mul(add(first, v), LANES) for v in range(high)]

            def tile(at: ir.Value) -> None:
                self._score_tile(keys, minimum(at, last), offsets)

            for_range(0, count, ROWS, tile)

        aligned = sub(vectors, mod(vectors, _STRIP))
        for_range(0, aligned, _STRIP, lambda v: strip(v, _STRIP))
        for_range(aligned, vectors, 1, lambda v: strip(v, 1))

    def _score_tile(self, keys: Left, key: Index, offsets: Sequence[Index]) -> None:
        """Products of 16 keys and the tiles of rows that begin at `offsets`."""
        state, keys, pitch = self.rows.state, keys.at(key), BLOCK_ROWS * LANE_BYTES
        for v in range(len(offsets)):
            amx.clear_tile(SUMS[v])

        def step(pair: ir.Value) -> None:
            begin = add(keys.offset, mul(pair, _PAIR))
            load_tile(LEFT[0], pointer(keys.buffer, begin), mul(keys.stride, _PAIR))
            for v, offset in enumerate(offsets):
                at = mul(add(mul(pair, BLOCK_ROWS), offset), _PAIR)
                load_tile(RIGHT[v % 2], pointer(state.transposed, at), pitch)
                amx.multiply_tiles(PAIRS, SUMS[v], LEFT[0], RIGHT[v % 2])

        for_range(0, self.rows.problem.depth // _PAIR, LANES, step)
        for v, offset in enumerate(offsets):
            at = add(mul(key, BLOCK_ROWS), offset)
            store_tile(SUMS[v], pointer(state.scores, at), pitch)

    def _whole(self, keys: Left, count: Index) -> Left:
        """At least as many keys as a tile has: fewer are copied, followed by undefined ones."""
        is_few, depth = less(count, ROWS), self.rows.problem.depth

        def one(key: ir.Value) -> None:
            for d in range(0, depth, LANES * _PAIR):
                x = load(keys.buffer, add(keys.at(key).offset, d), LANES * _PAIR)
                store(x, self.copied_keys, add(mul(key, depth), d))

        if_else(is_few, lambda: for_range(0, count, 1, one))
        copy = memref.cast(keys.buffer.type, self.copied_keys)
        stride = keys.stride if keys.stride == depth else select(is_few, depth, keys.stride)
        return Left(select(is_few, copy, keys.buffer), select(is_few, 0, keys.offset), stride)

    def _finish_scores(self, start: Index, count: Index) -> None:
        """Masks scores if necessary, and scales them if `scales_first`."""
        rows, scores = self.rows, self.rows.state.scores
        rows.transpose_masks(start, count)

        def tile(v: ir.Value) -> None:
            at = mul(v, LANES)
            limit = load(rows.state.limit, at, LANES)

            def one(key: ir.Value) -> None:
                offset = add(mul(key, BLOCK_ROWS), at)
                x = load(scores, offset, LANES)
                if self.scales_first:
                    x = arith.mulf(x, _constant(rows.problem.scale))
                x = rows.add_mask(x, key, start, count, at)
                store(rows.hide(x, add(start, key), limit), scores, offset)

            for_range(0, self.COUNT, 1, one)

        # Later rows attend to at least as many keys.
        fewest = arith.index_cast(ir.IndexType.get(), memref.load(rows.state.limit, [value(0)]))
        is_hidden = self.scales_first or less(fewest, add(start, self.COUNT))
        if_else(is_hidden, lambda: for_range(0, rows.vectors, 1, tile))

    def _weigh(self, at: Index) -> None:
        """The weights of a whole block for the 16 rows from `at` on."""
        state, scale = self.rows.state, self.rows.problem.scale
        offsets = [add(key * BLOCK_ROWS, at) for key in range(self.COUNT)]
        loaded = [load(state.scores, offset, LANES) for offset in offsets]
        before, row_max = load(state.row_max, at, LANES), _greatest(loaded)
        row_max = _raised(
            before, row_max if self.scales_first else arith.mulf(row_max, _constant(scale))
        )
        store(row_max, state.row_max, at)
        factor = exponential(before, row_max)
        store(factor, self.factors, at)
        exponentials = [Bf16Pairs(LANES).rounded(x) for x in self._exponentials(loaded, row_max)]
        order = [x for i in range(LANES) for x in (i, LANES + i)]
        pairs = [
            vector.shuffle(*pair, order)
            for pair in zip(exponentials[::2], exponentials[1::2], strict=True)
        ]
        total = arith.mulf(load(state.total, at, LANES), factor)
        ones = splat(1.0, LANES * _PAIR, ir.BF16Type.get())
        for pair in pairs:
            total = Bf16Pairs(LANES)(ones, pair, total)
        store(total, state.total, at)
        self._store_transposed(pairs, at)

    def _exponentials(self, scores: Sequence[ir.Value], row_max: ir.Value) -> list[ir.Value]:
        """e^(score - top), of scores that are scaled or are not."""
        if self.scales_first:
            flag = arith.FastMathFlags.afn
            return [math.exp(arith.subf(x, row_max), fastmath=flag) for x in scores]
        scale = _constant(self.rows.problem.scale * _LOG2E)
        shift = arith.negf(arith.mulf(row_max, _constant(_LOG2E)))
        exponents = [vector.fma(x, scale, shift) for x in scores]
        return [math.exp2(x, fastmath=arith.FastMathFlags.afn) for x in exponents]

    def _store_transposed(self, pairs: Sequence[ir.Value], row: Index) -> None:
        """Stores the weights of 16 rows and pairs of keys, transposed."""
        singles = vector_type(LANES, ir.IntegerType.get_signless(32))
        transposed = transpose([vector.bitcast(singles, x) for x in pairs])
        for i, x in enumerate(transposed):
            x = vector.bitcast(pairs[0].type, x)
            store(x, self.weights, mul(add(row, i), self.COUNT))

    def _add_values(self, values: Left, last: Index) -> None:
        """Adds weights times values; `last` is the last value."""
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
        """Multiplies the sums of 16 rows by their factors, unless all are 1."""
        factors = load(self.factors, row, LANES)
        is_other = arith.cmpf(arith.CmpFPredicate.UNE, factors, _constant(1.0))
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
        offsets = [
            pointer(sums, add(mul(row, self.rows.problem.width), column)) for column in columns
        ]
        load_tile(LEFT[0], pointer(self.weights, mul(row, self.COUNT)), self.COUNT * _PAIR)
        for n, column in enumerate(columns):
            load_tile(SUMS[n], offsets[n], pitch)
            load_tile(RIGHT[n % 2], pointer(self.values, column * _PAIR), pitch)
            amx.multiply_tiles(PAIRS, SUMS[n], LEFT[0], RIGHT[n % 2])
        for n, offset in enumerate(offsets):
            store_tile(SUMS[n], offset, pitch)


def _greatest(vectors: Sequence[ir.Value]) -> ir.Value:
    """The maximum of vectors, lane by lane."""
    remaining = list(vectors)
    while len(remaining) > 1:
        pairs = zip(remaining[::2], remaining[1::2], strict=True)
        remaining = [greater(x, y) for x, y in pairs]
    return remaining[0]


def _raised(before: ir.Value, row_max: ir.Value) -> ir.Value:
    """The running maximum: `before`, unless `row_max` exceeds it by the margin."""
    bound = arith.addf(before, _constant(_MARGIN))
    return arith.select(arith.cmpf(arith.CmpFPredicate.OGT, row_max, bound), row_max, before)


def _constant(x: float) -> ir.Value:
    return splat(x, LANES, ir.F32Type.get())
