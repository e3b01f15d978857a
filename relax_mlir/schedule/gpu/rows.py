"""Rows that a group of threads shares: reductions, softmax, normalisations and their neighbours.

    %s = sum of each row of %x         T threads of row r:  add up %x[r, t], %x[r, t + T], .. each
    %y = %x / %s                 ->                         combine theirs: all get the total
                                                            divide their elements

A group has all threads of a row, or of several short ones; what is left of these has groups of
its own, so that no thread is without a row. A cluster without axes is computed by all threads of a
row, and stored by the first one. Several axes are one; threads share the outer ones of a cluster
that reduces only some.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from relax_mlir.bindings import ir
from relax_mlir.program.nests import Cluster, Nest, estimate
from relax_mlir.program.program import Stage, all_known
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane
from relax_mlir.schedule.build.evaluate import Evaluator, Point
from relax_mlir.schedule.build.horizontal_reduction import Combiner
from relax_mlir.schedule.build.lanes import Lane, Uniform, scalar
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.memory import View
from relax_mlir.schedule.build.vectors import Vectors
from relax_mlir.schedule.nests.cascade import BLOCK, in_blocks
from relax_mlir.schedule.nests.cluster import ClusterEmitter, result_axes
from relax_mlir.schedule.nests.lane_loops import Carried
from relax_mlir.schedule.nests.plan import Plan, plan_nest

from .launch import Group, barrier, for_groups, unraveled
from .nest import DeviceNest
from .overwrites import overwrites
from .teams import Combination, Team, Values

MOST_THREADS, MOST_OF_ONE = 128, 1024
"""Threads of a group, and of one that is alone."""
FEWEST_ELEMENTS = 16
"""Rows of fewer elements, where that is known, have a thread each."""
FEWEST_OF_GROUP = 32
"""Threads of a group that has one row."""
OWN_ELEMENTS = 4
"""Elements of a thread, if several rows share a group."""
FEW_ROWS = 1024
"""So many rows do not occupy a device with a thread each."""
NEIGHBOURS = Vectors(bytes=128, registers=32)
"""Threads that load at once, as lanes of a vector."""


class RowNest(DeviceNest):
    """Emits a nest whose rows have threads that share them."""

    def emit(self) -> None:
        """Emits the launches at the insertion point."""
        self.prepare()
        size, rows, count = self._threads, self._rows_of_group, self.iterations
        rest = loops.mod(count, rows)
        self._launch(0, loops.floor_div(count, rows), size, rows)
        self._launch(loops.sub(count, rest), rest, size, 1)

    def _launch(self, begin: Index, groups: Index, size: int, rows: int) -> None:
        """Emits a launch of groups of so many rows, from `begin` on."""

        def own(group: Group) -> None:
            team = Team.of(group, size)
            row = loops.add(begin, loops.mul(group.index, rows), team.index)
            self.evaluator = RowEvaluator(self.kernel, team=team, overwrites=self._overwrites)
            self.clusters_at(self.point_at(row), self._by_team, barrier)

        for_groups(groups, size * rows, self.device, own)

    def _by_team(self, cluster: Cluster, point: Point) -> ClusterEmitter:
        return RowCluster(self.evaluator, self.plan, self.extents, self.combiners, cluster, point)

    @cached_property
    def _overwrites(self) -> bool:
        return overwrites(self.plan, self.kernel.placement)

    def _waits_after(self, cluster: Cluster) -> bool:
        return self._overwrites or super()._waits_after(cluster)

    @property
    def _rows_of_group(self) -> int:
        """Rows of a group: one, unless there may be many, of few threads."""
        if are_few(self):
            return 1
        return max(1, min(MOST_THREADS, self.device.workgroup) // self._threads)

    @property
    def _threads(self) -> int:
        """Threads of a row: a power of two, no more than known extents need."""
        is_alone = isinstance(self.iterations, int) and self.iterations == 1
        threads = min(MOST_OF_ONE if is_alone else MOST_THREADS, self.device.workgroup)
        longest = max(_lengths(self.plan), default=1)
        if are_few(self):
            needed = max(longest, FEWEST_OF_GROUP)
        elif all(self.nest.extent(axis) is not None for axis in self._inner):
            needed = longest // OWN_ELEMENTS
        else:
            needed = MOST_THREADS
        while threads // 2 >= needed:
            threads //= 2
        return threads

    @property
    def _inner(self) -> list[int]:
        """The axes of a row."""
        return [axis for cluster in self.plan.clusters for axis in cluster.axes]


def are_few(nest: DeviceNest) -> bool:
    """Whether rows are known to be few."""
    rows = all_known(nest.nest.extent(axis) for axis in nest.nest.common)
    return rows is not None and prod(rows) < FEW_ROWS


def shares_rows(nest: DeviceNest) -> bool:
    """Whether a group for each row is possible, and faster than a thread.

    Threads of rows next to each other load elements next to each other if lanes of a vector would.
    """
    plan, placement = nest.plan, nest.kernel.placement
    if max(_lengths(plan), default=0) < FEWEST_ELEMENTS:
        return False
    ordered = {stage for stage, combiner in nest.combiners.items() if combiner is None}
    if any(_reduces_all(plan.nest, stage) for stage in ordered):
        return False
    if are_few(nest):
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
    """Has the first thread of a row store what all of them computed."""

    team: Team = field(kw_only=True)
    overwrites: bool = field(kw_only=True)
    """Whether threads store to what others read."""
    is_shared: bool = False
    """Whether threads compute elements of their own."""

    def write(self, view: View, indices: Sequence[IndexLane], lane: Lane, point: Point) -> None:
        """Stores one element."""

        def store() -> None:
            super(RowEvaluator, self).write(view, indices, lane, point)

        if self.overwrites and not self.is_shared:
            barrier()
        loops.if_else(self.is_shared or loops.less(self.team.thread, 1), store)


class RowCluster(ClusterEmitter):
    """A cluster whose axis threads share: thread t has the elements t, t + T, .."""

    evaluator: RowEvaluator

    @property
    def _team(self) -> Team:
        return self.evaluator.team

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
        team, extents = self._team, [self.extents[axis] for axis in axes]

        def step(j: ir.Value, *c: ir.Value) -> Carried:
            inside = point
            for axis, index in zip(axes, unraveled(j, extents), strict=True):
                inside = inside.at(axis, Uniform(index))
            return body(inside, list(c))

        def some(start: Index, stop: Index, c: Carried) -> Carried:
            first = loops.add(start, team.thread)
            return loops.for_range(first, stop, team.size, step, c)

        self.evaluator.is_shared = True
        block, count = BLOCK * team.size, loops.mul(1, *extents)
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
        """Combines the values of a row's threads; each thread gets the total."""
        combiner, count = self._combiner(stage), len(stage.results)
        assert combiner is not None

        def combined(earlier: Values, later: Values) -> Values:
            first, second = ([Uniform(x) for x in values] for values in (earlier, later))
            positions = (first[count], second[count]) if len(first) > count else None
            both, position = combiner.combine(first[:count], second[:count], positions, 1)
            return [scalar(x) for x in [*both, *([] if position is None else [position])]]

        return self._team.total(values, Combination(combined, combiner.is_symmetric))
