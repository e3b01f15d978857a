"""The matrix multiplication kernels for few rows: they stream the right side once from memory.

Weights as [n, k]: one row of them at a time, so that memory is read in one unbroken stream, with
a few vectors of sums along k that are added up across at the end. Weights as [k, n]: a few rows
side by side, with the sums in the L1 cache. Either way every weight meets all rows of the left
side while it is near.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, memref, vector

from .gemm_kernel import Block, Problem, Tiling
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
    mask,
    maximum,
    minimum,
    mod,
    mul,
    parallel_range,
    round_up,
    scratch,
    splat,
    store,
    sub,
    value,
)
from .multiply_add import MultiplyAdd
from .packing import Matrix, copy_rows

MOST_ROWS = 8
"""Rows of the left side up to which these kernels beat packing the right side."""
ROWS_AT_ONCE = 4
"""Rows of the left side that one pass over a piece of the right side serves."""
TASK_ELEMENTS = 65536
"""Weights that are worth a task of their own."""
UNROLL = 4
"""Sums a row: enough to hide the latency of an addition."""
K_AT_ONCE = 8
"""Rows of a [k, n] right side that are read side by side."""
STRIPS = 8
LEAST_STRIP = 256
MOST_STRIP = 2048
"""Columns of a [k, n] right side that one task sums up."""


def emit_gemv(tiling: Tiling, problem: Problem) -> None:
    """Emits the loop over strips of columns, each one task, at the insertion point.

    Needs `problem.packed` to be false, and problem.rows <= MOST_ROWS when it runs.
    """
    zeros = [0] * len(problem.batch)
    along_rows = problem.rhs[0](zeros).k_is_innermost
    width, stride = (tiling.columns, tiling.columns) if along_rows else _strip(tiling, problem)
    strips = ceil_div(problem.columns, width)
    depth = problem.depth if isinstance(problem.depth, int) else 512
    grain = max(1, TASK_ELEMENTS // max(1, depth * tiling.columns)) if along_rows else 1

    def task(number: ir.Value) -> None:
        batch = problem.batch_index(floor_div(number, strips))
        column = mul(mod(number, strips), width)
        columns = minimum(sub(problem.columns, column), width)
        with ExitStack() as stack:
            size = mul(problem.rows, stride)
            buffers = [stack.enter_context(scratch(size, ir.F32Type.get())) for _ in problem.rhs]
            lhs = problem.lhs(batch)
            if lhs.convert or not lhs.k_is_innermost:
                lhs = _copied(tiling, lhs, stack)
            for buffer, rhs in zip(buffers, problem.rhs, strict=True):
                strip = _Strip(
                    tiling, problem.initial, lhs, rhs(batch), column, columns, buffer, stride
                )
                strip.sum_along_k() if along_rows else strip.sum_along_n()
            block = Block(batch, 0, problem.rows, column, columns, tuple(buffers), stride)
            problem.epilogue(block)

    parallel_range(mul(problem.batch_size, strips), grain, task)


def _strip(tiling: Tiling, problem: Problem) -> tuple[Index, int]:
    """Width of a strip of a [k, n] right side, and its bound.

    It is wide enough for long streams from memory, and narrow enough for several threads.
    """
    even = round_up(ceil_div(problem.columns, STRIPS), tiling.lanes)
    return minimum(maximum(even, LEAST_STRIP), MOST_STRIP), MOST_STRIP


def _copied(tiling: Tiling, lhs: Matrix, stack: ExitStack) -> Matrix:
    """The left side as f32 with neighbours along k."""
    stride = round_up(lhs.depth, tiling.lanes)
    size = mul(round_up(lhs.rows, tiling.lanes), stride)
    buffer = stack.enter_context(scratch(size, ir.F32Type.get()))
    step = MultiplyAdd(tiling.lanes)
    copy_rows(lhs, 0, lhs.rows, 0, lhs.depth, step, buffer, 0, stride)
    return Matrix(buffer, 0, stride, 1, lhs.rows, lhs.depth)


@dataclass(frozen=True)
class _Strip:
    """sums[i, j] = initial + lhs[i, :] . rhs[column + j, :] for all rows i and `columns` j."""

    tiling: Tiling
    initial: float
    lhs: Matrix
    rhs: Matrix
    column: Index
    columns: Index
    sums: ir.Value
    stride: int

    def sum_along_k(self) -> None:
        """For weights that are contiguous along k."""

        def column(j: ir.Value) -> None:
            start = self.rhs.at(add(self.column, j), 0)
            self._row_groups(lambda row, count: self._dot(start, row, count, j))

        for_range(0, self.columns, 1, column)

    def sum_along_n(self) -> None:
        """For weights that are contiguous along n."""
        lanes, depth = self.tiling.lanes, self.lhs.depth
        initial = splat(self.initial, lanes, ir.F32Type.get())

        def fill(i: ir.Value) -> None:
            start = mul(i, self.stride)
            for_range(0, self.columns, lanes, lambda j: store(initial, self.sums, add(start, j)))

        def several(k: ir.Value, count: int) -> None:
            starts = [self.rhs.at(self.column, add(k, u)) for u in range(count)]
            self._row_groups(lambda row, rows: self._accumulate(starts, k, row, rows))

        for_range(0, self.lhs.rows, 1, fill)
        main = sub(depth, mod(depth, K_AT_ONCE))
        for_range(0, main, K_AT_ONCE, lambda k: several(k, K_AT_ONCE))
        for_range(main, depth, 1, lambda k: several(k, 1))

    def _row_groups(self, emit: Callable[[Index, int], None]) -> None:
        """Emits `emit(first row, number of rows)` for all rows, a few at once."""
        rest = mod(self.lhs.rows, ROWS_AT_ONCE)
        full = sub(self.lhs.rows, rest)

        def remainder(count: int) -> None:
            last = count == ROWS_AT_ONCE - 1
            if_else(
                True if last else less(rest, count + 1),
                lambda: emit(full, count),
                lambda: remainder(count + 1),
            )

        for_range(0, full, ROWS_AT_ONCE, lambda row: emit(row, ROWS_AT_ONCE))
        if_else(less(0, rest), lambda: remainder(1))

    def _dot(self, start: Index, row: Index, rows: int, j: ir.Value) -> None:
        """sums[row + i, j] for `rows` rows, the weights from `start` on."""
        lanes, f32, depth = self.tiling.lanes, ir.F32Type.get(), self.lhs.depth
        unroll = min(UNROLL, (self.tiling.registers - 4) // rows)
        main = sub(depth, mod(depth, unroll * lanes))

        def one(k: Index, sums: Sequence[ir.Value], keep: ir.Value | None) -> list[ir.Value]:
            right = self.rhs.load(add(start, k), lanes, keep)
            left = [self.lhs.load(self.lhs.at(add(row, i), k), lanes, keep) for i in range(rows)]
            return [vector.fma(right, x, total) for x, total in zip(left, sums, strict=True)]

        def step(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            result = []
            for u in range(unroll):
                result += one(add(k, u * lanes), sums[u * rows : (u + 1) * rows], None)
            return result

        def rest(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            return one(k, sums, mask(sub(depth, k), lanes))

        zero = splat(0.0, lanes, f32)
        parts = for_range(0, main, unroll * lanes, step, [zero] * (rows * unroll))
        total = parts[:rows]
        for u in range(1, unroll):
            part = parts[u * rows : (u + 1) * rows]
            total = [arith.addf(a, b) for a, b in zip(total, part, strict=True)]
        total = for_range(main, depth, lanes, rest, total)
        initial = arith.constant(f32, self.initial)
        any_order = arith.FastMathFlags.reassoc
        for i, x in enumerate(total):
            kind = vector.CombiningKind.ADD
            added = vector.reduction(f32, kind, x, acc=initial, fastmath=any_order)
            memref.store(added, self.sums, [value(add(mul(add(row, i), self.stride), j))])

    def _accumulate(self, starts: Sequence[Index], k: ir.Value, row: Index, rows: int) -> None:
        """Adds lhs[row + i, k + u] * (weights from starts[u] on) to the sums of `rows` rows."""
        lanes, lhs, sums = self.tiling.lanes, self.lhs, self.sums

        def left(i: int, u: int) -> ir.Value:
            at = lhs.at(add(row, i), add(k, u))
            return broadcast(memref.load(lhs.buffer, [value(at)]), lanes)

        factors = [[left(i, u) for u in range(len(starts))] for i in range(rows)]
        places = [mul(add(row, i), self.stride) for i in range(rows)]

        def along(j: ir.Value) -> None:
            keep = mask(sub(self.columns, j), lanes)
            right = [self.rhs.load(add(start, j), lanes, keep) for start in starts]
            for place, own in zip(places, factors, strict=True):
                total = load(sums, add(place, j), lanes)
                for x, y in zip(own, right, strict=True):
                    total = vector.fma(x, y, total)
                store(total, sums, add(place, j))

        for_range(0, self.columns, lanes, along)
