"""Quantised panels times more than a few rows of 8-bit numbers, in tile registers.

    for each panel of 16 columns
      decode all of its blocks: numbers in 8 bits, scales, sums and minima     (in the L2 cache)
      for each 16 rows
        for each block of 32 k
          sums = numbers of the rows * numbers of the block    (32-bit integers, one tile)
          totals += scales * sums + ...                        (a register for each row)

Numbers are decoded to what they mean, so that sums need no correction. The last rows, if they are
12 at most, have a tile of their own, which is as high as they are many; 4, 8 or 12 of them are
scaled, which takes most of the time. See `quantized_integers` for the nest around it and for what
is added to the totals.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir, vector
from relax_mlir.dialects.graph.quantized import BLOCK, PANEL
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    floor_div,
    for_range,
    if_else,
    least_fitting,
    less,
    load,
    maximum,
    minimum,
    mod,
    mul,
    round_up,
    scratch,
    splat,
    splat_integer,
    store,
    sub,
    vector_type,
)
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.dot import Dot
from relax_mlir.schedule.cpu.isa.pointers import pointer

from .quantized_panels import PLACES, Copy, Problem, integers

SIGNED = amx.product_name(left=True, right=True)
AHEAD, KEPT = 1, 2
"""Blocks that are multiplied before one is scaled: what a tile stored is there late. Their sums."""
STEP = 4
"""Rows that are scaled are a multiple of it."""
STEPS = BLOCK // PLACES
"""Lanes of 32 bits along k of a block."""
BLOCK_BYTES = BLOCK * PANEL
ROW_BYTES = PLACES * PANEL


def tiled_rows(problem: Problem) -> int:
    """Rows that are worth a block of their own."""
    fitting = problem.right.cpu.caches.l2 // 2 // (problem.right.blocks * BLOCK)
    most = problem.right.blocking.tile_rows
    return max(min(fitting // amx.ROWS * amx.ROWS, most), 4 * amx.ROWS)


def copied_rows(rows: Index) -> Index:
    """Rows that the copy of the left side has room for: whole tiles."""
    return round_up(rows, amx.ROWS)


def scaled_rows(rows: Index) -> Index:
    """Rows that have totals, though nobody wants the last of them."""
    return round_up(rows, STEP)


@dataclass(frozen=True)
class _Decoded:
    """The blocks of a panel: numbers [block][part][8][16][4], and factors [block][factor][16]."""

    numbers: ir.Value
    factors: ir.Value


@dataclass(frozen=True)
class TiledRows:
    """`rows` rows, whose copy begins at block `left`, times `count` panels from `first` on.

    Element (r, c) of the totals is at `totals[r * stride + c]`; there is room for `scaled_rows`.
    """

    dot: Dot
    problem: Problem
    copy: Copy
    pitch: Index
    left: Index
    rows: Index
    first: Index
    count: Index
    totals: ir.Value
    stride: Index

    def emit(self) -> None:
        """Emits the loops over panels and rows."""
        blocks, parts = self.problem.right.blocks, self.problem.right.scheme.scales
        i8, i32, f32 = (*map(ir.IntegerType.get_signless, (8, 32)), ir.F32Type.get())
        with ExitStack() as stack:
            numbers = stack.enter_context(scratch(blocks * parts * BLOCK_BYTES, i8))
            factors = stack.enter_context(scratch(blocks * self._num_factors * PANEL, f32))
            sums = stack.enter_context(scratch(KEPT * parts * amx.ROWS * PANEL, i32))
            decoded = _Decoded(numbers, factors)
            last = mul(floor_div(add(self.rows, STEP - 1), amx.ROWS), amx.ROWS)
            few = sub(maximum(self.rows, add(last, 1)), last)
            stack.enter_context(amx.configured(amx.ROWS, few, STEPS))

            def panel(j: ir.Value) -> None:
                for_range(0, blocks, 1, lambda b: self._decode(decoded, j, b))

                def tile(row: Index, height: int) -> None:
                    self._multiply(decoded, sums, row, height, j)

                for_range(0, last, amx.ROWS, lambda row: tile(row, amx.ROWS))
                if_else(
                    less(last, self.rows),
                    lambda: least_fitting(few, range(STEP, amx.ROWS, STEP), partial(tile, last)),
                )

            for_range(0, self.count, 1, panel)

    @property
    def _has_sums(self) -> bool:
        """Whether rows have offsets, which sums of weights are multiplied with."""
        return self.problem.left.offset is not None

    @property
    def _num_factors(self) -> int:
        """Vectors of factors that a block has: scales, sums where they are wanted, minima."""
        scheme = self.problem.right.scheme
        return scheme.scales + self._has_sums + scheme.has_minimum

    def _decode(self, decoded: _Decoded, j: Index, b: Index) -> None:
        """Emits the numbers and factors of a block."""
        right, scheme = self.problem.right, self.problem.right.scheme
        p = add(self.first, j)
        right.prefetch(p, b, self.problem.panels, is_few=False)
        found = sorted(right.bytes_of(p, b, PANEL, unsigned=False), key=lambda row: row[:2])
        meant = [x if not scheme.zero else _less(x, scheme.zero) for _, _, (x,) in found]
        half = len(meant) // scheme.scales
        nothing = integers(0, vector_type(ROW_BYTES, ir.IntegerType.get_signless(8)))
        for part in range(scheme.scales):
            own = range(part * half, (part + 1) * half)
            start = mul(add(mul(b, scheme.scales), part), BLOCK_BYTES)
            for row, x in enumerate(meant):
                at = add(start, row * ROW_BYTES)
                store(x if row in own else nothing, decoded.numbers, at)
        scales = [vectors[0] for vectors in right.scales(p, b, PANEL)[: scheme.scales]]
        factors = list(scales)
        if self._has_sums:
            factors.append(self._sums(meant, scales))
        factors += right.minima(p, b, PANEL)
        for number, x in enumerate(factors):
            store(x, decoded.factors, self._factor_at(b, number))

    def _factor_at(self, b: Index, number: int) -> Index:
        return mul(add(mul(b, self._num_factors), number), PANEL)

    def _sums(self, numbers: Sequence[ir.Value], scales: Sequence[ir.Value]) -> ir.Value:
        """The sums of a block's weights without minima, times their scales."""
        kind, half = vector_type(PANEL, ir.F32Type.get()), len(numbers) // len(scales)
        ones = integers(1, vector_type(ROW_BYTES, ir.IntegerType.get_signless(8)))
        total = splat(0.0, PANEL, ir.F32Type.get())
        for part, scale in enumerate(scales):
            whole = splat_integer(0, PANEL, ir.IntegerType.get_signless(32))
            for x in numbers[part * half : (part + 1) * half]:
                whole = self.dot(whole, ones, x, signed=True)
            total = vector.fma(arith.sitofp(kind, whole), scale, total)
        return total

    def _multiply(
        self, decoded: _Decoded, sums: ir.Value, row: Index, height: int, j: Index
    ) -> None:
        """Emits `height` rows from one on times a panel."""
        blocks, num_factors = self.problem.right.blocks, self._num_factors

        def place(b: Index) -> Index:
            return add(self.left, mul(b, self.pitch), row)

        def product(b: Index, number: Index) -> None:
            self._product(decoded, sums, b, number, place(b), height < amx.ROWS)

        def block(b: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            ahead = minimum(add(b, AHEAD), blocks - 1)
            product(ahead, add(b, AHEAD))
            factors = [
                load(decoded.factors, self._factor_at(b, number), PANEL)
                for number in range(num_factors)
            ]
            return [
                self._scaled(sums, self._sum_at(b, r), add(place(b), r), factors, total)
                for r, total in enumerate(totals)
            ]

        for b in range(AHEAD):
            product(min(b, blocks - 1), b)
        zero = splat(0.0, PANEL, ir.F32Type.get())
        totals = for_range(0, blocks, 1, block, [zero] * height)
        for r, total in enumerate(totals):
            at = add(mul(add(row, r), self.stride), mul(j, PANEL))
            store(total, self.totals, at)

    def _product(
        self, decoded: _Decoded, sums: ir.Value, b: Index, number: Index, place: Index, is_low: bool
    ) -> None:
        """Emits the sums of block b of 16 rows, which are kept as those of block `number`.

        There may be fewer rows in the lower tiles (`is_low`).
        """
        parts = self.problem.right.scheme.scales
        left, own = amx.LEFT[is_low], amx.SUMS[2 * is_low :]
        amx.load_tile(left, pointer(self.copy.values, mul(place, BLOCK)), BLOCK)
        for part in range(parts):
            at = mul(add(mul(b, parts), part), BLOCK_BYTES)
            amx.clear_tile(own[part])
            amx.load_tile(amx.RIGHT[part], pointer(decoded.numbers, at), ROW_BYTES)
            amx.multiply_tiles(SIGNED, own[part], left, amx.RIGHT[part])
            kept = pointer(sums, self._sum_at(number, 0, part))
            amx.store_tile(own[part], kept, amx.LANE_BYTES * PANEL)

    def _sum_at(self, number: Index, row: int, part: int = 0) -> Index:
        """Where the sums of a block are kept until there are `KEPT` more."""
        rows = self.problem.right.scheme.scales * amx.ROWS
        return mul(add(mul(mod(number, KEPT), rows), part * amx.ROWS + row), PANEL)

    def _scaled(
        self, sums: ir.Value, at: Index, place: Index, factors: Sequence[ir.Value], total: ir.Value
    ) -> ir.Value:
        """The total of a row with a block added, see `quantized_integers`."""
        scheme, kind = self.problem.right.scheme, vector_type(PANEL, ir.F32Type.get())
        products = []
        for part in range(scheme.scales):
            whole = load(sums, add(at, part * amx.ROWS * PANEL), PANEL)
            products.append(arith.sitofp(kind, whole))
        scales, others = factors[: scheme.scales], list(factors[scheme.scales :])
        factor = broadcast(self.copy.factor(place), PANEL)
        scaled = arith.mulf(products[0], factor)
        total = vector.fma(scaled, scales[0], total)
        for product, scale in zip(products[1:], scales[1:], strict=True):
            total = vector.fma(arith.mulf(product, factor), scale, total)
        if self._has_sums:
            total = vector.fma(others.pop(0), broadcast(self.copy.offset(place), PANEL), total)
        if others:
            total = vector.fma(others[0], broadcast(self.copy.correction(place), PANEL), total)
        return total


def _less(numbers: ir.Value, zero: int) -> ir.Value:
    """Whole numbers less one."""
    return arith.subi(numbers, integers(zero, numbers.type))
