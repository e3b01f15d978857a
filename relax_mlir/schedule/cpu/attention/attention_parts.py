"""Attention with split keys: what tasks share, and how results over parts of the keys are combined.

    part s of the keys:  max_s = max score, total_s = sum e^(score - max_s), sums_s = sum .. * v
    all parts:           max = max max_s, out = sum e^(max_s - max) sums_s / sum .. total_s

There are enough parts for about `_TASKS` tasks, of at least `_MIN_KEYS` keys each. They depend on
the lengths alone: results are bitwise the same on any number of threads. Those of a query that is
treated by itself depend on its own keys alone, as if there were no others: it has the same result
in any batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, math, memref, vector
from relax_mlir.program.attention import Operands
from relax_mlir.program.program import Argument
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
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
    value,
    vector_type,
)
from relax_mlir.schedule.build.online_softmax import LOWEST, exponential
from relax_mlir.schedule.cpu.blocking import Prefetch

from .attention_reader import Reader

_TASKS = 64
_MIN_KEYS = 128
_CHUNK_KEYS = 48
_COMBINED_ROWS = 16


@dataclass(frozen=True)
class Problem:
    """An attention program: `heads // kv_heads` query heads share keys.

    Keys have `depth` features and values `width`, which `lanes` divides. `batched` operands are
    [batch, tokens, heads, features]; others are queries [tokens, heads, features] and caches
    [heads, tokens, features]. With `pairs`, elements are bf16 and multiplied in pairs, by that
    instruction; with `tiles`, in tile registers. Few rows prefetch keys and values as `prefetch`
    says.
    """

    operands: Operands
    out: Argument
    batched: bool
    heads: int
    kv_heads: int
    depth: int
    width: int
    lanes: int
    scale: float
    causal: bool
    pairs: str
    tiles: bool
    prefetch: Prefetch | None
    registers: int

    @property
    def group(self) -> int:
        """Query heads for each kv head."""
        return self.heads // self.kv_heads

    @property
    def vectors(self) -> int:
        """Vectors of one head's values."""
        return self.width // self.lanes

    @property
    def columns(self) -> range:
        """The first columns of those vectors."""
        return range(0, self.width, self.lanes)

    @property
    def key_columns(self) -> range:
        """The first columns of the vectors of a key."""
        return range(0, self.depth, self.lanes)

    @property
    def key_step(self) -> int:
        """Distance between the keys of a head."""
        return self.depth * (self.kv_heads if self.batched else 1)

    @property
    def value_step(self) -> int:
        """Distance between the values of a head."""
        return self.width * (self.kv_heads if self.batched else 1)

    def first_key(self, lengths: "Lengths", sequence: Index, head: Index) -> Index:
        """The index of the first key of a head of a sequence among all keys."""
        if self.batched:
            return add(mul(sequence, lengths.capacity, self.kv_heads), head)
        return mul(head, lengths.capacity)


@dataclass(frozen=True)
class Mask:
    """A tensor [sequence, head, query, key] that is added to the scores.

    Strides of broadcast dims are 0.
    """

    reader: Reader
    strides: tuple[Index, Index, Index]

    @staticmethod
    def of(reader: Reader, sizes: Sequence[Index]) -> "Mask":
        """A mask of these extents, in row-major order."""
        strides = [mul(*sizes[i + 1 :]) for i in range(3)]
        once = [isinstance(size, int) and size == 1 for size in sizes]
        sequence, head, query = (0 if o else s for s, o in zip(strides, once[:3], strict=True))
        return Mask(reader, (sequence, head, query))

    def row(self, sequence: Index, head: Index, query: Index) -> Index:
        """Offset of a query's row."""
        pairs = zip((sequence, head, query), self.strides, strict=True)
        return add(*(mul(index, stride) for index, stride in pairs))

    def is_shared(self, group: int) -> bool:
        """Whether all queries, and `group` heads, share a row."""
        _, head, query = (isinstance(stride, int) and not stride for stride in self.strides)
        return query and (head or group == 1)


@dataclass(frozen=True)
class Lengths:
    """Lengths of each of `batch` sequences.

    `count` queries, `length` valid keys, `position` of which are before those of the queries, and
    the `capacity` of a head's cache.
    """

    count: Index
    length: Index
    position: Index
    capacity: Index
    batch: Index = 1

    def split(self, query: Index) -> tuple[Index, Index]:
        """The sequence of a query, and its index in it, from its index in all sequences."""
        if isinstance(self.batch, int) and self.batch == 1:
            return 0, query
        return floor_div(query, self.count), mod(query, self.count)


@dataclass(frozen=True)
class Parts:
    """How the keys of each block of at most `rows` rows are split.

    There are `count` parts of `size` keys, or as many of `size_of` keys for a query by itself.
    Buffers have their results: for each row, a row of `sums`, and an element of `row_max` and of
    `total`.
    """

    count: Index
    size: Index
    rows: int
    sums: ir.Value
    row_max: ir.Value
    total: ir.Value

    @staticmethod
    def size_of(problem: Problem, keys: Index) -> Index:
        """The size of the parts of a query by itself that sees so many keys."""
        return _divide(keys, problem.kv_heads)[1]

    def row(self, slot: Index, part: Index, row: Index) -> Index:
        """The index of a row of a part in the buffers."""
        return add(mul(add(mul(slot, self.count), part), self.rows), row)


def run_parts(
    problem: Problem,
    lengths: Lengths,
    slots: Index,
    rows: int,
    slot_of: Callable[[Index, Index], tuple[Index, Index]],
    out: ir.Value,
    task: Callable[[Parts, Index, Index], None],
    is_alone: bool = False,
) -> None:
    """Emits `task(parts, slot, part)` for all parts of all slots, in parallel, and combines them.

    If each query `is_alone`, there are as many parts as one needs that sees all keys.

    A slot is a block of rows. `slot_of(query, head)` returns the slot of a row of the output, and
    the row in it; queries are counted over all sequences.
    """
    count, size = _divide(lengths.length, slots)
    if is_alone:  # fewer keys may fill more parts than all keys do
        count = _most_parts(lengths.length, problem.kv_heads)
    several = less(1, count)
    saved = mul(slots, count, rows, minimum(1, sub(maximum(1, count), 1)))  # none for one part
    f32 = ir.F32Type.get()
    with (
        scratch(mul(saved, problem.width), f32) as sums,
        scratch(saved, f32) as row_max,
        scratch(saved, f32) as total,
    ):
        parts = Parts(count, size, rows, sums, row_max, total)
        tasks = mul(slots, count)
        # Work that takes less time than starting a thread is one chunk.
        chunks = minimum(tasks, maximum(1, floor_div(mul(tasks, lengths.length), _CHUNK_KEYS)))

        def chunk(i: ir.Value) -> None:
            begin = floor_div(mul(i, tasks), chunks)
            end = floor_div(mul(add(i, 1), tasks), chunks)
            for_range(begin, end, 1, one)

        def one(t: ir.Value) -> None:
            task(parts, floor_div(t, count), mod(t, count))

        parallel_range(chunks, 1, chunk)
        if_else(several, lambda: _combine(problem, lengths, parts, slot_of, out))


def _divide(length: Index, slots: Index) -> tuple[Index, Index]:
    """Count and size of the parts."""
    size = round_up(ceil_div(length, _most_parts(length, slots)), 16)
    return ceil_div(length, maximum(1, size)), size


def _most_parts(length: Index, slots: Index) -> Index:
    """The most parts, which increase with the length."""
    most = maximum(1, floor_div(_TASKS, maximum(1, slots)))
    return minimum(most, maximum(1, mul(2, floor_div(length, 2 * _MIN_KEYS))))


def finish_row(
    problem: Problem,
    parts: Parts,
    index: tuple[Index, Index, Index],
    row: tuple[ir.Value, Index],
    row_max: ir.Value,
    total: ir.Value,
    out: ir.Value,
    target: Index,
) -> None:
    """Stores a row (buffer, offset) after one part of the keys: the result, if it is the only part.

    `index` is (slot, part, row of the slot).
    """
    buffer, begin = row

    def divided() -> None:
        factor = broadcast(arith.divf(_constant(1.0), total), problem.lanes)
        for at in problem.columns:
            x = arith.mulf(load(buffer, add(begin, at), problem.lanes), factor)
            _store_out(x, out, add(target, at))

    def save() -> None:
        at_row = parts.row(*index)
        memref.store(row_max, parts.row_max, [value(at_row)])
        memref.store(total, parts.total, [value(at_row)])
        for at in problem.columns:
            x = load(buffer, add(begin, at), problem.lanes)
            store(x, parts.sums, add(mul(at_row, problem.width), at))

    if_else(less(1, parts.count), save, divided)


def _store_out(x: ir.Value, out: ir.Value, at: Index) -> None:
    element = ir.MemRefType(out.type).element_type
    if element != ir.F32Type.get():
        x = arith.truncf(vector_type(ir.VectorType(x.type).shape[0], element), x)
    store(x, out, at)


def _combine(
    problem: Problem,
    lengths: Lengths,
    parts: Parts,
    slot_of: Callable[[Index, Index], tuple[Index, Index]],
    out: ir.Value,
) -> None:
    """Emits the loop over rows of the output, which combines the results of their parts."""
    f32 = ir.F32Type.get()
    columns = problem.columns

    def one(at: ir.Value) -> None:
        slot, row = slot_of(floor_div(at, problem.heads), mod(at, problem.heads))

        def step(
            s: ir.Value, row_max: ir.Value, total: ir.Value, *sums: ir.Value
        ) -> list[ir.Value]:
            at_row = value(parts.row(slot, s, row))
            own = memref.load(parts.row_max, [at_row])
            new = arith.maximumf(row_max, own)
            old_factor, factor = (exponential(x, new) for x in (row_max, own))
            total = math.fma(
                memref.load(parts.total, [at_row]), factor, arith.mulf(total, old_factor)
            )
            factors, old_factors = (broadcast(x, problem.lanes) for x in (factor, old_factor))
            added = []
            for c, x in zip(columns, sums, strict=True):
                loaded = load(parts.sums, add(mul(at_row, problem.width), c), problem.lanes)
                added.append(vector.fma(loaded, factors, arith.mulf(x, old_factors)))
            return [new, total, *added]

        zero = splat(0.0, problem.lanes, f32)
        init = [_constant(LOWEST), _constant(0.0), *[zero] * problem.vectors]
        _, total, *sums = for_range(0, parts.count, 1, step, init)
        inverse = broadcast(arith.divf(_constant(1.0), total), problem.lanes)
        for c, x in zip(columns, sums, strict=True):
            _store_out(arith.mulf(x, inverse), out, add(mul(at, problem.width), c))

    parallel_range(mul(lengths.batch, lengths.count, problem.heads), _COMBINED_ROWS, one)


def _constant(x: float) -> ir.Value:
    f32 = ir.F32Type.get()
    return arith.constant(f32, ir.FloatAttr.get(f32, x))


def reduce_lanes(
    vectors: list[ir.Value], combine: Callable[[ir.Value, ir.Value], ir.Value], lanes: int
) -> ir.Value:
    """The horizontal reduction of all lanes of all vectors."""
    total = vectors[0]
    for x in vectors[1:]:
        total = combine(total, x)
    while lanes > 1:
        lanes //= 2
        rotation = [(i + lanes) % (2 * lanes) for i in range(2 * lanes)]
        low, high = rotation[lanes:], rotation[:lanes]
        total = combine(vector.shuffle(total, total, low), vector.shuffle(total, total, high))
    return vector.extract(total, [], [0])
