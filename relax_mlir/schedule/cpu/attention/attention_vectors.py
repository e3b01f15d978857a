"""A block of keys and values in attention, by vectors: both products, and the softmax.

    scores[key][row]   tiles of keys by vectors of rows: elements of keys are broadcast, so keys are
                       not transposed
    softmax            rows are lanes: maxima and totals are vectors, without horizontal reductions
    sums[row][d]       tiles of rows by vectors of features

Keys and values that are not f32 are decoded a block at a time. With pairs of bf16, two elements
along d, or of two keys, share a lane (`multiply_add.py`), and values of two keys are interleaved.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

from relax_mlir.bindings import arith, ir, memref, vector
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    ceil_div,
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
)
from relax_mlir.schedule.build.online_softmax import LOWEST, exponential
from relax_mlir.schedule.cpu.isa.multiply_add import Bf16Pairs, float_step, load_pair
from relax_mlir.schedule.cpu.product.micro_kernel import Left

from .attention_block import ROWS, RowBlock, greater, pair_values
from .attention_hidden import add_values
from .attention_parts import Problem
from .attention_reader import Reader

_STRIP = 3
_LOW_ROWS = 4


@dataclass(frozen=True)
class VectorKeys:
    """The work on blocks of keys for a block of rows.

    `keys` and `values` are buffers for a decoded or interleaved block; None if the cache is read.
    `weights` are the exponentials, which overwrite the scores unless they are rounded. `factor` has
    the factor by which the earlier sums of each row are rescaled.
    """

    rows: RowBlock
    keys: ir.Value | None
    values: ir.Value | None
    weights: ir.Value
    factor: ir.Value

    COUNT = 64
    """Keys of a block."""

    @staticmethod
    def allocate(rows: RowBlock, stack: ExitStack) -> "VectorKeys":
        """Allocates buffers until `stack` is closed."""
        problem, f32, half = rows.problem, ir.F32Type.get(), ir.BF16Type.get()
        count = VectorKeys.COUNT

        def take(count: int, element: ir.Type = f32) -> ir.Value:
            return stack.enter_context(scratch(count, element))

        keys, values, weights = None, None, rows.state.scores
        if problem.pairs:
            values, weights = take(count * problem.width, half), take(count * ROWS, half)
        else:
            keys = None if rows.keys.is_f32 else take(count * problem.depth)
            values = None if rows.values.is_f32 else take(count * problem.width)
        return VectorKeys(rows, keys, values, weights, take(ROWS))

    @property
    def lowest(self) -> float:
        """The initial maximum of scores."""
        return LOWEST

    def emit(self, start: Index, left: Index) -> None:
        """Emits a block of keys from `start` on, of which up to `left` are valid."""
        rows, p = self.rows, self.rows.problem
        count, vectors = minimum(self.COUNT, left), rows.vectors
        keys = self._decoded(rows.keys_from(start), rows.keys, self.keys, count, p.depth)
        rows.transpose_masks(start, count)
        aligned = sub(vectors, mod(vectors, _STRIP))
        for_range(0, aligned, _STRIP, lambda v: self._score_strip(keys, v, _STRIP, start, count))
        for_range(aligned, vectors, 1, lambda v: self._score_strip(keys, v, 1, start, count))
        add_values(
            rows, start, count, self.factor, self._weight, lambda: self._add_all(start, count)
        )

    def _add_all(self, start: Index, count: Index) -> None:
        """Adds a block of values from `start` on to the sums of all rows."""
        rows, p = self.rows, self.rows.problem
        values = rows.values_from(start)
        if p.pairs:
            assert self.values is not None
            pair_values(values, ceil_div(count, 2), sub(count, 1), p.width, p.lanes, self.values)
            self._add_values(self.values, 0, p.width, count)
            return
        buffer, begin = self._decoded(values, rows.values, self.values, count, p.width)
        step = p.value_step if self.values is None else p.width
        self._add_values(buffer, begin(0), step, count)

    def _weight(self, key: Index, row: Index) -> ir.Value:
        """The weight of a key of the block for a row."""
        if not self.rows.problem.pairs:
            return memref.load(self.weights, [value(add(mul(key, ROWS), row))])
        odd = mod(key, 2)
        at = add(mul(sub(key, odd), ROWS), mul(row, 2), odd)
        return arith.extf(ir.F32Type.get(), memref.load(self.weights, [value(at)]))

    def _decoded(
        self, source: Left, reader: Reader, target: ir.Value | None, count: Index, width: int
    ) -> tuple[ir.Value, Callable[[Index], Index]]:
        """A buffer with the block's keys, of `width` features, and a function to their offsets.

        Keys after the last one repeat it.
        """
        lanes, last = self.rows.problem.lanes, sub(count, 1)
        if target is None:
            return source.buffer, lambda key: source.at(minimum(key, last)).offset

        def decode(key: ir.Value) -> None:
            begin = source.at(key).offset
            for at in range(0, width, lanes):
                store(reader.load(add(begin, at), lanes), target, add(mul(key, width), at))

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
        p, s = self.rows.problem, self.rows.state
        height = 8 if p.registers >= 32 else 4
        at = mul(first, p.lanes)
        offsets = [add(at, v * p.lanes) for v in range(vectors)]
        limits = [load(s.limit, offset, p.lanes) for offset in offsets]
        before = [load(s.row_max, offset, p.lanes) for offset in offsets]
        # A repeated key does not change the maximum, and has no weight.
        repeats = not p.causal and not p.pairs and s.mask is None

        def tile(key: ir.Value, *row_maxes: ir.Value) -> list[ir.Value]:
            sums = self._products(keys, key, height, offsets)
            row_max = list(row_maxes)
            for i, x in enumerate(sums):
                k, v = divmod(i, vectors)
                if p.pairs:  # queries are not scaled
                    x = arith.mulf(x, splat(p.scale, p.lanes, ir.F32Type.get()))
                x = self.rows.add_mask(x, add(key, k), start, count, offsets[v])
                if not repeats:
                    x = self.rows.hide(x, add(start, key, k), limits[v])
                row_max[v] = greater(row_max[v], x)
                store(x, s.scores, add(mul(add(key, k), ROWS), offsets[v]))
            return row_max

        row_max = for_range(0, count, height, tile, before)
        factors = [exponential(a, b) for a, b in zip(before, row_max, strict=True)]
        totals = []
        for offset, new, factor in zip(offsets, row_max, factors, strict=True):
            store(new, s.row_max, offset)
            store(factor, self.factor, offset)
            totals.append(arith.mulf(load(s.total, offset, p.lanes), factor))

        weigh = self._exponential_of_pair if p.pairs else self._exponential_of_key

        def exponentials(key: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            rows = zip(offsets, row_max, totals, strict=True)
            return [weigh(key, offset, shift, total) for offset, shift, total in rows]

        totals = for_range(0, count, 2 if p.pairs else 1, exponentials, totals)
        for offset, total in zip(offsets, totals, strict=True):
            store(total, s.total, offset)

    def _exponential_of_key(
        self, key: Index, offset: Index, shift: ir.Value, total: ir.Value
    ) -> ir.Value:
        """Exponentiates a vector of scores; returns the total plus the result."""
        p, s = self.rows.problem, self.rows.state
        at = add(mul(key, ROWS), offset)
        x = exponential(load(s.scores, at, p.lanes), shift)
        store(x, s.scores, at)
        return arith.addf(total, x)

    def _exponential_of_pair(
        self, key: Index, offset: Index, shift: ir.Value, total: ir.Value
    ) -> ir.Value:
        """The same for two keys, with exponentials rounded to bf16."""
        p, s = self.rows.problem, self.rows.state
        rounded = []
        for i in range(2):
            at = add(mul(add(key, i), ROWS), offset)
            x = exponential(load(s.scores, at, p.lanes), shift)
            rounded.append(Bf16Pairs(p.lanes, p.pairs).rounded(x))
        order = [x for i in range(p.lanes) for x in (i, p.lanes + i)]
        pairs = vector.shuffle(*rounded, order)
        store(pairs, self.weights, add(mul(key, ROWS), mul(offset, 2)))
        ones = splat(1.0, 2 * p.lanes, ir.BF16Type.get())
        return float_step(p.lanes, p.pairs)(ones, pairs, total)

    def _products(
        self,
        keys: tuple[ir.Value, Callable[[Index], Index]],
        key: Index,
        height: int,
        offsets: Sequence[Index],
    ) -> list[ir.Value]:
        """Dot products of `height` keys with vectors of rows, key by key."""
        p, s = self.rows.problem, self.rows.state
        buffer, begin_of = keys
        begins = [begin_of(add(key, k)) for k in range(height)]

        fma = float_step(p.lanes, p.pairs)
        group = fma.group

        def step(d: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            at = [mul(add(mul(d, ROWS), offset), group) for offset in offsets]
            rows = [load(s.transposed, x, group * p.lanes) for x in at]
            result = []
            for k, begin in enumerate(begins):
                x = self._broadcast_at(buffer, add(begin, mul(d, group)))
                for v, row in enumerate(rows):
                    result.append(fma(x, row, sums[k * len(rows) + v]))
            return result

        zero = splat(0.0, p.lanes, ir.F32Type.get())
        return for_range(0, p.depth // group, 1, step, [zero] * (height * len(offsets)))

    def _broadcast_at(self, buffer: ir.Value, at: Index) -> ir.Value:
        """The element or pair at an offset, in every lane."""
        lanes = self.rows.problem.lanes
        if self.rows.problem.pairs:
            return load_pair(buffer, at, lanes)
        return broadcast(memref.load(buffer, [value(at)]), lanes)

    def _add_values(self, buffer: ir.Value, begin: Index, stride: int, count: Index) -> None:
        """sums[row..] = sums * factor + p[key][row..] * values[key], over a block.

        Values are `stride` apart.
        """
        p = self.rows.problem
        height, vectors = _shape(p)

        def tiles(first: Index, last: Index, height: int) -> None:
            def tile(row: ir.Value) -> None:
                for column in range(0, p.width, vectors * p.lanes):
                    columns = range(column, column + vectors * p.lanes, p.lanes)
                    self._add_tile(buffer, begin, stride, count, row, height, columns)

            for_range(first, last, height, tile)

        # Tiles may overrun the last row, but not the block.
        low = max(r for r in range(1, _LOW_ROWS + 1) if height % r == 0)
        whole = sub(self.rows.num_rows, mod(self.rows.num_rows, height)) if low < height else 0
        tiles(0, whole, height)
        tiles(whole, add(whole, round_up(sub(self.rows.num_rows, whole), low)), low)

    def _add_tile(
        self,
        buffer: ir.Value,
        begin: Index,
        stride: int,
        count: Index,
        row: Index,
        height: int,
        columns: Sequence[int],
    ) -> None:
        p, s = self.rows.problem, self.rows.state
        fma = float_step(p.lanes, p.pairs)
        group, vectors = fma.group, len(columns)
        rows = [add(row, r) for r in range(height)]
        offsets = [[add(mul(r, p.width), column) for column in columns] for r in rows]

        def step(index: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            key = mul(index, stride)
            at = [mul(add(begin, key, column), group) for column in columns]
            right = [load(buffer, x, group * p.lanes) for x in at]
            result = []
            for i, r in enumerate(rows):
                x = self._broadcast_at(self.weights, mul(add(mul(index, ROWS), r), group))
                own = sums[i * vectors : (i + 1) * vectors]
                result += [fma(x, y, total) for y, total in zip(right, own, strict=True)]
            return result

        sums = []
        for r, line in zip(rows, offsets, strict=True):
            factor = broadcast(memref.load(self.factor, [value(r)]), p.lanes)
            sums += [arith.mulf(load(s.sums, offset, p.lanes), factor) for offset in line]
        sums = for_range(0, ceil_div(count, group), 1, step, sums)
        for offset, x in zip(chain(*offsets), sums, strict=True):
            store(x, s.sums, offset)


def _shape(problem: Problem) -> tuple[int, int]:
    """Rows and vectors of a tile of sums with the most products for each load.

    Registers have to hold the sums, the values of a key, and a weight.
    """
    max_sums = 24 if problem.registers >= 32 else 12
    shapes = [
        (r, v)
        for r in range(1, ROWS + 1)
        for v in range(1, 7)
        if ROWS % r == 0 and problem.vectors % v == 0
        if r * v <= max_sums and r * v + v < problem.registers
    ]
    return max(shapes, key=lambda s: (s[0] * s[1] / (s[0] + s[1]), s[0] * s[1]))
