"""Rows of a few vectors, whose extent may be known at run time only.

    extent in (0, 16]    straight-line code for one vector, masked
    extent in (16, 32]   for two, the second one masked                 elements of the row stay in
    ...                                                                 registers between passes
    0, and above 128     loops over groups of vectors, vectors, and a masked rest

Each length has code with and without a mask for its last vector; a constant extent has one version.
A loop along so short a row would spend more time on its prologue and on joining accumulators than
on its vectors. Arg reductions use groups from 65 elements on. Machines without masked loads use
loops; machines with few registers, where compile time outweighs the gain, have code for up to two
vectors.
"""

from collections.abc import Callable

from relax_mlir.program.access import Inlining
from relax_mlir.program.program import Stage
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.horizontal_reduction import Combiner
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.vectors import Vectors

from .argreduce import lanes_of, order_of
from .lane_loops import UNROLL, ShortRow
from .plan import Plan

MAX_VECTORS = 8
"""Vectors of the longest short row."""
MAX_VECTORS_NARROW = 2
"""The same for 32-byte vectors, of which there are 16 registers."""
_MAX_COST = 96
"""Each length has its own code if a vector takes at most so many instructions in all passes."""


def row_extent(
    plan: Plan,
    extents: dict[int, Index],
    combiners: dict[Stage, Combiner | None],
    inlining: Inlining,
    vectors: Vectors,
) -> tuple[Index, int, int] | None:
    """The common extent of all loops along the lanes, the lanes, and the vectors of a short row.

    None if rows cannot be short.
    """
    if not vectors.has_masks or plan.lane_axes or not plan.nest.common:
        return None
    if sum(map(inlining.cost, plan.nest.stages)) > _MAX_COST:
        return None
    lanes, max_vectors = plan.lanes, MAX_VECTORS if vectors.bytes == 64 else MAX_VECTORS_NARROW
    for stage, combiner in combiners.items():
        if combiner is None:
            return None
        if combiner.needs_positions:
            if len(plan.nest.stages) > 1 or order_of(stage, combiner, inlining) is None:
                return None
            lanes, max_vectors = lanes_of(stage, combiner, inlining, vectors), UNROLL
    row_extents: list[Index] = []
    for cluster in plan.clusters:
        if cluster.axes:
            if cluster.axes != [plan.inner[cluster]]:
                return None
            row_extents.append(extents[cluster.axes[0]])
    if not row_extents or any(x != row_extents[0] for x in row_extents):
        return None
    return row_extents[0], lanes, max_vectors


def emit_by_length(
    extent: Index, lanes: int, max_vectors: int, emit: Callable[[ShortRow | None], None]
) -> None:
    """Emits `emit(row)` for up to `most` vectors of a short row, and `emit(None)` for others."""
    if isinstance(extent, int):
        emit(ShortRow.of(extent, lanes) if 0 < extent <= max_vectors * lanes else None)
        return
    rest = loops.add(loops.mod(loops.sub(extent, 1), lanes), 1)

    def up_to(vectors: int, rest: Index | None) -> None:
        row = ShortRow(vectors, rest)
        if vectors == 1:
            emit(row)
            return
        fewer = loops.less(extent, (vectors - 1) * lanes + 1)
        loops.if_else(fewer, lambda: up_to(vectors - 1, rest), lambda: emit(row))

    def some() -> None:
        is_whole = loops.less(lanes - 1, rest)
        loops.if_else(is_whole, lambda: up_to(max_vectors, None), lambda: up_to(max_vectors, rest))

    # Unsigned, so that empty rows are not short.
    is_short = loops.less(loops.sub(extent, 1), max_vectors * lanes)
    loops.if_else(is_short, some, lambda: emit(None))
