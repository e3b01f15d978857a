"""Rows of a few vectors, whose extent may be known only when the kernel runs.

    extent in (0, 16]    straight-line code for one vector, masked
    extent in (16, 32]   for two, the second one masked                 values of the row stay in
    ...                                                                 registers between passes
    0, and above 128     loops over groups of vectors, vectors, and a masked rest

There is this code twice: where the last vector is whole, it needs no mask. A known extent has its
own code alone. A loop along so short a row takes longer for its prologues and for joining
accumulators than for its vectors. Places of extrema are searched by groups from 65 numbers on. Only
for machines that load by masks; up to two vectors where compiling more takes longer than it gains.
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

MOST_VECTORS = 8
"""Vectors of the longest row that is short."""
FEWER_VECTORS = 2
"""The same for AVX2, whose 16 registers hold few rows: compiling each length takes its time."""
_MOST_COST = 96
"""Instructions for one vector, all passes together, up to which every length has its code."""


def row_extent(
    plan: Plan,
    extents: dict[int, Index],
    combiners: dict[Stage, Combiner | None],
    inlining: Inlining,
    vectors: Vectors,
) -> tuple[Index, int, int] | None:
    """The one extent of all loops along the lanes, if rows may be short.

    With it the number of lanes, and the vectors of the longest row that is.
    """
    if not vectors.has_masks or plan.lane_axes or not plan.nest.common:
        return None
    if sum(map(inlining.cost, plan.nest.stages)) > _MOST_COST:
        return None
    lanes, most = plan.lanes, MOST_VECTORS if vectors.bytes == 64 else FEWER_VECTORS
    for stage, combiner in combiners.items():
        if combiner is None:
            return None
        if combiner.needs_places:
            if len(plan.nest.stages) > 1 or order_of(stage, combiner, inlining) is None:
                return None
            lanes, most = lanes_of(stage, combiner, inlining, vectors), UNROLL
    found: list[Index] = []
    for cluster in plan.clusters:
        if cluster.axes:
            if cluster.axes != [plan.inner[cluster]]:
                return None
            found.append(extents[cluster.axes[0]])
    if not found or any(x != found[0] for x in found):
        return None
    return found[0], lanes, most


def by_length(
    extent: Index, lanes: int, most: int, emit: Callable[[ShortRow | None], None]
) -> None:
    """Emits `emit(row)` for up to `most` vectors of a short row, and `emit(None)` for others."""
    if isinstance(extent, int):
        emit(ShortRow.of(extent, lanes) if 0 < extent <= most * lanes else None)
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
        loops.if_else(is_whole, lambda: up_to(most, None), lambda: up_to(most, rest))

    # Unsigned, so that empty rows are among the others.
    is_short = loops.less(loops.sub(extent, 1), most * lanes)
    loops.if_else(is_short, some, lambda: emit(None))
