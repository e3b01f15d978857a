"""Chooses, for a nest, the loop whose iterations become the lanes of vectors.

Lanes along the common axes, with adjacent outputs in a vector, suit elementwise programs and
reductions over outer dims. Lanes along inner axes, chosen for each cluster, suit reductions over
the contiguous dim. The choice has the least estimated number of memory operations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import element_bits
from relax_mlir.program.access import Access, Inlining, Use, root_of, uses_of
from relax_mlir.program.nests import Cluster, Nest, clusters, estimate
from relax_mlir.program.placement import Placement
from relax_mlir.program.program import Argument, Computed, Operand, Stage, Window, all_known
from relax_mlir.schedule.build.vectors import Vectors

_UNIFORM_COST = 0.3
_STRIDED_COST = 16.0
_SCATTERED_COST = 32.0
_HORIZONTAL_COST = 8.0
_BLOCK = 2048
_CHEAP = 16
_VECTORS = 4
_TILE = 16
_INTERLEAVED = (2, 4)
_L1_BYTES = 32 << 10
_FEW_REGISTERS = 16
_FULL_BODY = 12  # instructions


@dataclass
class Plan:
    """How a nest becomes loops.

    `lane_axes` are the common axes that lanes run along, collapsed to one loop; if there are none,
    lanes run along `inner[cluster]`. Reads that are contiguous along `tile_axis` instead are loaded
    as squares and transposed in registers. Along `interleaved`, the last axis of the output, a few
    vectors of lanes are stored as contiguous ones. `prefetched` are the reads of a cluster whose
    next row is prefetched, to the L2 cache if `prefetches_to_l2`, else to the L1 cache. A row is
    computed `vectors_at_once` vectors of lanes at a time, each of `parts` machine vectors, as far
    as its extent allows.
    """

    nest: Nest
    clusters: list[Cluster]
    lanes: int
    lane_axes: tuple[int, ...] = ()
    inner: dict[Cluster, int | None] = field(default_factory=dict)
    tile_axis: int | None = None
    interleaved: int | None = None
    vectors_at_once: int = 1
    parts: int = 1
    prefetched: dict[Cluster, list[tuple[Stage, Access]]] = field(default_factory=dict)
    prefetches_to_l2: bool = False


def plan_nest(nest: Nest, placement: Placement, vectors: Vectors, ordered: set[Stage]) -> Plan:
    """The cheapest plan; stages in `ordered` have a reduction that lanes cannot split."""
    inlining = placement.inlining
    runs = clusters(nest, inlining)
    lanes = vectors.lanes(8 * max(map(_width, nest_types(nest, inlining))))
    plan = Plan(nest, runs, lanes)
    best = 0.0
    for cluster in runs:
        plan.inner[cluster], cost = _inner_axis(nest, cluster, inlining, lanes, ordered)
        best += cost
    if not any(cluster.axes for cluster in runs):
        best = float("inf")  # without inner loops, lanes run along a common axis or nowhere
    for axis in nest.common:
        cost = sum(_cost(nest, stage, axis, inlining, lanes) for stage in nest.stages)
        if cost <= best:
            best, plan.lane_axes = cost, (axis,)
    if plan.lane_axes:
        plan.lane_axes = collapsed(nest, runs, plan.lane_axes[0], placement)
        if lanes > 1:  # else there are no vectors
            _widen(plan, inlining, vectors)
            _choose_tile(plan, inlining)
            _choose_interleaved(plan, placement)
    elif nest.common and lanes > 1:
        _prefetch_next_row(plan, inlining)
    return plan


def _prefetch_next_row(plan: Plan, inlining: Inlining) -> None:
    """Has the most expensive pass over a row prefetch the first pass's reads of the next row."""
    nest = plan.nest
    passes = [(c, axis) for c in plan.clusters if (axis := plan.inner[c]) is not None]
    if len(passes) < 2:
        return
    first = {access.tensor for stage in passes[0][0].stages for access in inlining.reads(stage)}
    longest, inner = max(passes[1:], key=lambda own: sum(map(inlining.cost, own[0].stages)))
    row = nest.common[-1]
    for stage in longest.stages:
        for access in inlining.reads(stage):
            if not isinstance(access.tensor, Argument) or access.tensor not in first:
                continue
            axes = [_axis_of(nest, stage, use) for use in access.uses or ()]
            if axes[-1:] == [inner] and row in axes[:-1]:
                plan.prefetched.setdefault(longest, []).append((stage, access))
                first.remove(access.tensor)
    plan.prefetches_to_l2 = _displaces_weights(nest, longest, inner, inlining)


def _displaces_weights(nest: Nest, cluster: Cluster, axis: int, inlining: Inlining) -> bool:
    """Whether a row, the next one and the output evict operands that all rows share."""
    row, extent = nest.common[-1], nest.extent(axis)
    reads = [(s, access) for s in cluster.stages for access in inlining.reads(s)]
    axes = [
        {_axis_of(nest, s, use) for use in access.uses or ()}
        for s, access in reads
        if isinstance(access.tensor, Argument)
    ]
    weights = sum(axis in own and row not in own for own in axes)
    return weights > 0 and extent is not None and (weights + 3) * extent * 4 > _L1_BYTES


def _widen(plan: Plan, inlining: Inlining, vectors: Vectors) -> None:
    """Has reductions across rows process several vectors of each row at once.

    Rows are far apart in memory: for short runs, hardware prefetchers load lines that are evicted
    before they are used. Short bodies keep several accumulators in registers as well; long ones
    with narrow vectors do not, but are bound by computation.
    """
    stages = plan.nest.stages
    extents = all_known(plan.nest.extent(axis) for axis in plan.lane_axes)
    is_wide = extents is None or prod(extents) > plan.lanes
    if not is_wide or not any(stage.has_reduction for stage in stages):
        return
    is_cheap = sum(map(inlining.cost, stages)) <= _CHEAP
    plan.vectors_at_once = 4 if vectors.bytes == 64 else 2 if is_cheap else 8
    if is_cheap:
        plan.parts = _VECTORS
        plan.lanes *= plan.parts


def _choose_tile(plan: Plan, inlining: Inlining) -> None:
    """Chooses an axis along which other reads are contiguous, to transpose them."""
    nest = plan.nest
    lane_axis = plan.lane_axes[0]
    short = len(nest.stages) == 1 and inlining.cost(nest.stages[0]) <= _CHEAP
    if len(plan.lane_axes) > 1 or plan.clusters[0].axes or not short:
        return
    stage = nest.stages[0]
    if any(stage.uses_init(index) for index in range(len(stage.results))):
        return  # squares at the edges overlap
    for access in inlining.reads(stage):
        if access.shown is None or not all(use.plain for use in access.shown):
            continue
        axes = [_axis_of(nest, stage, use) for use in access.shown]
        axes = [axis for axis in axes if axis is not None]
        if lane_axis in axes[:-1] and axes[-1] != lane_axis:
            plan.tile_axis = axes[-1]
            plan.lanes = min(plan.lanes, _TILE)
            return


def _choose_interleaved(plan: Plan, placement: Placement) -> None:
    """Chooses the last axis of an output that lanes run along the dim before, if it is short."""
    nest = plan.nest
    (stage, *others), last = nest.stages, nest.common[-1]
    is_simple = not others and len(stage.results) == 1 and stage.window is None
    if not is_simple or plan.tile_axis is not None or plan.clusters[0].axes or plan.parts > 1:
        return
    axes = [_axis_of(nest, stage, use) for use in uses_of(stage.inits[0].indices)]
    spot = placement.spots.get(stage.results[0])
    is_whole = spot is not None and not spot.path and not stage.uses_init(0)
    element = stage.results[0].element
    is_stored = not isinstance(element, ir.IntegerType) or element.width >= 8
    if axes[-2:] == [*plan.lane_axes, last] and is_whole and is_stored:
        if nest.extent(last) in _INTERLEAVED:
            plan.interleaved = last


def fills_registers(stages: Sequence[Stage], inlining: Inlining, vectors: Vectors) -> bool:
    """Whether the constants of a loop leave registers for one set of accumulators only."""
    work = sum(map(inlining.cost, stages))
    return vectors.registers <= _FEW_REGISTERS and work > _FULL_BODY


def nest_types(nest: Nest, inlining: Inlining) -> list[ir.Type]:
    """Element types that the nest loads, stores and computes with."""
    types: list[ir.Type] = []
    pending = list(nest.stages)
    seen: set[Stage] = set()
    while pending:
        stage = pending.pop()
        if stage in seen:
            continue
        seen.add(stage)
        types += [result.element for result in stage.results]
        for operand in stage.reads:
            types.append(operand.tensor.element)
            tensor = root_of(operand.tensor)
            if inlining.is_inlined(tensor):
                pending.append(tensor.stage)
        if stage.block is not None:
            results = [op.results[0].type for op in stage.block.operations if len(op.results)]
            types += [kind for kind in results if isinstance(kind, ir.FloatType)]
    return types


def _width(element: ir.Type) -> int:
    """Bytes of an element in a register; narrow floats are computed as f32."""
    if isinstance(element, ir.IndexType):
        return 4
    if isinstance(element, ir.FloatType):
        return max(4, element.width // 8)
    return element_bits(element) // 8


def _inner_axis(
    nest: Nest, cluster: Cluster, inlining: Inlining, lanes: int, ordered: set[Stage]
) -> tuple[int | None, float]:
    """The best inner axis for the lanes of a cluster, and its cost; None if it has no loop."""
    best: tuple[int | None, float] | None = None
    for axis in cluster.axes:
        cost = 0.0
        for stage in cluster.stages:
            cost += _cost(nest, stage, axis, inlining, lanes)
            if stage.reduces[nest.axes[stage].index(axis)]:
                outer = [a for a in nest.axes[stage] if a != axis]
                cost += _HORIZONTAL_COST * prod(estimate(nest.extent(a)) for a in outer)
                cost += float("inf") if stage in ordered else 0
        if best is None or cost < best[1]:
            best = axis, cost
    if best is not None and best[1] < float("inf"):
        return best
    return None, sum(_cost(nest, stage, None, inlining, lanes) for stage in cluster.stages)


def _cost(nest: Nest, stage: Stage, axis: int | None, inlining: Inlining, lanes: int) -> float:
    iterations = 1
    for own in nest.axes[stage]:
        extent = estimate(nest.extent(own))
        iterations *= -(-extent // lanes) if own == axis else extent
    accesses = 1.0
    for access in inlining.reads(stage):
        accesses += _access_cost(nest, stage, access, axis)
    for init in stage.inits:
        stored = _access_cost(nest, stage, _written(stage, init, False), axis)
        accesses += _SCATTERED_COST if stored == _STRIDED_COST else stored
    return iterations * accesses


def _written(stage: Stage, init: Operand, sliced: bool) -> Access:
    """The access that stores a result."""
    target = init.tensor if stage.window is None else stage.reads[0].tensor
    uses = uses_of(init.indices)
    return Access(target, uses, sliced, target.shape, uses)


def _access_cost(nest: Nest, stage: Stage, access: Access, axis: int | None) -> float:
    if access.shown is None:
        return _STRIDED_COST
    touched = [i for i, use in enumerate(access.shown) if axis in nest.use_axes(stage, use)]
    if not touched:
        return _UNIFORM_COST
    tensor = access.tensor
    if isinstance(tensor, Computed) and tensor.stage in nest.axes:
        if not nest.inner(tensor.stage):
            return _UNIFORM_COST
    inner_shape = access.shape[touched[-1] + 1 :]
    contiguous = len(touched) == 1 and all(extent == 1 for extent in inner_shape)
    if not contiguous:
        return _STRIDED_COST
    return 1.0 if access.shown[touched[0]].plain else 2.0


def collapsed(nest: Nest, runs: list[Cluster], axis: int, placement: Placement) -> tuple[int, ...]:
    """The lane axis with the outer axes that every access can collapse with it."""
    if len(runs) != 1 or runs[0].axes or nest.common[-1] != axis:
        return (axis,)
    return collapsed_around(nest, axis, placement)


def collapsed_around(nest: Nest, axis: int, placement: Placement) -> tuple[int, ...]:
    """The longest run of common axes with this one that every access can collapse."""

    def fits(run: tuple[int, ...]) -> bool:
        return all(_can_collapse(nest, stage, run, placement) for stage in nest.stages)

    run: tuple[int, ...] = (axis,)
    at = nest.common.index(axis)
    for outer in reversed(nest.common[:at]):
        if not fits((outer, *run)):
            break
        run = (outer, *run)
    for inner in nest.common[at + 1 :]:
        if not fits((*run, inner)):
            break
        run = (*run, inner)
    return run


def _can_collapse(nest: Nest, stage: Stage, axes: tuple[int, ...], placement: Placement) -> bool:
    """Whether each of the stage's accesses has these axes as consecutive dims, or none of them."""
    accesses = [*placement.inlining.reads(stage)]
    if _reads_indices(stage, placement.inlining):
        return False
    for result, init in zip(stage.results, stage.inits, strict=True):
        spot = placement.spots.get(result)
        window = stage.window is not None or (
            spot is not None and any(isinstance(step, Window) for step in spot.path)
        )
        accesses.append(_written(stage, init, window))
    for access in accesses:
        if access.shown is None:
            return False
        order = [_axis_of(nest, stage, use) for use in access.shown]
        order = [own for own in order if own is not None]
        mixed = any(not use.plain and nest.use_axes(stage, use) & set(axes) for use in access.shown)
        present = [own for own in order if own in axes]
        if mixed or (present and (access.sliced or tuple(present) != axes)):
            return False
        if present and tuple(order[order.index(axes[0]) :][: len(axes)]) != axes:
            return False
    return True


def _axis_of(nest: Nest, stage: Stage, use: Use) -> int | None:
    axes = nest.use_axes(stage, use)
    return next(iter(axes)) if use.plain and axes else None


def _reads_indices(stage: Stage, inlining: Inlining) -> bool:
    """Whether the stage, or a producer inlined into it, computes with its loop indices."""
    pending, seen = [stage], set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if current.block is not None:
            names = {op.operation.name for op in current.block.operations}
            if "linalg.index" in names or "tensor.extract" in names:
                return True
        for operand in current.reads:
            tensor = root_of(operand.tensor)
            if inlining.is_inlined(tensor):
                pending.append(tensor.stage)
    return False


def block_of(plan: Plan) -> int:
    """Elements of the lane loop for one parallel iteration, a multiple of the vectors at once."""
    rows = prod(estimate(plan.nest.extent(axis)) for axis in plan.nest.common)
    inner = max(1, plan.nest.work() // max(1, rows))
    elements = _BLOCK if inner == 1 else 4 * _BLOCK // inner
    step = plan.lanes * plan.vectors_at_once
    return max(1, elements // step) * step
