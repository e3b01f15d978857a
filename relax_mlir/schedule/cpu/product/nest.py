"""The loop nest of a matrix product of many rows: cache blocks in parallel, register blocks inside.

    for each block of rows, or for several where there are few panels
      pack its rows of the left side, in parallel, unless they are read in place
      for each group of panels, in parallel
        for each block of k
          for each panel of the group, of `columns` columns
            take the panel from packed weights, or pack it             (stays in the L2 cache)
            for each register block of `rows` rows                     (stay in the L2 cache)
              the micro-kernel adds to the sums of the previous block of k
              after the last block of k: the epilogue, from registers if it is short

The inner product is a `Step`: of elements of any type, or of groups of them. Some instructions take
8-bit elements of the right side biased by 128; the sum of each row of the left side, which corrects
for the bias, is computed while the row is packed (`RowStarts`).

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    and_,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    least_fitting,
    less,
    load,
    maximum,
    minimum,
    mod,
    mul,
    or_,
    parallel_range,
    scratch,
    select,
    store,
    sub,
    value,
)
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.pointers import pointer
from relax_mlir.schedule.cpu.isa.step import Step

from .amx_block import PANEL_ROW_BYTES, TileBlock, aligned_rows, tail_for
from .blocks import COPIED_ROWS, Blocks, split
from .matrix_kernel import micro_kernel
from .micro_kernel import Left, MicroKernel, Panel, each_register_block, with_epilogue
from .packing import NO_SUMS, RowCopy
from .product import Product
from .row_starts import RowStarts


def emit_product(blocking: Blocking, product: Product) -> None:
    """Emits the whole loop nest at the insertion point."""
    nest = _Nest(blocking, product, split(blocking, product))
    if blocking.in_tiles and not product.batch and nest.reads_in_place:
        with aligned_rows(product.lhs(())) as rows:
            replace(nest, product=replace(product, lhs=lambda _: rows)).emit()
    else:
        nest.emit()


@dataclass(frozen=True)
class _Rows:
    """A block of rows of a matrix of the batch."""

    batch: tuple[Index, ...]
    first: Index
    count: Index


@dataclass(frozen=True)
class _Copies:
    """Packed copies of some blocks of rows, and the initial values of their sums."""

    rows: ir.Value
    starts: ir.Value | None


@dataclass(frozen=True)
class _Nest:
    """The nest of blocks."""

    blocking: Blocking
    product: Product
    blocks: Blocks

    @property
    def step(self) -> Step:
        """The inner product."""
        return self.product.step

    def emit(self) -> None:
        """Emits the loops over blocks of rows and, in parallel, over panels."""
        count = mul(self.product.batch_size, self.blocks.row_blocks)
        if self.reads_in_place:
            self._region(0, count, None)
            return
        size = mul(self.blocks.k_blocks, self.blocks.copied_rows, self._stride())
        fitting = maximum(
            floor_div(self.blocking.products.copied_bytes // self.step.bytes, maximum(size, 1)), 1
        )
        at_once = minimum(fitting, self.blocks.at_once)
        with ExitStack() as stack:
            rows = stack.enter_context(scratch(mul(at_once, size), self.step.storage))
            starts = None
            if self._has_starts:
                room = mul(at_once, self.blocks.copied_rows, self.step.lanes)
                starts = stack.enter_context(scratch(room, self.step.total))
            copies = _Copies(rows, starts)

            def region(first: ir.Value) -> None:
                block_count = minimum(at_once, sub(count, first))
                self._copy(first, block_count, copies)
                self._region(first, block_count, copies)

            for_range(0, count, at_once, region)

    @property
    def _has_starts(self) -> bool:
        """Whether initial values are in memory, the only source that tile registers load from."""
        return bool(self.product.factor or (self.blocking.in_tiles and self.product.initial))

    def _region(self, first: Index, block_count: Index, copies: _Copies | None) -> None:
        """Emits a parallel region of `block_count` blocks of rows times all panels."""
        blocks = self.blocks
        panels_are_inner = self._panels_are_inner(block_count)
        inner = select(panels_are_inner, blocks.groups, block_count)

        def multiply(task: ir.Value) -> None:
            outer_at, inner_at = floor_div(task, inner), mod(task, inner)
            slot = select(panels_are_inner, outer_at, inner_at)
            group = select(panels_are_inner, inner_at, outer_at)
            rows = self._rows(add(first, slot))
            begin = mul(group, blocks.group)
            panels = (begin, minimum(add(begin, blocks.group), blocks.panels))
            starts = self._starts(slot, copies)
            _Task(self, rows, panels, starts, lambda kb: self._left(rows, slot, kb, copies)).emit()

        parallel_range(mul(block_count, blocks.groups), 1, multiply)

    def _panels_are_inner(self, block_count: Index) -> bool | ir.Value:
        """Whether the loop over panels is inside the one over blocks of rows, or around it."""
        blocks, blocking = self.blocks, self.blocking
        rows = mul(block_count, blocks.row_block)
        if blocking.in_tiles:
            # Tile products are so fast that rows have to come from the L2 cache.
            max_elements = blocking.left_bytes // self.step.bytes
            return less(max_elements, mul(rows, blocks.k_blocks, blocks.k_block))
        # Threads share the larger side; the smaller one is read once for each block of the larger.
        has_more_rows = less(mul(blocks.panels, blocking.columns), rows)
        if blocking.vector_bytes < blocking.products.inner_panels_from:
            return has_more_rows
        # Panels are read once for each block of rows, rows once for each panel.
        return or_(has_more_rows, less(2 * blocking.columns - 1, blocks.row_block))

    def _left(self, rows: _Rows, slot: Index, kb: Index, copies: _Copies | None) -> Left:
        """Rows along block `kb` of k: the copy in a slot of the region, or the matrix itself."""
        if copies is not None:
            return Left(copies.rows, self._copy_at(slot, kb), self._stride())
        lhs, group = self.product.lhs(rows.batch), self.step.group
        assert isinstance(lhs.row_stride, int)
        at = lhs.at(rows.first, mul(kb, self.blocks.k_block, group))
        return Left(lhs.buffer, at, lhs.row_stride, group)

    def _starts(self, slot: Index, copies: _Copies | None, first: Index = 0) -> RowStarts:
        """The initial sums of the block of rows in a slot of the region, from row `first` on."""
        buffer = copies.starts if copies is not None else None
        at = add(mul(slot, self.blocks.copied_rows), first)
        return RowStarts(self.step, self.product.initial, self.product.factor, buffer, at)

    def _rows(self, index: Index) -> _Rows:
        """The block of rows with an index, counted over the whole batch."""
        blocks, product, height = self.blocks, self.product, self.blocking.rows
        block = mod(index, blocks.row_blocks)

        def start(block: Index) -> Index:
            tile = floor_div(mul(block, blocks.tiles), blocks.row_blocks)
            return minimum(mul(tile, height), product.rows)

        first = start(block)
        batch = product.batch_index(floor_div(index, blocks.row_blocks))
        return _Rows(batch, first, sub(start(add(block, 1)), first))

    @property
    def reads_in_place(self) -> bool:
        """Whether the left side is read in place: no conversion, and no conflicts of cache sets."""
        lhs, group = self.product.lhs([0] * len(self.product.batch)), self.step.group
        stride = lhs.row_stride
        if not self.step.reads_in_place or self._has_starts:
            return False
        if lhs.convert or not lhs.k_is_innermost or not isinstance(stride, int):
            return False
        if group > 1 and not (isinstance(lhs.depth, int) and lhs.depth % group == 0):
            return False
        depth = self.product.depth
        whole = isinstance(depth, int) and depth % amx.LANES == 0
        if self.blocking.in_tiles and (stride % self._line or not whole):
            return False
        return self._fit_sets(stride, min(self.blocking.rows, 16))

    @property
    def _line(self) -> int:
        """Elements of the left side in a cache line."""
        return self.blocking.caches.line * self.step.group // self.step.bytes

    def _fit_sets(self, stride: int, rows: int) -> bool:
        """Whether the L1 cache holds a line of each of `rows` rows of the left side."""
        return self.blocking.fits_l1_sets([r * stride // self._line for r in range(rows)])

    @property
    def narrow(self) -> Blocking:
        """The blocking of panels of which one vector is used."""
        narrow, lhs = self.blocking.narrow, self.product.lhs([0] * len(self.product.batch))
        if not self.reads_in_place:
            return narrow
        assert isinstance(lhs.row_stride, int)
        return narrow if self._fit_sets(lhs.row_stride, narrow.rows) else self.blocking

    def _stride(self) -> int:
        """Distance between rows of the packed left side: an odd number of cache lines."""
        k_block = self.blocks.k_block
        per_line = self.blocking.caches.line // self.step.bytes
        lines = -(
            -(k_block if isinstance(k_block, int) else self.blocking.products.max_k) // per_line
        )
        return (lines // 2 * 2 + 1) * per_line

    def _copy_at(self, slot: Index, kb: Index) -> Index:
        """Offset of block `kb` of k in the copy of the block of rows in a slot."""
        index = add(mul(slot, self.blocks.k_blocks), kb)
        return mul(index, self.blocks.copied_rows, self._stride())

    def _copy(self, first: Index, block_count: Index, copies: _Copies) -> None:
        """Packs some blocks of rows, and computes the initial values of their sums."""
        blocks, product, stride = self.blocks, self.product, self._stride()
        groups = ceil_div(blocks.row_block, COPIED_ROWS)

        def copy(task: ir.Value) -> None:
            slot, begin = floor_div(task, groups), mul(mod(task, groups), COPIED_ROWS)
            rows = self._rows(add(first, slot))
            here = minimum(COPIED_ROWS, sub(maximum(rows.count, begin), begin))
            sums = self._starts(slot, copies, begin) if self._has_starts else NO_SUMS
            RowCopy(
                self.step, copies.rows, add(self._copy_at(slot, 0), mul(begin, stride)), stride,
                blocks.k_block, blocks.k_blocks, mul(blocks.copied_rows, stride), sums,
            ).copy(product.lhs(rows.batch), add(rows.first, begin), here)  # fmt: skip

        parallel_range(mul(block_count, groups), self.blocking.products.copies, copy)


@dataclass(frozen=True)
class _Task:
    """One block of rows times one group of panels."""

    nest: _Nest
    rows: _Rows
    panels: tuple[Index, Index]
    starts: RowStarts
    left: Callable[[Index], Left]

    def emit(self) -> None:
        """Emits the loops over blocks of k and panels."""
        nest, blocks = self.nest, self.nest.blocks
        blocking, product, step = nest.blocking, nest.product, nest.step
        # With one block of k, each register block is done at once, and the next reuses its memory.
        has_several = less(1, blocks.k_blocks)
        saved_rows = select(has_several, mul(blocks.row_block, blocks.group), blocking.narrow.rows)
        pitch = select(has_several, blocking.columns, 0)
        with ExitStack() as stack:
            size = mul(saved_rows, blocking.columns)
            sums = tuple(stack.enter_context(scratch(size, step.total)) for _ in product.rhs)
            packs: tuple[ir.Value, ...] = ()
            if product.packs:
                size = blocking.products.max_k * blocking.columns * step.group
                packs = tuple(stack.enter_context(scratch(size, step.element)) for _ in product.rhs)

            tails: tuple[ir.Value | None, ...] = tuple(None for _ in product.rhs)
            if blocking.in_tiles:
                height = minimum(self.rows.count, amx.ROWS)
                stack.enter_context(amx.configured(height, height))
                tails = tuple(
                    stack.enter_context(tail_for(product.depth, step.group, step.element))
                    for _ in product.rhs
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
        nest, blocks, rows = self.nest, self.nest.blocks, self.rows
        blocking, product = nest.blocking, nest.product
        column = mul(p, blocking.columns)
        k = mul(kb, blocks.k_block)
        depth = minimum(blocks.k_block, sub(product.depth, k))
        is_first, is_last = less(kb, 1), less(blocks.k_blocks, add(kb, 2))
        rights, left = self._rights(p, k, depth, packs), self.left(kb)
        tiles = _RegisterBlocks(
            nest, blocking, blocking.vectors, is_first, is_last, depth, self.starts, left, rights,
            sums, tails,
        )  # fmt: skip
        tiles.prepare()
        start = mul(sub(p, self.panels[0]), blocks.row_block, pitch)

        def of_width(columns: Index, tiles: _RegisterBlocks) -> None:
            def tile(at: Index, here: Index) -> None:
                done = Block(
                    rows.batch, add(rows.first, at), here, column, columns, sums, blocking.columns,
                    add(start, mul(at, pitch)),
                )  # fmt: skip
                tiles.emit(at, done)

            each_register_block(tiles.blocking, rows.count, tile)

        is_narrow, narrow, full = self._widths(column)
        if_else(
            is_narrow,
            lambda: of_width(narrow, replace(tiles, blocking=nest.narrow, vectors=1)),
            lambda: of_width(full, tiles),
        )

    def _widths(self, column: Index) -> tuple[bool | ir.Value, Index, Index]:
        """Whether the panel at a column needs only one vector; its columns if so, and if not."""
        blocking, columns = self.nest.blocking, self.nest.product.columns
        here = minimum(sub(columns, column), blocking.columns)
        if not isinstance(columns, int):
            return not blocking.in_tiles and less(here, blocking.lanes + 1), here, here
        rest = columns % blocking.columns
        has_narrow = not blocking.in_tiles and 0 < rest <= blocking.lanes
        is_last = less(columns, add(column, blocking.columns)) if columns > rest else True
        return has_narrow and is_last, rest, blocking.columns if has_narrow or not rest else here

    def _rights(self, p: Index, k: Index, depth: Index, packs: tuple[ir.Value, ...]) -> list[Panel]:
        """The panel of each product from k on, packed or widened to f32 where it is not yet."""
        batch, rooms = self.rows.batch, packs or [None] * len(self.nest.product.rhs)
        sides = zip(self.nest.product.rhs, rooms, strict=True)
        return [side.panel(batch, p, k, depth, room) for side, room in sides]


@dataclass(frozen=True)
class _RegisterBlocks:
    """The register blocks of one panel of each product along one block of k."""

    nest: _Nest
    blocking: Blocking
    vectors: int
    is_first: bool | ir.Value
    is_last: bool | ir.Value
    depth: Index
    starts: RowStarts
    left: Left
    rights: Sequence[Panel]
    sums: tuple[ir.Value, ...]
    tails: tuple[ir.Value | None, ...]

    def prepare(self) -> None:
        """Emits what is done once for all register blocks."""
        if self.nest.blocking.in_tiles:
            for side in range(len(self.rights)):
                self._tile_block(side).copy_tail()

    def emit(self, at: Index, block: Block) -> None:
        """Emits the register block from row `at` on, which `block` describes, and its epilogue."""
        blocking, epilogue = self.blocking, self.nest.product.epilogue

        if blocking.in_tiles:
            with_epilogue(
                blocking, epilogue, block, self.is_last, partial(self._in_tiles, at, block)
            )
            return

        def others() -> None:
            least_fitting(block.rows, blocking.heights, partial(self._to_memory, at, block))
            if_else(self.is_last, lambda: epilogue(block))

        if not epilogue.is_short:
            rows = value(block.rows)
            if_else(self.is_last, lambda: epilogue.prefetch(block, rows, self.vectors))
            others()
            return

        def in_registers(columns: int) -> None:
            whole, last_row = self._micro_kernel(blocking.rows), blocking.rows - 1
            *before, last = range(len(self.rights))
            epilogue.prefetch(block, blocking.rows, self.vectors)
            for side in before:
                self._store_sums(whole, self._sums(whole, side, at, block, last_row), side, block)
            sums = self._sums(whole, last, at, block, last_row)
            epilogue.in_registers(block, sums, blocking.rows, columns)

        all_rows = and_(less(blocking.rows - 1, block.rows), self.is_last)
        all_columns = less(blocking.columns - 1, block.columns)
        columns = self.nest.product.columns
        if isinstance(known := block.columns, int):
            if_else(all_rows, lambda: in_registers(known), others)
        elif self.vectors < blocking.vectors:
            others()
        elif isinstance(columns, int):
            some, rest = partial(in_registers, blocking.columns), columns % blocking.columns
            by_width = partial(if_else, all_columns, some, lambda: in_registers(rest))
            if_else(all_rows, by_width, others)
        else:
            if_else(and_(all_rows, all_columns), lambda: in_registers(blocking.columns), others)

    def _micro_kernel(self, height: int) -> MicroKernel:
        return micro_kernel(self.blocking, self.nest.step, height, self.vectors)

    def _tile_block(self, side: int) -> TileBlock:
        right, tail, step = self.rights[side], self.tails[side], self.nest.step
        return TileBlock(step.tile_product, step.group, self.depth, right, tail)

    def _in_tiles(self, at: Index, block: Block) -> None:
        """Emits the sums of a block in tile registers."""
        left = self.left.at(at)
        for side, sums in enumerate(self.sums):

            def begin(tile: int, row: Index, offset: Index, sums: ir.Value = sums) -> None:
                if_else(
                    self.is_first,
                    lambda: self._start_tile(tile, add(at, row)),
                    lambda: amx.load_tile(tile, pointer(sums, offset), PANEL_ROW_BYTES),
                )

            tiles = self._tile_block(side)
            tiles.emit(left, block.rows, block.columns, begin, sums, block.start)

    def _start_tile(self, tile: int, row: Index) -> None:
        """Loads the initial sums of a tile register."""
        starts = self.starts
        if starts.buffer is None:
            amx.clear_tile(tile)
        else:
            amx.load_tile(tile, pointer(starts.buffer, starts.at(row)), amx.LANES * amx.LANE_BYTES)

    def _to_memory(self, at: Index, block: Block, height: int) -> None:
        """Emits a register block of `height` rows, whose sums are stored to memory."""
        kernel = self._micro_kernel(height)
        last_row = sub(block.rows, 1) if height > 1 else 0
        for side in range(len(self.rights)):
            self._store_sums(kernel, self._sums(kernel, side, at, block, last_row), side, block)

    def _sums(
        self, kernel: MicroKernel, side: int, at: Index, block: Block, last: Index
    ) -> list[ir.Value]:
        """The sums of a product including this block of k."""
        lanes, before = self.nest.blocking.lanes, []
        for i, offset in enumerate(self._offsets(kernel, block)):
            row = i // kernel.vectors
            start = self.starts.load(add(at, last if row == kernel.height - 1 else row))
            before.append(select(self.is_first, start, load(self.sums[side], offset, lanes)))
        right = self._fetching(self.rights[side], at, kernel.height)
        return kernel.sums(self.depth, self.left.at(at), last, right, before)

    def _fetching(self, right: Panel, at: Index, height: int) -> Panel:
        """A panel that is prefetched by the first register block, which reads it from memory."""
        blocking = self.nest.blocking
        if self.nest.product.packs:
            return right
        step = self.nest.step
        products = blocking.products
        prefetch_distance = products.prefetch_bytes // step.bytes * step.group
        if height < products.prefetch_rows:
            prefetch_distance = products.near_prefetch_distance
        return replace(right, prefetch_distance=select(less(at, 1), prefetch_distance, 0))

    def _store_sums(
        self, kernel: MicroKernel, total: Sequence[ir.Value], side: int, block: Block
    ) -> None:
        """Stores the sums of a product."""
        for x, offset in zip(total, self._offsets(kernel, block), strict=True):
            store(x, self.sums[side], offset)

    def _offsets(self, kernel: MicroKernel, block: Block) -> list[Index]:
        """Offsets of the vectors of a register block's sums."""
        rows, vectors = range(kernel.height), range(kernel.vectors)
        lanes = self.nest.blocking.lanes
        return [add(block.start, r * block.stride + v * lanes) for r in rows for v in vectors]
