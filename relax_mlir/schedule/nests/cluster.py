"""Emits the loops of one cluster of stages: full vectors, then one masked vector for the rest.

    scf.for over outer axes, scalar
      scf.for along the lanes
        loads, bodies, stores; or updates of accumulators

Reductions along the lanes keep vectors of partial results, several where an iteration is short.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.dialects.graph import element_bits
from relax_mlir.program.nests import Cluster, Nest
from relax_mlir.program.program import Stage
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane, evaluate, plus, resolve, times
from relax_mlir.schedule.build.evaluate import Evaluator, Point, yielded
from relax_mlir.schedule.build.horizontal_reduction import Combiner, across
from relax_mlir.schedule.build.lanes import (
    Lane,
    Ramp,
    Uniform,
    Varying,
    lanes_from,
    scalar,
    to_vector,
    value_of,
    vector_type,
)
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.memory import row_major

from .argreduce import Search, lanes_of, order_of
from .cascade import BLOCK, OUTER_BLOCK, ROWS, in_blocks, is_sum
from .lane_loops import (
    UNROLL,
    Carried,
    LaneBody,
    ShortRow,
    masked_rest,
    paired,
    unrolled,
    vector_range,
)
from .plan import Plan, fills_registers

_LONG_BODY = 64
_LINE = 64  # bytes


def is_short(evaluator: Evaluator, stages: Sequence[Stage]) -> bool:
    """Whether so few instructions compute a vector that several at a time are faster."""
    return sum(map(evaluator.kernel.placement.inlining.cost, stages)) <= _LONG_BODY


@dataclass
class ClusterEmitter:
    """Emits the loops of one cluster inside an iteration of the common axes.

    `extents` are those of the nest's axes, `combiners` the reductions that lanes may split, `short`
    is the row if it has few vectors, `fresh` accumulators that nothing was added to yet, `number`
    that of a vector in its group.
    """

    evaluator: Evaluator
    plan: Plan
    extents: dict[int, Index]
    combiners: dict[Stage, Combiner | None]
    cluster: Cluster
    point: Point
    short: ShortRow | None = None
    fresh: Carried = field(default_factory=list)
    number: int = 0

    def emit(self) -> None:
        """Emits loops over the cluster's axes, the one with the lanes innermost."""
        lane_axis = None if self.plan.lane_axes else self.plan.inner[self.cluster]
        reducing = [s for s in self.cluster.stages if s.has_reduction]
        reduced = self._reduced_axes(reducing)
        parallel = [axis for axis in self.cluster.axes if axis not in reduced]
        if not reducing:
            self._loops(
                parallel, lane_axis, self.point, [], lambda p, c: self._visit(p, c, []), True
            )
            return
        self._loops(
            parallel, lane_axis, self.point, [],
            lambda p, c: self._reduce(p, reducing, reduced, lane_axis), False,
        )  # fmt: skip

    def _reduced_axes(self, reducing: list[Stage]) -> list[int]:
        axes = self.plan.nest.axes
        found = {
            a for s in reducing for a, r in zip(axes[s], s.reduces, strict=True) if r
        }  # fmt: skip
        return [axis for axis in self.cluster.axes if axis in found]

    def _loops(
        self,
        axes: Sequence[int],
        lane_axis: int | None,
        point: Point,
        carried: Carried,
        body: Callable[[Point, Carried], Carried],
        is_straight: bool,
    ) -> Carried:
        """Nested loops over the axes, scalar but for the lane axis, which goes innermost.

        `is_straight` says that the body has no loops.
        """
        if lane_axis is not None and lane_axis in axes:
            axes = [*(axis for axis in axes if axis != lane_axis), lane_axis]
        if not axes:
            return body(point, carried)
        axis, rest = axes[0], axes[1:]
        extent = self.extents[axis]
        if axis == lane_axis:
            lanes = self.plan.lanes

            def along(base: ir.Value, mask: ir.Value | None, c: Carried) -> Carried:
                inside = Point(lanes, mask, point.index).at(axis, lanes_from(base, lanes))
                return body(inside, c)

            is_simple = is_straight and is_short(self.evaluator, self.cluster.stages)
            if self.short is not None and is_simple:
                return self._short_row(self.short, along, carried)
            if self.short is not None:
                return self.short.walk(lanes, along, carried)
            return self._along_lanes(extent, along, carried, is_simple)

        def step(i: ir.Value, *c: ir.Value) -> Carried:
            inside = point.at(axis, Uniform(i))
            return self._loops(rest, lane_axis, inside, list(c), body, is_straight)

        def some(start: Index, stop: Index, c: Carried) -> Carried:
            return loops.for_range(start, stop, 1, step, c)

        block = OUTER_BLOCK if rest else ROWS
        return in_blocks(0, extent, block, self._sums(carried), carried, some)

    def _along_lanes(
        self, extent: Index, body: LaneBody, carried: Carried, is_simple: bool
    ) -> Carried:
        """All vectors of an extent, several at a time if bodies are simple."""
        lanes, sums = self.plan.lanes, self._sums(carried)
        if is_simple:
            together = lanes * UNROLL
            begin = loops.sub(extent, loops.mod(extent, together))

            def groups(start: Index, stop: Index, c: Carried) -> Carried:
                return self._unrolled(start, stop, body, c)

            carried = in_blocks(0, begin, together * BLOCK, sums, carried, groups)
            return vector_range(begin, extent, lanes, body, carried)
        rest = loops.mod(extent, lanes)
        end = loops.sub(extent, rest)

        def vectors(start: Index, stop: Index, c: Carried) -> Carried:
            return vector_range(start, stop, lanes, body, c, exact=True)

        carried = in_blocks(0, end, lanes * BLOCK, sums, carried, vectors)
        return masked_rest(end, rest, lanes, body, carried)

    def _sums(self, carried: Carried) -> list[bool]:
        """Which of the values that loops carry are sums of floats, added in any order."""
        found: list[bool] = []
        for stage in self.cluster.stages if carried else ():
            if not stage.has_reduction:
                continue
            combiner = self.combiners[stage]
            ops = (None,) * len(stage.results) if combiner is None else combiner.ops
            found += [op is not None and is_sum(op) for op in ops]
            found += [False] * (self._carries(stage) - len(stage.results))
        return found

    def _unrolled(self, start: Index, stop: Index, body: LaneBody, carried: Carried) -> Carried:
        """Several vectors at a time up to `stop`: all loads first, then all stores.

        Reductions have independent sets of accumulators, joined at the end, if registers hold them.
        """
        if isinstance(stop, int) and stop == start:
            return carried
        count, lanes = len(carried), self.plan.lanes

        def vector(base: ir.Value, number: int, held: Carried) -> Carried:
            self.number = number
            found = body(base, None, held)
            self.number = 0
            return found

        kernel, stages = self.evaluator.kernel, self.cluster.stages
        is_full = fills_registers(stages, kernel.placement.inlining, kernel.vectors)
        if carried and is_full:
            return paired(self.evaluator, start, stop, lanes, vector, carried)

        def one(base: ir.Value, number: int, held: Carried) -> Carried:
            return vector(base, number, held[number * count : (number + 1) * count])

        fresh = self.fresh * (UNROLL - 1) if carried else []
        sets = unrolled(self.evaluator, start, stop, lanes, one, [*carried, *fresh])
        return self._join(sets, count)

    def _short_row(self, row: ShortRow, body: LaneBody, carried: Carried) -> Carried:
        """All vectors of a row: all loads first, then all stores.

        Reductions of many vectors have independent sets of accumulators.
        """
        count = len(carried)
        sets = UNROLL if count and row.vectors > UNROLL else 1

        def one(base: ir.Value, mask: ir.Value | None, held: Carried) -> Carried:
            own, others = held[:count], held[count:]
            return [*others, *body(base, mask, own)]

        with self.evaluator.stores_at_end():
            held = row.walk(self.plan.lanes, one, [*carried, *self.fresh * (sets - 1)])
        return self._join(held, count)

    def _join(self, sets: Carried, count: int) -> Carried:
        """Sets of `count` accumulators as one set."""
        while len(sets) > count:
            half = len(sets) // 2
            sets = [
                x
                for i in range(0, half, count)
                for x in self._joined(sets[i : i + count], sets[i + half : i + half + count])
            ]
        return sets

    def _joined(self, first: Carried, second: Carried) -> Carried:
        """Two sets of the accumulators of all reductions of the cluster as one."""
        lanes = self.plan.lanes
        found: Carried = []
        at = 0
        for stage in self.cluster.stages:
            if not stage.has_reduction:
                continue
            count, end = len(stage.results), at + self._carries(stage)
            wrap = Uniform if lanes == 1 else Varying
            a, b = ([wrap(x) for x in held[at:end]] for held in (first, second))
            places = (a[count], b[count]) if len(a) > count else None
            combiner = self._combiner(stage)
            assert combiner is not None, "lanes run along what is reduced"
            results, place = combiner.combine(a[:count], b[:count], places, lanes)
            joined = [*results, *(() if place is None else (place,))]
            found += [scalar(x) if lanes == 1 else to_vector(x, lanes) for x in joined]
            at = end
        return found

    def _visit(self, point: Point, carried: Carried, reducing: list[Stage]) -> Carried:
        """All stages at one point; reductions update what is carried."""
        updated: Carried = []
        at = 0
        self._fetch_ahead(point)
        point = point.inside()
        for stage in self.cluster.stages:
            if stage not in reducing:
                self._compute(stage, point)
                continue
            count = self._carries(stage)
            held = carried[at : at + count]
            updated += self._accumulate(stage, point, held)
            at += count
        return updated

    def _fetch_ahead(self, point: Point) -> None:
        """Fetches the same part of the next row, each line once; behind the last row nothing."""
        for stage, access in self.plan.ahead.get(self.cluster, ()):
            view = self.evaluator.kernel.memory(access.tensor)
            if self.number * point.lanes * element_bits(view.element) // 8 % _LINE:
                continue
            row = self.plan.nest.common[-1]
            here = value_of(resolve(point.index[row], point.lanes))
            below = point.at(row, Uniform(loops.add(here, 1)))
            assert access.uses is not None, "what is fetched is read at known places"
            known = self._indices(stage, below)
            indices = [Uniform(0) if use.dim is None else known[use.dim] for use in access.uses]
            at = view.at(indices, point.lanes)
            assert isinstance(at, Ramp), "a row is contiguous"
            level = 2 if self.plan.ahead_far else 3
            memref.prefetch(view.base, [loops.value(at.base)], False, level, True)

    def _indices(self, stage: Stage, point: Point) -> list[IndexLane]:
        axes = self.plan.nest.axes[stage]
        return [point.index.get(axis, Uniform(0)) for axis in axes]

    def _compute(self, stage: Stage, point: Point) -> None:
        """Emits a stage without reduction, and stores or forwards its results."""
        emitter = self.evaluator
        indices = self._indices(stage, point)
        if stage.block is None:
            lanes = [emitter.operand(stage.reads[0], indices, point)]
        else:
            values = emitter.evaluate(stage, indices, point, ())
            lanes = [values(value) for value in yielded(stage)]
        for number, lane in enumerate(lanes):
            self._keep(stage, number, lane, indices, point)

    def _keep(
        self, stage: Stage, number: int, lane: Lane, indices: list[IndexLane], point: Point
    ) -> None:
        """Keeps a result for later stages, in registers and in memory."""
        emitter = self.evaluator
        result = stage.results[number]
        if stage.window is None:
            point.forwarded[result] = lane
            if not kept_axes(self.plan.nest, stage):
                emitter.registers[result] = lane
        view = emitter.rows.get(result) or emitter.kernel.view(result)
        if view is None:
            return
        at = [evaluate(e, indices, point.lanes) for e in stage.inits[number].indices]
        if stage.window is not None:
            view = emitter.kernel.window_view(stage)
        emitter.write(view, at, lane, point)

    def _carries(self, stage: Stage) -> int:
        """Number of values that the loops carry for a reduction: results, and the position."""
        combiner = self._combiner(stage)
        return len(stage.results) + (combiner is not None and combiner.needs_places)

    def _combiner(self, stage: Stage) -> Combiner | None:
        """The combiner, if lanes run along a reduced axis of the stage."""
        lane_axis = None if self.plan.lane_axes else self.plan.inner[self.cluster]
        if lane_axis is None or lane_axis not in self._reduced_axes([stage]):
            return None
        return self.combiners[stage]

    def _accumulate(self, stage: Stage, point: Point, held: Carried) -> Carried:
        emitter = self.evaluator
        count = len(stage.results)
        indices = self._indices(stage, point)
        wrap = Uniform if point.lanes == 1 else Varying
        values = emitter.evaluate(stage, indices, point, [wrap(x) for x in held[:count]])
        found = [values(value) for value in yielded(stage)]
        combiner = self._combiner(stage)
        if combiner is not None and combiner.condition is not None and len(held) > count:
            chosen = values(combiner.condition)
            here = self._position(stage, point)
            if point.lanes == 1:
                found.append(Uniform(arith.select(scalar(chosen), scalar(here), held[count])))
            else:
                pair = [to_vector(lane, point.lanes) for lane in (chosen, here)]
                found.append(Varying(arith.select(*pair, held[count])))
        if point.lanes == 1:
            return [scalar(lane) for lane in found]
        vectors = [to_vector(lane, point.lanes) for lane in found]
        if point.mask is None or combiner is None:
            return vectors
        return [arith.select(point.mask, x, old) for x, old in zip(vectors, held, strict=True)]

    def _position(self, stage: Stage, point: Point) -> Lane:
        """The place of an iteration in the order of the scalar loop."""
        total: Lane = Uniform(0)
        axes = [a for a in self.plan.nest.axes[stage] if a in self.cluster.axes]
        sizes = [self.extents[axis] for axis in axes]
        for axis, stride in zip(axes, row_major(sizes), strict=True):
            if axis in self._reduced_axes([stage]):
                scaled = times(
                    resolve(point.index[axis], point.lanes), Uniform(stride), point.lanes
                )
                total = plus(total, scaled, point.lanes)
        return total

    def _reduce(
        self, point: Point, reducing: list[Stage], reduced: list[int], lane_axis: int | None
    ) -> Carried:
        """Loops over the reduced axes, and what becomes of the totals."""
        if self._search(point, reducing, reduced, lane_axis):
            return []
        across_lanes = lane_axis in reduced
        lanes = self.plan.lanes if across_lanes else point.lanes
        firsts = {stage: self._first_values(stage, point) for stage in reducing}
        carried: Carried = []
        for stage in reducing:
            carried += self._start(stage, firsts[stage], lanes)
        self.fresh = carried
        carried = self._loops(
            reduced, lane_axis, point, carried, lambda p, c: self._visit(p, c, reducing), True
        )
        at = 0
        for stage in reducing:
            count = self._carries(stage)
            held = carried[at : at + count]
            at += count
            self._finish(stage, point, firsts[stage], held, lanes)
        return []

    def _search(
        self, point: Point, reducing: list[Stage], reduced: list[int], lane_axis: int | None
    ) -> bool:
        """Finds the place of an extremum along the lanes, if that is all there is to do."""
        if (
            lane_axis is None
            or reduced != [lane_axis]
            or self.cluster.stages != reducing
            or len(reducing) != 1
        ):
            return False
        stage = reducing[0]
        combiner = self.combiners[stage]
        inlining = self.evaluator.kernel.placement.inlining
        order = order_of(stage, combiner, inlining)
        if combiner is None or order is None:
            return False
        if lanes_of(stage, combiner, inlining, self.evaluator.kernel.vectors) == 1:
            return False

        def at(
            axis_lane: IndexLane, lanes: int, mask: ir.Value | None
        ) -> tuple[Point, list[IndexLane]]:
            inside = Point(lanes, mask, point.index).at(lane_axis, axis_lane)
            return inside, self._indices(stage, inside)

        firsts = [scalar(first) for first in self._first_values(stage, point)]
        search = Search(self.evaluator, stage, combiner, order, at)
        indices = self._indices(stage, point)
        for number, total in enumerate(search.emit(self.extents[lane_axis], firsts, self.short)):
            self._keep(stage, number, Uniform(total), indices, point)
        return True

    def _first_values(self, stage: Stage, point: Point) -> list[Lane]:
        indices = self._indices(stage, point)
        inside = point.inside()
        return [self.evaluator.operand(init, indices, inside) for init in stage.inits]

    def _start(self, stage: Stage, firsts: list[Lane], lanes: int) -> Carried:
        combiner = self._combiner(stage)
        found: Carried = []
        for number, first in enumerate(firsts):
            neutral = None if combiner is None else combiner.start(number)
            if neutral is not None:
                found.append(_everywhere(neutral, lanes, stage.results[number].element))
            else:
                found.append(scalar(first) if lanes == 1 else to_vector(first, lanes))
        if combiner is not None and combiner.needs_places:
            index = ir.IndexType.get()
            found.append(_everywhere(ir.IntegerAttr.get(index, -1), lanes, index))
        return found

    def _finish(
        self, stage: Stage, point: Point, firsts: list[Lane], held: Carried, lanes: int
    ) -> None:
        combiner = self._combiner(stage)
        count = len(stage.results)
        if combiner is None:
            wrap = Uniform if lanes == 1 else Varying
            totals: list[Lane] = [wrap(x) for x in held]
        else:
            positions = held[count] if len(held) > count else None
            totals = across(combiner, held[:count], positions, lanes)
            if combiner.condition is None:
                totals, _ = combiner.combine(firsts, totals, None, 1)
        indices = self._indices(stage, point)
        for number, total in enumerate(totals[:count]):
            self._keep(stage, number, total, indices, point)


def _everywhere(constant: ir.Attribute, lanes: int, element: ir.Type) -> ir.Value:
    """A constant in every lane, or as a scalar if there is one."""
    if lanes == 1:
        return arith.constant(element, constant)
    kind = vector_type(lanes, element)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, constant))


def kept_axes(nest: Nest, stage: Stage) -> list[int]:
    """Inner axes that the results of a stage have."""
    reduced = {a for a, r in zip(nest.axes[stage], stage.reduces, strict=True) if r}
    return [axis for axis in nest.inner(stage) if axis not in reduced]
