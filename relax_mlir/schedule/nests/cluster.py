"""Emits the loops of one cluster of stages: full vectors, then one masked vector for the rest.

    scf.for over outer axes, scalar
      scf.for along the lanes
        loads, bodies, stores; or updates of accumulators

Reductions along the lanes have vectors of partial results, several if an iteration is short.
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
from relax_mlir.schedule.build.horizontal_reduction import Combiner, reduce_lanes
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

from .argreduce import ArgReduction, lanes_of, order_of
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
    """Whether a vector takes so few instructions that several at a time are faster."""
    return sum(map(evaluator.kernel.placement.inlining.cost, stages)) <= _LONG_BODY


@dataclass
class ClusterEmitter:
    """Emits the loops of one cluster inside an iteration of the common axes.

    `extents` are those of the nest's axes, `combiners` the reductions that lanes may split, `short`
    is the row if it has few vectors, `fresh` the initial accumulators, `vector_index` the index of
    a vector in its group.
    """

    evaluator: Evaluator
    plan: Plan
    extents: dict[int, Index]
    combiners: dict[Stage, Combiner | None]
    cluster: Cluster
    point: Point
    short: ShortRow | None = None
    fresh: Carried = field(default_factory=list)
    vector_index: int = 0

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
        reduced = {
            a for s in reducing for a, r in zip(axes[s], s.reduces, strict=True) if r
        }  # fmt: skip
        return [axis for axis in self.cluster.axes if axis in reduced]

    def _loops(
        self,
        axes: Sequence[int],
        lane_axis: int | None,
        point: Point,
        carried: Carried,
        body: Callable[[Point, Carried], Carried],
        is_straight: bool,
    ) -> Carried:
        """Emits nested loops over the axes, scalar but for the lane axis, which is innermost.

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
        """Emits all vectors of an extent, several at a time if bodies are simple."""
        lanes, sums = self.plan.lanes, self._sums(carried)
        if is_simple:
            step = lanes * UNROLL
            begin = loops.sub(extent, loops.mod(extent, step))

            def groups(start: Index, stop: Index, c: Carried) -> Carried:
                return self._unrolled(start, stop, body, c)

            carried = in_blocks(0, begin, step * BLOCK, sums, carried, groups)
            return vector_range(begin, extent, lanes, body, carried)
        rest = loops.mod(extent, lanes)
        end = loops.sub(extent, rest)

        def vectors(start: Index, stop: Index, c: Carried) -> Carried:
            return vector_range(start, stop, lanes, body, c, exact=True)

        carried = in_blocks(0, end, lanes * BLOCK, sums, carried, vectors)
        return masked_rest(end, rest, lanes, body, carried)

    def _sums(self, carried: Carried) -> list[bool]:
        """Which carried values are sums of floats, which may be added in any order."""
        result: list[bool] = []
        for stage in self.cluster.stages if carried else ():
            if not stage.has_reduction:
                continue
            combiner = self.combiners[stage]
            ops = (None,) * len(stage.results) if combiner is None else combiner.ops
            result += [op is not None and is_sum(op) for op in ops]
            result += [False] * (self._carries(stage) - len(stage.results))
        return result

    def _unrolled(self, start: Index, stop: Index, body: LaneBody, carried: Carried) -> Carried:
        """Emits several vectors at a time up to `stop`: all loads first, then all stores.

        Reductions have independent sets of accumulators, joined at the end, if they fit registers.
        """
        if isinstance(stop, int) and stop == start:
            return carried
        count, lanes = len(carried), self.plan.lanes

        def vector(base: ir.Value, index: int, values: Carried) -> Carried:
            self.vector_index = index
            result = body(base, None, values)
            self.vector_index = 0
            return result

        kernel, stages = self.evaluator.kernel, self.cluster.stages
        is_full = fills_registers(stages, kernel.placement.inlining, kernel.vectors)
        if carried and is_full:
            return paired(self.evaluator, start, stop, lanes, vector, carried)

        def one(base: ir.Value, index: int, values: Carried) -> Carried:
            return vector(base, index, values[index * count : (index + 1) * count])

        fresh = self.fresh * (UNROLL - 1) if carried else []
        sets = unrolled(self.evaluator, start, stop, lanes, one, [*carried, *fresh])
        return self._join(sets, count)

    def _short_row(self, row: ShortRow, body: LaneBody, carried: Carried) -> Carried:
        """Emits all vectors of a row: all loads first, then all stores.

        Reductions of many vectors have independent sets of accumulators.
        """
        count = len(carried)
        sets = UNROLL if count and row.vectors > UNROLL else 1

        def one(base: ir.Value, mask: ir.Value | None, values: Carried) -> Carried:
            own, others = values[:count], values[count:]
            return [*others, *body(base, mask, own)]

        with self.evaluator.stores_at_end():
            values = row.walk(self.plan.lanes, one, [*carried, *self.fresh * (sets - 1)])
        return self._join(values, count)

    def _join(self, sets: Carried, count: int) -> Carried:
        """Combines sets of `count` accumulators into one set."""
        while len(sets) > count:
            half = len(sets) // 2
            sets = [
                x
                for i in range(0, half, count)
                for x in self._joined(sets[i : i + count], sets[i + half : i + half + count])
            ]
        return sets

    def _joined(self, first: Carried, second: Carried) -> Carried:
        """Combines two sets of the accumulators of all reductions of the cluster."""
        lanes = self.plan.lanes
        result: Carried = []
        at = 0
        for stage in self.cluster.stages:
            if not stage.has_reduction:
                continue
            count, end = len(stage.results), at + self._carries(stage)
            wrap = Uniform if lanes == 1 else Varying
            a, b = ([wrap(x) for x in part[at:end]] for part in (first, second))
            positions = (a[count], b[count]) if len(a) > count else None
            combiner = self._combiner(stage)
            assert combiner is not None, "lanes run along a reduced axis"
            results, position = combiner.combine(a[:count], b[:count], positions, lanes)
            joined = [*results, *(() if position is None else (position,))]
            result += [scalar(x) if lanes == 1 else to_vector(x, lanes) for x in joined]
            at = end
        return result

    def _visit(self, point: Point, carried: Carried, reducing: list[Stage]) -> Carried:
        """Emits all stages at one point; reductions update the carried values."""
        updated: Carried = []
        at = 0
        self._prefetch_next_row(point)
        point = point.inside()
        for stage in self.cluster.stages:
            if stage not in reducing:
                self._compute(stage, point)
                continue
            count = self._carries(stage)
            values = carried[at : at + count]
            updated += self._accumulate(stage, point, values)
            at += count
        return updated

    def _prefetch_next_row(self, point: Point) -> None:
        """Prefetches the same part of the next row, each line once."""
        for stage, access in self.plan.prefetched.get(self.cluster, ()):
            view = self.evaluator.kernel.memory(access.tensor)
            if self.vector_index * point.lanes * element_bits(view.element) // 8 % _LINE:
                continue
            row = self.plan.nest.common[-1]
            here = value_of(resolve(point.index[row], point.lanes))
            below = point.at(row, Uniform(loops.add(here, 1)))
            assert access.uses is not None, "prefetched elements have affine indices"
            known = self._indices(stage, below)
            indices = [Uniform(0) if use.dim is None else known[use.dim] for use in access.uses]
            at = view.at(indices, point.lanes)
            assert isinstance(at, Ramp), "a row is contiguous"
            level = 2 if self.plan.prefetches_to_l2 else 3
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
        for index, lane in enumerate(lanes):
            self._save(stage, index, lane, indices, point)

    def _save(
        self, stage: Stage, index: int, lane: Lane, indices: list[IndexLane], point: Point
    ) -> None:
        """Saves a result for later stages, in registers and in memory."""
        emitter = self.evaluator
        result = stage.results[index]
        if stage.window is None:
            point.forwarded[result] = lane
            if not result_axes(self.plan.nest, stage):
                emitter.registers[result] = lane
        view = emitter.rows.get(result) or emitter.kernel.view(result)
        if view is None:
            return
        at = [evaluate(e, indices, point.lanes) for e in stage.inits[index].indices]
        if stage.window is not None:
            view = emitter.kernel.window_view(stage)
        emitter.write(view, at, lane, point)

    def _carries(self, stage: Stage) -> int:
        """Count of the values that loops carry for a reduction: results, and the position."""
        combiner = self._combiner(stage)
        return len(stage.results) + (combiner is not None and combiner.needs_positions)

    def _combiner(self, stage: Stage) -> Combiner | None:
        """The combiner, if lanes run along a reduced axis of the stage."""
        lane_axis = None if self.plan.lane_axes else self.plan.inner[self.cluster]
        if lane_axis is None or lane_axis not in self._reduced_axes([stage]):
            return None
        return self.combiners[stage]

    def _accumulate(self, stage: Stage, point: Point, accumulators: Carried) -> Carried:
        emitter = self.evaluator
        count = len(stage.results)
        indices = self._indices(stage, point)
        wrap = Uniform if point.lanes == 1 else Varying
        values = emitter.evaluate(stage, indices, point, [wrap(x) for x in accumulators[:count]])
        results = [values(value) for value in yielded(stage)]
        combiner = self._combiner(stage)
        if combiner is not None and combiner.condition is not None and len(accumulators) > count:
            chosen = values(combiner.condition)
            here = self._position(stage, point)
            if point.lanes == 1:
                results.append(
                    Uniform(arith.select(scalar(chosen), scalar(here), accumulators[count]))
                )
            else:
                pair = [to_vector(lane, point.lanes) for lane in (chosen, here)]
                results.append(Varying(arith.select(*pair, accumulators[count])))
        if point.lanes == 1:
            return [scalar(lane) for lane in results]
        vectors = [to_vector(lane, point.lanes) for lane in results]
        if point.mask is None or combiner is None:
            return vectors
        return [
            arith.select(point.mask, x, old) for x, old in zip(vectors, accumulators, strict=True)
        ]

    def _position(self, stage: Stage, point: Point) -> Lane:
        """The position of an iteration in the order of the scalar loop."""
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
        """Emits loops over the reduced axes, and the results."""
        if self._arg_reduce(point, reducing, reduced, lane_axis):
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
            values = carried[at : at + count]
            at += count
            self._finish(stage, point, firsts[stage], values, lanes)
        return []

    def _arg_reduce(
        self, point: Point, reducing: list[Stage], reduced: list[int], lane_axis: int | None
    ) -> bool:
        """Emits an arg reduction along the lanes, if that is all that the cluster computes."""
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
        reduction = ArgReduction(self.evaluator, stage, combiner, order, at)
        indices = self._indices(stage, point)
        for index, total in enumerate(reduction.emit(self.extents[lane_axis], firsts, self.short)):
            self._save(stage, index, Uniform(total), indices, point)
        return True

    def _first_values(self, stage: Stage, point: Point) -> list[Lane]:
        indices = self._indices(stage, point)
        inside = point.inside()
        return [self.evaluator.operand(init, indices, inside) for init in stage.inits]

    def _start(self, stage: Stage, firsts: list[Lane], lanes: int) -> Carried:
        combiner = self._combiner(stage)
        result: Carried = []
        for k, first in enumerate(firsts):
            neutral = None if combiner is None else combiner.start(k)
            if neutral is not None:
                result.append(_constant(neutral, lanes, stage.results[k].element))
            else:
                result.append(scalar(first) if lanes == 1 else to_vector(first, lanes))
        if combiner is not None and combiner.needs_positions:
            index_type = ir.IndexType.get()
            result.append(_constant(ir.IntegerAttr.get(index_type, -1), lanes, index_type))
        return result

    def _finish(
        self, stage: Stage, point: Point, firsts: list[Lane], values: Carried, lanes: int
    ) -> None:
        combiner = self._combiner(stage)
        count = len(stage.results)
        if combiner is None:
            wrap = Uniform if lanes == 1 else Varying
            totals: list[Lane] = [wrap(x) for x in values]
        else:
            positions = values[count] if len(values) > count else None
            totals = reduce_lanes(combiner, values[:count], positions, lanes)
            if combiner.condition is None:
                totals, _ = combiner.combine(firsts, totals, None, 1)
        indices = self._indices(stage, point)
        for index, total in enumerate(totals[:count]):
            self._save(stage, index, total, indices, point)


def _constant(constant: ir.Attribute, lanes: int, element: ir.Type) -> ir.Value:
    """A constant in every lane, or a scalar if there is one lane."""
    if lanes == 1:
        return arith.constant(element, constant)
    kind = vector_type(lanes, element)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, constant))


def result_axes(nest: Nest, stage: Stage) -> list[int]:
    """The inner axes of the results of a stage."""
    reduced = {a for a, r in zip(nest.axes[stage], stage.reduces, strict=True) if r}
    return [axis for axis in nest.inner(stage) if axis not in reduced]
