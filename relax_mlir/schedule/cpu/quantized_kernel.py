"""The kernels for a right side in panels of quantised numbers, which are decoded in registers.

    for each (block of rows, group of panels) in parallel
      for each panel of the group, 16 columns wide
        for each tile of rows
          for each block of 32 k
            rows x 16 sums of the block = left * numbers    (8-bit dot products, or f32)
            rows x 16 sums += scales * sums of the block    (all in registers)
        epilogue on the panel's sums

One loop nest serves few rows, where it streams the weights once, and many. A left side of 8-bit
blocks is multiplied in integers. The machine wants unsigned weights, so they are moved up by a
constant z where they are not: the sums of a block then start at -z * sum(left of the block).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir, memref, vector
from relax_mlir.dialects.graph.quantized import BLOCK, PANEL, Scheme

from .dot import Dot
from .gemm_kernel import Block
from .loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    less,
    load,
    minimum,
    mod,
    mul,
    parallel_range,
    scratch,
    store,
    sub,
    value,
    vector_type,
    zero_attr,
)
from .quantized_panels import HALVES, PLACES, Left, Panels

TASK_BYTES = 24576
"""Weights that are worth a task of their own."""
ROW_BLOCK = 128
"""Rows whose sums for one panel stay in the L1 cache."""
PREFETCH_ROWS = 4
"""Rows up to which memory is what a tile waits for."""
PREFETCH_BYTES = 4096
"""How far ahead numbers are asked for: of 0.5 to 8 KiB the best."""


@dataclass(frozen=True)
class Problem:
    """left[rows, 32 * blocks] times the transpose of right[columns, 32 * blocks].

    `columns` are what the epilogue stores of 16 a panel.
    """

    rows: Index
    columns: Index
    left: Left
    right: Panels
    epilogue: Callable[[Block], None]

    @property
    def panels(self) -> Index:
        """Panels that hold the columns."""
        return ceil_div(self.columns, PANEL)


@dataclass(frozen=True)
class Tiles:
    """How a target computes a tile: `dot` or, where None, in f32; vector lanes; heights."""

    dot: Dot | None
    lanes: int
    heights: tuple[int, ...]

    @property
    def vectors(self) -> int:
        """Vectors across a panel."""
        return PANEL // self.lanes

    @property
    def rows(self) -> int:
        """Rows of a full tile."""
        return self.heights[-1]

    def moved_by(self, scheme: Scheme) -> int:
        """By how much the integers that are multiplied are above those that are meant."""
        if self.dot is None:
            return 0
        return scheme.zero + (128 if scheme.bits == 8 and self.dot.is_unsigned else 0)


def emit_quantized(tiles: Tiles, problem: Problem) -> None:
    """Emits the whole loop nest at the insertion point."""
    panels = problem.panels
    group = max(1, TASK_BYTES // problem.right.bytes)
    groups = ceil_div(panels, group)
    row_blocks = ceil_div(problem.rows, ROW_BLOCK)
    with _corrections(tiles, problem) as corrections:

        def task(number: ir.Value) -> None:
            row = mul(floor_div(number, groups), ROW_BLOCK)
            rows = minimum(sub(problem.rows, row), ROW_BLOCK)
            first = mul(mod(number, groups), group)
            last = minimum(add(first, group), panels)
            room = add(rows, tiles.rows)  # the last tile may be higher than what is left
            with scratch(mul(room, PANEL), ir.F32Type.get()) as sums:
                tile = partial(_Tile, tiles, problem, corrections, sums)

                def panel(p: ir.Value) -> None:
                    _emit_rows(tiles, rows, lambda height, i: tile(height, p, row, i).emit())
                    column = mul(p, PANEL)
                    columns = minimum(sub(problem.columns, column), PANEL)
                    problem.epilogue(Block((), row, rows, column, columns, (sums,), PANEL))

                for_range(first, last, 1, panel)

        parallel_range(mul(row_blocks, groups), 1, task)


def _emit_rows(tiles: Tiles, rows: Index, tile: Callable[[int, Index], None]) -> None:
    """Full tiles, and one for the rows that are left."""
    rest = mod(rows, tiles.rows)
    full = sub(rows, rest)
    for_range(0, full, tiles.rows, lambda i: tile(tiles.rows, i))

    def remainder(heights: Sequence[int]) -> None:
        if_else(
            True if len(heights) == 1 else less(rest, heights[0] + 1),
            lambda: tile(heights[0], full),
            lambda: remainder(heights[1:]),
        )

    if_else(less(0, rest), lambda: remainder(tiles.heights))


@contextmanager
def _corrections(tiles: Tiles, problem: Problem) -> Iterator[ir.Value | None]:
    """A number for each row and scale that follows from the sum of the row's 8-bit numbers.

    What sums of integers start with, or the factor of the minimum; None where neither is needed.
    """
    scheme, left = problem.right.scheme, problem.left
    zero = tiles.moved_by(scheme)
    if tiles.dot is None or not (zero or scheme.has_minimum):
        yield None
        return
    i32, f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
    size = BLOCK // scheme.scales
    count = mul(problem.rows, problem.right.blocks, scheme.scales)
    with scratch(count, i32 if zero else f32) as buffer:

        def part(i: ir.Value) -> None:
            numbers = load(left.values, add(left.offset, mul(i, size)), size)
            wide = arith.extsi(vector_type(size, i32), numbers)
            total = vector.reduction(i32, vector.CombiningKind.ADD, wide)
            if zero:
                total = arith.muli(total, arith.constant(i32, -zero))
            else:
                total = arith.mulf(arith.sitofp(f32, total), left.factor(i))
            memref.store(total, buffer, [i])

        for_range(0, count, 1, part)
        yield buffer


@dataclass(frozen=True)
class _Tile:
    """`height` rows from row + i on times panel p, added up in registers, then put into `sums`."""

    tiles: Tiles
    problem: Problem
    corrections: ir.Value | None
    sums: ir.Value
    height: int
    p: ir.Value
    row: Index
    i: Index

    def emit(self) -> None:
        """Emits the loop over blocks, and the stores."""
        lanes, vectors, blocks = self.tiles.lanes, self.tiles.vectors, self.problem.right.blocks
        last = sub(self.problem.rows, 1)
        rows = [minimum(add(self.row, self.i, r), last) for r in range(self.height)]
        rows = [mul(row, blocks) for row in rows]
        compute = self._integers if self.tiles.dot else self._floats

        def step(b: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            if self.height <= PREFETCH_ROWS and self.problem.right.scheme.bits < 8:
                # Narrow numbers come in several slow streams, which the machine notices late.
                panels = self.problem.panels
                self.problem.right.prefetch(self.p, b, panels, PREFETCH_BYTES)
            return compute([add(row, b) for row in rows], b, totals)

        zero = self._zero(ir.F32Type.get())
        totals = for_range(0, blocks, 1, step, [zero] * (self.height * vectors))
        for n, total in enumerate(totals):
            r, v = divmod(n, vectors)
            store(total, self.sums, add(mul(add(self.i, r), PANEL), v * lanes))

    def _zero(self, element: ir.Type) -> ir.Value:
        kind = vector_type(self.tiles.lanes, element)
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, zero_attr(element)))

    def _integers(
        self, blocks: Sequence[Index], b: ir.Value, totals: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """One block: dot products in 32-bit integers, then the scales."""
        lanes, vectors, dot = self.tiles.lanes, self.tiles.vectors, self.tiles.dot
        right, left = self.problem.right, self.problem.left
        scheme = right.scheme
        signed = scheme.bits == 8 and not dot.is_unsigned
        # One sum for all numbers that share a scale.
        sums = [self._starts(blocks, part) for part in range(scheme.scales)]
        for half, group, weights in right.bytes_of(self.p, b, lanes, dot.is_unsigned):
            own = sums[half % scheme.scales]
            for r, block in enumerate(blocks):
                values = left.four(block, 16 * half + 4 * group, lanes)
                for v in range(vectors):
                    n = r * vectors + v
                    own[n] = dot(own[n], weights[v], values, signed)
        kind = vector_type(lanes, ir.F32Type.get())
        scales, minima = right.scales(self.p, b, lanes), right.minima(self.p, b, lanes)
        result = []
        for r, block in enumerate(blocks):
            factor = broadcast(left.factor(block), lanes)
            for v in range(vectors):
                n = r * vectors + v
                product = arith.mulf(arith.sitofp(kind, sums[0][n]), scales[0][v])
                if scheme.scales == HALVES:
                    product = vector.fma(arith.sitofp(kind, sums[1][n]), scales[1][v], product)
                total = vector.fma(product, factor, totals[n])
                if minima:
                    correction = memref.load(self.corrections, [value(block)])
                    total = vector.fma(minima[v], broadcast(correction, lanes), total)
                result.append(total)
        return result

    def _starts(self, blocks: Sequence[Index], part: int) -> list[ir.Value]:
        """What the integer sums of each row and vector start with."""
        lanes, vectors = self.tiles.lanes, self.tiles.vectors
        scheme = self.problem.right.scheme
        if not self.tiles.moved_by(scheme):
            return [self._zero(ir.IntegerType.get_signless(32))] * (self.height * vectors)
        places = [value(add(mul(block, scheme.scales), part)) for block in blocks]
        starts = [broadcast(memref.load(self.corrections, [at]), lanes) for at in places]
        return [start for start in starts for _ in range(vectors)]

    def _floats(
        self, blocks: Sequence[Index], b: ir.Value, totals: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """One block: numbers decoded to f32, then multiply-adds."""
        lanes, vectors = self.tiles.lanes, self.tiles.vectors
        right, left = self.problem.right, self.problem.left
        kind = vector_type(lanes, ir.F32Type.get())
        scales, minima = right.scales(self.p, b, lanes), right.minima(self.p, b, lanes)
        # Sums of the places of a group apart: one row alone would wait for its own additions.
        zero = self._zero(ir.F32Type.get())
        parts = [list(totals), *([zero] * len(totals) for _ in range(PLACES - 1))]
        for half, group, numbers in right.words_of(self.p, b, lanes):
            for place in range(PLACES):
                weights = []
                for v in range(vectors):
                    q, scale = arith.sitofp(kind, numbers[v][place]), scales[half][v]
                    decoded = vector.fma(q, scale, minima[v]) if minima else arith.mulf(q, scale)
                    weights.append(decoded)
                for r, block in enumerate(blocks):
                    x = broadcast(left.number(block, 16 * half + 4 * group + place), lanes)
                    for v in range(vectors):
                        n = r * vectors + v
                        parts[place][n] = vector.fma(weights[v], x, parts[place][n])
        pairs = [map(arith.addf, parts[0], parts[1]), map(arith.addf, parts[2], parts[3])]
        return [arith.addf(x, y) for x, y in zip(*pairs, strict=True)]
