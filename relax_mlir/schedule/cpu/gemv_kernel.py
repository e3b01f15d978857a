"""The matrix multiplication kernels for up to three rows: they stream the right side once.

Weights as [n, k]: one row of them at a time, so that memory is read in one unbroken stream, with
a few vectors of sums along k that are added up across at the end. Weights as [k, n]: vectors along
n, one number of the left side broadcast per k. Every weight that is loaded meets all rows of the
left side.
"""

from collections.abc import Sequence
from contextlib import ExitStack

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
    mask,
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
from .packing import Matrix, copy_rows

MOST_ROWS = 3
"""Rows of the left side up to which these kernels beat packing the right side."""
TASK_ELEMENTS = 65536
"""Weights that are worth a task of their own."""
UNROLL = 4
"""Sums a row: enough to hide the latency of an addition."""


def emit_gemv(tiling: Tiling, problem: Problem) -> None:
    """Emits the kernels for one to `MOST_ROWS` rows at the insertion point, and their choice.

    Needs problem.packed to be false, and 1 <= problem.rows <= MOST_ROWS when it runs.
    """

    def choose(rows: int) -> None:
        if rows == MOST_ROWS:
            _emit_loop(tiling, problem, rows)
        else:
            if_else(
                less(problem.rows, rows + 1),
                lambda: _emit_loop(tiling, problem, rows),
                lambda: choose(rows + 1),
            )

    choose(1)


def _emit_loop(tiling: Tiling, problem: Problem, rows: int) -> None:
    """Emits the loop over strips of columns, each one task."""
    zeros = [0] * len(problem.batch)
    along_rows = problem.rhs[0](zeros).k_is_innermost
    vectors = tiling.vectors if along_rows else min(8, (tiling.registers - 4) // rows)
    width = vectors * tiling.lanes
    strips = ceil_div(problem.columns, width)
    depth = problem.depth if isinstance(problem.depth, int) else 512
    grain = max(1, TASK_ELEMENTS // max(1, depth * width))

    def task(number: ir.Value) -> None:
        batch = problem.batch_index(floor_div(number, strips))
        column = mul(mod(number, strips), width)
        with ExitStack() as stack:
            products = range(len(problem.rhs))
            f32 = ir.F32Type.get()
            sums = [stack.enter_context(scratch(rows * width, f32)) for _ in products]
            lhs = problem.lhs(batch)
            if lhs.convert or not lhs.k_is_innermost:
                stride = round_up(problem.depth, tiling.lanes)
                room = stack.enter_context(scratch(mul(round_up(rows, tiling.lanes), stride), f32))
                copy_rows(lhs, 0, rows, 0, problem.depth, tiling.lanes, room, 0, stride)
                lhs = Matrix(room, 0, stride, 1, rows, problem.depth)
            emit = _sum_rows if along_rows else _sum_columns
            for i in products:
                emit(tiling, problem, lhs, problem.rhs[i](batch), rows, column, width, sums[i])
            columns = minimum(sub(problem.columns, column), width)
            problem.epilogue(Block(batch, 0, rows, column, columns, tuple(sums), width))

    parallel_range(mul(problem.batch_size, strips), grain, task)


def _sum_rows(
    tiling: Tiling,
    problem: Problem,
    lhs: Matrix,
    rhs: Matrix,
    rows: int,
    column: Index,
    width: int,
    sums: ir.Value,
) -> None:
    """sums[i, j] = initial + lhs[i, :] . rhs[column + j, :], weights contiguous along k."""
    lanes, f32 = tiling.lanes, ir.F32Type.get()
    depth = problem.depth
    main = sub(depth, mod(depth, UNROLL * lanes))

    def products(k: Index, at: Index, sums: Sequence[ir.Value], keep: ir.Value | None) -> list:
        right = rhs.load(add(at, k), lanes, keep)
        left = [lhs.load(lhs.at(i, k), lanes, keep) for i in range(rows)]
        return [vector.fma(right, x, total) for x, total in zip(left, sums, strict=True)]

    def row(j: ir.Value) -> None:
        at = rhs.at(add(column, j), 0)

        def step(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            result = []
            for u in range(UNROLL):
                part = sums[u * rows : (u + 1) * rows]
                result += products(add(k, u * lanes), at, part, None)
            return result

        def rest(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            return products(k, at, sums, mask(sub(depth, k), lanes))

        zero = splat(0.0, lanes, f32)
        parts = for_range(0, main, UNROLL * lanes, step, [zero] * (rows * UNROLL))
        total = parts[:rows]
        for u in range(1, UNROLL):
            part = parts[u * rows : (u + 1) * rows]
            total = [arith.addf(a, b) for a, b in zip(total, part, strict=True)]
        total = for_range(main, depth, lanes, rest, total)
        start = arith.constant(f32, problem.initial)
        for i, x in enumerate(total):
            added = vector.reduction(
                f32, vector.CombiningKind.ADD, x, acc=start, fastmath=arith.FastMathFlags.reassoc
            )
            memref.store(added, sums, [value(add(j, i * width))])

    for_range(0, minimum(sub(problem.columns, column), width), 1, row)


def _sum_columns(
    tiling: Tiling,
    problem: Problem,
    lhs: Matrix,
    rhs: Matrix,
    rows: int,
    column: Index,
    width: int,
    sums: ir.Value,
) -> None:
    """sums[i, j] = initial + lhs[i, :] . rhs[column + j, :], weights contiguous along n."""
    lanes = tiling.lanes
    starts = range(0, width, lanes)
    left = sub(problem.columns, column)
    keeps = [mask(sub(left, start), lanes) for start in starts]

    def step(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
        at = rhs.at(column, k)
        right = [
            rhs.load(add(at, start), lanes, keep) for start, keep in zip(starts, keeps, strict=True)
        ]
        result = []
        for i in range(rows):
            x = broadcast(memref.load(lhs.buffer, [value(lhs.at(i, k))]), lanes)
            part = sums[i * len(starts) : (i + 1) * len(starts)]
            result += [vector.fma(x, b, total) for b, total in zip(right, part, strict=True)]
        return result

    initial = splat(problem.initial, lanes, ir.F32Type.get())
    total = for_range(0, problem.depth, 1, step, [initial] * (rows * len(starts)))
    for i, x in enumerate(total):
        store(x, sums, i * lanes)
