"""The kernel for quantised panels times rows of 8-bit elements, in integer dot products.

    for each batch: a block of rows of either half
      left side: copy to [block of rows][block of 32 k][row][32], scales, corrections    in parallel
      for each (block of rows, group of panels) in parallel
        for each stretch of k, panel of the group, block of 32 k
          decode the block: 8 registers                                     (once for all rows)
          for each row
            sums = dot products of the row's 32 elements with the registers (32-bit integers)
            totals[row, panel] += scales * sums + ...                       (in the L1 cache)
        epilogue on the totals of the group

Weights are read once for each block of rows, in order. Instructions that need unsigned weights get
them biased by a constant z; the sums of a block then start at -z * sum(left of the block). Offsets
of the rows add offset * sum(weights), minima of the weights add minimum * sum(row).
"""

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir, memref, vector
from relax_mlir.dialects.graph.quantized import BLOCK, PANEL, Scheme
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    add,
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
    parallel_range,
    round_up,
    scratch,
    splat,
    store,
    sub,
    value,
    vector_type,
    zero_attr,
)
from relax_mlir.schedule.cpu.blocking import Quantized
from relax_mlir.schedule.cpu.isa.dot import Dot, even_and_odd

from .quantized_panels import PackedLeft, PackedRows, Problem
from .quantized_row import RowReading, emit_quantized_row
from .quantized_tiles import TiledRows, copied_rows, scaled_rows, tiled_rows
from .quantized_weights import Arithmetic, Weights, WidenedWeights

EVEN = 2
"""Blocks of rows and parts are rounded up to a multiple of it, for register blocks of rows."""


def emit_integers(dot: Dot, problem: Problem, in_tiles: bool) -> None:
    """Emits the loop nest at the insertion point; with `in_tiles`, many rows use tile registers."""
    blocking = problem.right.blocking
    at_once = blocking.panels if dot.lanes == PANEL else 1
    split = _Split.of(problem, in_tiles, at_once)
    row = RowReading.of(blocking, problem.right.scheme.bits)
    _Kernel(dot, problem, split, in_tiles, at_once, row).emit()


@dataclass(frozen=True)
class _Split:
    """Sizes that are computed when the kernel runs.

    Rows are one part, or two of about `half` rows; threads divide them as other kernels divide
    rows, so that a core reads what it wrote. A block of rows has `height` rows, its copy `pitch`. A
    task has `group` panels, and rows of totals that are `stride` elements apart. Pitch and stride
    are odd multiples, of rows and of panels: powers of two would map to few cache sets.
    """

    parts: Index
    half: Index
    height: Index
    pitch: Index
    panels: Index
    group: Index
    stride: int

    @staticmethod
    def of(problem: Problem, in_tiles: bool, at_once: int) -> "_Split":
        """Blocks of rows of equal height, and enough tasks of whole groups of panels."""
        rows, panels, sizes = problem.rows, problem.panels, problem.right.blocking
        parts: Index = 1
        if not in_tiles:
            parts = add(minimum(floor_div(rows, sizes.halved_rows), 1), 1)
        half = round_up(ceil_div(rows, parts), EVEN)
        blocks = ceil_div(half, tiled_rows(problem) if in_tiles else sizes.row_block)
        height = round_up(ceil_div(half, maximum(blocks, 1)), EVEN)
        height = maximum(minimum(rows, height), 1)
        worthwhile = sizes.task_bytes // problem.right.bytes
        least = maximum(floor_div(worthwhile, maximum(floor_div(height, sizes.task_rows), 1)), 1)
        limit = sizes.max_panels
        most = minimum(maximum(floor_div(sizes.totals, height), 1), limit)
        group = round_up(floor_div(mul(panels, parts), sizes.tasks), at_once)
        group = maximum(minimum(group, most), least)
        pitch = _odd(copied_rows(height)) if in_tiles else _odd(height)
        stride = _odd(group)
        if at_once > 1:
            # Rows and panels fill the registers; a constant stride needs none.
            if isinstance(panels, int):
                limit = min(limit, -(-(2 * panels // sizes.tasks) // at_once) * at_once)
                worthwhile = min(worthwhile, panels)
            stride = _odd(max(limit, worthwhile))
        return _Split(parts, half, height, pitch, panels, group, mul(stride, PANEL))  # type: ignore[arg-type]  # an index that this kernel's epilogue takes

    @property
    def groups(self) -> Index:
        """Groups of panels."""
        return ceil_div(self.panels, self.group)


def _odd(x: Index) -> Index:
    """The least odd number that is not below x."""
    return add(x, sub(1, mod(x, 2)))


@dataclass(frozen=True)
class _Kernel:
    """The loop nest for a machine's dot products."""

    dot: Dot
    problem: Problem
    split: _Split
    in_tiles: bool
    panels_at_once: int
    row: RowReading | None
    """How a single row reads weights; None if it is treated as few rows."""

    @property
    def arithmetic(self) -> Arithmetic:
        """How blocks are multiplied."""
        return Arithmetic(self.dot, self.problem)

    @property
    def blocking(self) -> Quantized:
        """How the target multiplies weights."""
        return self.problem.right.blocking

    @property
    def scheme(self) -> Scheme:
        """The scheme of the weights."""
        return self.arithmetic.scheme

    @property
    def few_rows(self) -> int:
        """Up to so many rows, each count of rows has a register block."""
        return self.blocking.few_rows * self.dot.lanes // PANEL

    @property
    def bias(self) -> int:
        """See `Arithmetic`."""
        return self.arithmetic.bias

    @property
    def rows_at_once(self) -> tuple[int, ...]:
        """Heights of the register blocks of many rows, whose sums take half of the registers."""
        if self.dot.lanes == PANEL:
            return self.blocking.rows
        most = self.problem.right.cpu.registers // (2 * self.arithmetic.vectors)
        return tuple(dict.fromkeys(min(rows, most) for rows in self.blocking.rows_narrow))

    def emit(self) -> None:
        """Emits the loop over batches: a block of rows of each part."""
        split, rows, blocks = self.split, self.problem.rows, self.problem.right.blocks
        count = mul(split.parts, split.pitch, blocks)
        i8, i32, f32 = _integer(8), _integer(32), ir.F32Type.get()
        with ExitStack() as stack:
            values = stack.enter_context(scratch(mul(count, BLOCK), i8))
            factors = stack.enter_context(scratch(count, f32))
            corrections = None
            if self.bias or self.scheme.has_minimum:
                element = i32 if self.bias else f32
                corrections = stack.enter_context(scratch(mul(count, self.scheme.scales), element))
            has_offset = self.problem.left.offset is not None
            offsets = stack.enter_context(scratch(count, f32)) if has_offset else None
            widened = None
            if self.arithmetic.widens:
                widened = stack.enter_context(scratch(mul(count, BLOCK), _integer(16)))
            copy = PackedLeft(values, factors, corrections, offsets, widened)

            def some(begin: ir.Value) -> None:
                self._copy_left(copy, begin)
                if self.row is None:
                    self._tasks(copy, begin)
                    return
                reading = self.row
                if_else(
                    less(rows, 2),
                    lambda: emit_quantized_row(self.arithmetic, copy, reading),
                    lambda: self._tasks(copy, begin),
                )

            if self.in_tiles:
                if_else(less(self.few_rows, rows), lambda: self._clear_factors(copy))
            for_range(0, minimum(rows, split.half), split.height, some)

    def _tasks(self, copy: PackedLeft, begin: Index) -> None:
        """Emits groups of panels times a block of rows of each part, in parallel."""
        tasks = mul(self.split.parts, self.split.groups)
        parallel_range(tasks, 1, lambda task: self._task(copy, begin, task))

    def _clear_factors(self, copy: PackedLeft) -> None:
        """Clears the factors of rows that tiles have in addition to those of the left side."""
        split, scales = self.split, self.scheme.scales
        buffers = [(copy.factors, 1), (copy.offsets, 1), (copy.corrections, scales)]

        def clear(buffer: ir.Value, count: int, b: ir.Value) -> None:
            element = ir.MemRefType(buffer.type).element_type
            zero = arith.constant(element, zero_attr(element))
            begin = mul(add(mul(b, split.pitch), split.height), count)
            end = add(begin, mul(sub(scaled_rows(split.height), split.height), count))
            for_range(begin, end, 1, partial(put, zero, buffer))

        def put(zero: ir.Value, buffer: ir.Value, at: ir.Value) -> None:
            memref.store(zero, buffer, [at])

        for buffer, count in buffers:
            if buffer is not None:
                for_range(0, self.problem.right.blocks, 1, partial(clear, buffer, count))

    def _rows(self, part: Index, begin: Index) -> tuple[Index, Index]:
        """The first row of a part's block of rows, and how many there are, maybe none."""
        split = self.split
        first = add(mul(part, split.half), begin)
        end = minimum(mul(add(part, 1), split.half), self.problem.rows)
        return first, minimum(sub(maximum(end, first), first), split.height)

    def _copy_left(self, copy: PackedLeft, begin: Index) -> None:
        """Packs rows of the left side, and computes the corrections of their blocks."""
        split, blocks = self.split, self.problem.right.blocks
        left, scales = self.problem.left, self.scheme.scales
        tasks = ceil_div(split.height, self.blocking.copied_rows)

        def row(part: Index, first: Index, r: ir.Value) -> None:
            own = add(mul(part, split.pitch, blocks), r)

            def block(b: ir.Value) -> None:
                source = add(mul(add(first, r), blocks), b)
                target = add(own, mul(b, split.pitch))
                elements = load(left.values.base, left.at(source, 0), BLOCK)
                store(elements, copy.values, mul(target, BLOCK))
                if copy.widened is not None:
                    for n, widened in enumerate(even_and_odd(elements)):
                        store(widened, copy.widened, add(mul(target, BLOCK), n * BLOCK // 2))
                factor = left.factor(source)
                memref.store(factor, copy.factors, [value(target)])
                offset = None
                if copy.offsets is not None:
                    offset = left.offset_of(source)
                    memref.store(offset, copy.offsets, [value(target)])
                if copy.corrections is not None:
                    for scale in range(scales):
                        correction = self._correction(elements, scale, factor, offset)
                        at = value(add(mul(target, scales), scale))
                        memref.store(correction, copy.corrections, [at])

            for_range(0, blocks, 1, block)

        def emit_task(task: ir.Value) -> None:
            part = floor_div(task, tasks)
            first, count = self._rows(part, begin)
            r = mul(mod(task, tasks), self.blocking.copied_rows)
            end = minimum(add(r, self.blocking.copied_rows), count)
            for_range(r, end, 1, lambda r: row(part, first, r))

        parallel_range(
            mul(split.parts, tasks), max(1, self.blocking.copied_blocks // blocks), emit_task
        )

    def _correction(
        self, elements: ir.Value, part: int, factor: ir.Value, offset: ir.Value | None
    ) -> ir.Value:
        """The correction for one part of a block's elements, from their sum."""
        i32, size = _integer(32), BLOCK // self.scheme.scales
        if size < BLOCK:
            elements = vector.extract_strided_slice(
                vector_type(size, _integer(8)), elements, [part * size], [size], [1]
            )
        widened = arith.extsi(vector_type(size, i32), elements)
        total = vector.reduction(i32, vector.CombiningKind.ADD, widened)
        if self.bias:
            return arith.muli(total, arith.constant(i32, -self.bias))
        f32 = ir.F32Type.get()
        total = arith.mulf(arith.sitofp(f32, total), factor)
        if offset is None:
            return total
        return arith.addf(total, arith.mulf(offset, arith.constant(f32, float(size))))

    def _task(self, copy: PackedLeft, begin: Index, task: ir.Value) -> None:
        """Emits a block of rows times a group of panels."""
        split, problem = self.split, self.problem
        part = floor_div(task, split.groups)
        row, rows = self._rows(part, begin)
        first = mul(mod(task, split.groups), split.group)
        count = minimum(sub(split.panels, first), split.group)
        left = mul(part, split.pitch, problem.right.blocks)

        def multiply() -> None:
            room = scaled_rows(rows) if self.in_tiles else rows
            with scratch(mul(room, split.stride), ir.F32Type.get()) as totals:
                _Task(self, copy, left, row, rows, first, count, totals).emit()
                column = mul(first, PANEL)
                columns = minimum(sub(problem.columns, column), mul(count, PANEL))
                problem.epilogue(Block((), row, rows, column, columns, (totals,), split.stride))

        if_else(less(0, rows), multiply)


@dataclass(frozen=True)
class _Task:
    """`rows` rows from `row` on times `count` panels from `first` on, accumulated in `totals`.

    The copy of the rows begins at index `left` of `copy`. Element (r, c) of the totals is at
    `totals[r * stride + c]`.
    """

    kernel: _Kernel
    copy: PackedLeft
    left: Index
    row: Index
    rows: Index
    first: Index
    count: Index
    totals: ir.Value

    def emit(self) -> None:
        """Emits a loop for each count of few rows, and one for more."""
        least = 1 if self.kernel.row is None else 2
        least_fitting(
            self.rows, range(least, self.kernel.few_rows + 1), self._emit_few, self._emit_more
        )

    def _emit_more(self) -> None:
        """Emits many rows."""
        if self.kernel.in_tiles:
            self._emit_in_tiles()
        else:
            self._emit_many()

    def _emit_few(self, rows: int) -> None:
        """Emits the loop over panels, with totals in registers."""
        lanes, blocks = self.kernel.dot.lanes, self.kernel.problem.right.blocks
        vectors = PANEL // lanes

        def panel(j: ir.Value) -> None:
            def block(b: ir.Value, *totals: ir.Value) -> list[ir.Value]:
                # Elements of few bits are several slow streams, which hardware prefetchers notice
                # late; with more rows, they stop, since loads are far apart in time.
                always = self.kernel.problem.right.prefetch_for(is_few=True).always
                if self.kernel.scheme.bits < 8 or rows > 1 or always:
                    self._prefetch(j, b, is_few=True)
                arithmetic, p = self.kernel.arithmetic, add(self.first, j)
                if vectors > 1:  # a block does not fit the registers
                    weights = Weights.on_the_fly(arithmetic, [p], b)
                else:
                    weights = Weights.decoded(arithmetic, [p], b)
                return weights.multiply(self._rows_at(self._index_of(b)), totals)

            zero = splat(0.0, lanes, ir.F32Type.get())
            totals = for_range(0, blocks, 1, block, [zero] * (rows * vectors))
            for n, total in enumerate(totals):
                r, v = divmod(n, vectors)
                store(total, self.totals, self._total(r, j, v))

        for_range(0, self.count, 1, panel)

    def _emit_in_tiles(self) -> None:
        """Emits the loops over panels and tiles of 16 rows."""
        kernel, split = self.kernel, self.kernel.split
        TiledRows(
            kernel.dot, kernel.problem, self.copy, split.pitch, self.left, self.rows, self.first,
            self.count, self.totals, split.stride,
        ).emit()  # fmt: skip

    def _emit_many(self) -> None:
        """Emits the loops over stretches of k, panels, blocks and rows."""
        lanes, blocks = self.kernel.dot.lanes, self.kernel.problem.right.blocks
        zero = splat(0.0, lanes, ir.F32Type.get())
        size = mul(self.rows, self.kernel.split.stride)
        for_range(0, size, lanes, lambda i: store(zero, self.totals, i))

        sizes = self.kernel.blocking
        length = floor_div(sizes.stretch * sizes.row_block, self.rows)

        def stretch(begin: Index) -> None:
            end = minimum(add(begin, length), blocks)

            def panels(j: ir.Value, count: int) -> None:
                with ExitStack() as stack:
                    buffer = None
                    if self.kernel.arithmetic.widens:
                        buffer = stack.enter_context(scratch(WidenedWeights.SIZE, _integer(16)))
                    for_range(begin, end, 1, lambda b: self._block(j, count, b, buffer))

            first: Index = 0
            for count in sorted({self.kernel.panels_at_once, 1}, reverse=True):
                last = sub(self.count, mod(self.count, count))
                for_range(first, last, count, partial(panels, count=count))
                first = last

        if blocks <= sizes.stretch:
            stretch(0)
        else:
            for_range(0, blocks, length, stretch)

    def _block(self, j: Index, panels: int, b: Index, buffer: ir.Value | None) -> None:
        """Emits a block of `panels` panels times all rows, widened to `buffer` if given."""
        indices = [add(j, n) for n in range(panels)]
        for index in indices:
            self._prefetch(index, b, is_few=False)
            self._prefetch_outputs(index, b)
        arithmetic = self.kernel.arithmetic
        panels_of = [add(self.first, index) for index in indices]
        weights = Weights.decoded(arithmetic, panels_of, b)
        if buffer is not None:
            weights = WidenedWeights.stored(weights, buffer)
        lanes = self.kernel.dot.lanes
        vectors = [(index, v) for index in indices for v in range(PANEL // lanes)]

        def some(i: Index, count: int) -> None:
            at = [self._total(add(i, r), *vector) for r in range(count) for vector in vectors]
            totals = [load(self.totals, n, lanes) for n in at]
            copied = self._rows_at(add(self._index_of(b), i))
            if self.kernel.blocking.separate_addresses:
                copied = copied.with_addresses()
            totals = weights.multiply(copied, totals)
            for total, n in zip(totals, at, strict=True):
                store(total, self.totals, n)

        begin: Index = 0
        for count in self.kernel.rows_at_once:
            end = sub(self.rows, mod(self.rows, count))
            for_range(begin, end, count, partial(some, count=count))
            begin = end

    def _prefetch(self, j: Index, b: Index, is_few: bool) -> None:
        """Prefetches weights."""
        right, panels = self.kernel.problem.right, self.kernel.split.panels
        right.prefetch(add(self.first, j), b, panels, is_few)

    def _prefetch_outputs(self, j: Index, b: Index) -> None:
        """Prefetches the lines that the epilogue stores to, a share of them with each block."""
        problem = self.kernel.problem
        share = floor_div(add(self.rows, problem.right.blocks // 2), problem.right.blocks)
        begin = minimum(mul(b, share), self.rows)
        end = minimum(add(begin, share), self.rows)
        column = mul(add(self.first, j), PANEL)

        def line(i: ir.Value) -> None:
            at = add(mul(add(self.row, i), problem.columns), column)
            for view in problem.outputs:
                memref.prefetch(view.base, [value(add(view.offset, at))], True, 2, True)

        for_range(begin, end, 1, line)

    def _index_of(self, b: Index) -> Index:
        """The index of block b of the first row in the copy of the left side."""
        return add(self.left, mul(b, self.kernel.split.pitch))

    def _rows_at(self, index: Index) -> PackedRows:
        """The rows from an index of the copy on."""
        return PackedRows(self.copy, index, self.kernel.scheme.scales)

    def _total(self, r: Index, j: Index, v: int) -> Index:
        """The offset of the totals of a row and a vector of a panel."""
        return add(mul(r, self.kernel.split.stride), mul(j, PANEL), v * self.kernel.dot.lanes)


def _integer(bits: int) -> ir.Type:
    return ir.IntegerType.get_signless(bits)
