"""The rule for attention over pages: each token in one pass over the keys that it sees.

    for each token and kv head, in parallel              attention_rows.py
      for each block of keys of its sequence
        offset of a key = page tables[s, key / size], row key mod size
        scores, exponentials, sums of values

Nothing is computed of keys that a token does not see, and nothing is copied out of pages. Keys and
values are prefetched, since hardware prefetchers do not know the next page. The keys of a token are
split into parts as those of a token alone in `attention_rows.py`, whose result is bitwise the same.

Needs: the hint `paged_attention` on a program that the legalization wrote, fused with nothing.
Leaves: a scheduled kernel.
Source: PagedAttention (arXiv 2309.06180).
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, math, memref
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.attention import Operands
from relax_mlir.program.paged_attention import (
    HINT,
    SETTINGS,
    PagedOperands,
    find_paged_operands,
)
from relax_mlir.program.placement import assign_memory
from relax_mlir.program.program import Argument, Program, Stage
from relax_mlir.program.reading import read_kernel
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    flatten,
    floor_div,
    for_range,
    if_else,
    less,
    maximum,
    minimum,
    mod,
    mul,
    splat,
    store,
    sub,
    value,
)
from relax_mlir.schedule.cpu.blocking import family_of
from relax_mlir.schedule.cpu.isa.instructions import vectors_of
from relax_mlir.schedule.cpu.isa.multiply_add import pair_product
from relax_mlir.schedule.nests.emit import emit_kernel
from relax_mlir.target import Cpu

from .attention_parts import Lengths, Parts, Problem, finish_row, run_parts
from .attention_reader import readers_of
from .attention_rows import Rows, scratches_of

MAX_WIDTH = 1024
MAX_GROUP = 16
"""More heads of a group, or wider ones, are for general loops, since code grows with both."""


@dataclass(frozen=True)
class _Paged:
    """A program of attention over pages: `problem` has what is common to attention."""

    problem: Problem
    operands: PagedOperands
    window: int
    cap: float


def schedule(prim_func: PrimFunc, cpu: Cpu, fuse: bool) -> bool:
    """Schedules a kernel of f32, f16 or bf16 queries whose head dim fills vectors."""
    if not fuse or prim_func.schedule_hint != HINT:
        return False
    if SETTINGS not in prim_func.op.attributes:
        return False
    module, program = read_kernel(prim_func)
    settings = prim_func.op.operation.attributes[SETTINGS]
    paged = _read(program, settings, cpu)
    if paged is None:
        return False
    emit_kernel(
        prim_func, assign_memory(program), vectors_of(cpu), lambda kernel: _emit(kernel, paged)
    )
    del module  # the program refers to it
    return True


def _read(program: Program, settings: ir.DictAttr, cpu: Cpu) -> _Paged | None:
    paged = find_paged_operands(program)
    problem = None if paged is None else _problem(paged.operands, paged.out, settings, cpu)
    if paged is None or problem is None:
        return None
    return _Paged(problem, paged, settings["window"].value, settings["cap"].value)


def _problem(operands: Operands, out: Argument, settings: ir.DictAttr, cpu: Cpu) -> Problem | None:
    heads, width = out.shape[-2:]
    kv_heads = operands.keys.argument.shape[1]
    if heads is None or not width or not kv_heads or 0 in out.shape or width > MAX_WIDTH:
        return None
    if not isinstance(out.element, ir.F32Type | ir.F16Type | ir.BF16Type):
        return None
    lanes = cpu.f32_lanes
    while lanes > 2 and width % lanes:
        lanes //= 2
    if lanes < 4 or heads // kv_heads > MAX_GROUP:
        return None
    halves = all(
        isinstance(kind, ir.BF16Type) for kind in (out.element, operands.keys.argument.element)
    )
    reads = family_of(cpu).attention
    pairs = pair_product(cpu) if halves and reads.pairs and width % 32 == 0 else ""
    return Problem(
        operands, out, False, heads, kv_heads, width, width, lanes, settings["scale"].value,
        True, pairs, False, reads.pages, cpu.registers,
    )  # fmt: skip


def _emit(kernel: Kernel, paged: _Paged) -> None:
    for item in kernel.placement.program.items:
        if not isinstance(item, Stage):
            kernel.run_scalar(item)
    buffers = {i: flatten(buffer) for i, buffer in enumerate(kernel.buffers)}
    problem = paged.problem
    sequences, slots = kernel.sizes(paged.operands.tables)
    pages, _, size, _ = kernel.sizes(problem.operands.keys.argument)
    extents = _Extents(sequences, slots, pages, size)
    count = kernel.sizes(problem.out)[0]
    out = buffers[problem.out.position]

    def clear() -> None:
        zero = splat(0.0, problem.lanes, problem.out.element)
        every = mul(count, problem.heads, problem.width)
        for_range(0, every, problem.lanes, lambda at: store(zero, out, at))

    some = less(0, mul(minimum(sequences, pages), extents.keys))
    if_else(some, lambda: _emit_tokens(paged, buffers, extents, count), clear)


@dataclass(frozen=True)
class _Extents:
    """Counts of tables, of pages of each, of all pages, and of keys of a page."""

    sequences: Index
    slots: Index
    pages: Index
    size: Index

    @property
    def keys(self) -> Index:
        """Keys of a table."""
        return mul(self.slots, self.size)


def _element(buffer: ir.Value, at: Index, count: Index) -> Index:
    """An element of a tensor of indices, clamped to those below a count."""
    x = arith.index_cast(ir.IndexType.get(), memref.load(buffer, [value(at)]))
    return arith.maxsi(arith.minsi(x, value(sub(count, 1))), value(0))


def _emit_tokens(
    paged: _Paged, buffers: Mapping[int, ir.Value], extents: _Extents, count: Index
) -> None:
    problem = paged.problem
    group, width = problem.group, problem.width
    out, positions = buffers[problem.out.position], buffers[paged.operands.positions.position]
    tables, sequences = (
        buffers[paged.operands.tables.position],
        buffers[paged.operands.sequences.position],
    )
    readers = readers_of(problem.operands, buffers)
    [last] = for_range(
        0,
        count,
        1,
        lambda i, most: [value(maximum(most, _element(positions, i, extents.keys)))],
        [value(0)],
    )

    def slot_of(query: Index, head: Index) -> tuple[Index, Index]:
        return add(mul(query, problem.kv_heads), floor_div(head, group)), mod(head, group)

    def task(parts: Parts, slot: Index, part: Index) -> None:
        head, token = mod(slot, problem.kv_heads), floor_div(slot, problem.kv_heads)
        end = add(_element(positions, token, extents.keys), 1)
        size = Parts.size_of(problem, end)
        begin = mul(part, size)
        if paged.window:
            begin = maximum(begin, sub(end, minimum(end, paged.window)))
        end = minimum(end, mul(add(part, 1), size))
        table = mul(_element(sequences, token, extents.sequences), extents.slots)
        first = mul(add(mul(token, problem.heads), mul(head, group)), width)
        with ExitStack() as stack:
            rows = _PagedRows(
                problem, *readers, None, *scratches_of(problem, stack),
                first, 0, 0, (), minimum(begin, end), end, 0,
                tables, table, head, extents, paged.cap,
            )  # fmt: skip
            row_max, total = rows.emit()
            for r in range(group):
                finish_row(
                    problem, parts, (slot, part, r), (rows.sums, r * width),
                    row_max[r], total[r], out, add(first, r * width),
                )  # fmt: skip

    lengths = Lengths(count, add(last, 1), 0, 0)
    slots = mul(count, problem.kv_heads)
    run_parts(problem, lengths, slots, group, slot_of, out, task, is_alone=True)


@dataclass(frozen=True)
class _PagedRows(Rows):
    """Rows of a token whose keys are in the pages of `tables` from index `table` on."""

    tables: ir.Value
    table: Index
    head: Index
    extents: _Extents
    cap: float

    def _key(self, index: Index) -> Index:
        """The offset of a key of the token's sequence."""
        size = self.extents.size
        at = add(self.table, floor_div(index, size))
        page = _element(self.tables, at, self.extents.pages)
        row = add(mul(add(mul(page, self.problem.kv_heads), self.head), size), mod(index, size))
        return mul(row, self.problem.depth)

    def _value(self, index: Index) -> Index:
        """The offset of a value."""
        return self._key(index)

    def _key_after(self, index: Index, at: Index, rows: int) -> Index:
        """The offset of a later key, which is in another page."""
        return self._key(minimum(add(index, rows), sub(self.end, 1)))

    def _value_after(self, index: Index, at: Index, rows: int) -> Index:
        """The offset of a later value."""
        return self._key_after(index, at, rows)

    def _finished(self, scores: ir.Value) -> ir.Value:
        """Scores with a soft cap."""
        if not self.cap:
            return scores
        lanes, f32 = self.problem.lanes, ir.F32Type.get()
        bounded = math.tanh(arith.mulf(scores, splat(1 / self.cap, lanes, f32)))
        return arith.mulf(bounded, splat(self.cap, lanes, f32))
