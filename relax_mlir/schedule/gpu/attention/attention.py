"""The rule for attention over caches and batches: a group for each tile of rows.

All query heads that share a kv head are rows of one matrix: row r is query `r floordiv group`, head
`kv_head * group + r mod group`. Keys are those of a cache, [kv head, key, feature], or of a batch,
[sequence, key, kv head, feature]. The mask of a batch is added to scores.

Needs: the hint `attention` or `batched_attention` on a program that the legalization wrote, fused
with nothing but decoders; other programs go to later rules. Leaves: a scheduled kernel.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.attention import BATCHED, HINT, Attention, find_attention
from relax_mlir.program.placement import assign_memory
from relax_mlir.program.program import Program, Stage
from relax_mlir.program.reading import read_kernel
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.nests.emit import emit_kernel
from relax_mlir.target import Device

from ..launch import Group, for_groups, for_threads, unraveled
from ..nests import ONE_LANE
from ..products.matrix_units.narrow import is_half
from .parts import Parts, combine, split, store
from .tile import MOST_ROWS, Finish, Reader, Shape, Sums, Task, Tile, constant
from .warps import WarpShape, WarpTile, begin_at_units

_RunTile = Callable[[Group, Task, Finish], None]
FLOATS = (ir.F32Type, ir.F16Type, ir.BF16Type)


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules an attention kernel of f32, f16 or bf16."""
    if not fuse or prim_func.schedule_hint not in (HINT, BATCHED):
        return False
    module, program = read_kernel(prim_func)
    problem = _problem(prim_func, program, device)
    if problem is None:
        return False

    def emit(kernel: Kernel) -> None:
        _Attention(kernel, device, problem).emit()

    emit_kernel(prim_func, assign_memory(program), ONE_LANE, emit)
    del module  # the program refers to it
    return True


def few_rows(group: int) -> int:
    """Rows of a tile for one token: a power of two."""
    return min(MOST_ROWS, 1 << (group - 1).bit_length())


def _problem(prim_func: PrimFunc, program: Program, device: Device) -> Attention | None:
    """What is computed; None for what other rules compute. Raises Refusal for heads too large."""
    problem = find_attention(prim_func, program)
    if problem is None:
        return None
    operands = problem.operands
    sources = (operands.query, operands.keys, operands.values)
    elements = [source.element for source in sources if source.scale is None]
    if not all(isinstance(element, FLOATS) for element in (problem.out.element, *elements)):
        return None
    Shape.of(device, few_rows(problem.group), problem.depth, problem.width)
    return problem


@dataclass
class _Attention:
    """Emits the launches of a kernel."""

    kernel: Kernel
    device: Device
    problem: Attention

    def emit(self) -> None:
        """Emits one launch for few rows and one for many, or zeros if there are no keys."""
        kernel, problem = self.kernel, self.problem
        for item in kernel.placement.program.items:
            if not isinstance(item, Stage):
                kernel.run_scalar(item)
        self.buffers = [loops.flatten(buffer) for buffer in kernel.buffers]
        self.out = self.buffers[problem.out.position]
        self._measure()
        few, rows = few_rows(problem.group), loops.mul(self.count, problem.group)
        many = self._warp_shape()
        is_few: bool | ir.Value = few == MOST_ROWS and many is None
        is_few = is_few or loops.less(rows, few + 1)

        def some() -> None:
            loops.if_else(
                is_few,
                lambda: self._launch(self._shape(few)),
                lambda: self._launch(many or self._shape(MOST_ROWS)),
            )

        loops.if_else(loops.less(0, self.length), some, self._clear)

    def _shape(self, rows: int) -> Shape:
        return Shape.of(self.device, rows, self.problem.depth, self.problem.width)

    def _warp_shape(self) -> WarpShape | None:
        """The tile of many rows, where all elements are of one type of 16 bits."""
        problem, operands = self.problem, self.problem.operands
        sources = (operands.query, operands.keys, operands.values)
        is_plain = all(source.scale is None for source in sources)
        kinds = {str(source.element) for source in sources}
        if not is_plain or len(kinds) > 1 or not is_half(operands.query.element):
            return None
        return WarpShape.of(self.device, problem.depth, problem.width)

    def _measure(self) -> None:
        """Emits the lengths: of `batch` sequences, `count` queries and `length` keys."""
        kernel, problem = self.kernel, self.problem
        operands, sizes = problem.operands, kernel.sizes(problem.out)
        keys = kernel.sizes(operands.keys.argument)
        self.batch: Index = 1
        self.position: Index = 0
        if problem.batched:
            self.batch, self.count, self.length = sizes[0], sizes[1], keys[1]
        else:
            assert operands.keys.length is not None, "a cache is read up to a length"
            self.count, self.length = sizes[0], kernel.map_index(operands.keys.length)
            self.position = loops.sub(self.length, self.count)
        self.capacity = keys[1]
        self.mask: _Mask | None = None
        if operands.mask is not None:
            mask = operands.mask
            reader = Reader.of(mask, self.buffers)
            self.mask = _Mask.of(reader, kernel.sizes(mask.argument))

    def _clear(self) -> None:
        count = loops.mul(*self.kernel.sizes(self.problem.out))
        for_threads(count, self.device, lambda at: store(constant(0.0), self.out, at))

    def _launch(self, shape: Shape | WarpShape) -> None:
        problem = self.problem
        run_tile = (
            self._by_warps(shape) if isinstance(shape, WarpShape) else self._by_threads(shape)
        )
        total = loops.mul(self.count, problem.group)
        counts = [self.batch, problem.kv_heads, loops.ceil_div(total, shape.rows)]
        tiles = loops.mul(*counts)
        with split(self.length, tiles, shape.rows, problem.width) as parts:

            def one(group: Group) -> None:
                *at, part = unraveled(group.index, [*counts, parts.count])
                self._tile(group, shape.rows, parts, (at, part), counts, run_tile)

            for_groups(loops.mul(tiles, parts.count), shape.threads, self.device, one)

            def tile_of(row: Index) -> tuple[Index, Index]:
                """Of [sequence, query, head], flat."""
                sequence, query, head = unraveled(row, [self.batch, self.count, problem.heads])
                own, lane = loops.floor_div(head, problem.group), loops.mod(head, problem.group)
                at = loops.add(loops.mul(query, problem.group), lane)
                block = loops.floor_div(at, shape.rows)
                return _raveled([sequence, own, block], counts), loops.mod(at, shape.rows)

            every = loops.mul(self.batch, self.count, problem.heads)
            combine(parts, self.device, every, tile_of, self.out)

    def _by_threads(self, shape: Shape) -> _RunTile:
        operands = self.problem.operands
        sources = (operands.query, operands.keys, operands.values)
        readers = [Reader.of(source, self.buffers) for source in sources]
        return lambda group, task, finish: Tile(group, shape, task, *readers).emit(finish)

    def _by_warps(self, shape: WarpShape) -> _RunTile:
        """Emits, on the host, whether what is copied begins at multiples of 16 bytes."""
        operands = self.problem.operands
        sources = (operands.query, operands.keys, operands.values)
        buffers = [self.buffers[source.argument.position] for source in sources]
        direct = begin_at_units(buffers)
        return lambda group, task, finish: WarpTile(group, shape, task, buffers, direct).emit(
            finish
        )

    def _tile(
        self, group: Group, tile_rows: int, parts: Parts, location: tuple[Sequence[Index], Index],
        counts: Sequence[Index], run_tile: _RunTile,
    ) -> None:  # fmt: skip
        """Emits the tile (sequence, kv head, block of rows) over one part of the keys."""
        problem = self.problem
        (sequence, kv_head, block), part = location
        first = loops.mul(block, tile_rows)
        rows = loops.minimum(loops.sub(loops.mul(self.count, problem.group), first), tile_rows)

        def row_of(row: Index) -> Index:
            """The row of [sequence, query, head] that is a row of the tile."""
            at = loops.add(first, row)
            query, lane = loops.floor_div(at, problem.group), loops.mod(at, problem.group)
            head = loops.add(loops.mul(kv_head, problem.group), lane)
            tokens = loops.add(loops.mul(sequence, self.count), query)
            return loops.add(loops.mul(tokens, problem.heads), head)

        def query_of(row: Index) -> Index:
            return loops.floor_div(loops.add(first, row), problem.group)

        def limit(row: Index) -> Index:
            return loops.minimum(loops.add(self.position, query_of(row), 1), self.length)

        end = loops.minimum(loops.mul(loops.add(part, 1), parts.size), self.length)
        if problem.causal:
            end = loops.minimum(end, limit(loops.sub(rows, 1)))
        begin = loops.minimum(loops.mul(part, parts.size), end)

        def score(x: ir.Value, row: Index, key: Index) -> ir.Value:
            x = arith.mulf(x, constant(problem.scale))
            if self.mask is None:
                return x
            head = loops.add(
                loops.mul(kv_head, problem.group), loops.mod(loops.add(first, row), problem.group)
            )
            return arith.addf(x, self.mask.at(sequence, head, query_of(row), key))

        def key_at(width: int, key: Index) -> Index:
            if problem.batched:
                at = loops.add(loops.mul(sequence, self.capacity), key)
                return loops.mul(loops.add(loops.mul(at, problem.kv_heads), kv_head), width)
            return loops.mul(loops.add(loops.mul(kv_head, self.capacity), key), width)

        task = Task(
            rows, begin, end,
            lambda row: loops.mul(row_of(row), problem.depth),
            lambda key: key_at(problem.depth, key),
            lambda key: key_at(problem.width, key),
            limit if problem.causal else None,
            score,
        )  # fmt: skip
        tile = _raveled([sequence, kv_head, block], counts)

        def finish(results: Sequence[Sums]) -> None:
            first = loops.mul(row_of(results[0].row), problem.width)
            parts.keep(results, tile, part, self.out, partial(loops.add, first))

        run_tile(group, task, finish)


@dataclass(frozen=True)
class _Mask:
    """A tensor [sequence, head, query, key]; strides of broadcast dims are 0."""

    reader: Reader
    strides: tuple[Index, ...]

    @staticmethod
    def of(reader: Reader, sizes: Sequence[Index]) -> "_Mask":
        """A mask of these extents, in row-major order."""
        strides = (loops.mul(1, *sizes[i + 1 :]) for i in range(4))
        once = (isinstance(size, int) and size == 1 for size in sizes)
        return _Mask(reader, tuple(0 if o else s for s, o in zip(strides, once, strict=True)))

    def at(self, *indices: Index) -> ir.Value:
        """The element for a sequence, a head, a query and a key, as f32."""
        terms = (loops.mul(i, s) for i, s in zip(indices, self.strides, strict=True))
        return self.reader.load(loops.add(*terms))


def _raveled(indices: Sequence[Index], extents: Sequence[Index]) -> Index:
    """The row-major linear index."""
    linear: Index = 0
    for index, extent in zip(indices, extents, strict=True):
        linear = loops.add(loops.mul(linear, extent), index)
    return linear
