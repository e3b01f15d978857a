"""The matrix multiplication kernel for more than a few rows: an outer product per k in registers.

    for as many blocks of rows as a copy has room for
      copy the rows of the left side, in parallel                      (they stay in the L2 cache)
      for each (group of panels, block of rows) in parallel
        for each panel of the group, `columns` wide
          for each block of k
            take the panel from packed weights, or pack it             (stays in the L1/L2 cache)
            for each tile of `rows` rows
              rows x columns accumulators = left[:, k] * panel[k, :]   (registers)
              add those of the block of k before
              last block of k: the epilogue of the tile, from registers if it is short

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from relax_mlir.bindings import arith, ir
from relax_mlir.target import Target

from .loops import (
    Index,
    add,
    both,
    ceil_div,
    choose,
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
    value,
)
from .multiply_add import MultiplyAdd
from .packing import Matrix, copy_panel, copy_rows

L2_ELEMENTS = 131072
"""Elements of the left side that one task keeps in the L2 cache (half a megabyte)."""
TASKS = 8
"""Tasks worth having, so that every thread finds some."""
TASK_PRODUCTS = 262144
"""Multiply-adds that are worth a task of their own."""
COPIED_ROWS = 16
"""Rows of the left side that are copied together."""
COPIES_PER_THREAD = 4
"""Copies that are worth a thread."""
COPY_ELEMENTS = 4194304
"""Elements of the left side that are copied before anything is multiplied."""


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
        return (1, *range(2, self.rows + 1, 2))


@dataclass(frozen=True)
class Block:
    """Accumulators in scratch memory: `rows` by `columns` of the result from (row, column) on.

    Element (i, j) of product p is at `buffers[p][start + i * stride + j]`.
    """

    batch: tuple[Index, ...]
    row: Index
    rows: Index
    column: Index
    columns: Index
    buffers: tuple[ir.Value, ...]
    stride: int
    start: Index = 0


class Epilogue(Protocol):
    """What is computed from the sums, and where it goes."""

    @property
    def is_short(self) -> bool:
        """Whether it is worth a copy for each vector of a tile."""

    def __call__(self, block: Block) -> None:
        """Emits it for a block, whose sums are in memory."""

    def in_registers(self, block: Block, sums: Sequence[ir.Value], rows: int) -> None:
        """Emits it for `rows` whole rows of a block; `sums` are the last product's vectors."""


@dataclass(frozen=True)
class Problem:
    """What to compute: products that share their left side, for every index of the batch.

    `lhs(batch)` and `rhs[p](batch)` are the matrices at one index; with `packed` the right sides
    are panels [number of panels, depth, columns] of which the matrix describes the first
    (`row_stride` is then the distance of two panels). With `pairs`, numbers are bf16, `depth`
    counts steps (see `MultiplyAdd`), and panels are of pairs [number of panels, depth, columns, 2].
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
    initial: ir.Value,
) -> list[ir.Value]:
    """The vectors of initial + lhs[height, depth] * rhs[depth, columns], row by row."""
    lanes, vectors = tiling.lanes, tiling.vectors
    width = multiply_add.per_lane * lanes
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

    zero = splat(0.0, lanes, ir.F32Type.get())
    start = [initial] * count + [zero] * (count * (unroll - 1))
    main = depth if unroll == 1 else sub(depth, mod(depth, unroll))
    sums = for_range(0, main, unroll, steps, start)
    total = sums[:count]
    if unroll > 1:
        total = for_range(main, depth, 1, lambda k, *s: step(k, s), total)
        for u in range(1, unroll):
            total = [arith.addf(a, b) for a, b in zip(total, sums[u * count :], strict=False)]
    return total


def emit_gemm(tiling: Tiling, problem: Problem) -> None:
    """Emits the whole loop nest at the insertion point."""
    blocks = _split(tiling, problem)
    step = MultiplyAdd(tiling.lanes, problem.pairs)
    count = mul(problem.batch_size, blocks.row_blocks)
    at_once = minimum(maximum(floor_div(COPY_ELEMENTS, blocks.copy_size), 1), count)
    with scratch(mul(at_once, blocks.copy_size), step.storage) as copies:

        def several(first: ir.Value) -> None:
            number = minimum(at_once, sub(count, first))

            def copy(task: ir.Value) -> None:
                block = floor_div(task, blocks.row_groups)
                _copy_left(
                    tiling, problem, blocks, add(first, block),
                    mul(mod(task, blocks.row_groups), COPIED_ROWS), copies,
                    mul(block, blocks.copy_size),
                )  # fmt: skip

            def multiply(task: ir.Value) -> None:
                # All rows with a panel before the next one: threads share panels evenly.
                group, block = floor_div(task, number), mod(task, number)
                at = mul(block, blocks.copy_size)
                _emit_task(tiling, problem, blocks, add(first, block), group, copies, at)

            parallel_range(mul(number, blocks.row_groups), COPIES_PER_THREAD, copy)
            parallel_range(mul(number, blocks.groups), 1, multiply)

        for_range(0, count, maximum(at_once, 1), several)


@dataclass(frozen=True)
class _Blocks:
    """Sizes that are chosen when the kernel runs."""

    row_block: Index  # rows of one task, a multiple of the tile's
    row_blocks: Index
    row_groups: Index  # groups of rows that are copied together, in a block
    panels: Index
    group: Index  # panels of one task
    groups: Index
    k_block: Index
    k_blocks: Index
    copy_size: Index  # elements of the copy of a block of rows


def _split(tiling: Tiling, problem: Problem) -> _Blocks:
    """Cuts rows so that a block fits the cache, k evenly, and columns into tasks worth a call."""
    height, depth = tiling.rows, problem.depth
    k_blocks = maximum(ceil_div(depth, tiling.block_k), 1)
    k_block = round_up(ceil_div(depth, k_blocks), tiling.lanes)
    panels = ceil_div(problem.columns, tiling.columns)
    fitting = floor_div(L2_ELEMENTS, mul(maximum(k_block, 512), height))
    row_blocks = ceil_div(problem.rows, mul(fitting, height))
    wanted = ceil_div(TASKS, maximum(mul(panels, problem.batch_size), 1))
    row_blocks = minimum(maximum(row_blocks, wanted), ceil_div(problem.rows, height))
    row_block = round_up(ceil_div(problem.rows, maximum(row_blocks, 1)), height)
    row_blocks = ceil_div(problem.rows, maximum(row_block, 1))
    row_groups = ceil_div(row_block, COPIED_ROWS)
    work = mul(maximum(row_block, 1), maximum(depth, 1), tiling.columns)
    group = add(floor_div(TASK_PRODUCTS, work), 1)
    copy_size = mul(k_blocks, add(row_block, COPIED_ROWS), tiling.stride)
    return _Blocks(
        row_block, row_blocks, row_groups, panels, group, ceil_div(panels, group),
        k_block, k_blocks, maximum(copy_size, 1),
    )  # fmt: skip


def _rows_of(
    problem: Problem, blocks: _Blocks, number: Index
) -> tuple[tuple[Index, ...], Index, Index]:
    """Index of the batch, first row and number of rows of a block of rows, by its number."""
    row = mul(mod(number, blocks.row_blocks), blocks.row_block)
    rows = minimum(blocks.row_block, sub(problem.rows, row))
    return problem.batch_index(floor_div(number, blocks.row_blocks)), row, rows


def _copy_left(
    tiling: Tiling,
    problem: Problem,
    blocks: _Blocks,
    number: Index,
    begin: Index,
    target: ir.Value,
    start: Index,
) -> None:
    """Copies some rows of a block to `target`, one block of k after the other."""
    batch, row, rows = _rows_of(problem, blocks, number)
    lhs = problem.lhs(batch)
    step = MultiplyAdd(tiling.lanes, problem.pairs)
    # The last tile may be one row too high.
    touched = minimum(add(rows, 1), blocks.row_block)
    here = minimum(COPIED_ROWS, sub(maximum(touched, begin), begin))

    def block(kb: ir.Value) -> None:
        k = mul(kb, blocks.k_block)
        depth = minimum(blocks.k_block, sub(problem.depth, k))
        at = add(start, mul(add(mul(kb, add(blocks.row_block, COPIED_ROWS)), begin), tiling.stride))
        copy_rows(lhs, add(row, begin), here, k, depth, step, target, at, tiling.stride)

    for_range(0, blocks.k_blocks, 1, block)


def _emit_task(
    tiling: Tiling,
    problem: Problem,
    blocks: _Blocks,
    number: Index,
    group: Index,
    copies: ir.Value,
    start: Index,
) -> None:
    """Emits one block of rows, by its number, times one group of panels."""
    first = mul(group, blocks.group)
    last = minimum(add(first, blocks.group), blocks.panels)
    batch, row, rows = _rows_of(problem, blocks, number)
    f32 = ir.F32Type.get()
    step = MultiplyAdd(tiling.lanes, problem.pairs)
    # With one block of k, sums are done after each tile: the next one takes their place.
    has_several = less(1, blocks.k_blocks)
    pitch = choose(has_several, value(tiling.columns), value(0))
    with ExitStack() as stack:
        products = range(len(problem.rhs))
        size = mul(blocks.row_block, tiling.columns)
        sums = tuple(stack.enter_context(scratch(size, f32)) for _ in products)
        panels = []
        if not problem.packed:
            size = tiling.block_k * tiling.columns * step.per_lane
            element = ir.BF16Type.get() if problem.pairs else f32
            panels = [stack.enter_context(scratch(size, element)) for _ in products]

        def panel(p: ir.Value) -> None:
            column = mul(p, tiling.columns)
            columns = minimum(sub(problem.columns, column), tiling.columns)

            def block(kb: ir.Value) -> None:
                k = mul(kb, blocks.k_block)
                depth = minimum(blocks.k_block, sub(problem.depth, k))
                left_at = add(start, mul(kb, add(blocks.row_block, COPIED_ROWS), tiling.stride))
                rights = []
                for i in products:
                    rhs = problem.rhs[i](batch)
                    if problem.packed:
                        rights.append(Panel(rhs.buffer, rhs.at(p, k), rhs.convert))
                    else:
                        rights.append(Panel(panels[i], 0))
                        copy_panel(
                            rhs,
                            column,
                            k,
                            depth,
                            tiling.lanes,
                            tiling.vectors,
                            panels[i],
                            0,
                            step.pairs,
                        )
                block_of_k = _BlockOfK(
                    tiling, problem, step, less(kb, 1), less(blocks.k_blocks, add(kb, 2)), depth,
                    copies, left_at, rights, sums,
                )  # fmt: skip

                def tile(at: ir.Value) -> None:
                    here = minimum(sub(rows, at), tiling.rows)
                    done = Block(
                        batch, add(row, at), here, column, columns, sums, tiling.columns,
                        mul(at, pitch),
                    )  # fmt: skip
                    block_of_k.tile(at, done)

                for_range(0, rows, tiling.rows, tile)

            for_range(0, blocks.k_blocks, 1, block)

        for_range(first, last, 1, panel)


@dataclass(frozen=True)
class _BlockOfK:
    """Tiles of one panel of each product along one block of k."""

    tiling: Tiling
    problem: Problem
    step: MultiplyAdd
    is_first: bool | ir.Value
    is_last: bool | ir.Value
    depth: Index
    left: ir.Value
    left_at: Index
    rights: Sequence[Panel]
    sums: Sequence[ir.Value]

    def tile(self, at: Index, block: Block) -> None:
        """Emits the tile from row `at` on, which `block` describes, and what is done with it."""
        full = self.tiling.rows
        epilogue = self.problem.epilogue

        def others() -> None:
            self._by_height(at, block, self.tiling.heights)
            if_else(self.is_last, lambda: epilogue(block))

        if not epilogue.is_short:
            others()
            return
        is_whole = both(less(full - 1, block.rows), less(self.tiling.columns - 1, block.columns))

        def in_registers() -> None:
            *before, last = range(len(self.rights))
            for product in before:
                self._keep(self._sums(product, full, at, block), product, block)
            epilogue.in_registers(block, self._sums(last, full, at, block), full)

        if_else(both(is_whole, self.is_last), in_registers, others)

    def _by_height(self, at: Index, block: Block, heights: Sequence[int]) -> None:
        """Emits a tile of the least height that has the block's rows."""

        def emit() -> None:
            for product in range(len(self.rights)):
                self._keep(self._sums(product, heights[0], at, block), product, block)

        if_else(
            True if len(heights) == 1 else less(block.rows, heights[0] + 1),
            emit,
            lambda: self._by_height(at, block, heights[1:]),
        )

    def _sums(self, product: int, height: int, at: Index, block: Block) -> list[ir.Value]:
        """The sums of a product up to here."""
        tiling, lanes = self.tiling, self.tiling.lanes
        f32 = ir.F32Type.get()
        zero, start = splat(0.0, lanes, f32), splat(self.problem.initial, lanes, f32)
        left_at = add(self.left_at, mul(at, tiling.stride))
        total = emit_tile(
            tiling, self.step, height, self.depth, self.left, left_at, self.rights[product],
            choose(self.is_first, start, zero),
        )  # fmt: skip
        found = []
        for i, x in enumerate(total):
            kept = load(self.sums[product], add(block.start, i * lanes), lanes)
            found.append(choose(self.is_first, x, arith.addf(kept, x)))
        return found

    def _keep(self, total: Sequence[ir.Value], product: int, block: Block) -> None:
        """Stores the sums of a product."""
        lanes = self.tiling.lanes
        for i, x in enumerate(total):
            store(x, self.sums[product], add(block.start, i * lanes))
