"""The kernel for products of matrices of 8-bit integers: groups of neighbours along k in registers.

    for as many blocks of rows as a copy has room for
      copy the rows of the left side as groups, add each up             in parallel
      for each (group of panels, block of rows) in parallel
        for each panel of the group, `columns` wide
          for each block of k
            take the panel from packed weights, or pack it              (stays in the L2 cache)
            for each tile of `rows` rows
              rows x columns accumulators = left[:, k] * panel[k, :]    (registers, see also `amx`)
              last block of k: the epilogue of the tile

A machine may want numbers of the right side that are moved by 128; the sums then begin at so many
times the sum of their row. All of this is exact modulo 2^32, whatever k is.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.dialects.graph import element_bits
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
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
    splat_integer,
    store,
    sub,
    value,
)
from relax_mlir.schedule.build.memory import View
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.dot import GroupStep
from relax_mlir.schedule.cpu.isa.pointers import pointer

from .amx_block import PANEL_ROW_BYTES, TileBlock, tail_for
from .gemm_problem import Problem
from .gemm_tile import AHEAD, Left, Panel, Tiling, each_tile, left_operands, with_epilogue
from .integer_packing import LeftCopy, copy_left, copy_panel
from .packing import LINE_BITS

L2_GROUPS = 65536
"""Groups of the left side that one task keeps in the L2 cache (a quarter of a megabyte)."""
LEAST_TILES = 4
"""Blocks of tile registers that share a panel at least, if there are so many."""
TASKS = 8
"""Tasks worth having, so that every thread finds some."""
TASK_PRODUCTS = 262144
"""Groups of products that are worth a task of their own."""
TILES_SPEED = 8
"""How many times as fast tile registers are."""
COPIED_ROWS = 16
"""Rows of the left side that are copied together."""
COPIES_PER_THREAD = 4
"""Copies that are worth a thread."""
COPIED_GROUPS = 4194304
"""Groups of the left side that are copied before anything is multiplied."""


@dataclass(frozen=True)
class IntegerProblem(Problem):
    """What to compute; `depth` counts groups, and packed panels are of groups.

    `factor` times the sum of a row of the left side is what its sums lack. `outputs` are asked for
    before they are written.
    """

    factor: int = 0
    outputs: Sequence[View] = ()

    @property
    def corrects(self) -> bool:
        """Whether sums begin with anything."""
        return bool(self.factor or self.initial)


def emit_integer_gemm(tiling: Tiling, step: GroupStep, problem: IntegerProblem) -> None:
    """Emits the whole loop nest at the insertion point."""
    _Kernel(tiling, step, problem, _Split.of(tiling, problem)).emit()


@dataclass(frozen=True)
class _Split:
    """Sizes that are chosen when the kernel runs.

    `row_block` rows, an even number or whole blocks of tile registers, and `group` panels are one
    task.
    """

    row_block: Index
    row_blocks: Index
    panels: Index
    group: Index
    k_block: Index
    k_blocks: Index
    stride: int

    @staticmethod
    def of(tiling: Tiling, problem: IntegerProblem) -> "_Split":
        """Cuts rows so that a block fits the cache, k evenly, and columns into tasks."""
        height, depth = tiling.rows, problem.depth
        k_blocks = ceil_div(depth, tiling.block_k)
        if tiling.in_tiles:  # blocks of two thirds of the longest one, or about that
            k_blocks = floor_div(add(depth, tiling.block_k // 3 - 1), tiling.block_k // 3 * 2)
        k_block = round_up(ceil_div(depth, maximum(k_blocks, 1)), tiling.lanes)
        k_blocks = maximum(ceil_div(depth, maximum(k_block, 1)), 1)
        stride = (k_block if isinstance(k_block, int) else tiling.block_k) + 16
        panels = ceil_div(problem.columns, tiling.columns)
        # Blocks of k are short with tile registers: all of them stay in the cache.
        kept, least = (depth, LEAST_TILES) if tiling.in_tiles else (k_block, 1)
        fitting = maximum(floor_div(L2_GROUPS, mul(maximum(kept, 128), height)), least)
        if problem.passes_rows_once and not tiling.in_tiles:
            fitting = 1
        row_blocks = ceil_div(problem.rows, mul(fitting, height))
        wanted = ceil_div(TASKS, maximum(mul(panels, problem.batch_size), 1))
        row_blocks = minimum(maximum(row_blocks, wanted), ceil_div(problem.rows, height))
        row_block = ceil_div(problem.rows, maximum(row_blocks, 1))
        row_block = round_up(row_block, height if tiling.in_tiles else 2)
        row_blocks = ceil_div(problem.rows, maximum(row_block, 1))
        work = mul(maximum(row_block, 1), maximum(depth, 1), tiling.columns)
        worthwhile = TASK_PRODUCTS * (TILES_SPEED if tiling.in_tiles else 1)
        group = add(floor_div(worthwhile, work), 1)
        return _Split(row_block, row_blocks, panels, group, k_block, k_blocks, stride)

    @property
    def groups(self) -> Index:
        """Groups of panels."""
        return ceil_div(self.panels, self.group)

    @property
    def row_groups(self) -> Index:
        """Groups of rows that are copied together, in a block."""
        return ceil_div(self.row_block, COPIED_ROWS)

    @property
    def rows_kept(self) -> Index:
        """Rows that a copy of a block has room for."""
        return add(self.row_block, COPIED_ROWS)

    @property
    def copy_size(self) -> Index:
        """Groups of the copy of a block of rows."""
        return mul(self.k_blocks, self.rows_kept, self.stride)


@dataclass(frozen=True)
class _Rows:
    """A block of rows of one matrix of the batch, and where its copy begins."""

    batch: tuple[Index, ...]
    row: Index
    rows: Index
    groups: ir.Value
    start: Index
    corrections: ir.Value
    first: Index


@dataclass(frozen=True)
class _Kernel:
    """The loop nest."""

    tiling: Tiling
    step: GroupStep
    problem: IntegerProblem
    split: _Split

    def emit(self) -> None:
        """Emits the loop over batches of blocks of rows."""
        split, problem = self.split, self.problem
        count = mul(problem.batch_size, split.row_blocks)
        at_once = floor_div(COPIED_GROUPS, maximum(split.copy_size, 1))
        at_once = minimum(maximum(at_once, 1), count)
        i32 = ir.IntegerType.get_signless(32)
        with ExitStack() as stack:
            groups = stack.enter_context(scratch(mul(at_once, split.copy_size), i32))
            size = mul(at_once, split.rows_kept, self.tiling.lanes) if problem.corrects else 1
            corrections = stack.enter_context(scratch(size, i32))

            def rows_of(first: Index, number: Index) -> _Rows:
                block = add(first, number)
                row = mul(mod(block, split.row_blocks), split.row_block)
                rows = minimum(split.row_block, sub(problem.rows, row))
                batch = problem.batch_index(floor_div(block, split.row_blocks))
                at = (mul(number, split.copy_size), mul(number, split.rows_kept))
                return _Rows(batch, row, rows, groups, at[0], corrections, at[1])

            def several(first: ir.Value) -> None:
                number = minimum(at_once, sub(count, first))

                def copy(task: ir.Value) -> None:
                    block = rows_of(first, floor_div(task, split.row_groups))
                    self._copy(block, mul(mod(task, split.row_groups), COPIED_ROWS))

                def multiply(task: ir.Value) -> None:
                    # All panels with a block of rows before the next one: it stays in the L2 cache.
                    block = rows_of(first, floor_div(task, split.groups))
                    self._task(block, mod(task, split.groups))

                parallel_range(mul(number, split.row_groups), COPIES_PER_THREAD, copy)
                parallel_range(mul(number, split.groups), 1, multiply)

            for_range(0, count, maximum(at_once, 1), several)

    def _copy(self, block: _Rows, begin: Index) -> None:
        """Emits the copy of some rows of a block."""
        split = self.split
        # The last tile may be one row too high.
        touched = minimum(add(block.rows, 1), split.row_block)
        here = minimum(COPIED_ROWS, sub(maximum(touched, begin), begin))
        copy = LeftCopy(
            block.groups, add(block.start, mul(begin, split.stride)),
            mul(split.rows_kept, split.stride), split.stride, split.k_block, split.k_blocks,
            block.corrections, add(block.first, begin), self.problem.factor,
            int(self.problem.initial),
        )  # fmt: skip
        left = self.problem.lhs(block.batch)
        copy_left(self.step, left, add(block.row, begin), here, copy)

    def _task(self, rows: _Rows, group: Index) -> None:
        """Emits one block of rows times one group of panels."""
        tiling, split, problem = self.tiling, self.split, self.problem
        first = mul(group, split.group)
        last = minimum(add(first, split.group), split.panels)
        i8, i32 = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
        with ExitStack() as stack:
            size = mul(split.row_block, tiling.columns)
            sums = tuple(stack.enter_context(scratch(size, i32)) for _ in problem.rhs)
            panels = []
            if not problem.packed:
                size = tiling.block_k * tiling.columns * self.step.group
                panels = [stack.enter_context(scratch(size, i8)) for _ in problem.rhs]
            tails: list[ir.Value | None] = [None for _ in problem.rhs]
            if tiling.in_tiles:
                height = minimum(rows.rows, amx.ROWS)
                stack.enter_context(amx.configured(height, height))
                room = [tail_for(problem.depth, self.step.group, i8) for _ in problem.rhs]
                tails = [stack.enter_context(tail) for tail in room]

            def panel(p: ir.Value) -> None:
                block = partial(self._block_of_k, rows, sums, panels, tails, p)
                for_range(0, split.k_blocks, 1, block)

            for_range(first, last, 1, panel)

    def _block_of_k(
        self,
        rows: _Rows,
        sums: Sequence[ir.Value],
        panels: Sequence[ir.Value],
        tails: Sequence[ir.Value | None],
        p: Index,
        kb: Index,
    ) -> None:
        """Emits one block of k of a panel of each product."""
        tiling, split, problem = self.tiling, self.split, self.problem
        column = mul(p, tiling.columns)
        columns = minimum(sub(problem.columns, column), tiling.columns)
        k = mul(kb, split.k_block)
        depth = minimum(split.k_block, sub(problem.depth, k))
        rights: list[tuple[ir.Value, Index]] = []
        for number, rhs in enumerate(problem.rhs):
            right = rhs(rows.batch)
            if problem.packed:
                rights.append((right.buffer, right.at(p, k)))
            else:
                rights.append((panels[number], 0))
                vectors = tiling.vectors
                copy_panel(self.step, right, column, k, depth, vectors, panels[number])
        at_k = mul(kb, split.rows_kept, split.stride)
        is_first, is_last = less(kb, 1), less(split.k_blocks, add(kb, 2))
        left_at = add(rows.start, at_k)
        tiles = _Tiles(self, rows, left_at, rights, tails, sums, depth, is_first, is_last)
        tiles.prepare()
        # With one block of k, sums are done after each tile: the next one takes their place.
        pitch = choose(less(1, split.k_blocks), value(tiling.columns), value(0))

        def tile(at: Index, height: Index) -> None:
            here = minimum(sub(rows.rows, at), height)
            row, start = add(rows.row, at), mul(at, pitch)
            block = Block(
                rows.batch, row, here, column, columns, tuple(sums), tiling.columns, start
            )
            tiles.emit(at, block)

        if tiling.in_tiles:
            each_tile(tiling, rows.rows, tile)
        else:
            _even_tiles(rows.rows, tiling.rows, tile)


def _even_tiles(rows: Index, most: int, emit: Callable[[Index, Index], None]) -> None:
    """Emits `emit(first row, height)` for tiles of at most `most` rows.

    Heights are even and differ by two at most: a last tile of few rows would wait for itself.
    """
    tiles, pairs = ceil_div(rows, most), ceil_div(rows, 2)
    least, longer = floor_div(pairs, maximum(tiles, 1)), mod(pairs, maximum(tiles, 1))

    def tile(i: ir.Value) -> None:
        more = choose(less(i, longer), value(2), value(0))
        emit(mul(add(mul(i, least), minimum(i, longer)), 2), add(mul(least, 2), more))

    for_range(0, tiles, 1, tile)


@dataclass(frozen=True)
class _Tiles:
    """Tiles of one panel of each product along one block of k."""

    kernel: _Kernel
    rows: _Rows
    left_at: Index
    rights: Sequence[tuple[ir.Value, Index]]
    tails: Sequence[ir.Value | None]
    sums: Sequence[ir.Value]
    depth: Index
    is_first: bool | ir.Value
    is_last: bool | ir.Value

    def prepare(self) -> None:
        """Emits what is done once for all tiles."""
        if self.kernel.tiling.in_tiles:
            for product in range(len(self.rights)):
                self._tile_block(product).copy_tail()

    def emit(self, at: Index, block: Block) -> None:
        """Emits the tile from row `at` on, which `block` describes, and what is done with it."""
        tiling, epilogue = self.kernel.tiling, self.kernel.problem.epilogue
        full = tiling.rows
        if tiling.in_tiles:
            with_epilogue(tiling, epilogue, block, self.is_last, partial(self._in_tiles, at, block))
            return

        def others() -> None:
            if_else(
                self._is_narrow(block),
                lambda: self._by_height(at, block, tiling.heights, 1),
                lambda: self._by_height(at, block, tiling.heights, tiling.vectors),
            )
            if_else(self.is_last, lambda: epilogue(block))

        if not epilogue.is_short:
            others()
            return
        is_whole = both(less(full - 1, block.rows), less(tiling.columns - 1, block.columns))

        self._prefetch(block)

        def in_registers() -> None:
            *before, last = range(len(self.rights))
            for product in before:
                self._multiply(product, full, at, block, tiling.vectors)
            sums = self._sums(last, full, at, block, tiling.vectors)
            epilogue.in_registers(block, sums, full)

        if_else(both(is_whole, self.is_last), in_registers, others)

    def _tile_block(self, product: int) -> TileBlock:
        step = self.kernel.step
        name = amx.product_name(step.left, step.right)
        right = Panel(*self.rights[product])
        return TileBlock(name, step.group, self.depth, right, self.tails[product])

    def _in_tiles(self, at: Index, block: Block) -> None:
        """Emits the sums of a block in tile registers."""
        kernel, rows, lanes = self.kernel, self.rows, self.kernel.tiling.lanes
        left = Left(rows.groups, self.left_at, kernel.split.stride).at(at)
        for product, sums in enumerate(self.sums):

            def start(tile: int, row: Index) -> None:
                if not kernel.problem.corrects:
                    amx.clear_tile(tile)
                    return
                place = mul(add(rows.first, at, row), lanes)
                amx.load_tile(tile, pointer(rows.corrections, place), lanes * amx.LANE_BYTES)

            def begin(tile: int, row: Index, place: Index, sums: ir.Value = sums) -> None:
                if_else(
                    self.is_first,
                    lambda: start(tile, row),
                    lambda: amx.load_tile(tile, pointer(sums, place), PANEL_ROW_BYTES),
                )

            tiles = self._tile_block(product)
            tiles.emit(left, block.rows, block.columns, begin, sums, block.start)

    def _prefetch(self, block: Block) -> None:
        """Asks for the lines that a tile will be stored to."""
        tiling, problem = self.kernel.tiling, self.kernel.problem
        linear: Index = 0
        for index, extent in zip(block.batch, problem.batch, strict=True):
            linear = add(mul(linear, extent), index)
        row = add(mul(linear, problem.rows), block.row)
        for view in problem.outputs:
            line = LINE_BITS // element_bits(view.element)
            for r in range(tiling.rows):
                at = add(view.offset, mul(add(row, r), problem.columns), block.column)
                for part in range(0, tiling.columns, line):
                    memref.prefetch(view.base, [value(add(at, part))], True, 2, True)

    def _is_narrow(self, block: Block) -> bool | ir.Value:
        """Whether a panel has numbers in its first vectors only."""
        lanes, columns = self.kernel.tiling.lanes, self.kernel.problem.columns
        if isinstance(columns, int) and not 0 < columns % self.kernel.tiling.columns <= lanes:
            return False
        return less(block.columns, lanes + 1)

    def _by_height(self, at: Index, block: Block, heights: Sequence[int], vectors: int) -> None:
        """Emits a tile of the least height that has the block's rows, and so many vectors."""

        def emit() -> None:
            for product in range(len(self.rights)):
                self._multiply(product, heights[0], at, block, vectors)

        if_else(
            True if len(heights) == 1 else less(block.rows, heights[0] + 1),
            emit,
            lambda: self._by_height(at, block, heights[1:], vectors),
        )

    def _multiply(self, product: int, height: int, at: Index, block: Block, vectors: int) -> None:
        """Emits a tile of a product, whose sums go to memory."""
        total = self._sums(product, height, at, block, vectors)
        for i, x in enumerate(total):
            store(x, self.sums[product], self._place(block, *divmod(i, vectors)))

    def _place(self, block: Block, row: int, v: int) -> Index:
        """Where the sums of a row and a vector of a tile are kept."""
        return add(block.start, row * block.stride + v * self.kernel.tiling.lanes)

    def _start(
        self, product: int, height: int, at: Index, block: Block, vectors: int
    ) -> list[ir.Value]:
        """What the accumulators of a tile begin with."""
        kernel, lanes = self.kernel, self.kernel.tiling.lanes
        i32 = ir.IntegerType.get_signless(32)
        found = []
        for row in range(height):
            start = splat_integer(0, lanes, i32)
            if kernel.problem.corrects:
                place = mul(add(self.rows.first, at, row), lanes)
                start = load(self.rows.corrections, place, lanes)
            for v in range(vectors):
                kept = load(self.sums[product], self._place(block, row, v), lanes)
                found.append(choose(self.is_first, start, kept))
        return found

    def _sums(
        self, product: int, height: int, at: Index, block: Block, vectors: int
    ) -> list[ir.Value]:
        """The sums of a product up to here, row by row."""
        tiling, step, split = self.kernel.tiling, self.kernel.step, self.kernel.split
        count = height * vectors
        # Few rows would wait for their own last addition: they sum several k apart.
        unroll = max(1, 8 // count)
        right, right_at = self.rights[product]
        left_at = add(self.left_at, mul(at, split.stride))
        # The first tile reads the panel from memory.
        ahead = choose(less(at, 1), value(4 * AHEAD), value(0))
        may_fetch = self.kernel.problem.packed and height >= self.kernel.tiling.fetching_rows

        def one(k: Index, sums: Sequence[ir.Value]) -> list[ir.Value]:
            begin = add(right_at, mul(k, tiling.vectors * step.width))
            numbers = [
                step.right_of(load(right, add(begin, v * step.width), step.width))
                for v in range(vectors)
            ]
            if may_fetch:
                for v in range(0, vectors, tiling.vectors_per_line):
                    place = value(add(begin, ahead, v * step.width))
                    memref.prefetch(right, [place], False, 2, True)
            rows = [r * split.stride for r in range(height)]
            start = add(left_at, k)
            lefts = left_operands(step, tiling, self.rows.groups, start, rows, vectors)
            result = []
            for r, xs in enumerate(lefts):
                own = sums[r * vectors : (r + 1) * vectors]
                result += [step(x, y, s) for x, y, s in zip(xs, numbers, own, strict=True)]
            return result

        def several(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            result = []
            for u in range(unroll):
                result += one(add(k, u), sums[u * count : (u + 1) * count])
            return result

        zero = splat_integer(0, tiling.lanes, ir.IntegerType.get_signless(32))
        start = self._start(product, height, at, block, vectors) + [zero] * (count * (unroll - 1))
        main = self.depth if unroll == 1 else sub(self.depth, mod(self.depth, unroll))
        sums = for_range(0, main, unroll, several, start, tiling.repeats(count, unroll))
        total = sums[:count]
        if unroll > 1:
            total = for_range(main, self.depth, 1, lambda k, *s: one(k, s), total)
            for u in range(1, unroll):
                total = [arith.addi(a, b) for a, b in zip(total, sums[u * count :], strict=False)]
        return total
