"""The kernel for a right side in panels of quantised numbers times rows of floats.

    for each (block of rows, group of panels) in parallel
      for each panel of the group, 16 columns wide
        for each tile of rows
          for each block of 32 k
            rows x 16 sums += left * decoded numbers    (all in registers)
        epilogue on the panel's sums

One loop nest serves few rows, where it streams the weights once, and many. A left side of 8-bit
blocks is multiplied as floats here, on machines that have no 8-bit dot products; see
`quantized_integers` for those that do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir, vector
from relax_mlir.dialects.graph.quantized import PANEL
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    least_fitting,
    less,
    minimum,
    mod,
    mul,
    parallel_range,
    scratch,
    store,
    sub,
    vector_type,
    zero_attr,
)
from relax_mlir.target import Target

from .quantized_panels import PLACES, Problem

PREFETCH_ROWS = 4
"""Rows up to which memory is what a tile waits for."""


@dataclass(frozen=True)
class Tiles:
    """How a target computes a tile: lanes of a vector, and heights that there is code for."""

    lanes: int
    heights: tuple[int, ...]

    @staticmethod
    def of(target: Target) -> "Tiles":
        """Tiles that fit the registers."""
        lanes = min(PANEL, target.f32_lanes)
        return Tiles(lanes, (1, 2, 4, 8) if lanes == PANEL else (1, 2))

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
    panels, sizes = problem.panels, problem.right.blocking
    group = max(1, sizes.task_bytes // problem.right.bytes)
    groups = ceil_div(panels, group)
    row_blocks = ceil_div(problem.rows, sizes.row_block)

    def task(number: ir.Value) -> None:
        row = mul(floor_div(number, groups), sizes.row_block)
        rows = minimum(sub(problem.rows, row), sizes.row_block)
        first = mul(mod(number, groups), group)
        last = minimum(add(first, group), panels)
        room = add(rows, tiles.rows)  # the last tile may be higher than what is left
        with scratch(mul(room, PANEL), ir.F32Type.get()) as sums:
            tile = partial(_Tile, tiles, problem, sums)

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

    if_else(
        less(0, rest), lambda: least_fitting(rest, tiles.heights, lambda height: tile(height, full))
    )


@dataclass(frozen=True)
class _Tile:
    """`height` rows from row + i on times panel p, added up in registers, then put into `sums`."""

    tiles: Tiles
    problem: Problem
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

        def step(b: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            right = self.problem.right
            asks = right.scheme.bits < 8 or right.ahead(is_few=True).always
            if asks and self.height <= PREFETCH_ROWS:
                # Narrow numbers come in several slow streams, which the machine notices late.
                right.prefetch(self.p, b, self.problem.panels, is_few=True)
            return self._block([add(row, b) for row in rows], b, totals)

        zero = self._zero(ir.F32Type.get())
        totals = for_range(0, blocks, 1, step, [zero] * (self.height * vectors))
        for n, total in enumerate(totals):
            r, v = divmod(n, vectors)
            store(total, self.sums, add(mul(add(self.i, r), PANEL), v * lanes))

    def _zero(self, element: ir.Type) -> ir.Value:
        kind = vector_type(self.tiles.lanes, element)
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, zero_attr(element)))

    def _block(
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
