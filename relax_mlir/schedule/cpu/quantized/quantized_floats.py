"""Panels of quantised weights times rows of floats.

    few rows:  for each group of panels in parallel
                 for each panel of the group, of 16 columns
                   for each block of 32 k
                     rows x 16 sums += left * decoded elements    (in registers)
                   epilogue on the panel's sums
    else:      the nest of all products, with panels that `decoded_operand` decodes for all rows

On machines without 8-bit dot products, a left side of 8-bit blocks is converted to floats here; for
other machines see `quantized_integers`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import arith, ir, vector
from relax_mlir.dialects.graph.quantized import BLOCK, PANEL
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    for_range,
    if_else,
    least_fitting,
    less,
    minimum,
    mul,
    parallel_range,
    scratch,
    splat,
    store,
    sub,
)
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa.multiply_add import MultiplyAdd
from relax_mlir.schedule.cpu.product.nest import emit_product
from relax_mlir.schedule.cpu.product.product import Product
from relax_mlir.target import Cpu

from .decoded_operand import Decoded, left_matrix
from .quantized_panels import POSITIONS, Problem

PREFETCH_ROWS = 4
"""Up to so many rows, a register block is bound by memory."""


def emit_floats(cpu: Cpu, problem: Problem) -> None:
    """Emits the whole loop nest at the insertion point."""
    blocking = Blocking.of(cpu)
    if_else(
        less(problem.rows, problem.right.blocking.few_float_rows + 1),
        lambda: if_else(less(0, problem.rows), lambda: _emit_few(blocking, problem)),
        lambda: _emit_many(blocking, problem),
    )


def _emit_many(blocking: Blocking, problem: Problem) -> None:
    """Emits the nest of products, in register blocks of at least a panel's columns."""
    right = problem.right
    vectors = max(blocking.vectors, PANEL // blocking.lanes)
    rows = max(1, min(blocking.rows, (blocking.registers - 1) // vectors - 1))
    blocking = replace(blocking, rows=rows, vectors=vectors)
    left = left_matrix(problem.left, problem.rows, right.blocks)
    product = Product(
        batch=(),
        rows=problem.rows,
        columns=problem.columns,
        depth=BLOCK * right.blocks,
        lhs=lambda _: left,
        rhs=(Decoded(right, problem.panels, blocking.columns, blocking.lanes),),
        initial=0.0,
        epilogue=problem.epilogue,
        step=MultiplyAdd(blocking.lanes),
    )
    emit_product(blocking, product)


def _emit_few(blocking: Blocking, problem: Problem) -> None:
    """Emits tasks of panels, each for all rows at once."""
    panels, rows = problem.panels, problem.rows
    most = problem.right.blocking.few_float_rows
    heights = [1 << i for i in range((most - 1).bit_length() + 1)]
    group = max(1, problem.right.blocking.task_bytes // problem.right.bytes)

    def emit_task(task: ir.Value) -> None:
        first = mul(task, group)
        last = minimum(add(first, group), panels)
        with scratch(heights[-1] * PANEL, ir.F32Type.get()) as sums:

            def panel(p: ir.Value) -> None:
                least_fitting(rows, heights, _RegisterBlock(blocking.lanes, problem, sums, p).emit)
                column = mul(p, PANEL)
                columns = minimum(sub(problem.columns, column), PANEL)
                problem.epilogue(Block((), 0, rows, column, columns, (sums,), PANEL))

            for_range(first, last, 1, panel)

    parallel_range(ceil_div(panels, group), 1, emit_task)


@dataclass(frozen=True)
class _RegisterBlock:
    """The rows times panel p, accumulated in registers, then stored to `sums`."""

    lanes: int
    problem: Problem
    sums: ir.Value
    p: ir.Value

    @property
    def vectors(self) -> int:
        """Vectors across a panel."""
        return PANEL // self.lanes

    def emit(self, height: int) -> None:
        """Emits the loop over blocks, and the stores; rows beyond the last one repeat it."""
        right, last = self.problem.right, sub(self.problem.rows, 1)
        rows = [mul(minimum(r, last), right.blocks) for r in range(height)]

        def step(b: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            prefetches = right.scheme.bits < 8 or right.prefetch_for(is_few=True).always
            if prefetches and height <= PREFETCH_ROWS:
                # Weights of few bits are several slow streams, which hardware prefetchers notice
                # late.
                right.prefetch(self.p, b, self.problem.panels, is_few=True)
            return self._block([add(row, b) for row in rows], b, totals)

        zero = splat(0.0, self.lanes, ir.F32Type.get())
        totals = for_range(0, right.blocks, 1, step, [zero] * (height * self.vectors))
        for n, total in enumerate(totals):
            r, v = divmod(n, self.vectors)
            store(total, self.sums, r * PANEL + v * self.lanes)

    def _block(
        self, blocks: Sequence[Index], b: ir.Value, totals: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """One block: decoded to f32 elements, then multiply-adds."""
        # An accumulator for each position: a single row would be bound by the latency of additions.
        zero = splat(0.0, self.lanes, ir.F32Type.get())
        parts = [list(totals), *([zero] * len(totals) for _ in range(POSITIONS - 1))]
        for k, weights in self.problem.right.floats_of(self.p, b, self.lanes):
            own = parts[k % POSITIONS]
            for r, block in enumerate(blocks):
                x = broadcast(self.problem.left.element(block, k), self.lanes)
                for n, w in enumerate(weights, r * self.vectors):
                    own[n] = vector.fma(w, x, own[n])
        pairs = [map(arith.addf, parts[0], parts[1]), map(arith.addf, parts[2], parts[3])]
        return [arith.addf(x, y) for x, y in zip(*pairs, strict=True)]
