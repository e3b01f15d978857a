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
)

TASK_BYTES = 24576
"""Weights that are worth a task of their own."""
ROW_BLOCK = 128
"""Rows whose sums for one panel stay in the L1 cache."""
PREFETCH_ROWS = 4
"""Rows up to which memory is what a tile waits for."""
PREFETCH_BYTES = 4096
"""How far ahead numbers are asked for: of 0.5 to 8 KiB the best."""
LINE_BYTES = 64
HALVES, GROUPS, PLACES = 2, 4, 4


@dataclass(frozen=True)
class Left:
    """Rows of f32 (`scale` is None), or of 8-bit numbers with a scale for each block.

    Row r is at `offset + r * 32 * blocks` of `values`, its scales at `scale_offset + r * blocks`.
    """

    values: ir.Value
    offset: Index
    scale: ir.Value | None = None
    scale_offset: Index = 0

    def number(self, block: Index, place: int) -> ir.Value:
        """Element `place` of a block, counted through all rows, as f32."""
        at = add(self.offset, mul(block, BLOCK), place)
        x = memref.load(self.values, [value(at)])
        if self.scale is None:
            return x
        scale = memref.load(self.scale, [value(add(self.scale_offset, block))])
        return arith.mulf(arith.sitofp(scale.type, x), scale)


@dataclass(frozen=True)
class Panels:
    """The right side: flat buffers of numbers, scales and, where the scheme has them, minima."""

    scheme: Scheme
    data: ir.Value
    scale: ir.Value
    minimum: ir.Value | None

    @property
    def block_bytes(self) -> int:
        """Bytes of numbers in a block of a panel."""
        return BLOCK * PANEL * self.scheme.bits // 8


@dataclass(frozen=True)
class Problem:
    """left[rows, 32 * blocks] times the transpose of right[columns, 32 * blocks].

    `columns` are what the epilogue stores of 16 a panel.
    """

    rows: Index
    columns: Index
    blocks: int
    left: Left
    right: Panels
    epilogue: Callable[[Block], None]


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


def emit_quantized(tiles: Tiles, problem: Problem) -> None:
    """Emits the whole loop nest at the insertion point."""
    panels = ceil_div(problem.columns, PANEL)
    factors = 2 * PANEL * (1 + problem.right.scheme.has_minimum)
    panel_bytes = problem.blocks * (problem.right.block_bytes + factors)
    group = max(1, TASK_BYTES // panel_bytes)
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
    """A number for each row and block that follows from the sum of the row's 8-bit numbers.

    What sums of integers start with, or the factor of the minimum; None where neither is needed.
    """
    zero = moved_by(tiles, problem.right.scheme)
    if tiles.dot is None or not (zero or problem.right.scheme.has_minimum):
        yield None
        return
    i32, f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
    left = problem.left
    with scratch(mul(problem.rows, problem.blocks), i32 if zero else f32) as buffer:

        def block(i: ir.Value) -> None:
            numbers = load(left.values, add(left.offset, mul(i, BLOCK)), BLOCK)
            wide = arith.extsi(vector_type(BLOCK, i32), numbers)
            total = vector.reduction(i32, vector.CombiningKind.ADD, wide)
            if zero:
                total = arith.muli(total, arith.constant(i32, -zero))
            else:
                scale = memref.load(left.scale, [value(add(left.scale_offset, i))])
                total = arith.mulf(arith.sitofp(f32, total), scale)
            memref.store(total, buffer, [i])

        for_range(0, mul(problem.rows, problem.blocks), 1, block)
        yield buffer


def moved_by(tiles: Tiles, scheme: Scheme) -> int:
    """By how much the integers that are multiplied are above those that are meant."""
    signed = scheme.bits == 8 and tiles.dot is not None and tiles.dot.is_unsigned
    return scheme.zero + (128 if signed else 0)


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
        lanes, vectors = self.tiles.lanes, self.tiles.vectors
        zero = _splat(0.0, lanes, ir.F32Type.get())
        last = sub(self.problem.rows, 1)
        rows = [minimum(add(self.row, self.i, r), last) for r in range(self.height)]
        rows = [mul(row, self.problem.blocks) for row in rows]
        step = self._integers if self.tiles.dot else self._floats
        count = self.height * vectors
        loop = partial(step, rows)
        totals = for_range(0, self.problem.blocks, 1, loop, [zero] * count)
        for n, total in enumerate(totals):
            r, v = divmod(n, vectors)
            store(total, self.sums, add(mul(add(self.i, r), PANEL), v * lanes))

    def _integers(self, rows: Sequence[Index], b: ir.Value, *totals: ir.Value) -> list[ir.Value]:
        """One block: dot products in 32-bit integers, then the scales."""
        lanes, vectors, dot = self.tiles.lanes, self.tiles.vectors, self.tiles.dot
        f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)
        scheme, left = self.problem.right.scheme, self.problem.left
        signed = scheme.bits == 8 and not dot.is_unsigned
        blocks = [add(row, b) for row in rows]
        start = [_splat(0, lanes, i32)] * self.height
        if moved_by(self.tiles, scheme):
            start = [broadcast(memref.load(self.corrections, [value(x)]), lanes) for x in blocks]
        self._prefetch(b)
        sums = [x for x in start for _ in range(vectors)]
        for half, group, weights in self._weights(b):
            place = 16 * half + 4 * group
            for r, block in enumerate(blocks):
                at = add(left.offset, mul(block, BLOCK), place)
                values = _broadcast_four(left.values, at, lanes)
                for v in range(vectors):
                    n = r * vectors + v
                    sums[n] = dot(sums[n], weights[v], values, signed)
        scales, minima = self._factors(b)
        result = []
        for r, block in enumerate(blocks):
            own = memref.load(left.scale, [value(add(left.scale_offset, block))])
            for v in range(vectors):
                n = r * vectors + v
                product = arith.mulf(arith.sitofp(vector_type(lanes, f32), sums[n]), scales[v])
                total = vector.fma(product, broadcast(own, lanes), totals[n])
                if minima:
                    factor = memref.load(self.corrections, [value(block)])
                    total = vector.fma(minima[v], broadcast(factor, lanes), total)
                result.append(total)
        return result

    def _prefetch(self, b: ir.Value) -> None:
        """Asks for what a later block reads, where the machine itself does not do so in time.

        Blocks of 4 bits come in three slow streams, which cost a fifth of the time otherwise.
        """
        right, blocks = self.problem.right, self.problem.blocks
        if self.height > PREFETCH_ROWS or right.scheme.bits != 4:
            return
        last = sub(mul(ceil_div(self.problem.columns, PANEL), blocks), 1)
        distance = ceil_div(PREFETCH_BYTES, right.block_bytes)
        block = minimum(add(mul(self.p, blocks), b, distance), last)
        places = [(right.data, add(mul(block, right.block_bytes), line))
                  for line in range(0, right.block_bytes, LINE_BYTES)]  # fmt: skip
        places += [(x, mul(block, PANEL)) for x in (right.scale, right.minimum) if x is not None]
        for buffer, at in places:
            memref.prefetch(buffer, [value(at)], False, 3, True)

    def _floats(self, rows: Sequence[Index], b: ir.Value, *totals: ir.Value) -> list[ir.Value]:
        """One block: numbers decoded to f32, then multiply-adds."""
        lanes, vectors, left = self.tiles.lanes, self.tiles.vectors, self.problem.left
        kind = vector_type(lanes, ir.F32Type.get())
        zero = self.problem.right.scheme.zero
        scales, minima = self._factors(b)
        blocks = [add(row, b) for row in rows]
        # Sums of the places of a group apart: one row alone would wait for its own additions.
        parts = [list(totals), *([_splat(0.0, lanes, kind.element_type)] * len(totals)
                                 for _ in range(PLACES - 1))]  # fmt: skip
        for half, group, numbers in self._numbers(b):
            for place in range(PLACES):
                weights = []
                for v in range(vectors):
                    q = numbers[v][place]
                    if zero:
                        q = arith.subi(q, _splat(zero, lanes, ir.IntegerType.get_signless(32)))
                    q = arith.sitofp(kind, q)
                    scaled = arith.mulf(q, scales[v])
                    weights.append(vector.fma(q, scales[v], minima[v]) if minima else scaled)
                for r, block in enumerate(blocks):
                    x = broadcast(left.number(block, 16 * half + 4 * group + place), lanes)
                    for v in range(vectors):
                        n = r * vectors + v
                        parts[place][n] = vector.fma(weights[v], x, parts[place][n])
        pairs = [map(arith.addf, parts[0], parts[1]), map(arith.addf, parts[2], parts[3])]
        return [arith.addf(x, y) for x, y in zip(*pairs, strict=True)]

    def _numbers(self, b: ir.Value):
        """Yields half, group and for each vector four vectors of 32-bit integers, one a place."""
        lanes, bits = self.tiles.lanes, self.problem.right.scheme.bits
        i32 = ir.IntegerType.get_signless(32)
        right, vectors = self.problem.right, self.tiles.vectors
        at = mul(add(mul(self.p, self.problem.blocks), b), right.block_bytes)
        width = PLACES * lanes
        kind = vector_type(lanes, i32)
        for g in range(GROUPS * bits // 4):
            starts = [add(at, (g * vectors + v) * width) for v in range(vectors)]
            words = [vector.bitcast(kind, load(right.data, start, width)) for start in starts]
            for half in range(HALVES) if bits == 4 else [g // GROUPS]:
                yield half, g % GROUPS, [
                    [self._extract(word, 8 * place + (4 * half if bits == 4 else 0))
                     for place in range(PLACES)]
                    for word in words
                ]  # fmt: skip

    def _extract(self, words: ir.Value, first: int) -> ir.Value:
        """The number that begins at a bit of each word."""
        lanes, i32 = self.tiles.lanes, ir.IntegerType.get_signless(32)
        if self.problem.right.scheme.bits == 4:
            moved = arith.shrui(words, _splat(first, lanes, i32)) if first else words
            return arith.andi(moved, _splat(15, lanes, i32))
        moved = arith.shli(words, _splat(24 - first, lanes, i32)) if first < 24 else words
        return arith.shrsi(moved, _splat(24, lanes, i32))

    def _weights(self, b: ir.Value):
        """Yields half, group and vectors of bytes to multiply, one vector for `lanes` columns."""
        right, lanes, vectors = self.problem.right, self.tiles.lanes, self.tiles.vectors
        at = mul(add(mul(self.p, self.problem.blocks), b), right.block_bytes)
        width = PLACES * lanes
        i8 = ir.IntegerType.get_signless(8)
        groups = range(GROUPS) if right.scheme.bits == 4 else range(HALVES * GROUPS)
        for g in groups:
            raw = [
                load(right.data, add(at, (g * vectors + v) * width), width) for v in range(vectors)
            ]
            if right.scheme.bits == 4:
                low, four = _splat(15, width, i8), _splat(4, width, i8)
                yield 0, g, [arith.andi(x, low) for x in raw]
                yield 1, g, [arith.shrui(x, four) for x in raw]
            else:
                if self.tiles.dot.is_unsigned:
                    raw = [arith.xori(x, _splat(-128, width, i8)) for x in raw]
                yield g // GROUPS, g % GROUPS, raw

    def _factors(self, b: ir.Value) -> tuple[list[ir.Value], list[ir.Value]]:
        """Vectors of the panel's scales and minima."""
        right, lanes = self.problem.right, self.tiles.lanes
        at = mul(add(mul(self.p, self.problem.blocks), b), PANEL)
        kind = vector_type(lanes, ir.F32Type.get())

        def read(buffer: ir.Value | None) -> list[ir.Value]:
            if buffer is None:
                return []
            starts = [add(at, v * lanes) for v in range(self.tiles.vectors)]
            return [arith.extf(kind, load(buffer, start, lanes)) for start in starts]

        return read(right.scale), read(right.minimum)


def _broadcast_four(buffer: ir.Value, at: Index, lanes: int) -> ir.Value:
    """Four bytes in every lane of 32 bits."""
    i8, i32 = ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(32)
    one = vector.bitcast(vector_type(1, i32), load(buffer, at, PLACES))
    number = vector.extract(one, [], [0])
    return vector.bitcast(vector_type(PLACES * lanes, i8), broadcast(number, lanes))


def _splat(number: float, lanes: int, element: ir.Type) -> ir.Value:
    kind = vector_type(lanes, element)
    is_float = isinstance(element, ir.FloatType)
    one = ir.FloatAttr.get(element, number) if is_float else ir.IntegerAttr.get(element, number)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, one))
