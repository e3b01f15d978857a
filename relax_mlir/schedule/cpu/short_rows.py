"""Rows of a few vectors whose extent is known only when the kernel runs.

    extent in (0, 16]    straight-line code for one vector, masked
    extent in (16, 32]   for two, the second one masked                 values of the row stay in
    ...                                                                 registers between passes
    0, and above 128     loops over groups of vectors, vectors, and a masked rest

Up to four vectors have this code twice: where the last one is whole, it needs no mask. A loop
along so short a row takes longer for its prologues and for joining accumulators than for its
vectors. Only for machines that have registers for masks.
"""

from collections.abc import Callable

from relax_mlir.bindings import ir
from relax_mlir.target import Target

from . import loops
from .access import Inlining
from .combine import Combiner
from .lane_loops import ShortRow
from .loops import Index
from .plan import Plan
from .program import Stage
from .search import lanes_of, order_of

MOST_VECTORS = 8
"""Vectors of the longest row that is short."""
WHOLE_VECTORS = 4
"""Vectors of the longest row that has code without masks: in others a mask costs too little."""
_MOST_COST = 96
"""Instructions for one vector, all passes together, up to which every length has its code."""


def row_extent(
    plan: Plan,
    extents: dict[int, Index],
    combiners: dict[Stage, Combiner | None],
    inlining: Inlining,
    target: Target,
) -> tuple[ir.Value, int] | None:
    """The one extent of all loops along the lanes, and their number, if rows may be short."""
    if target.vector_bytes < 64 or plan.lane_axes or not plan.nest.common:
        return None
    if sum(map(inlining.cost, plan.nest.stages)) > _MOST_COST:
        return None
    lanes = {plan.lanes}
    for stage, combiner in combiners.items():
        if combiner is None:
            return None
        if combiner.needs_places:
            if len(plan.nest.stages) > 1 or order_of(stage, combiner, inlining) is None:
                return None
            lanes = {lanes_of(stage, combiner, inlining, target)}
    found: list[Index] = []
    for cluster in plan.clusters:
        if cluster.axes:
            if cluster.axes != [plan.inner[cluster]]:
                return None
            found.append(extents[cluster.axes[0]])
    if not found or isinstance(found[0], int) or any(x != found[0] for x in found):
        return None
    return found[0], *lanes


def by_length(extent: Index, lanes: int, emit: Callable[[ShortRow | None], None]) -> None:
    """Emits `emit(row)` for each number of vectors of a short row, and `emit(None)` for others."""
    rest = loops.add(loops.mod(loops.sub(extent, 1), lanes), 1)

    def up_to(vectors: int, rest: Index | None) -> None:
        row = ShortRow(vectors, rest)
        if vectors == 1:
            emit(row)
            return
        fewer = loops.less(extent, (vectors - 1) * lanes + 1)
        loops.if_else(fewer, lambda: up_to(vectors - 1, rest), lambda: emit(row))

    def some() -> None:
        is_few = loops.less(extent, WHOLE_VECTORS * lanes + 1)
        is_whole = loops.both(is_few, loops.less(lanes - 1, rest))
        loops.if_else(
            is_whole, lambda: up_to(WHOLE_VECTORS, None), lambda: up_to(MOST_VECTORS, rest)
        )

    # Unsigned, so that empty rows are among the others.
    is_short = loops.less(loops.sub(extent, 1), MOST_VECTORS * lanes)
    loops.if_else(is_short, some, lambda: emit(None))
