"""Quantised panels times more than a few rows of 8-bit elements, in tile registers.

    for each panel of 16 columns
      decode all of its blocks: 8-bit elements, scales, sums and minima        (in the L2 cache)
      for each 16 rows
        for each block of 32 k
          sums = elements of the rows * elements of the block  (32-bit integers, one tile)
          totals += scales * sums + ...                        (a register for each row)

Zero points are subtracted while decoding, so sums need no correction. The last rows, if there are
at most 12, have a tile of just their height; 4, 8 or 12 of them are scaled, which takes most of the
time. See `quantized_integers` for the surrounding nest, and for what is added to the totals.
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

from .quantized_panels import POSITIONS, PackedLeft, Problem, constant_vector

SIGNED = amx.product_name(left=True, right=True)
LOOKAHEAD, SLOTS = 1, 2
"""How far multiplication runs ahead of scaling, which hides the latency of stored tiles, in blocks.

There is a slot for the sums of each of these blocks.
"""
STEP = 4
"""Rows are scaled in multiples of it."""
STEPS = BLOCK // POSITIONS
"""Lanes of 32 bits that a block has along k."""
BLOCK_BYTES = BLOCK * PANEL
ROW_BYTES = POSITIONS * PANEL


def tiled_rows(problem: Problem) -> int:
    """Rows of a block of rows."""
    fitting = problem.right.cpu.caches.l2 // 2 // (problem.right.blocks * BLOCK)
    most = problem.right.blocking.tile_rows
    return max(min(fitting // amx.ROWS * amx.ROWS, most), 4 * amx.ROWS)


def copied_rows(rows: Index) -> Index:
    """Rows that the copy of the left side has room for, a multiple of a tile."""
    return round_up(rows, amx.ROWS)


def scaled_rows(rows: Index) -> Index:
    """Rows that have totals; those after the last row are unused."""
    return round_up(rows, STEP)


@dataclass(frozen=True)
class _Decoded:
    """The blocks of a panel: elements [block][part][8][16][4], and factors [block][factor][16]."""

    elements: ir.Value
    factors: ir.Value


@dataclass(frozen=True)
class TiledRows:
    """`rows` rows, whose copy begins at index `left`, times `count` panels from `first` on.

    Element (r, c) of the totals is at `totals[r * stride + c]`; they have `scaled_rows` rows.
    """

    dot: Dot
    problem: Problem
    copy: PackedLeft
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
            elements = stack.enter_context(scratch(blocks * parts * BLOCK_BYTES, i8))
            factors = stack.enter_context(scratch(blocks * self._num_factors * PANEL, f32))
            sums = stack.enter_context(scratch(SLOTS * parts * amx.ROWS * PANEL, i32))
            decoded = _Decoded(elements, factors)
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
        """Whether rows have offsets, which are multiplied by sums of weights."""
        return self.problem.left.offset is not None

    @property
    def _num_factors(self) -> int:
        """Vectors of factors of a block: scales, sums if rows have offsets, minima."""
        scheme = self.problem.right.scheme
        return scheme.scales + self._has_sums + scheme.has_minimum

    def _decode(self, decoded: _Decoded, j: Index, b: Index) -> None:
        """Stores the elements and factors of a block."""
        right, scheme = self.problem.right, self.problem.right.scheme
        p = add(self.first, j)
        right.prefetch(p, b, self.problem.panels, is_few=False)
        rows = sorted(right.bytes_of(p, b, PANEL, unsigned=False), key=lambda row: row[:2])
        values = [x if not scheme.zero else _subtract_zero(x, scheme.zero) for _, _, (x,) in rows]
        half = len(values) // scheme.scales
        zeros = constant_vector(0, vector_type(ROW_BYTES, ir.IntegerType.get_signless(8)))
        for part in range(scheme.scales):
            own = range(part * half, (part + 1) * half)
            start = mul(add(mul(b, scheme.scales), part), BLOCK_BYTES)
            for row, x in enumerate(values):
                at = add(start, row * ROW_BYTES)
                store(x if row in own else zeros, decoded.elements, at)
        scales = [vectors[0] for vectors in right.scales(p, b, PANEL)[: scheme.scales]]
        factors = list(scales)
        if self._has_sums:
            factors.append(self._sums(values, scales))
        factors += right.minima(p, b, PANEL)
        for index, x in enumerate(factors):
            store(x, decoded.factors, self._factor_at(b, index))

    def _factor_at(self, b: Index, index: int) -> Index:
        return mul(add(mul(b, self._num_factors), index), PANEL)

    def _sums(self, values: Sequence[ir.Value], scales: Sequence[ir.Value]) -> ir.Value:
        """The sums of a block's weights without minima: integers times scales."""
        kind, half = vector_type(PANEL, ir.F32Type.get()), len(values) // len(scales)
        ones = constant_vector(1, vector_type(ROW_BYTES, ir.IntegerType.get_signless(8)))
        total = splat(0.0, PANEL, ir.F32Type.get())
        for part, scale in enumerate(scales):
            part_sum = splat_integer(0, PANEL, ir.IntegerType.get_signless(32))
            for x in values[part * half : (part + 1) * half]:
                part_sum = self.dot(part_sum, ones, x, signed=True)
            total = vector.fma(arith.sitofp(kind, part_sum), scale, total)
        return total

    def _multiply(
        self, decoded: _Decoded, sums: ir.Value, row: Index, height: int, j: Index
    ) -> None:
        """Emits `height` rows from `row` on times panel j."""
        blocks, num_factors = self.problem.right.blocks, self._num_factors

        def index_of(b: Index) -> Index:
            return add(self.left, mul(b, self.pitch), row)

        def product(b: Index, slot: Index) -> None:
            self._product(decoded, sums, b, slot, index_of(b), height < amx.ROWS)

        def block(b: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            next_block = minimum(add(b, LOOKAHEAD), blocks - 1)
            product(next_block, add(b, LOOKAHEAD))
            factors = [
                load(decoded.factors, self._factor_at(b, index), PANEL)
                for index in range(num_factors)
            ]
            return [
                self._scaled(sums, self._sum_at(b, r), add(index_of(b), r), factors, total)
                for r, total in enumerate(totals)
            ]

        for b in range(LOOKAHEAD):
            product(min(b, blocks - 1), b)
        zero = splat(0.0, PANEL, ir.F32Type.get())
        totals = for_range(0, blocks, 1, block, [zero] * height)
        for r, total in enumerate(totals):
            at = add(mul(add(row, r), self.stride), mul(j, PANEL))
            store(total, self.totals, at)

    def _product(
        self, decoded: _Decoded, sums: ir.Value, b: Index, slot: Index, index: Index, is_lower: bool
    ) -> None:
        """Stores the sums of 16 rows, from `index` of the copy on, and block b to a slot.

        The lower tiles (`is_lower`) may have fewer rows.
        """
        parts = self.problem.right.scheme.scales
        left, own = amx.LEFT[is_lower], amx.SUMS[2 * is_lower :]
        amx.load_tile(left, pointer(self.copy.values, mul(index, BLOCK)), BLOCK)
        for part in range(parts):
            at = mul(add(mul(b, parts), part), BLOCK_BYTES)
            amx.clear_tile(own[part])
            amx.load_tile(amx.RIGHT[part], pointer(decoded.elements, at), ROW_BYTES)
            amx.multiply_tiles(SIGNED, own[part], left, amx.RIGHT[part])
            target = pointer(sums, self._sum_at(slot, 0, part))
            amx.store_tile(own[part], target, amx.LANE_BYTES * PANEL)

    def _sum_at(self, slot: Index, row: int, part: int = 0) -> Index:
        """The offset of a slot's sums: slots are block indices modulo `SLOTS`."""
        rows = self.problem.right.scheme.scales * amx.ROWS
        return mul(add(mul(mod(slot, SLOTS), rows), part * amx.ROWS + row), PANEL)

    def _scaled(
        self, sums: ir.Value, at: Index, index: Index, factors: Sequence[ir.Value], total: ir.Value
    ) -> ir.Value:
        """The total of a row plus that of a block, see `quantized_integers`."""
        scheme, kind = self.problem.right.scheme, vector_type(PANEL, ir.F32Type.get())
        products = []
        for part in range(scheme.scales):
            loaded = load(sums, add(at, part * amx.ROWS * PANEL), PANEL)
            products.append(arith.sitofp(kind, loaded))
        scales, others = factors[: scheme.scales], list(factors[scheme.scales :])
        factor = broadcast(self.copy.factor(index), PANEL)
        scaled = arith.mulf(products[0], factor)
        total = vector.fma(scaled, scales[0], total)
        for product, scale in zip(products[1:], scales[1:], strict=True):
            total = vector.fma(arith.mulf(product, factor), scale, total)
        if self._has_sums:
            total = vector.fma(others.pop(0), broadcast(self.copy.offset(index), PANEL), total)
        if others:
            total = vector.fma(others[0], broadcast(self.copy.correction(index), PANEL), total)
        return total


def _subtract_zero(x: ir.Value, zero: int) -> ir.Value:
    """The decoded integers of a vector of elements."""
    return arith.subi(x, constant_vector(zero, x.type))
