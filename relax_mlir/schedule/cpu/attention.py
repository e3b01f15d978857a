"""The rule for attention over cached keys: one pass over keys and values, softmax on the way.

    scores = scale * q . k^T, masked            scf.parallel over (kv head, block of query rows)
    p = softmax(scores)                 ->        for each block of keys
    out = p . v                                     transpose the keys, multiply tiles of rows,
                                                    rescale what was summed so far, add p . v

All query heads that share a kv head are rows of one matrix: row r is query `r floordiv group`, head
`kv_head * group + r mod group`. Scores of one block never leave the first-level cache. The rows of
a single query, as in generation, read the keys as they lie: transposing them would cost more than
it saves, and memory is faster in order.

Needs: the hint `attention` on a program made by the legalization, whose body says the same; other
programs go to later rules. Leaves: a scheduled kernel.
Source: arXiv 1805.02867 (online softmax), 2205.14135 (FlashAttention).
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, math, memref, vector
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.target import Target

from .emit import emit_kernel, read_kernel
from .kernel import Kernel
from .loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    flatten,
    floor_div,
    for_range,
    load,
    minimum,
    mod,
    mul,
    parallel_range,
    scratch,
    splat,
    store,
    sub,
    value,
    vector_type,
)
from .packing import transpose
from .placement import place
from .program import Argument, Program, Slice, Stage

HINT = "attention"
_FLOATS = (ir.F32Type, ir.F16Type, ir.BF16Type)
_KEYS = 64
_MOST_ROWS = 6


@dataclass(frozen=True)
class Problem:
    """Extents: `group` query heads share one of `kv_heads`; heads have `width` features.

    `rows` is the height of a tile, `rest` that of the last tiles; both divide what they cover.
    """

    heads: int
    kv_heads: int
    width: int
    lanes: int
    rows: int
    rest: int
    scale: float
    causal: bool

    @property
    def group(self) -> int:
        """Query heads for each kv head."""
        return self.heads // self.kv_heads

    @property
    def block(self) -> int:
        """Rows of one task."""
        return self.rows * max(1, 48 // self.rows)


def schedule(prim_func: PrimFunc, target: Target, fuse: bool) -> bool:
    """Schedules an attention kernel of f32, f16 or bf16; the head dim must fill vectors."""
    if not fuse or prim_func.schedule_hint != HINT:
        return False
    module, program = read_kernel(prim_func)
    problem = _problem(prim_func, program, target)
    if problem is None:
        return False
    placement = place(program)
    emit_kernel(prim_func, placement, target, lambda kernel: _emit(kernel, problem))
    del module  # the program refers to it
    return True


def _problem(prim_func: PrimFunc, program: Program, target: Target) -> Problem | None:
    settings = prim_func.op.operation.attributes["tir.attention"]
    query, keys = program.arguments[0], program.arguments[1]
    heads, width, kv_heads = query.shape[1], query.shape[2], keys.shape[0]
    floats = all(isinstance(argument.element, _FLOATS) for argument in program.arguments)
    if None in (heads, width, kv_heads) or not floats:
        return None
    lanes = target.f32_lanes
    while width % lanes:
        lanes //= 2
    if lanes < 4:
        return None
    group = heads // kv_heads
    if group <= _MOST_ROWS:
        rows, rest = _MOST_ROWS // group * group, group
    else:
        rows = rest = max(r for r in range(1, _MOST_ROWS + 1) if group % r == 0)
    scale, causal = settings["scale"].value, bool(settings["causal"].value)
    return Problem(heads, kv_heads, width, lanes, rows, rest, scale, causal)


def _emit(kernel: Kernel, problem: Problem) -> None:
    for item in kernel.placement.program.items:
        if not isinstance(item, Stage):
            kernel.run_scalar(item)
    query, keys = kernel.placement.program.arguments[:2]
    count = kernel.sizes(query)[0]
    length = _valid_keys(kernel, keys)
    buffers = [flatten(buffer) for buffer in kernel.buffers]
    capacity = kernel.sizes(keys)[1]
    rows = mul(count, problem.group)
    blocks = ceil_div(rows, problem.block)

    def task(number: ir.Value) -> None:
        head = floor_div(number, blocks)
        first = mul(mod(number, blocks), problem.block)
        with ExitStack() as stack:
            f32 = ir.F32Type.get()
            sizes = (problem.width, _KEYS, problem.width, 1, problem.lanes)
            parts = [stack.enter_context(scratch(problem.block * s, f32)) for s in sizes]
            turned = stack.enter_context(scratch(problem.width * _KEYS, f32))
            held = minimum(problem.block, sub(rows, first))
            _Task(
                problem, *buffers, *parts, turned, head, first, held, length,
                sub(length, count), mul(head, capacity, problem.width),
            ).emit()  # fmt: skip

    parallel_range(mul(problem.kv_heads, blocks), 1, task)


def _valid_keys(kernel: Kernel, keys: Argument) -> Index:
    """The number of cached keys, the new ones included: the size of the slice that is read."""
    for tensor in kernel.placement.program.tensors.values():
        if isinstance(tensor, Slice) and tensor.source is keys:
            return kernel.number(tensor.window.sizes[1])
    return kernel.sizes(keys)[1]


@dataclass(frozen=True)
class _Task:
    """One block of rows of one kv head: `held` rows from `first` on.

    The buffers `query` to `out` are the arguments; `scaled` holds the queries times the scale,
    `scores` those of one block of keys, `sums` the outputs so far, `top` and `total` the greatest
    score and the sum of exponentials (one a lane) of each row, `turned` the keys transposed.
    """

    problem: Problem
    query: ir.Value
    keys: ir.Value
    values: ir.Value
    out: ir.Value
    scaled: ir.Value
    scores: ir.Value
    sums: ir.Value
    top: ir.Value
    total: ir.Value
    turned: ir.Value
    head: Index
    first: Index
    held: Index
    length: Index
    position: Index
    cache: Index

    def emit(self) -> None:
        """Emits the loops over blocks of keys between setting up and dividing by the totals."""
        p = self.problem
        for_range(0, self.held, 1, self._start_row)
        end = self.length
        if p.causal:
            last = floor_div(add(self.first, self.held, -1), p.group)
            end = minimum(self.length, add(self.position, last, 1))

        def block(start: ir.Value) -> None:
            count = minimum(_KEYS, sub(end, start))
            tiled = self._tiled_rows()
            turns = minimum(count, mul(tiled, _KEYS))  # no tile, no columns
            for_range(0, turns, p.lanes, lambda key: self._transpose_keys(start, key))

            def tile(row: ir.Value) -> None:
                self._score(row, p.rows)
                self._finish_block(row, p.rows, start, count)

            def rest(row: ir.Value) -> None:
                for_range(0, count, p.lanes, lambda key: self._score_keys(row, start, key))
                self._finish_block(row, p.rest, start, count)

            for_range(0, tiled, p.rows, tile)
            for_range(tiled, self.held, p.rest, rest)

        for_range(0, end, _KEYS, block)
        for_range(0, self.held, 1, self._finish_row)

    def _tiled_rows(self) -> Index:
        """Rows whose scores are worth transposed keys: whole tiles, if there is a second query."""
        p = self.problem
        full = sub(self.held, mod(self.held, p.rows))
        return mul(full, minimum(1, floor_div(self.held, p.group + 1)))

    def _element(self, row: Index) -> Index:
        """Offset of a row in the queries and in the output."""
        p = self.problem
        row = add(self.first, row)
        head = add(mul(self.head, p.group), mod(row, p.group))
        return mul(add(mul(floor_div(row, p.group), p.heads), head), p.width)

    def _start_row(self, row: ir.Value) -> None:
        p, f32 = self.problem, ir.F32Type.get()
        source, target = self._element(row), mul(row, p.width)
        factor, zero = splat(p.scale, p.lanes, f32), splat(0.0, p.lanes, f32)
        for at in range(0, p.width, p.lanes):
            loaded = _load(self.query, add(source, at), p.lanes)
            store(arith.mulf(loaded, factor), self.scaled, add(target, at))
            store(zero, self.sums, add(target, at))
        store(zero, self.total, mul(row, p.lanes))
        lowest = arith.constant(f32, ir.FloatAttr.get(f32, float("-inf")))
        memref.store(lowest, self.top, [row])

    def _transpose_keys(self, start: Index, key: Index) -> None:
        """Turns `lanes` keys into columns; keys past the end repeat the last one."""
        p = self.problem
        last = sub(self.length, 1)
        rows = [minimum(add(start, key, i), last) for i in range(p.lanes)]
        begins = [add(self.cache, mul(row, p.width)) for row in rows]

        def square(at: ir.Value) -> None:
            loaded = [_load(self.keys, add(begin, at), p.lanes) for begin in begins]
            for i, column in enumerate(transpose(loaded)):
                store(column, self.turned, add(mul(add(at, i), _KEYS), key))

        for_range(0, p.width, p.lanes, square)

    def _finish_block(self, row: ir.Value, height: int, start: Index, count: Index) -> None:
        for_range(row, add(row, height), 1, lambda r: self._exponentials(r, start))
        self._add_values(row, height, start, count)

    def _score_keys(self, row: ir.Value, start: Index, key: Index) -> None:
        """scores[row.., key..] for `lanes` keys as they lie: dot products, summed in pairs."""
        p = self.problem
        last = sub(self.length, 1)
        places = [minimum(add(start, key, i), last) for i in range(p.lanes)]
        begins = [add(self.cache, mul(place, p.width)) for place in places]
        parts = range(0, p.width, p.lanes)
        for r in range(p.rest):
            query = [load(self.scaled, add(mul(add(row, r), p.width), at), p.lanes) for at in parts]

            def products(begin: Index, query: Sequence[ir.Value] = query) -> ir.Value:
                total = splat(0.0, p.lanes, ir.F32Type.get())
                for x, at in zip(query, parts, strict=True):
                    total = vector.fma(x, _load(self.keys, add(begin, at), p.lanes), total)
                return total

            sums = _sums([lambda begin=begin: products(begin) for begin in begins], p.lanes)
            store(sums, self.scores, add(mul(add(row, r), _KEYS), key))

    def _score(self, row: ir.Value, height: int) -> None:
        """scores[row.., keys] = scaled[row..] . turned."""
        p = self.problem
        vectors = _vectors_of(p, _KEYS // p.lanes)

        def strip(column: Index) -> None:
            def step(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                at = add(mul(k, _KEYS), column)
                right = [load(self.turned, add(at, v * p.lanes), p.lanes) for v in range(vectors)]
                left = [add(mul(add(row, r), p.width), k) for r in range(height)]
                return _multiply(self.scaled, left, right, sums, p.lanes)

            zero = splat(0.0, p.lanes, ir.F32Type.get())
            sums = for_range(0, p.width, 1, step, [zero] * (height * vectors))
            for i, x in enumerate(sums):
                r, v = divmod(i, vectors)
                target = add(mul(add(row, r), _KEYS), column, v * p.lanes)
                store(x, self.scores, target)

        _strips(_KEYS, vectors * p.lanes, strip)

    def _exponentials(self, row: ir.Value, start: Index) -> None:
        """Masks and exponentiates one row of scores, and rescales what the row has summed."""
        p = self.problem
        limit = self.length
        if p.causal:
            query = floor_div(add(self.first, row), p.group)
            limit = add(self.position, query, 1)
        visible = sub(limit, start)
        at = mul(row, _KEYS)
        offsets = range(0, _KEYS, p.lanes)
        scores = [_masked(load(self.scores, add(at, o), p.lanes), o, visible) for o in offsets]
        before = memref.load(self.top, [row])
        top = arith.maximumf(before, _across(scores, arith.maximumf, p.lanes))
        factor = math.exp(arith.subf(before, top))
        memref.store(top, self.top, [row])
        shift, factors = broadcast(top, p.lanes), broadcast(factor, p.lanes)
        place = mul(row, p.lanes)
        total = arith.mulf(load(self.total, place, p.lanes), factors)
        for offset, x in zip(offsets, scores, strict=True):
            power = math.exp(arith.subf(x, shift))
            store(power, self.scores, add(at, offset))
            total = arith.addf(total, power)
        store(total, self.total, place)
        for offset in range(0, p.width, p.lanes):
            target = add(mul(row, p.width), offset)
            store(arith.mulf(load(self.sums, target, p.lanes), factors), self.sums, target)

    def _add_values(self, row: ir.Value, height: int, start: Index, count: Index) -> None:
        """sums[row..] += scores[row.., keys] . values."""
        p = self.problem
        vectors = _vectors_of(p, p.width // p.lanes)
        begin = add(self.cache, mul(start, p.width))

        def strip(column: Index) -> None:
            targets = [
                add(mul(add(row, r), p.width), column, v * p.lanes)
                for r in range(height)
                for v in range(vectors)
            ]

            def step(key: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                at = add(begin, mul(key, p.width), column)
                right = [_load(self.values, add(at, v * p.lanes), p.lanes) for v in range(vectors)]
                left = [add(mul(add(row, r), _KEYS), key) for r in range(height)]
                return _multiply(self.scores, left, right, sums, p.lanes)

            before = [load(self.sums, at, p.lanes) for at in targets]
            after = for_range(0, count, 1, step, before)
            for at, x in zip(targets, after, strict=True):
                store(x, self.sums, at)

        _strips(p.width, vectors * p.lanes, strip)

    def _finish_row(self, row: ir.Value) -> None:
        p = self.problem
        total = _across([load(self.total, mul(row, p.lanes), p.lanes)], arith.addf, p.lanes)
        totals = broadcast(total, p.lanes)
        target = self._element(row)
        for at in range(0, p.width, p.lanes):
            x = arith.divf(load(self.sums, add(mul(row, p.width), at), p.lanes), totals)
            element = ir.MemRefType(self.out.type).element_type
            if element != ir.F32Type.get():
                x = arith.truncf(vector_type(p.lanes, element), x)
            store(x, self.out, add(target, at))


def _vectors_of(problem: Problem, most: int) -> int:
    """Vectors of one row of a tile: as many as registers allow, a divisor of `most`."""
    return max(v for v in (1, 2, 3, 4) if most % v == 0 and v * problem.lanes <= _KEYS)


def _strips(width: int, step: int, body: Callable[[Index], None]) -> None:
    if width == step:
        body(0)
    else:
        for_range(0, width, step, lambda column: body(column))


def _sums(vectors: Sequence[Callable[[], ir.Value]], lanes: int) -> ir.Value:
    """The sums over the lanes of as many vectors as there are lanes, in order.

    Vectors are emitted when they are needed, so that few are alive at a time.
    """
    if len(vectors) == 1:
        return vectors[0]()
    half = len(vectors) // 2
    first, second = (_sums(part, lanes) for part in (vectors[:half], vectors[half:]))
    width = lanes // half  # lanes of each sum so far
    begins = range(0, 2 * lanes, width)
    low = [begin + i for begin in begins for i in range(width // 2)]
    high = [i + width // 2 for i in low]
    return arith.addf(vector.shuffle(first, second, low), vector.shuffle(first, second, high))


def _load(buffer: ir.Value, offset: Index, lanes: int) -> ir.Value:
    """An f32 vector from a buffer of any float type."""
    loaded = load(buffer, offset, lanes)
    f32 = ir.F32Type.get()
    same = ir.MemRefType(buffer.type).element_type == f32
    return loaded if same else arith.extf(vector_type(lanes, f32), loaded)


def _multiply(
    buffer: ir.Value,
    left: Sequence[Index],
    right: Sequence[ir.Value],
    sums: Sequence[ir.Value],
    lanes: int,
) -> list[ir.Value]:
    """One step of a tile: scalars of the left side times vectors of the right side."""
    result = []
    for r, at in enumerate(left):
        x = broadcast(memref.load(buffer, [value(at)]), lanes)
        for v, y in enumerate(right):
            result.append(vector.fma(x, y, sums[r * len(right) + v]))
    return result


def _masked(scores: ir.Value, offset: int, visible: Index) -> ir.Value:
    """Minus infinity from lane `visible - offset` on."""
    lanes = ir.VectorType(scores.type).shape[0]
    i32 = ir.IntegerType.get_signless(32)
    kind = vector_type(lanes, i32)
    places = [ir.IntegerAttr.get(i32, offset + i) for i in range(lanes)]
    place = arith.constant(kind, ir.DenseElementsAttr.get(places, kind))
    limit = broadcast(arith.index_cast(i32, value(visible)), lanes)
    seen = arith.cmpi(arith.CmpIPredicate.slt, place, limit)
    return arith.select(seen, scores, splat(float("-inf"), lanes, ir.F32Type.get()))


def _across(
    vectors: Sequence[ir.Value], combine: Callable[[ir.Value, ir.Value], ir.Value], lanes: int
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
