"""Emits nests of stages as loops with vector bodies.

    scf.parallel over the common axes            rows, or blocks of the lane axis
      scf.for along the lanes                    full vectors, then one masked vector
        loads, body, stores

Main loops work on full vectors; what is left of an extent is one masked iteration, which is left
out where the extent divides. Reductions along the lanes keep several vectors of partial results.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from relax_mlir.bindings import arith, ir, memref, scf, tensor

from . import loops
from .access import root_of, uses_of
from .affine import IndexLane, Part, evaluate, modulo, plus, quotient, resolve, times
from .body import emit_values
from .combine import Combiner, across
from .kernel import Kernel
from .lanes import Lane, Ramp, Uniform, Varying, scalar, to_vector, vector_type
from .loops import Index
from .memory import View, load, row_major, store
from .nests import Cluster, Nest, estimate
from .plan import Plan, block_of
from .program import Computed, Empty, Operand, Reshape, Slice, Splat, Stage, Tensor

_UNROLL = 4
_TASK_WORK = 1 << 15
_SERIAL_WORK = 1 << 12
_CHEAP_BODY = 16

Carried = list[ir.Value]


@dataclass
class Point:
    """One iteration: indices by axis, and what was already loaded or computed in it."""

    lanes: int = 1
    mask: ir.Value | None = None
    index: dict[int, IndexLane] = field(default_factory=dict)
    known: dict[tuple, Lane] = field(default_factory=dict)
    forwarded: dict[Computed, Lane] = field(default_factory=dict)

    def at(self, axis: int, lane: IndexLane) -> "Point":
        """This point with one more index."""
        return Point(self.lanes, self.mask, {**self.index, axis: lane})


@dataclass
class NestEmitter:
    """Emits one nest as its plan says; `combiners` holds the reductions that lanes may split."""

    kernel: Kernel
    plan: Plan
    combiners: dict[Stage, Combiner | None]
    registers: dict[Computed, Lane] = field(default_factory=dict)
    rows: dict[Computed, View] = field(default_factory=dict)
    extents: dict[int, Index] = field(default_factory=dict)

    @property
    def nest(self) -> Nest:
        """The nest that is emitted."""
        return self.plan.nest

    def emit(self) -> None:
        """Emits the whole nest at the insertion point."""
        self._prepare()
        outer = [axis for axis in self.nest.common if axis not in self.plan.lane_axes]
        lane_axes = self.plan.lane_axes
        flat = loops.mul(*(self.extents[axis] for axis in lane_axes)) if lane_axes else 1
        block = block_of(self.plan)
        single = isinstance(flat, int) and flat <= block
        blocks = 1 if single else loops.ceil_div(flat, block)
        counts = [*(self.extents[axis] for axis in outer), blocks]

        def task(p: ir.Value | int) -> None:
            *indices, number = _unflatten(p, counts)
            point = Point(index=dict(zip(outer, map(Uniform, indices), strict=True)))
            if not lane_axes:
                self._row(point)
                return
            start = 0 if single else loops.mul(number, block)
            stop = flat if single else loops.minimum(flat, loops.add(start, block))
            exact = isinstance(flat, int) and flat % self.plan.lanes == 0
            self._lane_loop(point, start, stop, exact)

        self._run_tasks(loops.mul(*counts), task)

    def _run_tasks(self, count: Index, task: Callable[[ir.Value | int], None]) -> None:
        work = self.nest.work()
        known = all(e is not None for stage in self.nest.stages for e in stage.extents)
        if isinstance(count, int) and count <= 1:
            if count == 1:
                task(0)
        elif known and work <= _SERIAL_WORK:
            loops.for_range(0, count, 1, lambda p: task(p))
        else:
            rows = prod(estimate(self.nest.extent(axis)) for axis in self.nest.common)
            width = prod(estimate(self.nest.extent(axis)) for axis in self.plan.lane_axes)
            per_task = max(1, work // rows) * min(width, block_of(self.plan))
            loops.parallel_range(count, max(1, _TASK_WORK // per_task), task)

    def _prepare(self) -> None:
        for axis, (stage, loop) in enumerate(self.nest.origin):
            self.extents[axis] = self.kernel.extent(stage, loop)
        for stage in self.nest.stages:
            self._prepare_reads(stage)
            for number, result in enumerate(stage.results):
                if self._leaves(result):
                    self.kernel.scratch(result)
                self.kernel.sizes(result)
                self.kernel.prepare(result)
                if stage.window is not None:
                    self.kernel.prepare_window(stage)
                self.kernel.prepare(stage.inits[number].tensor)

    def _prepare_reads(self, stage: Stage) -> None:
        tensors = [operand.tensor for operand in stage.reads] + stage.gathers
        for found in tensors:
            self.kernel.prepare(found)
            while isinstance(found, Slice | Reshape):
                found = found.source
                self.kernel.prepare(found)
            if self.kernel.placement.inlining.is_inlined(found):
                self._prepare_reads(found.stage)

    def _leaves(self, result: Computed) -> bool:
        """Whether stages of other nests, or the host part, read the result."""
        placement = self.kernel.placement
        readers = [stage for stage, _ in placement.reads_of(result)]
        return any(reader not in self.nest.axes for reader in readers) or any(
            root_of(placement.program.tensors[item.operands[0]]) is result
            for item in placement.program.items
            if not isinstance(item, Stage) and item.operation.name == "tensor.extract"
        )

    def _lane_loop(self, point: Point, start: Index, stop: Index, exact: bool) -> None:
        axes = self.plan.lane_axes
        extents = tuple(self.extents[axis] for axis in axes)

        def body(base: ir.Value, mask: ir.Value | None, carried: Carried) -> Carried:
            flat = Ramp(base, 1, self.plan.lanes, True)
            index = dict(point.index)
            if len(axes) == 1:
                index[axes[0]] = flat
            else:
                index |= {a: Part(flat, extents, i) for i, a in enumerate(axes)}
            self._row(Point(self.plan.lanes, mask, index))
            return []

        vector_range(start, stop, self.plan.lanes, body, exact=exact)

    def _row(self, point: Point) -> None:
        """All stages for one iteration of the common axes."""
        self.registers.clear()
        buffers = []
        for stage in self.nest.stages:
            for result in stage.results:
                if self._needs_row(stage, result):
                    buffers.append(self._allocate_row(stage, result, point))
        for cluster in self.plan.clusters:
            ClusterEmitter(self, cluster, point).emit()
        for buffer in reversed(buffers):
            memref.dealloc(buffer)
        self.rows.clear()

    def _needs_row(self, stage: Stage, result: Computed) -> bool:
        if self.kernel.placement.spot(result) is not None or not self._kept_axes(stage):
            return False
        cluster = next(c for c in self.plan.clusters if stage in c.stages)
        readers = [reader for reader, _ in self.kernel.placement.reads_of(result)]
        return any(reader not in cluster.stages for reader in readers)

    def _kept_axes(self, stage: Stage) -> list[int]:
        """Inner axes that the results of a stage have."""
        reduced = {a for a, r in zip(self.nest.axes[stage], stage.reduces, strict=True) if r}
        return [axis for axis in self.nest.inner(stage) if axis not in reduced]

    def _allocate_row(self, stage: Stage, result: Computed, point: Point) -> ir.Value:
        """A buffer for one row of a result: its view has stride zero along the common axes."""
        axes = self.nest.axes[stage]
        own = [use.dim for use in uses_of(stage.inits[result.number].indices)]
        sizes = self.kernel.sizes(result)
        inner = set(self.nest.inner(stage))
        kept = [i for i, dim in enumerate(own) if dim is not None and axes[dim] in inner]
        lanes = self.plan.lanes if self.plan.lane_axes else 1
        steps = [loops.mul(s, lanes) for s in row_major([sizes[i] for i in kept])]
        count = loops.mul(*(sizes[i] for i in kept), lanes)
        buffer = self.kernel.allocate(count, result.element)
        strides: list[Index] = [0] * len(sizes)
        for position, step in zip(kept, steps, strict=True):
            strides[position] = step
        offset: Index = 0
        for position, dim in enumerate(own):
            if dim is not None and axes[dim] in self.plan.lane_axes:
                strides[position] = 1
                offset = loops.sub(0, point.index[axes[dim]].base)
        self.rows[result] = View(buffer, result.element, offset, sizes, tuple(strides))
        return buffer

    def read(self, source: Tensor, indices: Sequence[IndexLane], point: Point) -> Lane:
        """One element a lane of a tensor, from a register, from memory, or computed here."""
        if source in point.forwarded:
            return point.forwarded[source]
        if source in self.registers:
            return self.registers[source]
        if isinstance(source, Splat):
            return self.kernel.splat(source)
        if isinstance(source, Empty):
            zero = arith.constant(source.element, loops.zero_attr(source.element))
            return Uniform(zero)
        key = (source, *indices)
        if key not in point.known:
            point.known[key] = self._fetch(source, indices, point)
        return point.known[key]

    def _fetch(self, source: Tensor, indices: Sequence[IndexLane], point: Point) -> Lane:
        view = self.rows.get(source) or self.kernel.view(source)
        if view is not None:
            return load(view, indices, point.lanes, point.mask)
        lanes = point.lanes
        if isinstance(source, Slice):
            return self.read(source.source, self._slice_indices(source, indices, lanes), point)
        if isinstance(source, Reshape):
            return self.read(source.source, self._reshape_indices(source, indices, lanes), point)
        stage = source.stage
        own: list[IndexLane] = [Uniform(0)] * len(stage.extents)
        for expression, index in zip(stage.inits[0].indices, indices, strict=True):
            own[expression.position] = index
        values = self.evaluate(stage, own, point, ())
        return values(_yielded(stage)[0])

    def _slice_indices(
        self, source: Slice, indices: Sequence[IndexLane], lanes: int
    ) -> list[IndexLane]:
        window, inner, result = source.window, iter(indices), []
        for position in range(len(window.offsets)):
            offset = Uniform(self.kernel.number(window.offsets[position]))
            if position in window.dropped:
                result.append(offset)
                continue
            stride = Uniform(self.kernel.number(window.strides[position]))
            scaled = times(resolve(next(inner), lanes), stride, lanes)
            result.append(plus(scaled, offset, lanes))
        return result

    def _reshape_indices(
        self, source: Reshape, indices: Sequence[IndexLane], lanes: int
    ) -> list[IndexLane]:
        big = self.kernel.sizes(source if source.expands else source.source)
        result: list[IndexLane] = []
        for number, group in enumerate(source.groups):
            sizes = [big[position] for position in group]
            wide = [i for i, size in enumerate(sizes) if size != 1]
            if source.expands and len(wide) == 1:
                result.append(indices[group[wide[0]]])
            elif source.expands:
                total: Lane = Uniform(0)
                for position, stride in zip(group, row_major(sizes), strict=True):
                    scaled = times(resolve(indices[position], lanes), Uniform(stride), lanes)
                    total = plus(total, scaled, lanes)
                result.append(total)
            elif len(wide) == 1:
                result += [indices[number] if i in wide else Uniform(0) for i in range(len(sizes))]
            else:
                flat = resolve(indices[number], lanes)
                for i, (size, stride) in enumerate(zip(sizes, row_major(sizes), strict=True)):
                    part = quotient(flat, stride, lanes, True)
                    result.append(part if i == 0 else modulo(part, size, lanes, True))
        return result

    def evaluate(
        self, stage: Stage, indices: list[IndexLane], point: Point, accumulators: Sequence[Lane]
    ) -> Callable[[ir.Value], Lane]:
        """Emits a stage's block; returns the lane values of its scalars."""
        operands = [self._operand(operand, indices, point) for operand in stage.reads]
        if not accumulators:
            accumulators = [
                self._operand(init, indices, point) if stage.uses_init(n) else operands_zero(init)
                for n, init in enumerate(stage.inits)
            ]

        def extract(op: tensor.ExtractOp, at: list[Lane]) -> Lane:
            source = self.kernel.placement.program.tensors[op.operands[0]]
            return self.read(source, at, point)

        return emit_values(
            stage.block, [*operands, *accumulators], point.lanes,
            indices=[resolve(index, point.lanes) for index in indices] if stage.uses_index else (),
            extract=extract, captured=self.kernel.scalars, mask=point.mask,
        )  # fmt: skip

    def _operand(self, operand: Operand, indices: list[IndexLane], point: Point) -> Lane:
        at = [evaluate(e, indices, point.lanes) for e in operand.indices]
        return self.read(operand.tensor, at, point)


def operands_zero(operand: Operand) -> Lane:
    """Something of the right type for a block argument that is not read."""
    element = operand.tensor.element
    return Uniform(arith.constant(element, loops.zero_attr(element)))


def _yielded(stage: Stage) -> list[ir.Value]:
    block = stage.block
    return list(block.operations[len(block.operations) - 1].operands)


def _unflatten(p: Index, counts: Sequence[Index]) -> list[Index]:
    """Row-major indices of iteration p of nested loops."""
    found: list[Index] = []
    for count in reversed(counts[1:]):
        found.append(loops.mod(p, count))
        p = loops.floor_div(p, count)
    return [p, *reversed(found)]


LaneBody = Callable[[ir.Value, ir.Value | None, Carried], Carried]


def vector_range(
    start: Index, stop: Index, lanes: int, body: LaneBody,
    carried: Sequence[ir.Value] = (), *, exact: bool = False,
) -> Carried:  # fmt: skip
    """Full vectors from start to stop, then one masked vector for the rest.

    `body(base, mask, carried)` returns the next carried values. `exact` says that the extent
    divides by the lanes.
    """
    found = list(carried)
    extent = loops.sub(stop, start)
    rest = loops.mod(extent, lanes)
    end = loops.sub(stop, rest)
    if not (isinstance(extent, int) and extent < lanes):
        found = loops.for_range(start, end, lanes, lambda i, *c: body(i, None, list(c)), found)
    if exact or (isinstance(rest, int) and rest == 0):
        return found

    def tail() -> Carried:
        return body(loops.value(end), loops.mask(rest, lanes), found)

    if isinstance(rest, int):
        return tail()
    some = arith.cmpi(arith.CmpIPredicate.ne, rest, loops.value(0))
    branch = scf.IfOp(some, [x.type for x in found], has_else=bool(found))
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp(tail())
    if found:
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp(found)
    return list(branch.results)


@dataclass
class ClusterEmitter:
    """Emits the loops of one cluster inside an iteration of the common axes.

    `fresh` are accumulators that nothing was added to yet.
    """

    nest_emitter: NestEmitter
    cluster: Cluster
    point: Point
    fresh: Carried = field(default_factory=list)

    def emit(self) -> None:
        """Emits loops over the cluster's axes, the one with the lanes innermost."""
        plan = self.nest_emitter.plan
        if not plan.lane_axes:
            lane_axis = plan.inner[self.cluster]
        else:
            lane_axis = None
        reducing = [s for s in self.cluster.stages if s.has_reduction]
        reduced = self._reduced_axes(reducing)
        parallel = [axis for axis in self.cluster.axes if axis not in reduced]
        if not reducing:
            self._loops(parallel, lane_axis, self.point, [], lambda p, c: self._visit(p, c, []))
            return
        self._loops(
            parallel, lane_axis, self.point, [],
            lambda p, c: self._reduce(p, reducing, reduced, lane_axis),
        )  # fmt: skip

    def _reduced_axes(self, reducing: list[Stage]) -> list[int]:
        axes = self.nest_emitter.nest.axes
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
    ) -> Carried:
        """Nested loops over the axes, scalar but for the lane axis, which goes innermost."""
        if lane_axis in axes:
            axes = [*(axis for axis in axes if axis != lane_axis), lane_axis]
        if not axes:
            return body(point, carried)
        axis, rest = axes[0], axes[1:]
        extent = self.nest_emitter.extents[axis]
        if axis == lane_axis:
            lanes = self.nest_emitter.plan.lanes

            def along(base: ir.Value, mask: ir.Value | None, c: Carried) -> Carried:
                inside = Point(lanes, mask, point.index).at(axis, Ramp(base, 1, lanes, True))
                return body(inside, c)

            begin: Index = 0
            if carried and self._is_cheap():
                begin = loops.sub(extent, loops.mod(extent, lanes * _UNROLL))
                carried = self._unrolled(begin, along, carried)
            return vector_range(begin, extent, lanes, along, carried)

        def step(i: ir.Value, *c: ir.Value) -> Carried:
            return self._loops(rest, lane_axis, point.at(axis, Uniform(i)), list(c), body)

        return loops.for_range(0, extent, 1, step, carried)

    def _is_cheap(self) -> bool:
        """Whether an iteration is so short that it would wait for the one before."""
        inlining = self.nest_emitter.kernel.placement.inlining
        return sum(map(inlining.cost, self.cluster.stages)) <= _CHEAP_BODY

    def _unrolled(self, stop: Index, body: LaneBody, carried: Carried) -> Carried:
        """Reduces up to `stop` into several independent sets of accumulators, joined at the end."""
        if isinstance(stop, int) and stop == 0:
            return carried
        lanes, count = self.nest_emitter.plan.lanes, len(carried)

        def step(base: ir.Value, *held: ir.Value) -> Carried:
            found: Carried = []
            for i in range(_UNROLL):
                at = loops.add(base, i * lanes)
                found += body(at, None, list(held[i * count : (i + 1) * count]))
            return found

        sets = loops.for_range(
            0, stop, lanes * _UNROLL, step, [*carried, *self.fresh * (_UNROLL - 1)]
        )
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
        lanes = self.nest_emitter.plan.lanes
        found: Carried = []
        at = 0
        for stage in self.cluster.stages:
            if not stage.has_reduction:
                continue
            count, end = len(stage.results), at + self._carries(stage)
            a, b = ([Varying(x) for x in held[at:end]] for held in (first, second))
            places = (a[count], b[count]) if len(a) > count else None
            results, place = self._combiner(stage).combine(a[:count], b[:count], places, lanes)
            found += [to_vector(x, lanes) for x in results]
            found += [] if place is None else [to_vector(place, lanes)]
            at = end
        return found

    def _visit(self, point: Point, carried: Carried, reducing: list[Stage]) -> Carried:
        """All stages at one point; reductions update what is carried."""
        updated: Carried = []
        at = 0
        point = Point(point.lanes, point.mask, point.index)
        for stage in self.cluster.stages:
            if stage not in reducing:
                self._compute(stage, point)
                continue
            count = self._carries(stage)
            held = carried[at : at + count]
            updated += self._accumulate(stage, point, held)
            at += count
        return updated

    def _indices(self, stage: Stage, point: Point) -> list[IndexLane]:
        axes = self.nest_emitter.nest.axes[stage]
        return [point.index.get(axis, Uniform(0)) for axis in axes]

    def _compute(self, stage: Stage, point: Point) -> None:
        """Emits a stage without reduction, and stores or forwards its results."""
        emitter = self.nest_emitter
        indices = self._indices(stage, point)
        if stage.block is None:
            lanes = [emitter._operand(stage.reads[0], indices, point)]
        else:
            values = emitter.evaluate(stage, indices, point, ())
            lanes = [values(value) for value in _yielded(stage)]
        for number, lane in enumerate(lanes):
            self._keep(stage, number, lane, indices, point)

    def _keep(
        self, stage: Stage, number: int, lane: Lane, indices: list[IndexLane], point: Point
    ) -> None:
        """Keeps a result for later stages, in registers and in memory."""
        emitter = self.nest_emitter
        result = stage.results[number]
        if stage.window is None:
            point.forwarded[result] = lane
            if not emitter._kept_axes(stage):
                emitter.registers[result] = lane
        view = emitter.rows.get(result) or emitter.kernel.view(result)
        if view is None:
            return
        at = [evaluate(e, indices, point.lanes) for e in stage.inits[number].indices]
        if stage.window is not None:
            view = emitter.kernel.window_view(stage)
        store(view, at, lane, point.lanes, point.mask)

    def _carries(self, stage: Stage) -> int:
        """Number of values that the loops carry for a reduction: results, and the position."""
        combiner = self._combiner(stage)
        return len(stage.results) + (combiner is not None and combiner.condition is not None)

    def _combiner(self, stage: Stage) -> Combiner | None:
        """The combiner, if lanes run along a reduced axis of the stage."""
        emitter = self.nest_emitter
        lane_axis = None if emitter.plan.lane_axes else emitter.plan.inner[self.cluster]
        if lane_axis is None or lane_axis not in self._reduced_axes([stage]):
            return None
        return emitter.combiners[stage]

    def _accumulate(self, stage: Stage, point: Point, held: Carried) -> Carried:
        emitter = self.nest_emitter
        count = len(stage.results)
        indices = self._indices(stage, point)
        wrap = Uniform if point.lanes == 1 else Varying
        values = emitter.evaluate(stage, indices, point, [wrap(x) for x in held[:count]])
        found = [values(value) for value in _yielded(stage)]
        combiner = self._combiner(stage)
        if len(held) > count:
            chosen = values(combiner.condition)
            here = self._position(stage, point)
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
        axes = [a for a in self.nest_emitter.nest.axes[stage] if a in self.cluster.axes]
        sizes = [self.nest_emitter.extents[axis] for axis in axes]
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
        across_lanes = lane_axis in reduced
        lanes = self.nest_emitter.plan.lanes if across_lanes else point.lanes
        firsts = {stage: self._first_values(stage, point) for stage in reducing}
        carried: Carried = []
        for stage in reducing:
            carried += self._start(stage, firsts[stage], lanes)
        self.fresh = carried
        carried = self._loops(
            reduced, lane_axis, point, carried, lambda p, c: self._visit(p, c, reducing)
        )
        at = 0
        for stage in reducing:
            count = self._carries(stage)
            held = carried[at : at + count]
            at += count
            self._finish(stage, point, firsts[stage], held, lanes)
        return []

    def _first_values(self, stage: Stage, point: Point) -> list[Lane]:
        indices = self._indices(stage, point)
        inside = Point(point.lanes, point.mask, point.index)
        return [self.nest_emitter._operand(init, indices, inside) for init in stage.inits]

    def _start(self, stage: Stage, firsts: list[Lane], lanes: int) -> Carried:
        combiner = self._combiner(stage)
        found: Carried = []
        for number, first in enumerate(firsts):
            neutral = None if combiner is None else combiner.start(number)
            if neutral is not None:
                kind = vector_type(lanes, stage.results[number].element)
                splat = ir.DenseElementsAttr.get_splat(kind, neutral)
                found.append(arith.constant(kind, splat))
            else:
                found.append(scalar(first) if lanes == 1 else to_vector(first, lanes))
        if combiner is not None and combiner.condition is not None:
            kind = vector_type(lanes, ir.IndexType.get())
            before = ir.IntegerAttr.get(ir.IndexType.get(), -1)
            found.append(arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, before)))
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
