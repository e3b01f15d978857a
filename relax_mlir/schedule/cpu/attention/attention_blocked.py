"""Attention of many rows: blocks of 48 rows, each a head of a query, against blocks of keys.

for each block of rows, and part of the keys, in parallel
  queries are transposed                                   attention_block.py
  for each block of keys
    scores, their exponentials, and sums of values         attention_vectors.py
                                                        or attention_amx.py
  the rows, or their partial results                       attention_parts.py
"""

from collections.abc import Mapping
from contextlib import ExitStack

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    ceil_div,
    floor_div,
    for_range,
    minimum,
    mod,
    mul,
    sub,
)

from .attention_amx import TileKeys
from .attention_block import ROWS, RowBlock, RowState
from .attention_parts import Lengths, Mask, Parts, Problem, run_parts
from .attention_reader import readers_of
from .attention_vectors import VectorKeys


def emit_blocked(
    problem: Problem, buffers: Mapping[int, ir.Value], lengths: Lengths, mask: Mask | None = None
) -> None:
    """Emits attention by blocks of `ROWS` rows."""
    out = buffers[problem.out.position]
    readers = readers_of(problem.operands, buffers)
    rows = mul(lengths.count, problem.group)
    blocks = ceil_div(rows, ROWS)
    kind = TileKeys if problem.tiles else VectorKeys

    def slot_of(query: Index, head: Index) -> tuple[Index, Index]:
        sequence, query = lengths.split(query)
        row = add(mul(query, problem.group), mod(head, problem.group))
        shared = add(mul(sequence, problem.kv_heads), floor_div(head, problem.group))
        return add(mul(shared, blocks), floor_div(row, ROWS)), mod(row, ROWS)

    def task(parts: Parts, index: Index, part: Index) -> None:
        shared = floor_div(index, blocks)
        block = _folded(mod(index, blocks), blocks)
        slot = add(mul(shared, blocks), block)
        sequence: Index = 0
        head: Index = shared
        if problem.batched:
            sequence, head = floor_div(shared, problem.kv_heads), mod(shared, problem.kv_heads)
        first = mul(block, ROWS)
        with ExitStack() as stack:
            state = RowState.allocate(problem, mask, kind.COUNT, stack)
            block_rows = RowBlock(
                problem, *readers, mask, state, lengths, sequence, head, first,
                minimum(ROWS, sub(rows, first)), problem.first_key(lengths, sequence, head),
                mul(part, parts.size), parts.size,
            )  # fmt: skip
            keys = kind.allocate(block_rows, stack)
            block_rows.start(keys.lowest)
            end = block_rows.end
            for_range(block_rows.begin, end, kind.COUNT, lambda at: keys.emit(at, sub(end, at)))
            for_range(
                0, block_rows.num_rows, 1, lambda r: block_rows.finish(r, parts, slot, part, out)
            )

    slots = mul(lengths.batch, problem.kv_heads, blocks)
    run_parts(problem, lengths, slots, ROWS, slot_of, out, task)


def _folded(index: Index, count: Index) -> Index:
    """Indices from both ends alternately.

    Causal work grows with the block; so threads get equal work.
    """
    half = floor_div(index, 2)
    odd = mod(index, 2)
    back = sub(sub(count, 1), mul(2, half))
    return add(half, mul(odd, back))
