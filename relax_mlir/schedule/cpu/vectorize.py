"""Emits nests of stages as loops with vector bodies.

    scf.parallel over the common axes            rows, or blocks of the lane axis
      scf.for along the lanes                    full vectors, then one masked vector
        loads, body, stores

Main loops work on full vectors; what is left of an extent is one masked iteration, which is left
out where the extent divides. Reductions along the lanes keep several vectors of partial results.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from relax_mlir.bindings import ir, memref

from . import loops
from .access import root_of, uses_of
from .affine import IndexLane, Part
from .cluster import ClusterEmitter, is_short, kept_axes
from .combine import Combiner
from .evaluate import Evaluator, Point, Tile
from .kernel import Kernel
from .lane_loops import UNROLL, Carried, ShortRow, unrolled, vector_range
from .lanes import Ramp, Uniform
from .loops import Index
from .memory import View, row_major
from .nests import Nest
from .plan import Plan, block_of
from .program import Computed, Reshape, Slice, Splat, Stage
from .short_rows import by_length, row_extent

_TASK_WORK = 1 << 15
_SERIAL_WORK = 1 << 12
_FEW_ROWS = 5  # fewer are faster to gather than to transpose
_TOGETHER, _SHORT_VECTORS = 4, 2  # rows at a time, if they have at most so many vectors
_Tiles = Callable[[Point, Index, Index, Index], None]
_NEAR = 1 << 17  # elements that are transposed within the second-level cache


@dataclass
class NestEmitter:
    """Emits one nest as its plan says; `combiners` holds the reductions that lanes may split."""

    kernel: Kernel
    plan: Plan
    combiners: dict[Stage, Combiner | None]
    evaluator: Evaluator
    extents: dict[int, Index] = field(default_factory=dict)

    @property
    def nest(self) -> Nest:
        """The nest that is emitted."""
        return self.plan.nest

    @property
    def _tile_axis(self) -> int:
        """The axis that squares have besides the lanes."""
        assert self.plan.tile_axis is not None
        return self.plan.tile_axis

    def emit(self) -> None:
        """Emits the whole nest at the insertion point."""
        self._prepare()
        plan, lane_axes = self.plan, self.plan.lane_axes
        outer = [a for a in self.nest.common if a not in lane_axes and a != plan.tile_axis]
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

        def task(p: ir.Value | int, short: ShortRow | None, tiles: _Tiles | None) -> None:
            *indices, row, number = _unflatten(p, counts)
            point = point_at(indices)
            if not lane_axes:
                self._row(point, short)
                return
            start = 0 if single else loops.mul(number, block)
            stop = flat if single else loops.minimum(flat, loops.add(start, block))
            exact = isinstance(flat, int) and flat % plan.lanes == 0
            if tiles is None:
                self._lane_loop(point, start, stop, exact)
            else:
                tiles(point, loops.mul(row, plan.lanes), start, stop)

        def all_tasks(short: ShortRow | None, tiles: _Tiles | None = None) -> None:
            work = self._task_work(None if short is None else short.vectors * plan.lanes)
            count = loops.mul(*counts)
            if self._has_short_rows(short):
                self._run_groups(count, work, lambda p: point_at(_unflatten(p, counts)), short)
            else:
                self._run_tasks(count, work, lambda p: task(p, short, tiles))

        if plan.tile_axis is None:
            self._by_length(all_tasks)
        else:
            self._by_room(partial(all_tasks, None))

    def _by_room(self, emit: Callable[["_Tiles"], None]) -> None:
        """Emits code for what squares are as large as, and for what has no room for one.

        Where none fits, there are parts of squares by masks, if the machine has registers for
        those.
        """
        lanes, has_masks = self.plan.lanes, self.kernel.target.vector_bytes >= 64
        (lane_axis,) = self.plan.lane_axes
        extent, width = self.extents[self._tile_axis], self.extents[lane_axis]

        def squares() -> None:
            is_near = loops.less(loops.mul(extent, width), _NEAR)
            loops.if_else(
                is_near,
                lambda: emit(partial(self._squares, fetches=False)),
                lambda: emit(partial(self._squares, fetches=True)),
            )

        def parts() -> None:
            few = loops.less(extent, _FEW_ROWS) if has_masks else True
            loops.if_else(few, lambda: emit(self._row_by_row), lambda: emit(self._parts))

        fits = loops.both(loops.less(lanes - 1, extent), loops.less(lanes - 1, width))
        loops.if_else(fits, squares, parts)

    def _row_by_row(self, point: Point, first: Index, start: Index, stop: Index) -> None:
        """The rows of a square one by one."""

        def one(i: ir.Value) -> None:
            self._lane_loop(point.at(self._tile_axis, Uniform(i)), start, stop, False)

        end = loops.minimum(loops.add(first, self.plan.lanes), self.extents[self._tile_axis])
        loops.for_range(first, end, 1, one)

    def _squares(
        self, point: Point, first: Index, start: Index, stop: Index, fetches: bool
    ) -> None:
        """Squares from `first` on along the tile axis, and from `start` to `stop` along the lanes.

        The last ones are moved back, to where they fit, and overlap the ones before.
        """
        lanes, axis = self.plan.lanes, self._tile_axis
        (lane_axis,) = self.plan.lane_axes
        top = loops.value(loops.minimum(first, loops.sub(self.extents[axis], lanes)))

        def square(base: ir.Value) -> None:
            moved = loops.minimum(base, loops.sub(self.extents[lane_axis], lanes))
            column = Ramp(loops.value(moved), 1, 1, True)
            rows = [Uniform(loops.add(top, i)) for i in range(lanes)]
            tile = Tile(rows, Ramp(top, 1, 1, True), column, fetches)
            for i, row in enumerate(rows):
                index: dict[int, IndexLane] = {**point.index, axis: row, lane_axis: column}
                self._row(Point(lanes, None, index, tile=tile, row=i))

        loops.for_range(start, stop, lanes, square)

    def _parts(self, point: Point, first: Index, start: Index, stop: Index) -> None:
        """Parts of squares, by the least code that has all rows and columns that there are."""
        lanes = self.plan.lanes
        (lane_axis,) = self.plan.lane_axes
        extent, width = self.extents[self._tile_axis], self.extents[lane_axis]
        heights, widths = (lanes // 2, lanes), (lanes // 4, lanes // 2, lanes)

        def along(columns: int | None, rows: int) -> None:
            loops.for_range(
                start, stop, lanes, lambda base: self._part(point, first, base, rows, columns)
            )

        def narrow() -> None:
            loops.if_else(
                loops.less(extent, lanes),
                lambda: _by_count(extent, heights, partial(along, lanes)),
                lambda: _by_count(width, widths, partial(self._part, point, first, 0, None)),
            )

        loops.if_else(
            loops.less(width, lanes),
            narrow,
            lambda: _by_count(extent, heights, partial(along, None)),
        )

    def _part(
        self, point: Point, first: Index, base: Index, most_rows: int | None, columns: int | None
    ) -> None:
        """The part of a square that there is, of so many rows and columns at most.

        None stands for as many as a square has: the last ones are moved back to where they fit.
        """
        lanes, axis = self.plan.lanes, self._tile_axis
        (lane_axis,) = self.plan.lane_axes
        extent, width = self.extents[axis], self.extents[lane_axis]
        here = there = mask = None
        if most_rows is None:
            first = loops.minimum(first, loops.sub(extent, lanes))
        else:
            here = loops.minimum(loops.sub(extent, first), lanes)
        if columns is None:
            base = loops.minimum(base, loops.sub(width, lanes))
        else:
            there = loops.minimum(loops.sub(width, base), lanes)
            mask = loops.mask(there, lanes)

        last = loops.sub(extent, 1)
        numbers = range(most_rows or lanes)
        places = [loops.add(first, i) for i in numbers]
        rows = [Uniform(p if here is None else loops.minimum(p, last)) for p in places]
        down, column = Ramp(loops.value(first), 1, 1, True), Ramp(loops.value(base), 1, 1, True)
        tile = Tile(rows, down, column, False, here, there, columns)
        for i in numbers if here is None else reversed(numbers):
            index: dict[int, IndexLane] = {**point.index, axis: rows[i], lane_axis: column}
            self._row(Point(lanes, mask, index, tile=tile, row=i))

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
        """Several rows at a time, so that the passes of one need not wait for each other."""
        groups = loops.floor_div(count, _TOGETHER)
        rest = loops.mul(groups, _TOGETHER)

        def group(number: Index) -> None:
            first = loops.mul(number, _TOGETHER)
            self._rows([point_at(loops.add(first, i)) for i in range(_TOGETHER)], short)

        self._run_tasks(groups, loops.mul(work, _TOGETHER), group)
        if rest != count:
            loops.for_range(rest, count, 1, lambda p: self._row(point_at(p), short))

    def _task_work(self, row: int | None) -> Index:
        """Rough number of scalar iterations of a task, whose rows have at most `row` elements."""
        nest, plan = self.nest, self.plan
        terms: list[Index] = []
        for stage in nest.stages:
            terms.append(loops.mul(*(row or self.extents[axis] for axis in nest.inner(stage))))
        wide: Index = block_of(plan) if plan.lane_axes else 1
        width = loops.mul(*(self.extents[axis] for axis in plan.lane_axes))
        if isinstance(width, int) or len(nest.common) > len(plan.lane_axes):
            wide = loops.minimum(width, wide)
        return loops.mul(loops.add(*terms), wide, 1 if plan.tile_axis is None else plan.lanes)

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

        def vector(
            base: ir.Value, mask: ir.Value | None, lanes: int, is_aligned: bool = True
        ) -> Carried:
            flat = Ramp(base, 1, lanes if is_aligned else 1, True)
            index = dict(point.index)
            if len(axes) == 1:
                index[axes[0]] = flat
            else:
                index |= {a: Part(flat, extents, i) for i, a in enumerate(axes)}
            self._row(Point(lanes, mask, index))
            return []

        lanes = self.plan.lanes
        together = lanes * (UNROLL if self._is_straight() else self.plan.wide)
        if together > lanes:
            middle = loops.sub(stop, loops.mod(loops.sub(stop, start), together))
            if self.plan.wide > 1:
                loops.for_range(start, middle, together, lambda b: vector(b, None, together))
            elif not (isinstance(middle, int) and middle == start):
                unrolled(
                    self.evaluator, start, middle, lanes, lambda b, _, c: vector(b, None, lanes)
                )
            start = middle
        if self._is_repeatable() and not isinstance(stop, int):
            self._rest(start, stop, vector)
        else:
            vector_range(start, stop, lanes, lambda b, m, _: vector(b, m, lanes), exact=exact)

    def _rest(self, start: Index, stop: Index, vector: Callable[..., Carried]) -> None:
        """What is left of a block, by wide vectors as far as they are used, then by narrow ones.

        Each is whole: the last one is moved back to where it fits. Blocks that have no room for it
        get a mask.
        """
        begin, narrow = start, self.plan.lanes // self.plan.parts
        width = self.plan.lanes * self.plan.wide
        while width >= narrow:
            rest = loops.sub(stop, begin)
            is_used = loops.less(width // 2 + width // 4 // narrow * narrow, rest)
            if width == narrow:
                is_used = loops.less(0, rest)
            loops.if_else(is_used, self._whole_or_masked(width, start, begin, stop, vector))
            after = loops.minimum(loops.add(begin, width), stop)
            begin = loops.choose(is_used, loops.value(after), loops.value(begin))
            width //= 2

    def _whole_or_masked(
        self, width: int, start: Index, begin: Index, stop: Index, vector: Callable[..., Carried]
    ) -> Callable[[], None]:
        has_room = loops.less(width - 1, loops.sub(stop, start))

        def whole() -> None:
            base = loops.minimum(begin, loops.sub(stop, width))
            vector(loops.value(base), None, width, is_aligned=False)

        def masked() -> None:
            vector(loops.value(begin), loops.mask(loops.sub(stop, begin), width), width)

        return lambda: loops.if_else(has_room, whole, masked)

    def _is_repeatable(self) -> bool:
        """Whether lanes may be several vectors, and elements be computed twice.

        They may if nothing that is read was written before.
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
        """Whether one vector takes few instructions and no loops."""
        clusters = self.plan.clusters
        alone = len(clusters) == 1 and not clusters[0].axes
        reduces = any(stage.has_reduction for stage in self.nest.stages)
        return alone and not reduces and is_short(self.evaluator, self.nest.stages)

    def _by_length(self, emit: Callable[[ShortRow | None], None]) -> None:
        """Emits code for each length of short rows, if the nest may have them, and for others."""
        inlining, target = self.kernel.placement.inlining, self.kernel.target
        found = row_extent(self.plan, self.extents, self.combiners, inlining, target)
        if found is None:
            emit(None)
        else:
            by_length(*found, emit)

    def _has_short_rows(self, short: ShortRow | None) -> bool:
        """Whether rows are so short that their passes mostly wait for one another."""
        if self.plan.lane_axes:
            return False
        inner = [cluster.axes for cluster in self.plan.clusters if cluster.axes]
        if len(inner) < 2 or any(len(axes) > 1 for axes in inner):
            return False
        most = _SHORT_VECTORS * self.plan.lanes
        if short is not None:
            return short.vectors <= _SHORT_VECTORS
        extents = [self.extents[axis] for (axis,) in inner]
        return all(isinstance(extent, int) and extent <= most for extent in extents)

    def _row(self, point: Point, short: ShortRow | None = None) -> None:
        """All stages for one iteration of the common axes."""
        self._rows([point], short)

    def _rows(self, points: list[Point], short: ShortRow | None = None) -> None:
        """All stages for some iterations of the common axes, cluster by cluster."""
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
        if self.kernel.placement.spot(result) is not None or not kept_axes(self.nest, stage):
            return False
        cluster = next(c for c in self.plan.clusters if stage in c.stages)
        readers = [reader for reader, _ in self.kernel.placement.reads_of(result)]
        return any(reader not in cluster.stages for reader in readers)

    def _allocate_row(
        self, stage: Stage, result: Computed, point: Point, short: ShortRow | None
    ) -> ir.Value:
        """A buffer for one row of a result: its view has stride zero along the common axes."""
        axes = self.nest.axes[stage]
        own = [use.dim for use in uses_of(stage.inits[result.number].indices)]
        sizes = self.kernel.sizes(result)
        inner = set(self.nest.inner(stage))
        kept = [i for i, dim in enumerate(own) if dim is not None and axes[dim] in inner]
        lanes = point.lanes if self.plan.lane_axes else 1
        steps = [loops.mul(s, lanes) for s in row_major([sizes[i] for i in kept])]
        count = loops.mul(*(sizes[i] for i in kept), lanes)
        if short is not None:
            count = short.vectors * self.plan.lanes
        buffer = self.kernel.allocate(count, result.element)
        strides: list[Index] = [0] * len(sizes)
        for position, step in zip(kept, steps, strict=True):
            strides[position] = step
        offset: Index = 0
        for position, dim in enumerate(own):
            if dim is not None and axes[dim] in self.plan.lane_axes:
                strides[position] = 1
                lane = point.index[axes[dim]]
                assert isinstance(lane, Ramp), "rows are kept along one lane axis"
                offset = loops.sub(0, lane.base)
        self.evaluator.rows[result] = View(buffer, result.element, offset, sizes, tuple(strides))
        return buffer


def _by_count(count: Index, counts: Sequence[int], emit: Callable[[int], object]) -> None:
    """Emits `emit` for the least of the counts that is not below a count."""
    least, *more = counts
    is_least = loops.less(count, least + 1) if more else True
    loops.if_else(is_least, lambda: emit(least), lambda: _by_count(count, more, emit))


def _unflatten(p: Index, counts: Sequence[Index]) -> list[Index]:
    """Row-major indices of iteration p of nested loops."""
    found: list[Index] = []
    for position in reversed(range(1, len(counts))):
        alone = all(count == 1 for count in counts[:position])
        p, index = (0, p) if alone else loops.divided(p, counts[position])
        found.append(index)
    return [p, *reversed(found)]
