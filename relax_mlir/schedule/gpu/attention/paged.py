"""The rule for attention over pages: a group for each token and block of heads that share keys.

    offset of a key = page tables[s, key / size], row key mod size

Rows of a tile are heads that share keys. Nothing is computed of keys that a token does not see,
and nothing is copied out of pages but to the memory of the group. The host does not know positions,
so parts of the keys are those of a whole table; parts after a token's position have no keys.

Needs: the hint `paged_attention` on a program that the legalization wrote, fused with nothing.
Leaves: a scheduled kernel.
Source: PagedAttention (arXiv 2309.06180).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir, math, memref
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.paged_attention import HINT, SETTINGS, PagedOperands, find_paged_operands
from relax_mlir.program.placement import assign_memory
from relax_mlir.program.program import Stage
from relax_mlir.program.reading import read_kernel
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.nests.emit import emit_kernel
from relax_mlir.target import Device

from ..launch import Group, for_groups, for_threads, unraveled
from ..nests import ONE_LANE
from .attention import few_rows
from .parts import Parts, combine, split, store
from .tile import Reader, Shape, Sums, Task, Tile, constant


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a kernel of f32, f16 or bf16 queries."""
    if not fuse or prim_func.schedule_hint != HINT or SETTINGS not in prim_func.op.attributes:
        return False
    module, program = read_kernel(prim_func)
    settings = prim_func.op.operation.attributes[SETTINGS]
    paged = find_paged_operands(program)
    if paged is None:
        return False
    heads, width = paged.out.shape[-2:]
    kv_heads = paged.operands.keys.argument.shape[1]
    if not heads or not width or not kv_heads:
        return False
    shape = Shape.of(device, few_rows(heads // kv_heads), width, width)
    values = (settings["scale"].value, settings["window"].value, settings["cap"].value)

    def emit(kernel: Kernel) -> None:
        _Paged(kernel, device, paged, shape, heads, kv_heads, *values).emit()

    emit_kernel(prim_func, assign_memory(program), ONE_LANE, emit)
    del module  # the program refers to it
    return True


@dataclass
class _Paged:
    """Emits the launches of a kernel."""

    kernel: Kernel
    device: Device
    paged: PagedOperands
    shape: Shape
    heads: int
    kv_heads: int
    scale: float
    window: int
    cap: float

    def emit(self) -> None:
        """Emits a launch, and one that combines parts; or zeros if there are no keys."""
        kernel, paged = self.kernel, self.paged
        for item in kernel.placement.program.items:
            if not isinstance(item, Stage):
                kernel.run_scalar(item)
        self.buffers = [loops.flatten(buffer) for buffer in kernel.buffers]
        self.out = self.buffers[paged.out.position]
        self.sequences, self.slots = kernel.sizes(paged.tables)
        self.pages, _, self.size, _ = kernel.sizes(paged.operands.keys.argument)
        self.count = kernel.sizes(paged.out)[0]
        self.most = loops.mul(self.slots, self.size)
        some = loops.less(0, loops.mul(loops.minimum(self.sequences, self.pages), self.most))
        loops.if_else(some, self._launch, self._clear)

    def _clear(self) -> None:
        count = loops.mul(self.count, self.heads, self.shape.width)
        for_threads(count, self.device, lambda at: store(constant(0.0), self.out, at))

    @property
    def _group(self) -> int:
        """Heads that share keys."""
        return self.heads // self.kv_heads

    def _launch(self) -> None:
        shape = self.shape
        blocks = -(-self._group // shape.rows)
        counts = [self.count, self.kv_heads, blocks]
        tiles = loops.mul(*counts)
        with split(self.most, tiles, shape.rows, shape.width) as parts:

            def one(group: Group) -> None:
                *at, part = unraveled(group.index, [*counts, parts.count])
                self._tile(group, parts, at, blocks, part)

            def tile_of(row: Index) -> tuple[Index, Index]:
                """Of [token, head], flat."""
                tile, lane = loops.floor_div(row, self._group), loops.mod(row, self._group)
                if blocks == 1:
                    return tile, lane
                block = loops.floor_div(lane, shape.rows)
                return loops.add(loops.mul(tile, blocks), block), loops.mod(lane, shape.rows)

            for_groups(loops.mul(tiles, parts.count), shape.threads, self.device, one)
            combine(parts, self.device, loops.mul(self.count, self.heads), tile_of, self.out)

    def _tile(
        self, group: Group, parts: Parts, location: Sequence[Index], blocks: int, part: Index
    ) -> None:
        """Emits the tile (token, kv head, block of heads) over one part of the keys."""
        paged, width = self.paged, self.shape.width
        token, head, block = location
        heads = loops.add(loops.mul(token, self.kv_heads), head)
        tile: Index = heads
        first: Index = 0
        rows: Index = self._group
        if blocks > 1:
            tile = loops.add(loops.mul(heads, blocks), block)
            first = loops.mul(block, self.shape.rows)
            rows = loops.minimum(loops.sub(self._group, first), self.shape.rows)
        stop = loops.add(self._element(paged.positions.position, token, self.most), 1)
        begin = loops.mul(part, parts.size)
        if self.window:
            begin = loops.maximum(begin, loops.sub(stop, loops.minimum(stop, self.window)))
        end = loops.minimum(stop, loops.mul(loops.add(part, 1), parts.size))
        sequence = self._element(paged.sequences.position, token, self.sequences)
        table = loops.mul(sequence, self.slots)

        def row_at(row: Index) -> Index:
            return loops.mul(loops.add(loops.mul(heads, self._group), first, row), width)

        def key_at(key: Index) -> Index:
            at = loops.add(table, loops.floor_div(key, self.size))
            page = self._element(paged.tables.position, at, self.pages)
            row = loops.mul(loops.add(loops.mul(page, self.kv_heads), head), self.size)
            return loops.mul(loops.add(row, loops.mod(key, self.size)), width)

        def finish(results: Sequence[Sums]) -> None:
            first = row_at(results[0].row)
            parts.keep(results, tile, part, self.out, partial(loops.add, first))

        task = Task(
            rows, loops.minimum(begin, end), end, row_at, key_at, key_at, None,
            lambda x, row, key: self._score(x),
        )  # fmt: skip
        operands = paged.operands
        sources = (operands.query, operands.keys, operands.values)
        readers = (Reader.of(source, self.buffers) for source in sources)
        Tile(group, self.shape, task, *readers).emit(finish)

    def _score(self, x: ir.Value) -> ir.Value:
        """A score with its scale and soft cap."""
        x = arith.mulf(x, constant(self.scale))
        if not self.cap:
            return x
        return arith.mulf(math.tanh(arith.mulf(x, constant(1 / self.cap))), constant(self.cap))

    def _element(self, argument: int, at: Index, count: Index) -> Index:
        """An element of a tensor of indices, clamped to those below a count."""
        loaded = memref.load(self.buffers[argument], [loops.value(at)])
        x = arith.index_cast(ir.IndexType.get(), loaded)
        last = loops.value(loops.sub(count, 1))
        return arith.maxsi(arith.minsi(x, last), loops.value(0))
