"""A tile of rows of attention, which a group of threads computes in one pass over its keys.

    for each block of keys
      the group copies the block's keys and values to its memory
      scores of all rows and keys of the block; rows' maxima, exponentials, and sums of these
      sums of a thread, rescaled, plus exponentials times values

A thread owns some keys of all rows while scores are computed, a part of one row in the softmax, and
columns of some rows for the sums, which stay in registers.

Source: arXiv 1805.02867 (online softmax), 2205.14135 (FlashAttention).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

from relax_mlir.bindings import arith, ir, math, memref
from relax_mlir.dialects.graph.quantized import BLOCK
from relax_mlir.program.attention import Source
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.online_softmax import LOWEST, exponential
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.target import Device
from relax_mlir.target.device import GROUP_UNIT

from ..launch import RESERVED, Group, barrier

THREADS = 128
MOST_ROWS, MOST_KEYS, FEWEST_KEYS = 16, 32, 4
MOST_SHARED = 48 << 10
"""Bytes of a group's memory that need no permission of a driver."""
MOST_SUMS = 64
"""Sums of a thread: more would leave the registers."""
MOST_PARTS = 8
"""Threads that share a row in the softmax."""


@dataclass(frozen=True)
class Reader:
    """Loads f32 elements of a flat buffer of floats, or of 8-bit integers and scales of blocks."""

    buffer: ir.Value
    scale: ir.Value | None

    @staticmethod
    def of(source: Source, buffers: Sequence[ir.Value]) -> "Reader":
        """A reader of a source, given the flat buffers by argument position."""
        scale = None if source.scale is None else buffers[source.scale.position]
        return Reader(buffers[source.argument.position], scale)

    def load(self, at: Index) -> ir.Value:
        """The element at an offset."""
        f32 = ir.F32Type.get()
        x = memref.load(self.buffer, [loops.value(at)])
        if self.scale is not None:
            factor = memref.load(self.scale, [loops.value(loops.floor_div(at, BLOCK))])
            return arith.mulf(arith.sitofp(f32, x), factor)
        return x if x.type == f32 else arith.extf(f32, x)


@dataclass(frozen=True)
class Shape:
    """Extents of a tile: `rows` of queries by blocks of `keys`, both powers of two.

    Keys have `depth` features and values `width`.
    """

    rows: int
    keys: int
    depth: int
    width: int
    threads: int = THREADS

    @staticmethod
    def of(device: Device, rows: int, depth: int, width: int) -> "Shape":
        """The largest tile of at most so many rows; raises Refusal if the device has none."""
        threads = min(THREADS, device.workgroup)
        limit = min(device.shared_bytes, MOST_SHARED) - RESERVED
        while rows:
            keys = MOST_KEYS
            while keys >= FEWEST_KEYS:
                shape = Shape(rows, keys, depth, width, threads)
                if shape.bytes <= limit and shape.row_count * shape.column_count <= MOST_SUMS:
                    return shape
                keys //= 2
            rows //= 2
        raise Refusal(f"a head of {max(depth, width)} features is too large for groups of threads")

    @property
    def bytes(self) -> int:
        """Memory of the group, which is dealt out in units."""
        return sum(-(-4 * count // GROUP_UNIT) * GROUP_UNIT for count in self.extents)

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements: of queries, keys, values, scores, parts of rows, and factors.

        Keys and scores have rows that are one longer, so that threads access other banks.
        """
        rows, keys = self.rows, self.keys
        sides = rows * self.depth, keys * (self.depth + 1), keys * self.width
        return (*sides, rows * (keys + 1), rows * self.parts, rows)

    @property
    def parts(self) -> int:
        """Threads that share a row in the softmax."""
        return min(MOST_PARTS, self.keys, self.threads // self.rows)

    @property
    def score_rows(self) -> int:
        """Rows whose scores a thread computes for its key."""
        return max(1, self.rows * self.keys // self.threads)

    @property
    def row_groups(self) -> int:
        """Threads that own the same columns in other rows: a power of two."""
        groups = 1
        while 2 * groups <= min(self.threads // self.width, self.rows):
            groups *= 2
        return groups

    @property
    def row_count(self) -> int:
        """Rows of a thread's sums."""
        return self.rows // self.row_groups

    @property
    def column_count(self) -> int:
        """Columns of a thread's sums."""
        return -(-self.width // self.threads)


@dataclass(frozen=True)
class Task:
    """What a tile computes: its first `rows` rows over the keys from `begin` to `end`.

    `query`, `key` and `value` are offsets of rows in the sources. A row sees the keys below its
    `limit`, or all if that is None; `score` finishes the score of a row and a key.
    """

    rows: Index
    begin: Index
    end: Index
    query: Callable[[Index], Index]
    key: Callable[[Index], Index]
    value: Callable[[Index], Index]
    limit: Callable[[Index], Index] | None
    score: Callable[[ir.Value, Index, Index], ir.Value]


@dataclass(frozen=True)
class Sums:
    """An element of the result: the sum at (row, column), and the row's maximum and total."""

    row: Index
    column: Index
    sum: ir.Value
    row_max: ir.Value
    total: ir.Value


Finish = Callable[[Sequence[Sums]], None]
"""Takes elements of one row."""


@dataclass
class Tile:
    """Emits a tile for a running group."""

    group: Group
    shape: Shape
    task: Task
    query: Reader
    keys: Reader
    values: Reader
    memory: list[ir.Value] = field(init=False)

    def emit(self, finish: Finish) -> None:
        """Emits the pass over the keys; then `finish` for the elements that a thread owns."""
        f32, shape = ir.F32Type.get(), self.shape
        self.memory = [
            self.group.memory(count, f32, slot) for slot, count in enumerate(shape.extents)
        ]
        queries = self.memory[0]
        row_at = self.task.query
        self._copy(
            self.query, row_at, queries, shape.depth, shape.depth, shape.rows, self.task.rows
        )
        zero = constant(0.0)
        start = [constant(LOWEST), *[zero] * (1 + shape.row_count * shape.column_count)]
        last = loops.for_range(self.task.begin, self.task.end, shape.keys, self._block, start)
        self._finish(finish, *last)

    def _copy(
        self, source: Reader, row_at: Callable[[Index], Index], copy: ir.Value, width: int,
        stride: int, rows: int, count: Index,
    ) -> None:  # fmt: skip
        """Copies `count` rows of a source to memory of the group, and zeros for the others."""

        def one(flat: ir.Value) -> None:
            row, column = loops.floor_div(flat, width), loops.mod(flat, width)
            at = loops.value(loops.add(loops.mul(row, stride), column))
            x = loops.value_if(
                loops.less(row, count),
                lambda: source.load(loops.add(row_at(row), column)),
                constant(0.0),
            )
            memref.store(x, copy, [at])

        loops.for_range(self.group.thread, rows * width, self.group.threads, one)

    def _block(
        self, first: ir.Value, row_max: ir.Value, total: ir.Value, *sums: ir.Value
    ) -> list[ir.Value]:
        """The state of a thread after a block of keys."""
        shape, task = self.shape, self.task
        _, keys, values, *_ = self.memory
        count = loops.sub(task.end, first)
        at = (lambda row: task.key(loops.add(first, row)),
              lambda row: task.value(loops.add(first, row)))  # fmt: skip
        self._copy(self.keys, at[0], keys, shape.depth, shape.depth + 1, shape.keys, count)
        self._copy(self.values, at[1], values, shape.width, shape.width, shape.keys, count)
        barrier()
        self._scores(first)
        barrier()
        self._part_maxima()
        barrier()
        row_max, total = self._exponentials(row_max, total)
        barrier()
        result = self._add_values(first, sums)
        barrier()
        return [row_max, total, *result]

    def _scores(self, first: ir.Value) -> None:
        """Stores the scores of all rows and the keys of a block."""
        shape, task = self.shape, self.task
        queries, keys, _, scores, *_ = self.memory
        own_key = loops.mod(self.group.thread, shape.keys)
        own_group = loops.floor_div(self.group.thread, shape.keys)
        step = shape.rows // shape.score_rows
        rows = [loops.add(own_group, i * step) for i in range(shape.score_rows)]

        def multiply(d: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            k = memref.load(keys, [loops.value(loops.add(loops.mul(own_key, shape.depth + 1), d))])
            at = (loops.value(loops.add(loops.mul(row, shape.depth), d)) for row in rows)
            return [_fma(memref.load(queries, [i]), k, total) for i, total in zip(at, sums)]

        def own() -> None:
            zeros = [constant(0.0)] * len(rows)
            sums = loops.for_range(0, shape.depth, 1, multiply, zeros)
            key = loops.add(first, own_key)
            for row, total in zip(rows, sums, strict=True):
                is_seen = loops.and_(loops.less(row, task.rows), loops.less(key, task.end))
                if task.limit is not None:
                    is_seen = loops.and_(is_seen, loops.less(key, task.limit(row)))
                finished = partial(task.score, total, row, key)
                x = loops.value_if(is_seen, finished, constant(-inf))
                at = loops.add(loops.mul(row, shape.keys + 1), own_key)
                memref.store(x, scores, [loops.value(at)])

        loops.if_else(shape.threads // shape.keys == step or loops.less(own_group, step), own)

    @property
    def _own_part(self) -> tuple[Index, Index, bool | ir.Value]:
        """The row of a thread in the softmax, its part of it, and whether it has one."""
        shape, thread = self.shape, self.group.thread
        row, part = loops.floor_div(thread, shape.parts), loops.mod(thread, shape.parts)
        has_part = shape.rows * shape.parts == shape.threads or loops.less(row, shape.rows)
        return row, part, has_part

    def _part_maxima(self) -> None:
        """Stores the greatest score of each part of a row."""
        shape = self.shape
        _, _, _, scores, parts, _ = self.memory
        row, part, has_part = self._own_part

        def own() -> None:
            def greater(c: ir.Value, most: ir.Value) -> list[ir.Value]:
                at = loops.add(loops.mul(row, shape.keys + 1), c)
                return [arith.maximumf(most, memref.load(scores, [loops.value(at)]))]

            start = [constant(LOWEST)]
            (most,) = loops.for_range(part, shape.keys, shape.parts, greater, start)
            at = loops.add(loops.mul(row, shape.parts), part)
            memref.store(most, parts, [loops.value(at)])

        loops.if_else(has_part, own)

    def _exponentials(self, row_max: ir.Value, total: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Replaces scores by their exponentials; returns the new maximum and total of a thread."""
        shape = self.shape
        _, _, _, scores, parts, factors = self.memory
        row, part, has_part = self._own_part

        def own() -> list[ir.Value]:
            new = row_max
            for i in range(shape.parts):
                at = loops.value(loops.add(loops.mul(row, shape.parts), i))
                new = arith.maximumf(new, memref.load(parts, [at]))
            factor = exponential(row_max, new)

            def raised(c: ir.Value, total: ir.Value) -> list[ir.Value]:
                at = loops.value(loops.add(loops.mul(row, shape.keys + 1), c))
                power = exponential(memref.load(scores, [at]), new)
                memref.store(power, scores, [at])
                return [arith.addf(total, power)]

            start = [arith.mulf(total, factor)]
            (result,) = loops.for_range(part, shape.keys, shape.parts, raised, start)
            self._store_by_first(part, factor, factors, row)
            return [new, result]

        new, result = loops.values_if(has_part, own, [row_max, total])
        return new, result

    def _store_by_first(self, part: Index, x: ir.Value, buffer: ir.Value, row: Index) -> None:
        """Stores a value of a row once."""
        loops.if_else(loops.less(part, 1), lambda: memref.store(x, buffer, [loops.value(row)]))

    @property
    def _own_rows(self) -> list[Index]:
        """The rows of a thread's sums; those of a thread without any are some others."""
        shape = self.shape
        first: Index = 0
        if shape.row_groups > 1:
            first = loops.floor_div(self.group.thread, shape.width)
            first = loops.minimum(first, shape.row_groups - 1)
        return [loops.add(first, i * shape.row_groups) for i in range(shape.row_count)]

    @property
    def _own_columns(self) -> list[Index]:
        """The columns of a thread's sums, as `_own_rows`."""
        shape, thread = self.shape, self.group.thread
        if shape.row_groups > 1:
            return [loops.mod(thread, shape.width)]
        ats = (loops.add(thread, i * shape.threads) for i in range(shape.column_count))
        return [loops.minimum(at, shape.width - 1) for at in ats]

    def _add_values(self, first: ir.Value, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums of a thread after the values of a block."""
        shape, task = self.shape, self.task
        _, _, values, scores, _, factors = self.memory
        rows, columns = self._own_rows, self._own_columns
        scales = [memref.load(factors, [loops.value(row)]) for row in rows]
        scaled = [arith.mulf(x, scales[i // len(columns)]) for i, x in enumerate(sums)]

        def step(hides: bool, c: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            at = (loops.value(loops.add(loops.mul(c, shape.width), w)) for w in columns)
            loaded = [memref.load(values, [i]) for i in at]
            result = []
            for i, row in enumerate(rows):
                index = loops.value(loops.add(loops.mul(row, shape.keys + 1), c))
                power = memref.load(scores, [index])
                olds = sums[i * len(columns) : (i + 1) * len(columns)]
                news = [_fma(power, x, old) for x, old in zip(loaded, olds, strict=True)]
                if hides and task.limit is not None:  # a NaN times 0 would not be hidden
                    is_seen = loops.less(loops.add(first, c), task.limit(row))
                    news = [loops.select(is_seen, x, old) for x, old in zip(news, olds)]
                result += news
            return result

        if task.limit is None:
            return loops.for_range(0, shape.keys, 1, partial(step, False), scaled)
        seen = task.limit(0)  # by all rows
        whole = loops.minimum(loops.sub(loops.maximum(seen, first), first), shape.keys)
        scaled = loops.for_range(0, whole, 1, partial(step, False), scaled)
        return loops.for_range(whole, shape.keys, 1, partial(step, True), scaled)

    def _finish(self, finish: Finish, row_max: ir.Value, total: ir.Value, *sums: ir.Value) -> None:
        shape = self.shape
        _, _, _, _, parts, factors = self.memory
        row, part, has_part = self._own_part

        def share() -> None:
            at = loops.add(loops.mul(row, shape.parts), part)
            memref.store(total, parts, [loops.value(at)])
            self._store_by_first(part, row_max, factors, row)

        loops.if_else(has_part, share)
        barrier()
        rows, columns = self._own_rows, self._own_columns
        has_sums: bool | ir.Value = True
        if shape.row_groups * shape.width < shape.threads and shape.row_groups > 1:
            has_sums = loops.less(self.group.thread, shape.row_groups * shape.width)
        for i, row in enumerate(rows):
            at = (loops.add(loops.mul(row, shape.parts), j) for j in range(shape.parts))
            shares = [memref.load(parts, [loops.value(j)]) for j in at]
            whole = shares[0]
            for other in shares[1:]:
                whole = arith.addf(whole, other)
            most = memref.load(factors, [loops.value(row)])
            for j, column in enumerate(columns):
                own: bool | ir.Value = has_sums
                if shape.row_groups == 1:
                    thread_at = loops.add(self.group.thread, j * shape.threads)
                    own = (j + 1) * shape.threads <= shape.width or loops.less(
                        thread_at, shape.width
                    )
                own = loops.and_(own, loops.less(row, self.task.rows))
                result = Sums(row, column, sums[i * len(columns) + j], most, whole)
                loops.if_else(own, partial(finish, [result]))


def constant(x: float) -> ir.Value:
    """An f32."""
    f32 = ir.F32Type.get()
    return arith.constant(f32, ir.FloatAttr.get(f32, x))


def _fma(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
    """a * b + total, which may round twice."""
    return math.fma(a, b, total, fastmath=ir.Attribute.parse("#arith.fastmath<contract>"))
