"""The rule for attention over cached keys: one pass over keys and values, softmax on the way.

    scores = scale * q . k^T, masked          scf.parallel over (kv head, rows, part of the keys)
    p = softmax(scores)                 ->      for each block of keys
    out = p . v                                   scores, greatest score so far, exponentials,
                                                  what was summed so far rescaled, plus p . v

All query heads that share a kv head are rows of one matrix: row r is query `r floordiv group`, head
`kv_head * group + r mod group`. Few rows, as in generation, are in `attention_rows.py`, many in
`attention_tiles.py`. Where heads and blocks of rows are few, the keys are divided into parts
(`attention_parts.py`); how, follows from lengths alone, so results do not depend on threads.

Needs: the hint `attention` on a program made by the legalization, whose body says the same; other
programs go to later rules. Leaves: a scheduled kernel.
Source: arXiv 1805.02867 (online softmax), 2205.14135 (FlashAttention), Flash-Decoding (2023).
"""

from relax_mlir.bindings import ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.target import Target

from .attention_cache import find_operands
from .attention_parts import Lengths, Problem
from .attention_rows import MOST_ROWS, emit_rows
from .attention_tiles import emit_tiles
from .emit import emit_kernel, read_kernel
from .kernel import Kernel
from .loops import flatten, if_else, less, mul, sub
from .multiply_add import has_pairs
from .placement import place
from .program import Program, Stage

HINT = "attention"
_FLOATS = (ir.F32Type, ir.F16Type, ir.BF16Type)


def schedule(prim_func: PrimFunc, target: Target, fuse: bool) -> bool:
    """Schedules an attention kernel of f32, f16 or bf16; the head dim must fill vectors."""
    if not fuse or prim_func.schedule_hint != HINT:
        return False
    module, program = read_kernel(prim_func)
    problem = _problem(prim_func, program, target)
    if problem is None:
        return False
    emit_kernel(prim_func, place(program), target, lambda kernel: _emit(kernel, problem))
    del module  # the program refers to it
    return True


def _problem(prim_func: PrimFunc, program: Program, target: Target) -> Problem | None:
    settings = prim_func.op.operation.attributes["tir.attention"]
    operands = find_operands(program)
    if operands is None:
        return None
    (out,) = (argument for argument in program.arguments if argument.out is not None)
    heads, width = out.shape[1:]
    kv_heads = operands.keys.kv_heads
    if None in (heads, width, kv_heads) or not isinstance(out.element, _FLOATS):
        return None
    lanes = target.f32_lanes
    while width % lanes:
        lanes //= 2
    if lanes < 4:
        return None
    kinds = [cache.element for cache in (operands.query, operands.keys, operands.values)]
    halves = all(isinstance(kind, ir.BF16Type) for kind in (*kinds, out.element))
    return Problem(
        operands,
        out,
        heads,
        kv_heads,
        width,
        lanes,
        settings["scale"].value,
        bool(settings["causal"].value),
        halves and has_pairs(target) and width % 32 == 0,
        target.num_vector_registers,
    )


def _emit(kernel: Kernel, problem: Problem) -> None:
    for item in kernel.placement.program.items:
        if not isinstance(item, Stage):
            kernel.run_scalar(item)
    count = kernel.sizes(problem.out)[0]
    length = kernel.number(problem.operands.keys.length)
    capacity = kernel.sizes(problem.operands.keys.argument)[1]
    buffers = {i: flatten(buffer) for i, buffer in enumerate(kernel.buffers)}
    lengths = Lengths(count, length, sub(length, count), capacity)
    if problem.group > MOST_ROWS:
        emit_tiles(problem, buffers, lengths)
        return
    if_else(
        less(mul(count, problem.group), MOST_ROWS + 1),
        lambda: emit_rows(problem, buffers, lengths),
        lambda: emit_tiles(problem, buffers, lengths),
    )
