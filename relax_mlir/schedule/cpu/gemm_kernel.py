"""The matrix multiplication kernel for more than a few rows: an outer product per k in registers.

    for each (block of rows, group of panels) in parallel
      copy the rows of the left side                                   (stay in the L2 cache)
      for each panel of the group, `columns` wide
        for each block of k
          take the panel from packed weights, or pack it               (stays in the L1/L2 cache)
          for each tile of `rows` rows
            rows x columns accumulators += left[:, k] * panel[k, :]    (registers)
        epilogue: load accumulators, apply the elementwise part, store to the outputs

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir
from relax_mlir.target import Target

from .loops import (
    Index,
    add,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    less,
    load,
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
)
from .multiply_add import MultiplyAdd
from .packing import Matrix, copy_panel, copy_rows

L2_ELEMENTS = 131072
"""Elements of the left side that one task keeps in the L2 cache (half a megabyte)."""
LEAST_COLUMNS, MOST_COLUMNS = 128, 512
"""Columns that a task computes with one copy of its rows."""
TASKS = 32
"""Tasks worth having, so that every thread finds some."""


@dataclass(frozen=True)
class Tiling:
    """How many accumulators of the result a tile keeps in registers, and how long it runs.

    A tile is `rows` by `vectors * lanes`; `block_k` values of k pass before accumulators go back
    to memory.
    """

    lanes: int
    registers: int
    rows: int
    vectors: int = 2
    block_k: int = 768

    @staticmethod
    def of(target: Target) -> "Tiling":
        """The largest tile that leaves registers for the right side and one broadcast."""
        registers = target.num_vector_registers
        return Tiling(target.f32_lanes, registers, 14 if registers == 32 else 6)

    @property
    def has_masks(self) -> bool:
        """Whether masked stores cost no more than others."""
        return self.lanes == 16

    @property
    def columns(self) -> int:
        """Width of a tile and of a panel of packed weights."""
        return self.vectors * self.lanes

    @property
    def stride(self) -> int:
        """Distance of two rows of the copied left side; one cache line off a power of two."""
        return self.block_k + 16

    @property
    def heights(self) -> tuple[int, ...]:
        """Heights of the tiles that there is code for: the full one, and any remainder's."""
        return (1, 2, *range(4, self.rows, 4), self.rows)


@dataclass(frozen=True)
class Block:
    """Accumulators in scratch memory: `rows` by `columns` of the result from (row, column) on.

    Element (i, j) of product p is at `buffers[p][i * stride + j]`.
    """

    batch: tuple[Index, ...]
    row: Index
    rows: Index
    column: Index
    columns: Index
    buffers: tuple[ir.Value, ...]
    stride: int


Epilogue = Callable[[Block], None]


@dataclass(frozen=True)
class Problem:
    """What to compute: products that share their left side, for every index of the batch.

    `lhs(batch)` and `rhs[p](batch)` are the matrices at one index; with `packed` the right sides
    are panels [number of panels, depth, columns] of which the matrix describes the first
    (`row_stride` is then the distance of two panels). With `pairs` too, they are panels of pairs
    of bf16 [number of panels, depth, columns, 2]: `depth` counts steps, see `MultiplyAdd`.
    """

    batch: tuple[Index, ...]
    rows: Index
    columns: Index
    depth: Index
    lhs: Callable[[Sequence[Index]], Matrix]
    rhs: tuple[Callable[[Sequence[Index]], Matrix], ...]
    packed: bool
    initial: float
    epilogue: Epilogue
    pairs: bool = False

    @property
    def batch_size(self) -> Index:
        """Number of matrices."""
        return mul(1, *self.batch)

    def batch_index(self, linear: Index) -> tuple[Index, ...]:
        """The index of the batch that has this number, counted row by row."""
        found = []
        for extent in reversed(self.batch):
            found.append(mod(linear, extent))
            linear = floor_div(linear, extent)
        return tuple(reversed(found))


@dataclass(frozen=True)
class Panel:
    """A panel of the right side, from an offset of a flat buffer on.

    `convert` turns loaded vectors into f32; None where they are what is multiplied.
    """

    buffer: ir.Value
    offset: Index
    convert: Callable[[ir.Value], ir.Value] | None = None

    def load(self, at: Index, count: int) -> ir.Value:
        """The vector of `count` numbers from an element on."""
        loaded = load(self.buffer, add(self.offset, at), count)
        return self.convert(loaded) if self.convert else loaded


def emit_tile(
    tiling: Tiling,
    multiply_add: MultiplyAdd,
    height: int,
    depth: Index,
    lhs: ir.Value,
    lhs_at: Index,
    rhs: Panel,
    out: ir.Value,
    out_at: Index,
) -> None:
    """out[height, columns] += lhs[height, depth] * rhs[depth, columns], from flat buffers."""
    lanes, vectors = tiling.lanes, tiling.vectors
    width = multiply_add.per_lane * lanes
    f32 = ir.F32Type.get()
    count = height * vectors
    # Few rows would wait for their own last addition: they sum several k apart.
    unroll = max(1, 8 // count)

    def step(k: Index, sums: Sequence[ir.Value]) -> list[ir.Value]:
        at = mul(k, vectors * width)
        right = [rhs.load(add(at, v * width), width) for v in range(vectors)]
        left_at = add(lhs_at, k)
        result = []
        for r in range(height):
            left = multiply_add.left(lhs, add(left_at, r * tiling.stride))
            result += [multiply_add(left, right[v], sums[r * vectors + v]) for v in range(vectors)]
        return result

    def steps(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
        result = []
        for u in range(unroll):
            result += step(add(k, u), sums[u * count : (u + 1) * count])
        return result

    zero = splat(0.0, lanes, f32)
    main = depth if unroll == 1 else sub(depth, mod(depth, unroll))
    sums = for_range(0, main, unroll, steps, [zero] * (count * unroll))
    total = sums[:count]
    if unroll > 1:
        total = for_range(main, depth, 1, lambda k, *s: step(k, s), total)
        for u in range(1, unroll):
            total = [arith.addf(a, b) for a, b in zip(total, sums[u * count :], strict=False)]
    for i, x in enumerate(total):
        at = add(out_at, i * lanes)
        store(arith.addf(load(out, at, lanes), x), out, at)


def emit_gemm(tiling: Tiling, problem: Problem) -> None:
    """Emits the whole loop nest at the insertion point."""
    blocks = _split(tiling, problem)
    count = mul(problem.batch_size, blocks.row_blocks)
    tasks = mul(count, blocks.groups)
    if not problem.pairs:
        parallel_range(tasks, 1, lambda task: _emit_task(tiling, problem, blocks, task))
        return
    # Pairs are multiplied so fast that a copy of the left side by each task would show.
    size = mul(blocks.k_blocks, _room(tiling, blocks), tiling.stride)
    with scratch(mul(count, size), MultiplyAdd(tiling.lanes, True).storage) as copies:

        def copy(number: ir.Value) -> None:
            batch, row, rows = _rows_of(problem, blocks, number)
            _copy_left(tiling, problem, blocks, batch, row, rows, copies, mul(number, size))

        parallel_range(count, 1, copy)
        parallel_range(
            tasks, 1, lambda task: _emit_task(tiling, problem, blocks, task, copies, size)
        )


@dataclass(frozen=True)
class _Blocks:
    """Sizes that are chosen when the kernel runs."""

    row_block: Index  # rows of one task, a multiple of the tile's
    row_blocks: Index
    panels: Index
    group: Index  # panels of one task
    groups: Index
    k_block: Index
    k_blocks: Index


def _split(tiling: Tiling, problem: Problem) -> _Blocks:
    """Cuts rows so that a block fits the cache, k evenly, and columns into enough tasks."""
    height = tiling.rows
    fitting = floor_div(floor_div(L2_ELEMENTS, maximum(problem.depth, 512)), height)
    row_blocks = ceil_div(problem.rows, mul(maximum(fitting, 1), height))
    row_block = round_up(ceil_div(problem.rows, maximum(row_blocks, 1)), height)
    panels = ceil_div(problem.columns, tiling.columns)
    work = mul(panels, row_blocks, problem.batch_size)
    least, most = (max(1, count // tiling.columns) for count in (LEAST_COLUMNS, MOST_COLUMNS))
    group = minimum(maximum(floor_div(work, TASKS), least), most)
    k_blocks = maximum(ceil_div(problem.depth, tiling.block_k), 1)
    k_block = round_up(ceil_div(problem.depth, k_blocks), tiling.lanes)
    return _Blocks(row_block, row_blocks, panels, group, ceil_div(panels, group), k_block, k_blocks)


def _rows_of(
    problem: Problem, blocks: _Blocks, number: Index
) -> tuple[tuple[Index, ...], Index, Index]:
    """Index of the batch, first row and number of rows of a block of rows, by its number."""
    row = mul(mod(number, blocks.row_blocks), blocks.row_block)
    rows = minimum(blocks.row_block, sub(problem.rows, row))
    return problem.batch_index(floor_div(number, blocks.row_blocks)), row, rows


def _room(tiling: Tiling, blocks: _Blocks) -> Index:
    """Rows that a copy of the left side has room for: transposing copies write whole squares."""
    return add(blocks.row_block, tiling.lanes)


def _touched(blocks: _Blocks, rows: Index) -> Index:
    """Rows that tiles read: the last tile may be up to three rows too high."""
    return minimum(add(rows, 3), blocks.row_block)


def _copy_left(
    tiling: Tiling,
    problem: Problem,
    blocks: _Blocks,
    batch: Sequence[Index],
    row: Index,
    rows: Index,
    target: ir.Value,
    start: Index,
) -> None:
    """Copies a block of rows to `target`, one block of k after the other."""
    lhs = problem.lhs(batch)
    step = MultiplyAdd(tiling.lanes, problem.pairs)

    def block(kb: ir.Value) -> None:
        k = mul(kb, blocks.k_block)
        depth = minimum(blocks.k_block, sub(problem.depth, k))
        at = add(start, mul(kb, _room(tiling, blocks), tiling.stride))
        copy_rows(lhs, row, _touched(blocks, rows), k, depth, step, target, at, tiling.stride)

    for_range(0, blocks.k_blocks, 1, block)


def _emit_task(
    tiling: Tiling,
    problem: Problem,
    blocks: _Blocks,
    task: ir.Value,
    copies: ir.Value | None = None,
    size: Index = 0,
) -> None:
    """Emits one block of rows times one group of panels.

    `copies` are copies of all blocks of rows, each of `size` elements; None makes one here.
    """
    rest = floor_div(task, blocks.groups)
    first = mul(mod(task, blocks.groups), blocks.group)
    last = minimum(add(first, blocks.group), blocks.panels)
    batch, row, rows = _rows_of(problem, blocks, rest)
    room = _room(tiling, blocks)
    f32 = ir.F32Type.get()
    step = MultiplyAdd(tiling.lanes, problem.pairs)
    with ExitStack() as stack:
        left, left_start = copies, mul(rest, size)
        if left is None:
            count = mul(blocks.k_blocks, room, tiling.stride)
            left = stack.enter_context(scratch(count, step.storage))
            _copy_left(tiling, problem, blocks, batch, row, rows, left, 0)
        products = range(len(problem.rhs))
        size = mul(blocks.row_block, tiling.columns)
        sums = [stack.enter_context(scratch(size, f32)) for _ in products]
        panels = []
        if not problem.packed:
            size = tiling.block_k * tiling.columns
            panels = [stack.enter_context(scratch(size, f32)) for _ in products]
        touched = _touched(blocks, rows)

        def panel(p: ir.Value) -> None:
            for buffer in sums:
                _fill(buffer, mul(touched, tiling.columns), tiling, problem.initial)

            def block(kb: ir.Value) -> None:
                k = mul(kb, blocks.k_block)
                depth = minimum(blocks.k_block, sub(problem.depth, k))
                left_at = add(left_start, mul(kb, room, tiling.stride))
                for i in products:
                    rhs = problem.rhs[i](batch)
                    if problem.packed:
                        right = Panel(rhs.buffer, rhs.at(p, k), rhs.convert)
                    else:
                        right = Panel(panels[i], 0)
                        copy_panel(
                            rhs,
                            mul(p, tiling.columns),
                            k,
                            depth,
                            tiling.lanes,
                            tiling.vectors,
                            right.buffer,
                            0,
                        )
                    _emit_tiles(tiling, step, rows, depth, left, left_at, right, sums[i])

            for_range(0, blocks.k_blocks, 1, block)
            column = mul(p, tiling.columns)
            columns = minimum(sub(problem.columns, column), tiling.columns)
            problem.epilogue(Block(batch, row, rows, column, columns, tuple(sums), tiling.columns))

        for_range(first, last, 1, panel)


def _fill(buffer: ir.Value, size: Index, tiling: Tiling, number: float) -> None:
    """Sets the accumulators to what the sums start with."""
    initial = splat(number, tiling.lanes, ir.F32Type.get())
    for_range(0, size, tiling.lanes, lambda i: store(initial, buffer, i))


def _emit_tiles(
    tiling: Tiling,
    step: MultiplyAdd,
    rows: Index,
    depth: Index,
    left: ir.Value,
    left_at: Index,
    right: Panel,
    out: ir.Value,
) -> None:
    """Emits the loop over full tiles, and the one tile that does the rows left over."""

    def tile(height: int, row: Index) -> None:
        at = add(left_at, mul(row, tiling.stride))
        out_at = mul(row, tiling.columns)
        emit_tile(tiling, step, height, depth, left, at, right, out, out_at)

    rest = mod(rows, tiling.rows)
    full = sub(rows, rest)
    for_range(0, full, tiling.rows, lambda row: tile(tiling.rows, row))

    def remainder(heights: Sequence[int]) -> None:
        if_else(
            less(rest, heights[0] + 1),
            lambda: tile(heights[0], full),
            (lambda: remainder(heights[1:])) if len(heights) > 1 else None,
        )

    if_else(less(0, rest), lambda: remainder(tiling.heights))
