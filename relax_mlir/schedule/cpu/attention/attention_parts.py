"""Attention in parts: what tasks share, and how results over parts of the keys become one.

    part s of the keys:  top_s = max score, total_s = sum e^(score - top_s), sums_s = sum .. * v
    all parts:           top = max top_s, out = sum e^(top_s - top) sums_s / sum .. total_s

Parts are as many as make about `_TASKS` tasks, but no shorter than `_LEAST` keys. Their number
follows from the lengths alone: the same call gives the same bits on any number of threads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, math, memref, vector
from relax_mlir.dialects.tir import NOT_POSITIVE
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
from relax_mlir.schedule.cpu.blocking import Prefetch

from .attention_reader import Reader

LOWEST = -3.4028234663852886e38
"""The least f32: the greatest score of no keys, so that differences are never of infinities."""
_TASKS = 64
_LEAST = 128
_SHORT = 48
_COMBINED = 16


@dataclass(frozen=True)
class Problem:
    """An attention program: `heads // kv_heads` query heads share keys.

    Keys have `depth` features and values `width`, which `lanes` divides. `batched` operands are
    [batch, tokens, heads, features], others queries of tokens and caches of heads. With `pairs`,
    numbers are bf16 and multiplied two at a time, with `tiles` in tile registers. Where few
    rows are multiplied, keys and values are asked for `ahead`.
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
    pairs: bool
    tiles: bool
    ahead: Prefetch | None
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
        """Where those vectors begin."""
        return range(0, self.width, self.lanes)

    @property
    def key_columns(self) -> range:
        """Where the vectors of a key begin."""
        return range(0, self.depth, self.lanes)

    @property
    def key_step(self) -> int:
        """How far apart the keys of a head are."""
        return self.depth * (self.kv_heads if self.batched else 1)

    @property
    def value_step(self) -> int:
        """How far apart its values are."""
        return self.width * (self.kv_heads if self.batched else 1)

    def first_key(self, lengths: "Lengths", sequence: Index, head: Index) -> Index:
        """Number of vectors, of keys or values, in front of those of a head of a sequence."""
        if self.batched:
            return add(mul(sequence, lengths.capacity, self.kv_heads), head)
        return mul(head, lengths.capacity)


@dataclass(frozen=True)
class Mask:
    """What is added to the scores: where a tensor [sequence, head, query, key] has its numbers.

    Strides are 0 where the tensor has one number for all.
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
        """Offset of a query's numbers."""
        places = zip((sequence, head, query), self.strides, strict=True)
        return add(*(mul(place, stride) for place, stride in places))

    def is_shared(self, group: int) -> bool:
        """Whether all queries, and `group` heads, have the same numbers."""
        _, head, query = (isinstance(stride, int) and not stride for stride in self.strides)
        return query and (head or group == 1)


@dataclass(frozen=True)
class Lengths:
    """Queries, valid keys, those in front of the new ones, and how many a head has room for.

    Each is of one sequence, of which there are `batch`.
    """

    count: Index
    length: Index
    position: Index
    capacity: Index
    batch: Index = 1

    def split(self, query: Index) -> tuple[Index, Index]:
        """Sequence and number in it of a query, counted over all sequences."""
        if isinstance(self.batch, int) and self.batch == 1:
            return 0, query
        return floor_div(query, self.count), mod(query, self.count)


@dataclass(frozen=True)
class Parts:
    """How the keys of each of `slots` blocks of at most `rows` rows are divided.

    `number` parts of `size` keys; the buffers hold what each found: `sums` a row of features,
    `top` and `total` one number a row.
    """

    number: Index
    size: Index
    rows: int
    sums: ir.Value
    top: ir.Value
    total: ir.Value

    def row(self, slot: Index, part: Index, row: Index) -> Index:
        """The number of a row of a part."""
        return add(mul(add(mul(slot, self.number), part), self.rows), row)


def run_parts(
    problem: Problem,
    lengths: Lengths,
    slots: Index,
    rows: int,
    slot_of: Callable[[Index, Index], tuple[Index, Index]],
    out: ir.Value,
    task: Callable[[Parts, Index, Index], None],
) -> None:
    """Runs `task(parts, slot, part)` for all parts of all slots in parallel, and combines them.

    `slot_of(query, head)` says in which slot a row of the output is, and which row of it; queries
    are counted over all sequences.
    """
    number, size = _divide(lengths.length, slots)
    several = less(1, number)
    held = mul(slots, number, rows, minimum(1, sub(maximum(1, number), 1)))  # one part: none
    f32 = ir.F32Type.get()
    with (
        scratch(mul(held, problem.width), f32) as sums,
        scratch(held, f32) as top,
        scratch(held, f32) as total,
    ):
        parts = Parts(number, size, rows, sums, top, total)
        tasks = mul(slots, number)
        # Work that is over before another thread has begun is one chunk.
        chunks = minimum(tasks, maximum(1, floor_div(mul(tasks, lengths.length), _SHORT)))

        def chunk(i: ir.Value) -> None:
            begin = floor_div(mul(i, tasks), chunks)
            end = floor_div(mul(add(i, 1), tasks), chunks)
            for_range(begin, end, 1, one)

        def one(t: ir.Value) -> None:
            task(parts, floor_div(t, number), mod(t, number))

        parallel_range(chunks, 1, chunk)
        if_else(several, lambda: _combine(problem, lengths, parts, slot_of, out))


def _divide(length: Index, slots: Index) -> tuple[Index, Index]:
    """Number and size of the parts."""
    most = maximum(1, floor_div(_TASKS, maximum(1, slots)))
    number = minimum(most, maximum(1, mul(2, floor_div(length, 2 * _LEAST))))
    size = round_up(ceil_div(length, number), 16)
    return ceil_div(length, maximum(1, size)), size


def finish_row(
    problem: Problem,
    parts: Parts,
    place: tuple[Index, Index, Index],
    row: tuple[ir.Value, Index],
    top: ir.Value,
    total: ir.Value,
    out: ir.Value,
    cpu: Index,
) -> None:
    """Stores a row of (buffer, offset) as it is known after one part of the keys.

    `place` are slot, part and row of the slot. The only part is the result.
    """
    buffer, begin = row

    def divided() -> None:
        factor = broadcast(arith.divf(_number(1.0), total), problem.lanes)
        for at in problem.columns:
            x = arith.mulf(load(buffer, add(begin, at), problem.lanes), factor)
            _store_out(x, out, add(cpu, at))

    def kept() -> None:
        at_row = parts.row(*place)
        memref.store(top, parts.top, [value(at_row)])
        memref.store(total, parts.total, [value(at_row)])
        for at in problem.columns:
            x = load(buffer, add(begin, at), problem.lanes)
            store(x, parts.sums, add(mul(at_row, problem.width), at))

    if_else(less(1, parts.number), kept, divided)


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
    """One row of the output after the other, from what its parts found."""
    f32 = ir.F32Type.get()
    columns = problem.columns

    def one(at: ir.Value) -> None:
        slot, row = slot_of(floor_div(at, problem.heads), mod(at, problem.heads))

        def step(s: ir.Value, top: ir.Value, total: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            place = value(parts.row(slot, s, row))
            own = memref.load(parts.top, [place])
            new = arith.maximumf(top, own)
            old_factor, factor = (power(x, new) for x in (top, own))
            total = math.fma(
                memref.load(parts.total, [place]), factor, arith.mulf(total, old_factor)
            )
            factors, old_factors = (broadcast(x, problem.lanes) for x in (factor, old_factor))
            added = []
            for c, x in zip(columns, sums, strict=True):
                found = load(parts.sums, add(mul(place, problem.width), c), problem.lanes)
                added.append(vector.fma(found, factors, arith.mulf(x, old_factors)))
            return [new, total, *added]

        zero = splat(0.0, problem.lanes, f32)
        init = [_number(LOWEST), _number(0.0), *[zero] * problem.vectors]
        _, total, *sums = for_range(0, parts.number, 1, step, init)
        totals = broadcast(total, problem.lanes)
        for c, x in zip(columns, sums, strict=True):
            _store_out(arith.divf(x, totals), out, add(mul(at, problem.width), c))

    parallel_range(mul(lengths.batch, lengths.count, problem.heads), _COMBINED, one)


def _number(x: float) -> ir.Value:
    f32 = ir.F32Type.get()
    return arith.constant(f32, ir.FloatAttr.get(f32, x))


def power(x: ir.Value, top: ir.Value) -> ir.Value:
    """e^(x - top), approximate to what counts beside e^0, which is the greatest."""
    op = math.ExpOp(arith.subf(x, top), fastmath=arith.FastMathFlags.afn)
    op.attributes[NOT_POSITIVE] = ir.UnitAttr.get()
    return op.result


def across(
    vectors: list[ir.Value], combine: Callable[[ir.Value, ir.Value], ir.Value], lanes: int
) -> ir.Value:
    """All lanes of all vectors combined into one scalar."""
    total = vectors[0]
    for x in vectors[1:]:
        total = combine(total, x)
    while lanes > 1:
        lanes //= 2
        turn = [(i + lanes) % (2 * lanes) for i in range(2 * lanes)]
        low, high = turn[lanes:], turn[:lanes]
        total = combine(vector.shuffle(total, total, low), vector.shuffle(total, total, high))
    return vector.extract(total, [], [0])
