"""The matrix multiplication kernel for more than a few rows: blocks of the product, in parallel.

    for each block of rows, or for several where there are few panels
      copy its rows of the left side, in parallel, unless they are read where they lie
      for each group of panels in parallel
        for each block of k
          for each panel of the group, `columns` wide
            take the panel from packed weights, or pack it             (stays in the L2 cache)
            for each tile of `rows` rows                               (stay in the L2 cache)
              the sums in registers (see `gemm_tile`), and those of the block of k before
              last block of k: the epilogue of the tile, from registers if it is short

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial

from relax_mlir.bindings import ir

from . import amx
from .amx_block import PANEL_ROW_BYTES, TileBlock, aligned_rows, tail_for
from .gemm_tile import (
    AHEAD,
    LINE_BYTES,
    NEAR_AHEAD,
    Block,
    Epilogue,
    Left,
    Panel,
    Tile,
    Tiling,
    each_tile,
    with_epilogue,
)
from .loops import (
    Index,
    add,
    both,
    ceil_div,
    choose,
    either,
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
    pick,
    round_up,
    scratch,
    splat,
    store,
    sub,
    value,
)
from .multiply_add import MultiplyAdd
from .packing import Matrix, copy_panel, copy_rows, widen_panel
from .pointers import pointer

L2_ELEMENTS = 131072
"""Elements of the left side that one task keeps in the L2 cache (half a megabyte)."""
SHARED_ELEMENTS = 262144
"""The same of machines with tile registers, whose L2 caches are larger (one megabyte)."""
WIDE_LANES = 16
"""Lanes of machines whose L2 caches hold a block of rows and some panels (one megabyte)."""
TASKS = 16
"""Tasks worth having, so that every thread finds as much to do as the others."""
TASK_PRODUCTS = 131072
"""Multiply-adds that are worth a task of their own."""
REGION_TASKS = 256
"""Tasks worth having between two waits for all threads, of which each waits for half a task."""
REGION_PRODUCTS = 8388608
"""Multiply-adds that are worth a parallel region of their own."""
PANELS = 8
"""Panels of a task that share a block of k of the left side while it is in the L2 cache."""
COPIED_ROWS = 16
"""Rows of the left side that are copied together."""
COPIES_PER_THREAD = 4
"""Copies that are worth a thread."""
COPY_ELEMENTS = 4194304
"""Elements of the left side that are copied before anything is multiplied."""
L1_SETS = 64
SHORT_K = 28
"""Steps along k of a tile that is done before the lines are there that it stores to."""
MOST_IN_SET = 7
"""Lines that rows need of one set of the L1 cache, which has 8, if they are read where they lie."""


class Widening(Enum):
    """When panels of pairs of bf16 numbers are made f32 numbers."""

    ONCE = auto()
    """To memory, for all rows."""
    IN_REGISTERS = auto()
    """For each tile, while it multiplies."""


@dataclass(frozen=True)
class Problem:
    """What to compute: products that share their left side, for every index of the batch.

    `lhs(batch)` and `rhs[p](batch)` are the matrices at one index; with `packed` the right sides
    are panels [number of panels, depth, columns] of which the matrix describes the first
    (`row_stride` is then the distance of two panels). With `pairs`, numbers are bf16, `depth`
    counts steps (see `MultiplyAdd`), and panels are of pairs [number of panels, depth, columns, 2].
    Where `widening` says how, only packed panels are, and are made f32 numbers. Where lines of
    a result's rows displace one another in a cache, it `collides`.
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
    widening: Widening | None = None
    collides: bool = False

    @property
    def passes_rows_once(self) -> bool:
        """Whether all columns of a tile's rows come before the next rows, to store in order.

        Panels that are packed on the way would be packed for each tile.
        """
        is_short = isinstance(self.depth, int) and self.depth <= SHORT_K
        return self.packed and self.collides and is_short

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
class _Blocks:
    """Sizes that are chosen when the kernel runs."""

    tiles: Index  # tiles of rows of a matrix
    row_blocks: Index
    row_block: Index  # rows of the largest block
    panels: Index
    group: Index  # panels of one task
    groups: Index
    k_block: Index
    k_blocks: Index
    at_once: Index  # blocks of rows in one parallel region

    @property
    def copied_rows(self) -> Index:
        """Rows that a copy of a block of rows has room for."""
        return add(self.row_block, COPIED_ROWS)


def _split(tiling: Tiling, problem: Problem) -> _Blocks:
    """Cuts rows so that a block fits the cache, k evenly, and columns into tasks worth a call."""
    height, depth, batch = tiling.rows, problem.depth, problem.batch_size
    k_blocks = pick(less(tiling.most_k, depth), ceil_div(depth, tiling.block_k), 1)
    k_block = round_up(ceil_div(depth, k_blocks), tiling.lanes)
    panels, tiles = ceil_div(problem.columns, tiling.columns), ceil_div(problem.rows, height)
    some_panels = maximum(panels, 1)
    strip = mul(maximum(depth, 1), tiling.columns)  # products of one row with a panel
    kept = SHARED_ELEMENTS if tiling.in_tiles else L2_ELEMENTS
    fitting = floor_div(kept, mul(maximum(k_block, 512), height))
    if problem.passes_rows_once and not tiling.in_tiles:
        fitting = 1
    wanted = minimum(floor_div(mul(problem.rows, strip, panels), TASK_PRODUCTS), TASKS)
    wanted = ceil_div(wanted, maximum(mul(some_panels, batch), 1))
    row_blocks = maximum(minimum(maximum(ceil_div(tiles, fitting), wanted), tiles), 1)
    row_block = maximum(mul(ceil_div(tiles, row_blocks), height), 1)
    group = add(floor_div(TASK_PRODUCTS, mul(row_block, strip)), 1)
    shared = minimum(floor_div(mul(panels, batch, row_blocks), TASKS), PANELS)
    group = maximum(group, pick(less(1, k_blocks), shared, 1))
    groups = ceil_div(panels, group)
    worthwhile = add(floor_div(REGION_PRODUCTS, mul(row_block, strip, some_panels)), 1)
    at_once = maximum(ceil_div(REGION_TASKS, maximum(groups, 1)), worthwhile)
    at_once = maximum(minimum(at_once, mul(batch, row_blocks)), 1)
    return _Blocks(tiles, row_blocks, row_block, panels, group, groups, k_block, k_blocks, at_once)


def emit_gemm(tiling: Tiling, problem: Problem) -> None:
    """Emits the whole loop nest at the insertion point."""
    gemm = _Gemm(tiling, problem, _split(tiling, problem), MultiplyAdd(tiling.lanes, problem.pairs))
    if tiling.in_tiles and not problem.batch and gemm.reads_in_place:
        with aligned_rows(problem.lhs(())) as rows:
            replace(gemm, problem=replace(problem, lhs=lambda _: rows)).emit()
    else:
        gemm.emit()


@dataclass(frozen=True)
class _Rows:
    """A block of rows of a matrix of the batch."""

    batch: tuple[Index, ...]
    first: Index
    count: Index


@dataclass(frozen=True)
class _Gemm:
    """The nest of blocks."""

    tiling: Tiling
    problem: Problem
    blocks: _Blocks
    step: MultiplyAdd

    def emit(self) -> None:
        """Emits the loops over blocks of rows, and in parallel over their panels."""
        count = mul(self.problem.batch_size, self.blocks.row_blocks)
        if self.reads_in_place:
            self._region(0, count, None)
            return
        size = mul(self.blocks.k_blocks, self.blocks.copied_rows, self._stride())
        fitting = maximum(floor_div(COPY_ELEMENTS, maximum(size, 1)), 1)
        at_once = minimum(fitting, self.blocks.at_once)
        with scratch(mul(at_once, size), self.step.storage) as copies:

            def region(first: ir.Value) -> None:
                number = minimum(at_once, sub(count, first))
                self._copy(first, number, copies)
                self._region(first, number, copies)

            for_range(0, count, at_once, region)

    def _region(self, first: Index, number: Index, copies: ir.Value | None) -> None:
        """Emits a parallel region for `number` blocks of rows, with all panels."""
        blocks = self.blocks
        panels_pass_by = self._panels_pass_by(number)
        inner = pick(panels_pass_by, blocks.groups, number)

        def multiply(task: ir.Value) -> None:
            outer_at, inner_at = floor_div(task, inner), mod(task, inner)
            place = pick(panels_pass_by, outer_at, inner_at)
            group = pick(panels_pass_by, inner_at, outer_at)
            rows = self._rows(add(first, place))
            begin = mul(group, blocks.group)
            panels = (begin, minimum(add(begin, blocks.group), blocks.panels))
            _Task(self, rows, panels, lambda kb: self._left(rows, place, kb, copies)).emit()

        parallel_range(mul(number, blocks.groups), 1, multiply)

    def _panels_pass_by(self, number: Index) -> bool | ir.Value:
        """Whether all panels pass by each of `number` blocks of rows, or all blocks each panel."""
        blocks, tiling = self.blocks, self.tiling
        rows = mul(number, blocks.row_block)
        if tiling.in_tiles:
            # They are so fast that rows have to come from the L2 cache.
            return less(SHARED_ELEMENTS, mul(rows, blocks.k_blocks, blocks.k_block))
        # Threads share what is larger, and what is smaller passes by, again and again.
        has_more_rows = less(mul(blocks.panels, tiling.columns), rows)
        if tiling.lanes < WIDE_LANES:
            return has_more_rows
        # Panels pass by once for each block of rows, rows once for each panel.
        return either(has_more_rows, less(2 * tiling.columns - 1, blocks.row_block))

    def _left(self, rows: _Rows, place: Index, kb: Index, copies: ir.Value | None) -> Left:
        """Rows along a block of k: their copy at a place of the region, or where they lie."""
        if copies is not None:
            return Left(copies, self._copy_at(place, kb), self._stride())
        lhs, per_lane = self.problem.lhs(rows.batch), self.step.per_lane
        assert isinstance(lhs.row_stride, int)
        at = lhs.at(rows.first, mul(kb, self.blocks.k_block, per_lane))
        return Left(lhs.buffer, at, lhs.row_stride, per_lane)

    def _rows(self, number: Index) -> _Rows:
        """A block of rows by its number."""
        blocks, problem, height = self.blocks, self.problem, self.tiling.rows
        block = mod(number, blocks.row_blocks)

        def start(block: Index) -> Index:
            tile = floor_div(mul(block, blocks.tiles), blocks.row_blocks)
            return minimum(mul(tile, height), problem.rows)

        first = start(block)
        batch = problem.batch_index(floor_div(number, blocks.row_blocks))
        return _Rows(batch, first, sub(start(add(block, 1)), first))

    @property
    def reads_in_place(self) -> bool:
        """Whether tiles read rows where they lie: as they are multiplied, and spread over sets."""
        lhs, per_lane = self.problem.lhs([0] * len(self.problem.batch)), self.step.per_lane
        stride = lhs.row_stride
        if lhs.convert or not lhs.k_is_innermost or not isinstance(stride, int):
            return False
        if self.step.pairs and not (isinstance(lhs.depth, int) and lhs.depth % per_lane == 0):
            return False
        line = LINE_BYTES * per_lane // 4
        if self.tiling.in_tiles and (stride % line or self.problem.depth % amx.LANES):
            return False
        # Machines with tile registers have sets of 12 lines.
        most = 11 if self.tiling.in_tiles else MOST_IN_SET
        sets = [r * stride // line % L1_SETS for r in range(min(self.tiling.rows, 16))]
        return max(sets.count(s) for s in sets) <= most

    def _stride(self) -> int:
        """Distance of two rows of a copy: an odd number of cache lines."""
        k_block = self.blocks.k_block
        per_line = LINE_BYTES // 4
        lines = -(-(k_block if isinstance(k_block, int) else self.tiling.most_k) // per_line)
        return (lines // 2 * 2 + 1) * per_line

    def _copy_at(self, place: Index, kb: Index) -> Index:
        """Where the copy of a block of rows has a block of k."""
        number = add(mul(place, self.blocks.k_blocks), kb)
        return mul(number, self.blocks.copied_rows, self._stride())

    def _copy(self, first: Index, number: Index, target: ir.Value) -> None:
        """Copies some blocks of rows to `target`, one block of k after the other."""
        blocks, problem, stride = self.blocks, self.problem, self._stride()
        groups = ceil_div(blocks.row_block, COPIED_ROWS)

        def copy(task: ir.Value) -> None:
            place, begin = floor_div(task, groups), mul(mod(task, groups), COPIED_ROWS)
            rows = self._rows(add(first, place))
            lhs = problem.lhs(rows.batch)
            here = minimum(COPIED_ROWS, sub(maximum(rows.count, begin), begin))

            def block(kb: ir.Value) -> None:
                k = mul(kb, blocks.k_block)
                depth = minimum(blocks.k_block, sub(problem.depth, k))
                at = add(self._copy_at(place, kb), mul(begin, stride))
                row = add(rows.first, begin)
                copy_rows(lhs, row, here, k, depth, self.step, target, at, stride)

            for_range(0, blocks.k_blocks, 1, block)

        parallel_range(mul(number, groups), COPIES_PER_THREAD, copy)


@dataclass(frozen=True)
class _Task:
    """One block of rows times one group of panels."""

    gemm: _Gemm
    rows: _Rows
    panels: tuple[Index, Index]
    left: Callable[[Index], Left]

    def emit(self) -> None:
        """Emits the loops over blocks of k and panels."""
        gemm, blocks = self.gemm, self.gemm.blocks
        tiling, problem, f32 = gemm.tiling, gemm.problem, ir.F32Type.get()
        # With one block of k, sums are done after each tile: the next one takes their place.
        has_several = less(1, blocks.k_blocks)
        kept = pick(has_several, mul(blocks.row_block, blocks.group), tiling.rows)
        pitch = pick(has_several, tiling.columns, 0)
        with ExitStack() as stack:
            size = mul(kept, tiling.columns)
            sums = tuple(stack.enter_context(scratch(size, f32)) for _ in problem.rhs)
            packs: tuple[ir.Value, ...] = ()
            if problem.widening is Widening.ONCE or not problem.packed:
                size = tiling.most_k * tiling.columns * gemm.step.per_lane
                element = ir.BF16Type.get() if problem.pairs else f32
                packs = tuple(stack.enter_context(scratch(size, element)) for _ in problem.rhs)

            tails: tuple[ir.Value | None, ...] = tuple(None for _ in problem.rhs)
            if tiling.in_tiles:
                height = minimum(self.rows.count, amx.ROWS)
                stack.enter_context(amx.configured(height, height))
                element = ir.BF16Type.get()
                tails = tuple(
                    stack.enter_context(tail_for(problem.depth, gemm.step.per_lane, element))
                    for _ in problem.rhs
                )

            def block(kb: ir.Value) -> None:
                for_range(*self.panels, 1, lambda p: self._panel(kb, p, sums, pitch, packs, tails))

            for_range(0, blocks.k_blocks, 1, block)

    def _panel(
        self,
        kb: Index,
        p: Index,
        sums: tuple[ir.Value, ...],
        pitch: Index,
        packs: tuple[ir.Value, ...],
        tails: tuple[ir.Value | None, ...],
    ) -> None:
        """Emits all rows of one panel along one block of k."""
        gemm, blocks, rows = self.gemm, self.gemm.blocks, self.rows
        tiling, problem = gemm.tiling, gemm.problem
        column = mul(p, tiling.columns)
        columns = self._width(column)
        k = mul(kb, blocks.k_block)
        depth = minimum(blocks.k_block, sub(problem.depth, k))
        is_first, is_last = less(kb, 1), less(blocks.k_blocks, add(kb, 2))
        rights = self._rights(p, k, depth, packs)
        tiles = _Tiles(gemm, is_first, is_last, depth, self.left(kb), rights, sums, tails)
        tiles.prepare()
        start = mul(sub(p, self.panels[0]), blocks.row_block, pitch)

        def tile(at: Index, here: Index) -> None:
            done = Block(
                rows.batch, add(rows.first, at), here, column, columns, sums, tiling.columns,
                add(start, mul(at, pitch)),
            )  # fmt: skip
            tiles.emit(at, done)

        each_tile(tiling, rows.count, tile)

    def _width(self, column: Index) -> Index:
        """Columns of the panel from a column on, of which the last panel may have fewer."""
        whole, columns = self.gemm.tiling.columns, self.gemm.problem.columns
        if isinstance(columns, int) and columns % whole == 0:
            return whole
        return minimum(sub(columns, column), whole)

    def _rights(self, p: Index, k: Index, depth: Index, packs: tuple[ir.Value, ...]) -> list[Panel]:
        """A panel of each product from k on, packed or made f32 numbers if it is not yet."""
        gemm, tiling = self.gemm, self.gemm.tiling
        lanes, vectors, pairs = tiling.lanes, tiling.vectors, gemm.problem.pairs
        widening, found = gemm.problem.widening, []
        for i, side in enumerate(gemm.problem.rhs):
            rhs = side(self.rows.batch)
            if gemm.problem.packed and widening is not Widening.ONCE:
                found.append(packed_panel(gemm.problem, rhs, p, k))
                continue
            if widening:
                widen_panel(rhs, p, k, depth, lanes, vectors, packs[i])
            else:
                column = mul(p, tiling.columns)
                copy_panel(rhs, column, k, depth, lanes, vectors, packs[i], 0, pairs)
            found.append(Panel(packs[i], 0))
        return found


def packed_panel(problem: Problem, side: Matrix, panel: Index, k: Index) -> Panel:
    """A panel of packed weights from k on, as it is multiplied or widened in registers."""
    if problem.widening is Widening.IN_REGISTERS:
        return Panel(side.buffer, side.at(panel, floor_div(k, 2)), halved=True)
    return Panel(side.buffer, side.at(panel, k), side.convert)


@dataclass(frozen=True)
class _Tiles:
    """Tiles of one panel of each product along one block of k."""

    gemm: _Gemm
    is_first: bool | ir.Value
    is_last: bool | ir.Value
    depth: Index
    left: Left
    rights: Sequence[Panel]
    sums: tuple[ir.Value, ...]
    tails: tuple[ir.Value | None, ...]

    def prepare(self) -> None:
        """Emits what is done once for all tiles."""
        if self.gemm.tiling.in_tiles:
            for product in range(len(self.rights)):
                self._tile_block(product).copy_tail()

    def emit(self, at: Index, block: Block) -> None:
        """Emits the tile from row `at` on, which `block` describes, and what is done with it."""
        tiling, epilogue = self.gemm.tiling, self.gemm.problem.epilogue

        if tiling.in_tiles:
            with_epilogue(tiling, epilogue, block, self.is_last, partial(self._in_tiles, at, block))
            return

        def others() -> None:
            self._by_width(at, block)
            if_else(self.is_last, lambda: epilogue(block))

        if not epilogue.is_short:
            rows = value(block.rows)
            if_else(self.is_last, lambda: epilogue.fetch(block, rows, tiling.vectors))
            others()
            return
        is_whole = both(less(tiling.rows - 1, block.rows), less(tiling.columns - 1, block.columns))

        def in_registers() -> None:
            whole, last_row = self._tile(tiling.rows, tiling.vectors), tiling.rows - 1
            *before, last = range(len(self.rights))
            epilogue.fetch(block, tiling.rows, tiling.vectors)
            for product in before:
                self._keep(whole, self._sums(whole, product, at, block, last_row), product, block)
            sums = self._sums(whole, last, at, block, last_row)
            epilogue.in_registers(block, sums, tiling.rows)

        if_else(both(is_whole, self.is_last), in_registers, others)

    def _tile(self, height: int, vectors: int) -> Tile:
        return Tile(self.gemm.tiling, self.gemm.step, height, vectors)

    def _tile_block(self, product: int) -> TileBlock:
        right, tail, per_lane = self.rights[product], self.tails[product], self.gemm.step.per_lane
        return TileBlock(amx.PAIRS, per_lane, self.depth, right, tail)

    def _in_tiles(self, at: Index, block: Block) -> None:
        """Emits the sums of a block in tile registers."""
        left = self.left.at(at)
        for product, sums in enumerate(self.sums):

            def begin(tile: int, _: Index, place: Index, sums: ir.Value = sums) -> None:
                if_else(
                    self.is_first,
                    lambda: amx.clear_tile(tile),
                    lambda: amx.load_tile(tile, pointer(sums, place), PANEL_ROW_BYTES),
                )

            tiles = self._tile_block(product)
            tiles.emit(left, block.rows, block.columns, begin, sums, block.start)

    def _by_width(self, at: Index, block: Block) -> None:
        """Emits a tile of the least width and height that has the block's rows and columns."""
        tiling = self.gemm.tiling
        rest = mod(self.gemm.problem.columns, tiling.columns)
        never = isinstance(rest, int) and not 0 < rest <= tiling.lanes
        if_else(
            True if never else less(tiling.lanes, block.columns),
            lambda: self._by_height(at, block, tiling.heights, tiling.vectors),
            lambda: self._by_height(at, block, tiling.heights, 1),
        )

    def _by_height(self, at: Index, block: Block, heights: Sequence[int], vectors: int) -> None:
        """Emits a tile of the least height that has the block's rows."""

        def emit() -> None:
            tile = self._tile(heights[0], vectors)
            last_row = sub(block.rows, 1) if heights[0] > 1 else 0
            for product in range(len(self.rights)):
                sums = self._sums(tile, product, at, block, last_row)
                self._keep(tile, sums, product, block)

        if_else(
            True if len(heights) == 1 else less(block.rows, heights[0] + 1),
            emit,
            lambda: self._by_height(at, block, heights[1:], vectors),
        )

    def _sums(
        self, tile: Tile, product: int, at: Index, block: Block, last: Index
    ) -> list[ir.Value]:
        """The sums of a product up to here."""
        lanes = self.gemm.tiling.lanes
        start = splat(self.gemm.problem.initial, lanes, ir.F32Type.get())
        before = [
            choose(self.is_first, start, load(self.sums[product], place, lanes))
            for place in self._places(tile, block)
        ]
        right = self._fetching(self.rights[product], at, tile.height)
        return tile.sums(self.depth, self.left.at(at), last, right, before)

    def _fetching(self, right: Panel, at: Index, height: int) -> Panel:
        """A panel that the first tile, which reads it from memory, asks for ahead."""
        tiling = self.gemm.tiling
        if not self.gemm.problem.packed:
            return right
        ahead = NEAR_AHEAD if height < tiling.fetching_rows else AHEAD * self.gemm.step.per_lane
        return replace(right, ahead=pick(less(at, 1), ahead, 0))

    def _keep(self, tile: Tile, total: Sequence[ir.Value], product: int, block: Block) -> None:
        """Stores the sums of a product."""
        for x, place in zip(total, self._places(tile, block), strict=True):
            store(x, self.sums[product], place)

    def _places(self, tile: Tile, block: Block) -> list[Index]:
        """Where the vectors of a tile's sums are kept."""
        rows, vectors = range(tile.height), range(tile.vectors)
        lanes = self.gemm.tiling.lanes
        return [add(block.start, r * block.stride + v * lanes) for r in rows for v in vectors]
