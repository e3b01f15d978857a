"""A tile of rows of attention of f16 or bf16, which warps compute by products of matrices.

    for each block of keys, while the next one is copied to memory of the group
      scores = queries * keys          a warp has 16 rows of queries
      maxima of rows, exponentials     in registers, in f32
      sums = rescaled sums + exponentials * values

The exponentials that a thread has of scores, rounded to 16 bits, are those that it has of the left
side of the next product. Sums and totals are of f32.

Source: arXiv 2205.14135 (FlashAttention), 2307.08691 (FlashAttention-2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

from relax_mlir.bindings import arith, ir, memref, nvgpu, nvvm, scf, vector
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.online_softmax import LOWEST, exponential
from relax_mlir.target import Device

from ..launch import Group, barrier
from ..products.matrix_units.copies import UNIT_BYTES
from ..products.matrix_units.matrices import (
    COLUMNS,
    ROWS,
    elements,
    half,
    load,
    multiply,
    row_of_lane,
)
from ..shuffles import WARP, shuffled
from .tile import Finish, Sums, Task, constant
from .warp_values import Values

WARPS, UNIT = 4, 8
"""Warps of a group, and elements of 16 bytes."""
MOST_FEATURES = 128
"""Features of a head: sums of more would leave the registers."""
_SLOTS = 2
"""Blocks that are in memory of the group at once."""
_QUAD = (1, 2)
"""What the lanes that have a row of sums differ by."""


@dataclass(frozen=True)
class WarpShape:
    """Extents of a tile: `rows` of queries by blocks of `keys`.

    Keys have `depth` features and values `width`.
    """

    keys: int
    depth: int
    width: int
    rows: int = WARPS * ROWS
    threads: int = WARPS * WARP

    @staticmethod
    def of(device: Device, depth: int, width: int) -> "WarpShape | None":
        """The shape for heads of so many features; None for those that other tiles are for."""
        if not device.multiplies_matrices or max(depth, width) > MOST_FEATURES:
            return None
        if depth % (2 * UNIT) or width % (2 * UNIT):
            return None
        return WarpShape(64 if depth + width <= MOST_FEATURES else 32, depth, width)


@dataclass
class WarpTile:
    """Emits a tile for a running group.

    `sources` are the flat buffers of queries, keys and values; `is_direct` says whether all of them
    begin at multiples of 16 bytes.
    """

    group: Group
    shape: WarpShape
    task: Task
    sources: Sequence[ir.Value]
    is_direct: bool | ir.Value
    memory: list[ir.Value] = field(init=False)
    bounds: list[Index] = field(init=False)

    def emit(self, finish: Finish) -> None:
        """Emits the pass over the keys; then `finish` for the elements that a thread owns."""
        shape, task = self.shape, self.task
        counts = (
            shape.rows * (shape.depth + UNIT),
            _SLOTS * shape.keys * (shape.depth + UNIT),
            _SLOTS * shape.keys * (shape.width + UNIT),
        )
        self.memory = [
            self.group.memory(count, ir.MemRefType(source.type).element_type, slot)
            for slot, (count, source) in enumerate(zip(counts, self.sources, strict=True))
        ]
        self.bounds = [self._bound(row) for row in self._rows]
        self._copy(0, 0, shape.depth, shape.rows, task.rows)
        self._copy_block(task.begin, 0)
        start = [*[constant(LOWEST)] * 2, *[constant(0.0)] * 2]
        start += [_zeros()] * (shape.width // COLUMNS)
        last = loops.for_range(task.begin, task.end, shape.keys, self._block, start)
        self._finish(finish, last)

    @property
    def _warp_row(self) -> Index:
        """The first row of a thread's warp."""
        return loops.mul(loops.floor_div(self.group.thread, WARP), ROWS)

    @property
    def _rows(self) -> list[Index]:
        """The two rows of which a thread has sums."""
        lane = loops.mod(self.group.thread, WARP)
        first = loops.add(self._warp_row, loops.floor_div(lane, 4))
        return [first, loops.add(first, COLUMNS)]

    @property
    def _column(self) -> Index:
        """The first of two columns of each matrix of sums."""
        return loops.mul(loops.mod(self.group.thread, 4), 2)

    def _bound(self, row: Index) -> Index:
        """A row sees the keys below it."""
        task = self.task
        end = task.end if task.limit is None else loops.minimum(task.limit(row), task.end)
        return loops.select(loops.less(row, task.rows), end, 0)

    def _copy_block(self, first: Index, slot: Index) -> None:
        """Begins to copy a block of keys and values, if there is one, and makes copies a group."""
        shape, task = self.shape, self.task

        def copies() -> None:
            count = loops.minimum(loops.sub(task.end, first), shape.keys)
            row = loops.mul(slot, shape.keys)
            for source, width in ((1, shape.depth), (2, shape.width)):
                self._copy(source, row, width, shape.keys, count, first)

        loops.if_else(loops.less(first, task.end), copies)
        nvvm.cp_async_commit_group()
        everyone = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), -1)
        nvvm.bar_warp_sync(arith.constant(everyone.type, everyone))

    def _copy(
        self, source: int, to: Index, width: int, rows: int, count: Index, first: Index = 0
    ) -> None:
        """Copies `count` rows of a source, and zeros for others, to rows of memory from `to` on."""
        memory, buffer = self.memory[source], self.sources[source]
        offset = (self.task.query, self.task.key, self.task.value)[source]

        def each(unit: int, one: partial[None]) -> None:
            per_row = width // unit

            def step(flat: ir.Value) -> None:
                row, column = (
                    loops.floor_div(flat, per_row),
                    loops.mul(loops.mod(flat, per_row), unit),
                )
                at = loops.add(loops.mul(loops.add(to, row), width + UNIT), column)
                from_ = loops.add(offset(loops.add(first, row)), column)
                one(loops.less(row, count), from_, at)

            loops.for_range(self.group.thread, rows * per_row, self.group.threads, step)

        loops.if_else(
            self.is_direct,
            lambda: each(UNIT, partial(_copy_unit, buffer, memory)),
            lambda: each(1, partial(_copy_element, buffer, memory)),
        )

    def _block(self, first: ir.Value, *state: ir.Value) -> list[ir.Value]:
        """The maxima and totals of a thread's rows, and its sums, after a block of keys."""
        shape = self.shape
        slot = loops.mod(loops.floor_div(loops.sub(first, self.task.begin), shape.keys), _SLOTS)
        nvvm.cp_async_wait_group(0)
        barrier()
        self._copy_block(loops.add(first, shape.keys), loops.sub(1, slot))
        scores = self._scores(first, slot)
        powers, maxima, totals, factors = self._exponentials(scores, state[:2], state[2:4])
        scaled = [_rows_scaled(x, factors) for x in state[4:]]
        values = Values(self.memory[2], self.group.thread, shape.keys, shape.width, slot)
        return [*maxima, *totals, *self._add_values(values, first, powers, scaled)]

    def _scores(self, first: ir.Value, slot: Index) -> list[list[ir.Value]]:
        """Scores of a thread's two rows and the keys of a block that it has."""
        shape, pitch = self.shape, self.shape.depth + UNIT
        thread, keys = self.group.thread, range(0, shape.keys, ROWS)
        left = loops.add(
            loops.mul(self._warp_row, pitch), row_of_lane(thread, True, True, pitch, UNIT)
        )
        right = loops.add(
            loops.mul(slot, shape.keys * pitch), row_of_lane(thread, False, True, pitch, UNIT)
        )
        sums = [_zeros()] * (shape.keys // COLUMNS)
        for k in range(0, shape.depth, 2 * UNIT):
            a = load(self.memory[0], loops.add(left, k), False, UNIT)
            for key in keys:
                pair = load(self.memory[1], loops.add(right, key * pitch + k), False, UNIT)
                for i in range(2):
                    at = key // COLUMNS + i
                    sums[at] = multiply(a, half(pair, i), sums[at])
        own = loops.add(first, self._column)
        result: list[list[ir.Value]] = [[], []]
        for at, matrix in enumerate(sums):
            for position, x in enumerate(elements(matrix)):
                i, j = divmod(position, 2)
                key_at = loops.add(own, COLUMNS * at + j)
                finished = partial(self.task.score, x, self._rows[i], key_at)
                seen = loops.less(key_at, self.bounds[i])
                result[i].append(loops.value_if(seen, finished, constant(-inf)))
        return result

    def _exponentials(
        self, scores: Sequence[Sequence[ir.Value]], maxima: Sequence[ir.Value],
        totals: Sequence[ir.Value],
    ) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value], list[ir.Value]]:  # fmt: skip
        """Left sides of products with values; new maxima and totals; what sums are to be scaled by.

        Totals are those of what a thread has of its rows.
        """
        powers, news, sums, factors = [], [], [], []
        for own, row_max, total in zip(scores, maxima, totals, strict=True):
            new = row_max
            for x in own:
                new = arith.maximumf(new, x)
            for offset in _QUAD:
                new = arith.maximumf(new, shuffled(new, offset))
            raised = [exponential(x, new) for x in own]
            factor = exponential(row_max, new)
            added = arith.mulf(total, factor)
            for x in raised:
                added = arith.addf(added, x)
            powers.append(raised)
            news.append(new)
            sums.append(added)
            factors.append(factor)
        element = ir.MemRefType(self.memory[2].type).element_type
        kind = ir.VectorType.get([4, 2], element)
        lefts = []
        for at in range(0, len(powers[0]), 4):
            parts = [row[i : i + 2] for i in (at, at + 2) for row in powers]
            narrow = [arith.truncf(element, x) for part in parts for x in part]
            lefts.append(vector.from_elements(kind, narrow))
        return lefts, news, sums, factors

    def _add_values(
        self, values: Values, first: ir.Value, powers: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums after the values of a block.

        What a row does not see has a power of zero, but zero times a NaN, or an infinity, is a NaN:
        blocks that have one, and are hidden in part, are added key by key.
        """
        limit = self.task.limit
        if limit is None:
            return values.add(powers, sums)
        is_hidden = loops.less(limit(self._warp_row), loops.add(first, self.shape.keys))
        poison = loops.value_if(is_hidden, values.poison, constant(0.0))
        is_poisoned = arith.cmpf(arith.CmpFPredicate.UNO, poison, poison)
        bounds = [loops.sub(loops.maximum(bound, first), first) for bound in self.bounds]
        branch = scf.IfOp(is_poisoned, [x.type for x in sums], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp(values.add_by_key(powers, sums, bounds))
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp(values.add(powers, sums))
        return list(branch.results)

    def _finish(self, finish: Finish, state: Sequence[ir.Value]) -> None:
        maxima, totals, sums = state[:2], list(state[2:4]), state[4:]
        for offset in _QUAD:
            totals = [arith.addf(x, shuffled(x, offset)) for x in totals]
        spread = [elements(matrix) for matrix in sums]
        for i, row in enumerate(self._rows):
            results = [
                Sums(
                    row,
                    loops.add(self._column, COLUMNS * at + j),
                    matrix[2 * i + j],
                    maxima[i],
                    totals[i],
                )
                for at, matrix in enumerate(spread)
                for j in range(2)
            ]
            loops.if_else(loops.less(row, self.task.rows), partial(finish, results))


def begin_at_units(buffers: Sequence[ir.Value]) -> ir.Value:
    """Whether all begin at multiples of 16 bytes; computed on the host."""
    for name in ("llvm", "nvgpu", "nvvm", "vector"):
        ir.Context.current.dialects[name]  # loads it: its ops have no names yet
    rests = [
        loops.mod(memref.extract_aligned_pointer_as_index(buffer), UNIT_BYTES) for buffer in buffers
    ]
    result = loops.less(loops.add(*rests), 1)
    assert isinstance(result, ir.Value)
    return result


def _rows_scaled(matrix: ir.Value, factors: Sequence[ir.Value]) -> ir.Value:
    """A matrix of sums whose two rows are multiplied by factors."""
    scaled = [arith.mulf(x, factors[i // 2]) for i, x in enumerate(elements(matrix))]
    return vector.from_elements(matrix.type, scaled)


def _zeros() -> ir.Value:
    kind = ir.VectorType.get([2, 2], ir.F32Type.get())
    return arith.constant(
        kind, ir.DenseElementsAttr.get_splat(kind, loops.zero_attr(kind.element_type))
    )


def _copy_unit(
    source: ir.Value, memory: ir.Value, is_inside: bool | ir.Value, from_: Index, to: Index
) -> None:
    """Begins to copy 16 bytes, or as many zeros."""
    nvgpu.device_async_copy(
        memory,
        [loops.value(to)],
        source,
        [loops.value(loops.select(is_inside, from_, 0))],
        UNIT,
        src_elements=loops.value(loops.select(is_inside, UNIT, 0)),
        bypass_l1=True,
        results=[ir.Type.parse("!nvgpu.device.async.token")],
    )


def _copy_element(
    source: ir.Value, memory: ir.Value, is_inside: bool | ir.Value, from_: Index, to: Index
) -> None:
    """Copies an element, or zero."""
    element = ir.MemRefType(source.type).element_type
    zero = arith.constant(element, loops.zero_attr(element))
    x = loops.value_if(is_inside, lambda: memref.load(source, [loops.value(from_)]), zero)
    memref.store(x, memory, [loops.value(to)])
