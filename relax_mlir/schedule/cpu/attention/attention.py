"""The rule for attention: one pass over keys and values, with an online softmax.

    scores = scale * q . k^T, masked          scf.parallel over (kv head, rows, part of the keys)
    p = softmax(scores)                 ->      for each block of keys
    out = p . v                                   scores, running maximum, exponentials,
                                                  sums so far rescaled, plus p . v

All query heads that share a kv head are rows of one matrix: row r is query `r floordiv group`, head
`kv_head * group + r mod group`. Few rows, as in generation, or few keys are in `attention_rows.py`,
others in `attention_blocked.py`, by vectors or in tile registers. If heads and blocks of rows are
few, the keys are split into parts (`attention_parts.py`). Parts depend on lengths alone, so results
do not depend on the number of threads.

Keys are those of a cache, [kv head, key, feature], or of a batch, [sequence, key, kv head,
feature], whose sequences are separate tasks. The mask of a batch is added to scores.

Needs: the hint `attention` or `batched_attention` on a program that the legalization wrote, fused
with nothing but decoders; other programs go to later rules. Leaves: a scheduled kernel.
Source: arXiv 1805.02867 (online softmax), 2205.14135 (FlashAttention), Flash-Decoding (2023).
"""

from collections.abc import Callable
from dataclasses import replace

from relax_mlir.bindings import ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.attention import BATCHED, HINT, find_attention
from relax_mlir.program.placement import assign_memory
from relax_mlir.program.program import Program, Stage
from relax_mlir.program.reading import read_kernel
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import (
    flatten,
    for_range,
    if_else,
    less,
    mul,
    or_,
    splat,
    store,
    sub,
)
from relax_mlir.schedule.cpu.blocking import family_of
from relax_mlir.schedule.cpu.isa.amx import has_tiles
from relax_mlir.schedule.cpu.isa.instructions import vectors_of
from relax_mlir.schedule.cpu.isa.multiply_add import pair_product
from relax_mlir.schedule.nests.emit import emit_kernel
from relax_mlir.target import Cpu

from .attention_blocked import emit_blocked
from .attention_parts import Lengths, Mask, Problem
from .attention_reader import Reader
from .attention_rows import MAX_ROWS, emit_rows

MAX_WIDTH = 1024
"""Larger head dims are for general loops, since code grows with the dim."""
MAX_VECTOR_ROWS = 3
"""Up to so many rows, vectors are faster than tile registers."""
FEW_KEYS = 192
"""Up to so many keys, many rows are treated as few, and have the bits of each alone.

It costs up to 3 % of a prompt's time.
"""
_FLOATS = (ir.F32Type, ir.F16Type, ir.BF16Type)


def schedule(prim_func: PrimFunc, cpu: Cpu, fuse: bool) -> bool:
    """Schedules an attention kernel of f32, f16 or bf16; the head dim must fill vectors."""
    if not fuse or prim_func.schedule_hint not in (HINT, BATCHED):
        return False
    module, program = read_kernel(prim_func)
    problem = _problem(prim_func, program, cpu)
    if problem is None:
        return False
    emit_kernel(
        prim_func, assign_memory(program), vectors_of(cpu), lambda kernel: _emit(kernel, problem)
    )
    del module  # the program refers to it
    return True


def _problem(prim_func: PrimFunc, program: Program, cpu: Cpu) -> Problem | None:
    attention = find_attention(prim_func, program)
    if attention is None:
        return None
    operands, out = attention.operands, attention.out
    depth, width = attention.depth, attention.width
    if not isinstance(out.element, _FLOATS) or 0 in out.shape or max(width, depth) > MAX_WIDTH:
        return None
    lanes = cpu.f32_lanes
    while lanes > 2 and (width % lanes or depth % lanes):
        lanes //= 2
    if lanes < 4:
        return None
    kinds = [cache.element for cache in (operands.query, operands.keys, operands.values)]
    halves = all(isinstance(kind, ir.BF16Type) for kind in (*kinds, out.element))
    pairs = pair_product(cpu) if halves and width % 32 == 0 and depth % 32 == 0 else ""
    tiles, reads = bool(pairs) and has_tiles(cpu, "bf16"), family_of(cpu).attention
    return Problem(
        operands,
        out,
        attention.batched,
        attention.heads,
        attention.kv_heads,
        depth,
        width,
        lanes,
        attention.scale,
        attention.causal,
        pairs if tiles or reads.pairs else "",
        tiles,
        reads.prefetch_for(attention.group, width),
        cpu.registers,
    )


def _emit(kernel: Kernel, problem: Problem) -> None:
    for item in kernel.placement.program.items:
        if not isinstance(item, Stage):
            kernel.run_scalar(item)
    buffers = {i: flatten(buffer) for i, buffer in enumerate(kernel.buffers)}
    lengths, mask = _lengths(kernel, problem), None
    if problem.operands.mask is not None:
        source = problem.operands.mask
        mask = Mask.of(Reader.of(source, buffers), kernel.sizes(source.argument))
    max_rows = MAX_VECTOR_ROWS if problem.tiles else MAX_ROWS
    if problem.group > max_rows:
        _with_keys(kernel, problem, lengths, lambda: emit_blocked(problem, buffers, lengths, mask))
        return
    few = less(mul(lengths.count, problem.group), max_rows + 1)
    if problem.causal and not problem.batched and not problem.tiles:
        few = or_(few, less(lengths.length, FEW_KEYS + 1))
    # On CPUs with tile registers, f32 vectors are faster than vectors of bf16 pairs.
    in_rows = replace(problem, pairs="") if problem.tiles else problem

    def emit() -> None:
        if_else(
            few,
            lambda: emit_rows(in_rows, buffers, lengths, mask),
            lambda: emit_blocked(problem, buffers, lengths, mask),
        )

    _with_keys(kernel, problem, lengths, emit)


def _lengths(kernel: Kernel, problem: Problem) -> Lengths:
    if problem.batched:
        batch, count, *_ = kernel.sizes(problem.out)
        keys = kernel.sizes(problem.operands.keys.argument)[1]
        return Lengths(count, keys, 0, keys, batch)
    count = kernel.sizes(problem.out)[0]
    assert problem.operands.keys.length is not None, "a cache is read up to a length"
    length = kernel.map_index(problem.operands.keys.length)
    capacity = kernel.sizes(problem.operands.keys.argument)[1]
    return Lengths(count, length, sub(length, count), capacity)


def _with_keys(
    kernel: Kernel, problem: Problem, lengths: Lengths, emit: Callable[[], None]
) -> None:
    """Emits `emit`, or a result of zeros if there are no keys; caches always have some."""
    if not problem.batched:
        emit()
        return
    out = flatten(kernel.buffers[problem.out.position])
    zero = splat(0.0, problem.lanes, problem.out.element)
    count = mul(*kernel.sizes(problem.out))

    def clear() -> None:
        for_range(0, count, problem.lanes, lambda at: store(zero, out, at))

    if_else(less(0, lengths.length), emit, clear)
