"""Rows that a group of threads shares: reductions, softmax, normalisations and their neighbours.

    %s = sum of each row of %x         group r:  each thread adds up %x[r, t], %x[r, t + T], ..
    %y = %x / %s                 ->              a tree in memory of the group: all get the total
                                                 each thread divides its elements

A cluster without axes is computed by all threads, and stored by the first one. Several axes are
one; threads share the outer ones of a cluster that reduces only some.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.program.nests import Cluster, Nest, estimate
from relax_mlir.program.program import Stage, all_known
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane
from relax_mlir.schedule.build.evaluate import Evaluator, Point
from relax_mlir.schedule.build.horizontal_reduction import Combiner
from relax_mlir.schedule.build.lanes import Lane, Uniform, scalar
from relax_mlir.schedule.build.memory import View
from relax_mlir.schedule.build.vectors import Vectors
from relax_mlir.schedule.nests.cascade import BLOCK, in_blocks
from relax_mlir.schedule.nests.cluster import ClusterEmitter, result_axes
from relax_mlir.schedule.nests.lane_loops import Carried
from relax_mlir.schedule.nests.plan import Plan, plan_nest

from .launch import Group, barrier, for_groups, unraveled
from .nest import DeviceNest
from .stored import converted, stored_type

MOST_THREADS, MOST_OF_ONE = 128, 1024
"""Threads of a group, and of one that is alone."""
FEWEST_THREADS = 32
"""Rows of fewer elements, where that is known, have a thread each."""
FEW_ROWS = 1024
"""So many rows do not occupy a device with a thread each."""
NEIGHBOURS = Vectors(bytes=128, registers=32)
"""Threads that load at once, as lanes of a vector."""


class RowNest(DeviceNest):
    """Emits a nest whose rows have a group of threads each."""

    def emit(self) -> None:
        """Emits the launch at the insertion point."""
        self.prepare()

        def row(group: Group) -> None:
            self.evaluator = RowEvaluator(self.kernel, group=group)
            self.clusters_at(self.point_at(group.index), self._by_group, barrier)

        for_groups(self.iterations, self._threads, self.device, row)

    def _by_group(self, cluster: Cluster, point: Point) -> ClusterEmitter:
        return RowCluster(self.evaluator, self.plan, self.extents, self.combiners, cluster, point)

    @property
    def _threads(self) -> int:
        """Threads of a group: a power of two, no more than a known extent needs."""
        is_alone = isinstance(self.iterations, int) and self.iterations == 1
        threads = min(MOST_OF_ONE if is_alone else MOST_THREADS, self.device.workgroup)
        longest = max(_lengths(self.plan), default=1)
        while threads // 2 >= max(longest, FEWEST_THREADS):
            threads //= 2
        return threads


def shares_rows(nest: DeviceNest) -> bool:
    """Whether a group for each row is possible, and faster than a thread.

    Threads of rows next to each other load elements next to each other if lanes of a vector would.
    """
    plan, placement = nest.plan, nest.kernel.placement
    if max(_lengths(plan), default=0) < FEWEST_THREADS:
        return False
    ordered = {stage for stage, combiner in nest.combiners.items() if combiner is None}
    if any(_reduces_all(plan.nest, stage) for stage in ordered):
        return False
    rows = all_known(plan.nest.extent(axis) for axis in plan.nest.common)
    if rows is not None and prod(rows) < FEW_ROWS:
        return True
    return not plan_nest(plan.nest, placement, NEIGHBOURS, ordered).lane_axes


def _lengths(plan: Plan) -> list[int]:
    """Iterations of each cluster in a row, estimated where they are not known."""
    axes = (cluster.axes for cluster in plan.clusters if cluster.axes)
    return [prod(estimate(plan.nest.extent(axis)) for axis in own) for own in axes]


def _reduces_all(nest: Nest, stage: Stage) -> bool:
    """Whether a stage reduces all of its inner axes."""
    return not result_axes(nest, stage)


@dataclass
class RowEvaluator(Evaluator):
    """Has the first thread of a group store what all of them computed."""

    group: Group = field(kw_only=True)
    is_shared: bool = False
    """Whether threads compute elements of their own."""

    def write(self, view: View, indices: Sequence[IndexLane], lane: Lane, point: Point) -> None:
        """Stores one element."""

        def store() -> None:
            super(RowEvaluator, self).write(view, indices, lane, point)

        loops.if_else(self.is_shared or loops.less(self.group.thread, 1), store)


class RowCluster(ClusterEmitter):
    """A cluster whose axis threads share: thread t has the elements t, t + T, .."""

    evaluator: RowEvaluator

    @property
    def _group(self) -> Group:
        return self.evaluator.group

    def _loops(
        self,
        axes: Sequence[int],
        lane_axis: int | None,
        point: Point,
        carried: Carried,
        body: Callable[[Point, Carried], Carried],
        is_straight: bool,
    ) -> Carried:
        """Emits the loops over some axes: of those around others, threads share the iterations."""
        if not axes or self.evaluator.is_shared:
            return super()._loops(axes, lane_axis, point, carried, body, is_straight)
        group, extents = self._group, [self.extents[axis] for axis in axes]

        def step(j: ir.Value, *c: ir.Value) -> Carried:
            inside = point
            for axis, index in zip(axes, unraveled(j, extents), strict=True):
                inside = inside.at(axis, Uniform(index))
            return body(inside, list(c))

        def some(start: loops.Index, stop: loops.Index, c: Carried) -> Carried:
            first = loops.add(start, group.thread)
            return loops.for_range(first, stop, group.threads, step, c)

        self.evaluator.is_shared = True
        block, count = BLOCK * group.threads, loops.mul(1, *extents)
        result = in_blocks(0, count, block, self._sums(carried), carried, some)
        self.evaluator.is_shared = False
        return result

    def _combiner(self, stage: Stage) -> Combiner | None:
        """The combiner of a reduction whose iterations threads share."""
        if result_axes(self.plan.nest, stage) or not self._reduced_axes([stage]):
            return None
        return self.combiners[stage]

    def _finish(
        self, stage: Stage, point: Point, firsts: list[Lane], values: Carried, lanes: int
    ) -> None:
        if self._combiner(stage) is not None:
            values = self._across_threads(stage, values)
        super()._finish(stage, point, firsts, values, lanes)

    def _across_threads(self, stage: Stage, values: Carried) -> Carried:
        """Combines the values of all threads by a tree; each thread gets the total."""
        group, combiner, count = self._group, self._combiner(stage), len(stage.results)
        kinds = [stored_type(x.type, group.device) for x in values]
        assert combiner is not None
        is_used = group.has_memory
        memory = [group.memory(group.threads, kind, slot) for slot, kind in enumerate(kinds)]

        def put(own: Sequence[ir.Value]) -> None:
            for x, kind, buffer in zip(own, kinds, memory, strict=True):
                memref.store(converted(x, kind), buffer, [group.thread])

        def get(thread: loops.Index) -> list[Lane]:
            at = [loops.value(thread)]
            loaded = (memref.load(buffer, at) for buffer in memory)
            return [Uniform(converted(y, x.type)) for x, y in zip(values, loaded, strict=True)]

        def merge(width: loops.Index) -> None:
            first, second = get(group.thread), get(loops.add(group.thread, width))
            positions = (first[count], second[count]) if len(first) > count else None
            both, position = combiner.combine(first[:count], second[:count], positions, 1)
            put([scalar(x) for x in [*both, *([] if position is None else [position])]])

        def level(i: ir.Value) -> None:
            barrier()
            width = arith.shrui(loops.value(group.threads // 2), i)
            loops.if_else(loops.less(group.thread, width), lambda: merge(width))

        if is_used:
            barrier()
        put(values)
        loops.for_range(0, group.threads.bit_length() - 1, 1, level)
        barrier()
        return [scalar(x) for x in get(0)]
