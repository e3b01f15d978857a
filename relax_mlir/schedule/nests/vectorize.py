"""Emits nests of stages as loops with vector bodies.

    scf.parallel over the common axes            rows, or blocks of the lane axis
      scf.for along the lanes                    full vectors, then one masked vector
        loads, body, stores

Main loops process full vectors; the rest of an extent is one masked iteration, which is omitted if
the extent is a multiple. Reductions along the lanes have several vectors of partial results.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from relax_mlir.bindings import ir, memref
from relax_mlir.program.access import root_of, uses_of
from relax_mlir.program.nests import Nest
from relax_mlir.program.program import Computed, Reshape, Slice, Splat, Stage
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import Part
from relax_mlir.schedule.build.evaluate import Evaluator, Point
from relax_mlir.schedule.build.horizontal_reduction import Combiner
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.lanes import Ramp, Uniform, lanes_from
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.memory import View, row_major

from .cluster import ClusterEmitter, is_short, result_axes
from .lane_loops import UNROLL, Carried, ShortRow, unrolled, vector_range
from .plan import Plan, block_of
from .register_transpose import Some, Squares
from .short_rows import emit_by_length, row_extent

_TASK_WORK = 1 << 15
_SERIAL_WORK = 1 << 12
_ROWS_AT_ONCE, _SHORT_VECTORS = 4, 2  # rows at a time, if they have at most so many vectors


@dataclass
class NestEmitter:
    """Emits one nest by its plan; `combiners` has the reductions that lanes may split."""

    kernel: Kernel
    plan: Plan
    combiners: dict[Stage, Combiner | None]
    evaluator: Evaluator
    extents: dict[int, Index] = field(default_factory=dict)

    @property
    def nest(self) -> Nest:
        """The nest that is emitted."""
        return self.plan.nest

    def emit(self) -> None:
        """Emits the whole nest at the insertion point."""
        self._prepare()
        plan, lane_axes = self.plan, self.plan.lane_axes
        inner = {*lane_axes, plan.tile_axis, plan.interleaved}
        outer = [axis for axis in self.nest.common if axis not in inner]
        flat = loops.mul(*(self.extents[axis] for axis in lane_axes)) if lane_axes else 1
        block = block_of(plan)
        single = isinstance(flat, int) and flat <= block
        blocks = 1 if single else loops.ceil_div(flat, block)
        rows: Index = 1
        if plan.tile_axis is not None:
            rows = loops.ceil_div(self.extents[plan.tile_axis], plan.lanes)
        counts = [*(self.extents[axis] for axis in outer), rows, blocks]

        def point_at(indices: list[Index]) -> Point:
            return Point(index=dict(zip(outer, map(Uniform, indices[: len(outer)]), strict=True)))

        def task(
            emitter: NestEmitter, p: ir.Value | int, short: ShortRow | None, squares: Some | None
        ) -> None:
            *indices, row, block_index = _delinearize(p, counts)
            point = point_at(indices)
            if not lane_axes:
                emitter._row(point, short)
                return
            start = 0 if single else loops.mul(block_index, block)
            stop = flat if single else loops.minimum(flat, loops.add(start, block))
            exact = isinstance(flat, int) and flat % plan.lanes == 0
            if squares is None:
                self._lane_loop(point, start, stop, exact)
            else:
                squares(point, loops.mul(row, plan.lanes), start, stop)

        def all_tasks(short: ShortRow | None, squares: Some | None = None) -> None:
            work = self._task_work(None if short is None else short.vectors * plan.lanes)
            count = loops.mul(*counts)

            def run(emitter: NestEmitter) -> None:
                self._run_tasks(count, work, lambda p: task(emitter, p, short, squares))

            if self._has_short_rows(short):
                self._run_groups(count, work, lambda p: point_at(_delinearize(p, counts)), short)
            elif plan.prefetched and short is None:
                # A single row has no next one.
                alone = replace(self, plan=replace(plan, prefetched={}))
                loops.if_else(loops.less(count, 2), lambda: run(alone), lambda: run(self))
            else:
                run(self)

        if plan.tile_axis is None:
            self._by_length(all_tasks)
        else:
            self._squares().emit_by_size(partial(all_tasks, None), self._row_by_row)

    def _squares(self) -> Squares:
        """The squares of the nest."""
        assert self.plan.tile_axis is not None
        (lane_axis,) = self.plan.lane_axes
        extent, width = self.extents[self.plan.tile_axis], self.extents[lane_axis]
        has_masks = self.kernel.vectors.has_masks
        return Squares(
            self.plan.lanes, self.plan.tile_axis, lane_axis, extent, width, has_masks, self._row
        )

    def _row_by_row(self, point: Point, first: Index, start: Index, stop: Index) -> None:
        """Emits the rows of a square, each gathered."""
        axis = self.plan.tile_axis
        assert axis is not None

        def one(i: ir.Value) -> None:
            self._lane_loop(point.at(axis, Uniform(i)), start, stop, False)

        end = loops.minimum(loops.add(first, self.plan.lanes), self.extents[axis])
        loops.for_range(first, end, 1, one)

    def _run_tasks(self, count: Index, work: Index, task: Callable[[ir.Value | int], None]) -> None:
        known = all(e is not None for stage in self.nest.stages for e in stage.extents)
        if isinstance(count, int) and count <= 1:
            if count == 1:
                task(0)
        elif known and self.nest.work() <= _SERIAL_WORK:
            loops.for_range(0, count, 1, lambda p: task(p))
        else:
            loops.shared_range(count, work, _TASK_WORK, task)

    def _run_groups(
        self,
        count: Index,
        work: Index,
        point_at: Callable[[Index], Point],
        short: ShortRow | None,
    ) -> None:
        """Emits several rows at a time, to hide the latency between the passes of one."""
        groups = loops.floor_div(count, _ROWS_AT_ONCE)
        rest = loops.mul(groups, _ROWS_AT_ONCE)

        def group(index: Index) -> None:
            first = loops.mul(index, _ROWS_AT_ONCE)
            self._rows([point_at(loops.add(first, i)) for i in range(_ROWS_AT_ONCE)], short)

        self._run_tasks(groups, loops.mul(work, _ROWS_AT_ONCE), group)
        if rest != count:
            loops.for_range(rest, count, 1, lambda p: self._row(point_at(p), short))

    def _task_work(self, row: int | None) -> Index:
        """Rough count of scalar iterations of a task, whose rows have at most `row` elements."""
        nest, plan = self.nest, self.plan
        terms: list[Index] = []
        for stage in nest.stages:
            terms.append(loops.mul(*(row or self.extents[axis] for axis in nest.inner(stage))))
        block: Index = block_of(plan) if plan.lane_axes else 1
        width = loops.mul(*(self.extents[axis] for axis in plan.lane_axes))
        if isinstance(width, int) or len(nest.common) > len(plan.lane_axes):
            block = loops.minimum(width, block)
        rows = 1 if plan.tile_axis is None else plan.lanes
        if plan.interleaved is not None:
            rows = nest.extent(plan.interleaved) or 1
        return loops.mul(loops.add(*terms), block, rows)

    def _prepare(self) -> None:
        for axis, (stage, loop) in enumerate(self.nest.origin):
            self.extents[axis] = self.kernel.extent(stage, loop)
        for stage in self.nest.stages:
            self._prepare_reads(stage)
            for index, result in enumerate(stage.results):
                if self._is_read_outside(result):
                    self.kernel.scratch(result)
                self.kernel.sizes(result)
                self.kernel.prepare(result)
                if stage.window is not None:
                    self.kernel.prepare_window(stage)
                self.kernel.prepare(stage.inits[index].tensor)

    def _prepare_reads(self, stage: Stage) -> None:
        tensors = [operand.tensor for operand in stage.reads] + stage.gathers
        for tensor in tensors:
            self.kernel.prepare(tensor)
            while isinstance(tensor, Slice | Reshape):
                tensor = tensor.source
                self.kernel.prepare(tensor)
            if self.kernel.placement.inlining.is_inlined(tensor):
                self._prepare_reads(tensor.stage)

    def _is_read_outside(self, result: Computed) -> bool:
        """Whether stages of other nests, or scalars, read the result."""
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

        def vector(
            base: ir.Value, mask: ir.Value | None, lanes: int, is_aligned: bool = True
        ) -> Carried:
            flat = lanes_from(base, lanes, is_aligned)
            index = dict(point.index)
            if len(axes) == 1:
                index[axes[0]] = flat
            else:
                index |= {a: Part(flat, extents, i) for i, a in enumerate(axes)}
            self._vector(Point(lanes, mask, index))
            return []

        lanes = self.plan.lanes
        step = lanes * (UNROLL if self._is_straight() else self.plan.vectors_at_once)
        if step > lanes > 1:
            middle = loops.sub(stop, loops.mod(loops.sub(stop, start), step))
            if self.plan.vectors_at_once > 1:
                loops.for_range(start, middle, step, lambda b: vector(b, None, step))
            elif not (isinstance(middle, int) and middle == start):
                unrolled(
                    self.evaluator, start, middle, lanes, lambda b, _, c: vector(b, None, lanes)
                )
            start = middle
        if self._is_repeatable():
            self._rest(start, stop, vector)
        else:
            vector_range(start, stop, lanes, lambda b, m, _: vector(b, m, lanes), exact=exact)

    def _vector(self, point: Point) -> None:
        """Emits a vector of lanes; all of those that are interleaved, if some are."""
        axis = self.plan.interleaved
        if axis is None:
            self._row(point)
            return
        with self.evaluator.interleaves(point.mask):
            for i in range(self.nest.extent(axis) or 0):
                self._row(point.at(axis, Uniform(i)).inside())

    def _rest(self, start: Index, stop: Index, vector: Callable[..., Carried]) -> None:
        """Emits the rest of a block, by ever narrower vectors of which enough lanes are used.

        Vectors are whole: the last one overlaps the one before. Blocks shorter than a vector have a
        mask.
        """
        begin, narrow = start, self.plan.lanes // self.plan.parts
        width = self.plan.lanes * self.plan.vectors_at_once
        while width >= narrow:
            least, certain = self._least(width, narrow)
            is_used = loops.less(least - 1, loops.sub(stop, begin))
            emit = self._whole_or_masked(width, certain, (start, begin, stop), vector)
            loops.if_else(is_used, emit)
            after = loops.minimum(loops.add(begin, width), stop)
            begin = loops.select(is_used, after, begin)
            width //= 2

    def _whole_or_masked(
        self, width: int, certain: int, ends: tuple[Index, ...], vector: Callable[..., Carried]
    ) -> Callable[[], None]:
        """A vector from the second of `ends` on, which has at least `certain` valid lanes."""
        start, begin, stop = ends

        def whole() -> None:
            base = loops.minimum(begin, loops.sub(stop, width))
            vector(loops.value(base), None, width, is_aligned=False)

        def masked() -> None:
            keep = loops.mask(loops.sub(stop, begin), width, certain)
            vector(loops.value(begin), keep, width)

        has_room = loops.less(width - 1, loops.sub(stop, start))
        return partial(loops.if_else, has_room, whole, masked)

    def _least(self, width: int, narrow: int) -> tuple[int, int]:
        """The least rest for which a vector is used, and the lanes that are valid then."""
        if width == narrow:
            return 1, 0
        if self.kernel.vectors.bytes < 64:
            # Masks are vectors there, which LLVM does not split.
            return width // 2 + width // 4 // narrow * narrow + 1, 0
        # Each masked vector needs one of seven mask registers.
        if width <= 4 * narrow:
            return width // 2 + 1, width // 2
        return width // 4 * 3, width // 4 * 3

    def _is_repeatable(self) -> bool:
        """Whether lanes may be several vectors, and elements may be computed twice.

        The latter needs that nothing is read after it was written.
        """
        if self.plan.parts == 1 or len(self.nest.stages) > 1 or len(self.plan.lane_axes) > 1:
            return False
        (stage,) = self.nest.stages
        placement = self.kernel.placement
        spots = [placement.spot(result) for result in stage.results]
        read = {placement.spot(access.tensor) for access in placement.inlining.reads(stage)}
        owners = {spot.owner for spot in read if spot is not None}
        starts = all(isinstance(init.tensor, Splat) for init in stage.inits)
        return starts and all(spot is None or spot.owner not in owners for spot in spots)

    def _is_straight(self) -> bool:
        """Whether a vector takes few instructions and no loops."""
        clusters = self.plan.clusters
        alone = len(clusters) == 1 and not clusters[0].axes
        reduces = any(stage.has_reduction for stage in self.nest.stages)
        return alone and not reduces and is_short(self.evaluator, self.nest.stages)

    def _by_length(self, emit: Callable[[ShortRow | None], None]) -> None:
        """Emits code for each length of short rows, if there may be any, and for long rows."""
        inlining, vectors = self.kernel.placement.inlining, self.kernel.vectors
        short_row = row_extent(self.plan, self.extents, self.combiners, inlining, vectors)
        if short_row is None:
            emit(None)
        else:
            emit_by_length(*short_row, emit)

    def _has_short_rows(self, short: ShortRow | None) -> bool:
        """Whether rows are so short that their passes are bound by latency."""
        if self.plan.lane_axes:
            return False
        inner = [cluster.axes for cluster in self.plan.clusters if cluster.axes]
        if len(inner) < 2 or any(len(axes) > 1 for axes in inner):
            return False
        max_elements = _SHORT_VECTORS * self.plan.lanes
        if short is not None:
            return short.vectors <= _SHORT_VECTORS
        extents = [self.extents[axis] for (axis,) in inner]
        return all(isinstance(extent, int) and extent <= max_elements for extent in extents)

    def _row(self, point: Point, short: ShortRow | None = None) -> None:
        """Emits all stages for one iteration of the common axes."""
        self._rows([point], short)

    def _rows(self, points: list[Point], short: ShortRow | None = None) -> None:
        """Emits all stages for some iterations of the common axes, cluster by cluster."""
        evaluator = self.evaluator
        evaluator.has_padded_rows = short is not None
        buffers, states = [], []
        for point in points:
            evaluator.registers, evaluator.rows = {}, {}
            for stage in self.nest.stages:
                for result in stage.results:
                    if self._needs_row(stage, result):
                        buffers.append(self._allocate_row(stage, result, point, short))
            states.append((point, evaluator.registers, evaluator.rows))
        for cluster in self.plan.clusters:
            for point, evaluator.registers, evaluator.rows in states:
                ClusterEmitter(
                    evaluator, self.plan, self.extents, self.combiners, cluster, point, short
                ).emit()
        for buffer in reversed(buffers):
            memref.dealloc(buffer)
        evaluator.registers, evaluator.rows = {}, {}

    def _needs_row(self, stage: Stage, result: Computed) -> bool:
        if self.kernel.placement.spot(result) is not None or not result_axes(self.nest, stage):
            return False
        cluster = next(c for c in self.plan.clusters if stage in c.stages)
        readers = [reader for reader, _ in self.kernel.placement.reads_of(result)]
        return any(reader not in cluster.stages for reader in readers)

    def _allocate_row(
        self, stage: Stage, result: Computed, point: Point, short: ShortRow | None
    ) -> ir.Value:
        """A buffer for one row of a result: its view has stride zero along the common axes."""
        axes = self.nest.axes[stage]
        own = [use.dim for use in uses_of(stage.inits[result.index].indices)]
        sizes = self.kernel.sizes(result)
        inner = set(self.nest.inner(stage))
        inner_dims = [i for i, dim in enumerate(own) if dim is not None and axes[dim] in inner]
        lanes = point.lanes if self.plan.lane_axes else 1
        steps = [loops.mul(s, lanes) for s in row_major([sizes[i] for i in inner_dims])]
        count = loops.mul(*(sizes[i] for i in inner_dims), lanes)
        if short is not None:
            count = short.vectors * self.plan.lanes
        buffer = self.kernel.allocate(count, result.element)
        strides: list[Index] = [0] * len(sizes)
        for position, step in zip(inner_dims, steps, strict=True):
            strides[position] = step
        offset: Index = 0
        for position, dim in enumerate(own):
            if dim is not None and axes[dim] in self.plan.lane_axes:
                strides[position] = 1
                lane = point.index[axes[dim]]
                assert isinstance(lane, Ramp | Uniform), "rows have one lane axis"
                offset = loops.sub(0, lane.base if isinstance(lane, Ramp) else lane.value)
        self.evaluator.rows[result] = View(buffer, result.element, offset, sizes, tuple(strides))
        return buffer


def _delinearize(p: Index, counts: Sequence[Index]) -> list[Index]:
    """The indices of iteration p of nested loops."""
    indices: list[Index] = []
    for position in reversed(range(1, len(counts))):
        alone = all(count == 1 for count in counts[:position])
        p, index = (0, p) if alone else loops.divided(p, counts[position])
        indices.append(index)
    return [p, *reversed(indices)]
