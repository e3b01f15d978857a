"""Nests that read along one axis and write along another: tiles through memory of the group.

    %y[j, i] = f(%x[i, j])    ->    group (i0, j0), thread (t, s):
                                      tile[i, j] = %x[i, j]      j = j0 + t; i = i0 + s, + 8, ..
                                      barrier
                                      %y[j, i] = f(tile[i, j])   i = i0 + t; j = j0 + s, + 8, ..

Threads next to each other, which differ in t, access elements next to each other on both sides.
Rows of the tile are one element longer, so that those of a column are in different banks. The host
has a thread for each element where an extent is short.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from relax_mlir.bindings import ir, memref
from relax_mlir.dialects.graph import element_bits
from relax_mlir.program.access import Use, root_of, uses_of
from relax_mlir.program.nests import Nest
from relax_mlir.program.placement import Placement
from relax_mlir.program.program import Computed, Stage, Tensor, all_known
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane
from relax_mlir.schedule.build.evaluate import Evaluator, Point
from relax_mlir.schedule.build.lanes import Lane, Uniform, scalar
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.memory import View, load
from relax_mlir.schedule.nests.plan import collapsed_around

from .launch import POINT_THREADS, Group, barrier, for_groups, unraveled
from .points import PointNest, joined_indices
from .stored import converted, stored_type

TILE = 32
"""Rows and columns of a tile."""
SHORT = 8
"""Shorter rows or columns have no tiles."""
WORD = 32
"""Bits that an element takes in memory of a group, at least: some devices have no less."""

Axes = tuple[int, ...]
"""Axes that are one."""


@dataclass
class TransposeNest(PointNest):
    """Emits a nest that reads along `rows` and writes along `columns`."""

    rows: Axes = field(kw_only=True)
    columns: Axes = field(kw_only=True)

    def emit(self) -> None:
        """Emits the launches at the insertion point: the host decides by extents."""
        self.prepare()
        shortest = loops.minimum(*(self._extent(axes) for axes in (self.rows, self.columns)))
        loops.if_else(loops.less(shortest, SHORT), self.by_element, self._by_tile)

    def _extent(self, axes: Axes) -> Index:
        return loops.mul(1, *(self.extents[axis] for axis in axes))

    def _by_tile(self) -> None:
        """Emits a launch of a group for each tile."""
        outer = [axis for axis in self.nest.common if axis not in (*self.rows, *self.columns)]
        sizes = [self._extent(axes) for axes in (self.rows, self.columns)]
        tiles = [loops.ceil_div(size, TILE) for size in sizes]
        counts = [*(self.extents[axis] for axis in outer), *tiles]

        def tile(group: Group) -> None:
            *own, row, column = unraveled(group.index, counts)
            at: dict[int, IndexLane] = dict(zip(outer, map(Uniform, own), strict=True))
            first = loops.mul(row, TILE), loops.mul(column, TILE)
            copied: dict[int, ir.Value] = {}
            for is_copy in (True, False):
                if not is_copy:
                    barrier()
                self._pass(group, at, first, sizes, copied, is_copy)

        threads = min(POINT_THREADS, self.device.workgroup)
        for_groups(loops.mul(1, *counts), threads, self.device, tile)

    def _pass(
        self, group: Group, outer: dict[int, IndexLane], first: Sequence[Index],
        sizes: Sequence[Index], copied: dict[int, ir.Value], is_copy: bool,
    ) -> None:  # fmt: skip
        """Emits a loop over the elements of a tile that a thread copies, or computes."""
        along, line = loops.mod(group.thread, TILE), loops.floor_div(group.thread, TILE)

        def one(offset: ir.Value) -> None:
            across = loops.add(line, offset)
            row, column = (along, across) if is_copy else (across, along)
            flat = loops.add(first[0], row), loops.add(first[1], column)
            lanes = [
                joined_indices(index, tuple(self.extents[axis] for axis in axes))
                for index, axes in zip(flat, (self.rows, self.columns), strict=True)
            ]
            at = loops.value(loops.add(loops.mul(column, TILE + 1), row))
            self.evaluator = TileEvaluator(
                self.kernel, group=group, nest=self.nest, lanes=lanes, at=at, copied=copied,
                is_copy=is_copy,
            )  # fmt: skip
            index = outer | dict(zip((*self.rows, *self.columns), (*lanes[0], *lanes[1])))
            is_inside = loops.and_(*map(loops.less, flat, sizes))
            loops.if_else(is_inside, lambda: self.clusters_at(Point(index=index), self.by_thread))

        loops.for_range(0, TILE, group.threads // TILE, one)


@dataclass
class TileEvaluator(Evaluator):
    """Copies elements that lie along rows to memory of the group, or reads them there.

    Both evaluate the same stages: what is not needed of copying is removed later, stores are left
    out at once. `lanes` are the indices of rows and columns, `at` is the position of an element in
    what is `copied`, by the order in which stages read it.
    """

    group: Group = field(kw_only=True)
    nest: Nest = field(kw_only=True)
    lanes: Sequence[Sequence[IndexLane]] = field(kw_only=True)
    at: ir.Value = field(kw_only=True)
    copied: dict[int, ir.Value] = field(kw_only=True)
    is_copy: bool = field(kw_only=True)
    _count: int = 0

    def write(self, view: View, indices: Sequence[IndexLane], lane: Lane, point: Point) -> None:
        """Stores one element, unless elements are copied."""
        if not self.is_copy:
            super().write(view, indices, lane, point)

    def _load_or_compute(self, source: Tensor, indices: Sequence[IndexLane], point: Point) -> Lane:
        view = self.kernel.view(source)
        if view is None or not self._is_transposed(source, view, indices):
            return super()._load_or_compute(source, indices, point)
        slot, self._count = self._count, self._count + 1
        if self.is_copy:
            x = scalar(load(view, indices, 1))
            kind = stored_type(x.type, self.group.device)
            if self._fits(kind):
                self.copied[slot] = self.group.memory(TILE * (TILE + 1), kind, slot)
                memref.store(converted(x, kind), self.copied[slot], [self.at])
            return Uniform(x)
        if slot not in self.copied:
            return super()._load_or_compute(source, indices, point)
        return Uniform(converted(memref.load(self.copied[slot], [self.at]), view.element))

    def _is_transposed(self, source: Tensor, view: View, indices: Sequence[IndexLane]) -> bool:
        """Whether elements of a tensor, which no stage of the nest computes, lie along rows."""
        root, (rows, columns) = root_of(source), self.lanes
        if isinstance(root, Computed) and root.stage in self.nest.stages:
            return False
        along = [x for x, stride in zip(indices, view.strides, strict=True) if stride == 1]
        return rows[-1] in along and any(column in indices for column in columns)

    def _fits(self, kind: ir.Type) -> bool:
        """Whether the group has memory for one more tile of a type."""
        kinds = [kind, *(ir.MemRefType(x.type).element_type for x in self.copied.values())]
        bits = sum(max(WORD, element_bits(each)) for each in kinds)
        return TILE * (TILE + 1) * bits // 8 <= self.group.device.shared_bytes


def transposed_axes(nest: Nest, placement: Placement) -> tuple[Axes, Axes] | None:
    """The axes along which a nest reads and writes, if they are not the same; else None.

    Nests have no inner axes. Other reads may be along the axes of writes, or others.
    """
    stage = nest.stages[-1]
    written = _axes_of(nest, stage, uses_of(stage.inits[0].indices))
    if not written:
        return None
    for each in nest.stages:
        for access in placement.inlining.reads(each):
            read = _axes_of(nest, each, access.shown or ())
            if written[-1] in read[:-1] and read[-1] != written[-1]:
                axes = [collapsed_around(nest, own[-1], placement) for own in (read, written)]
                return None if any(_is_short(nest, own) for own in axes) else (axes[0], axes[1])
    return None


def _axes_of(nest: Nest, stage: Stage, uses: Sequence[Use]) -> list[int]:
    """The axes of an access, outermost first; none if an index is computed."""
    if not all(use.plain for use in uses):
        return []
    return [axis for use in uses for axis in nest.use_axes(stage, use)]


def _is_short(nest: Nest, axes: Axes) -> bool:
    """Whether extents are known to be short."""
    extents = all_known(nest.extent(axis) for axis in axes)
    return extents is not None and prod(extents) < SHORT
