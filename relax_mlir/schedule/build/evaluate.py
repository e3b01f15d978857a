"""Evaluates stages at points of their loops: loads, bodies, inlined producers.

A point is one iteration of all enclosing loops: each index is a scalar, or runs along the lanes.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, ir, memref, tensor
from relax_mlir.program.body_part import BodyPart
from relax_mlir.program.program import (
    Computed,
    Empty,
    Operand,
    Reshape,
    Slice,
    Splat,
    Stage,
    Tensor,
)

from . import loops
from .affine import IndexLane, evaluate, modulo, plus, quotient, resolve, times
from .body import emit_values
from .deinterleave import interleave
from .kernel import Kernel
from .lanes import Lane, Ramp, Uniform, Varying, to_vector, value_of
from .loops import Index
from .memory import View, load, row_major, store
from .transposes import transpose

_PREFETCH_DISTANCE = 2  # squares


@dataclass
class Tile:
    """A square of points, as many `rows` as lanes; `column` is the lane axis.

    `along_rows` is the row axis as lanes. Operands that are contiguous along it are loaded once for
    all rows and transposed; if it `prefetches`, those of later squares are prefetched.

    A part of a square has only `height` rows and `width` columns, at most `max_width`. Rows and
    columns after the last one repeat it, so rows have to be stored from the last to the first.
    `stored` are the offsets of the last stored row: each is computed from the one before, since
    the multiples of a stride for all rows would not fit the registers.
    """

    rows: list[Uniform]
    along_rows: Ramp
    column: Ramp
    prefetches: bool
    height: Index | None = None
    width: Index | None = None
    max_width: int | None = None
    transposed: dict[tuple, list[ir.Value]] = field(default_factory=dict)
    stored: dict[tuple, Index] = field(default_factory=dict)


@dataclass
class Point:
    """One iteration: indices by axis, and values that were loaded or computed in it."""

    lanes: int = 1
    mask: ir.Value | None = None
    index: dict[int, IndexLane] = field(default_factory=dict)
    known: dict[tuple, Lane] = field(default_factory=dict)
    forwarded: dict[Computed, Lane] = field(default_factory=dict)
    tile: Tile | None = None
    row: int = 0

    def inside(self) -> "Point":
        """The same point without computed values."""
        return Point(self.lanes, self.mask, self.index, tile=self.tile, row=self.row)

    def at(self, axis: int, lane: IndexLane) -> "Point":
        """This point with one more index."""
        return Point(self.lanes, self.mask, {**self.index, axis: lane})


@dataclass
class Evaluator:
    """Reads tensors and runs the blocks of stages.

    `registers` has results of one value a row, `rows` the views of results in scratch memory for
    one row, which are padded to whole vectors if `has_padded_rows`.
    """

    kernel: Kernel
    registers: dict[Computed, Lane] = field(default_factory=dict)
    rows: dict[Computed, View] = field(default_factory=dict)
    has_padded_rows: bool = False
    _pending: list[Callable[[], None]] | None = None
    _strided: list[tuple[View, Index, ir.Value]] | None = None

    @contextmanager
    def stores_at_end(self) -> Iterator[None]:
        """Emits the stores of the `with` block after its loads.

        A load after a store stalls if the low bits of their addresses are equal (4K aliasing).
        """
        self._pending = []
        yield
        pending, self._pending = self._pending, None
        for emit in pending:
            emit()

    @contextmanager
    def interleaves(self, mask: ir.Value | None) -> Iterator[None]:
        """Emits the stores of the `with` block, of lanes a step apart that fill each other's gaps.

        They are in order, and as many as the step; `mask` is that of each.
        """
        self._strided = []
        yield
        stored, self._strided = self._strided, None
        view, first, _ = stored[0]
        masks = None if mask is None else interleave([mask] * len(stored))
        lanes = ir.VectorType(stored[0][2].type).shape[0]

        def emit() -> None:
            for i, x in enumerate(interleave([x for _, _, x in stored])):
                at = loops.add(first, i * lanes)
                loops.store(x, view.base, at, None if masks is None else masks[i])

        if self._pending is None:
            emit()
        else:
            self._pending.append(emit)

    def write(self, view: View, indices: Sequence[IndexLane], lane: Lane, point: Point) -> None:
        """Stores one element a lane, now or at the end of `stores_at_end` or `interleaves`."""
        if self._strided is not None:
            offset = view.at(indices, point.lanes)
            assert isinstance(offset, Ramp), "lanes lie a step apart"
            self._strided.append((view, offset.base, to_vector(lane, point.lanes)))
            return

        def emit() -> None:
            tile = point.tile
            offset = None if tile is None else self._row_offset(view, indices, point, tile)
            if offset is None:
                store(view, indices, lane, point.lanes, self._mask(view, point))
            else:
                loops.store(to_vector(lane, point.lanes), view.base, offset, point.mask)

        if self._pending is None:
            emit()
        else:
            self._pending.append(emit)

    def _mask(self, view: View, point: Point) -> ir.Value | None:
        """The lanes to load or store; all of a padded row, which LLVM can keep in registers."""
        is_padded = self.has_padded_rows and any(view is row for row in self.rows.values())
        return None if is_padded else point.mask

    def read(self, source: Tensor, indices: Sequence[IndexLane], point: Point) -> Lane:
        """One element a lane of a tensor, from a register, from memory, or computed."""
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
            point.known[key] = self._load_or_compute(source, indices, point)
        return point.known[key]

    def _load_or_compute(self, source: Tensor, indices: Sequence[IndexLane], point: Point) -> Lane:
        row = self.rows.get(source) if isinstance(source, Computed) else None
        view = row or self.kernel.view(source)
        if view is not None:
            tile = point.tile
            transposed = None if tile is None else self._transposed(view, indices, point, tile)
            return transposed or load(view, indices, point.lanes, self._mask(view, point))
        lanes = point.lanes
        if isinstance(source, Slice):
            return self.read(source.source, self._slice_indices(source, indices, lanes), point)
        if isinstance(source, Reshape):
            return self.read(source.source, self._reshape_indices(source, indices, lanes), point)
        assert isinstance(source, Computed), "inputs are in memory"
        stage = source.stage
        own: list[IndexLane] = [Uniform(0)] * len(stage.extents)
        for expression, index in zip(stage.inits[0].indices, indices, strict=True):
            own[ir.AffineDimExpr(expression).position] = index
        values = self.evaluate(stage, own, point, ())
        return values(yielded(stage)[0])

    def _transposed(
        self, view: View, indices: Sequence[IndexLane], point: Point, tile: Tile
    ) -> Lane | None:
        """This row of a square with contiguous columns; None if the access is not such a square."""
        lanes = point.lanes
        axes = _square_axes(view, indices, tile, point.row)
        if axes is None or view.strides[axes[0]] != 1:
            return None
        row_dim, column_dim = axes
        key = (view, *_square_key(indices, axes))
        if key not in tile.transposed:
            at, step = list(indices), view.strides[column_dim]
            at[row_dim] = Uniform(tile.along_rows.base)
            at[column_dim] = Uniform(tile.column.base)
            first = value_of(view.at(at, 1))
            later = loops.add(first, loops.mul(step, _PREFETCH_DISTANCE * lanes))
            columns = []
            mask = None if tile.height is None else loops.mask(tile.height, lanes)
            for i in range(tile.max_width or lanes):
                columns.append(loops.load(view.base, first, lanes, mask))
                first = loops.add(first, _step_to(i + 1, tile.width, step))
                if tile.prefetches:
                    memref.prefetch(view.base, [loops.value(later)], False, 2, True)
                    later = loops.add(later, step)
            columns += [columns[-1]] * (lanes - len(columns))
            tile.transposed[key] = transpose(columns)
        return Varying(tile.transposed[key][point.row])

    def _row_offset(
        self, view: View, indices: Sequence[IndexLane], point: Point, tile: Tile
    ) -> Index | None:
        """The offset of this row of a square; None if it is not contiguous."""
        axes = _square_axes(view, indices, tile, point.row)
        if axes is None or view.strides[axes[1]] != 1:
            return None
        row_dim, column_dim = axes
        key = (view, *_square_key(indices, axes))
        step = view.strides[row_dim]
        if key in tile.stored and tile.height is None:
            tile.stored[key] = loops.add(tile.stored[key], step)
        elif key in tile.stored:
            step = _step_to(point.row + 1, tile.height, step)
            tile.stored[key] = loops.sub(tile.stored[key], step)
        else:
            at = list(indices)
            at[column_dim] = Uniform(tile.column.base)
            tile.stored[key] = value_of(view.at(at, 1))
        return tile.stored[key]

    def _slice_indices(
        self, source: Slice, indices: Sequence[IndexLane], lanes: int
    ) -> list[IndexLane]:
        window, inner = source.window, iter(indices)
        result: list[IndexLane] = []
        for position in range(len(window.offsets)):
            offset = Uniform(self.kernel.map_index(window.offsets[position]))
            if position in window.dropped:
                result.append(offset)
                continue
            stride = Uniform(self.kernel.map_index(window.strides[position]))
            scaled = times(resolve(next(inner), lanes), stride, lanes)
            result.append(plus(scaled, offset, lanes))
        return result

    def _reshape_indices(
        self, source: Reshape, indices: Sequence[IndexLane], lanes: int
    ) -> list[IndexLane]:
        big = self.kernel.sizes(source if source.expands else source.source)
        if not source.groups and not source.expands:  # one element, to rank 0
            return [Uniform(0)] * len(big)
        result: list[IndexLane] = []
        for group_index, group in enumerate(source.groups):
            sizes = [big[position] for position in group]
            non_unit = [i for i, size in enumerate(sizes) if size != 1]
            if source.expands and len(non_unit) == 1:
                result.append(indices[group[non_unit[0]]])
            elif source.expands:
                total: Lane = Uniform(0)
                for position, stride in zip(group, row_major(sizes), strict=True):
                    scaled = times(resolve(indices[position], lanes), Uniform(stride), lanes)
                    total = plus(total, scaled, lanes)
                result.append(total)
            elif len(non_unit) == 1:
                result += [
                    indices[group_index] if i in non_unit else Uniform(0) for i in range(len(sizes))
                ]
            else:
                flat = resolve(indices[group_index], lanes)
                for i, (size, stride) in enumerate(zip(sizes, row_major(sizes), strict=True)):
                    part = quotient(flat, stride, lanes, True)
                    result.append(part if i == 0 else modulo(part, size, lanes, True))
        return result

    def evaluate(
        self,
        stage: Stage,
        indices: Sequence[IndexLane],
        point: Point,
        accumulators: Sequence[Lane],
    ) -> Callable[[ir.Value], Lane]:
        """Emits a stage's block; returns a function from its scalars to their lane values."""
        operands = [self.operand(operand, indices, point) for operand in stage.reads]
        if not accumulators:
            accumulators = [
                self.operand(init, indices, point) if stage.uses_init(n) else _undefined(init)
                for n, init in enumerate(stage.inits)
            ]
        return self._emit(stage, indices, point, [*operands, *accumulators], None)

    def scalar(self, needed: BodyPart, indices: Sequence[IndexLane], point: Point) -> Lane:
        """Emits the part of a stage's block that one of its scalars needs."""
        stage = needed.stage
        operands = [
            self.operand(read, indices, point) if n in needed.reads else _undefined(read)
            for n, read in enumerate([*stage.reads, *stage.inits])
        ]
        return self._emit(stage, indices, point, operands, needed.operations)(needed.value)

    def _emit(
        self,
        stage: Stage,
        indices: Sequence[IndexLane],
        point: Point,
        operands: Sequence[Lane],
        only: Container[ir.OpView] | None,
    ) -> Callable[[ir.Value], Lane]:
        """Emits the operations `only` of a stage's block, or all of them."""

        def extract(op: tensor.ExtractOp, at: list[Lane]) -> Lane:
            source = self.kernel.placement.program.tensors[op.operands[0]]
            return self.read(source, at, point)

        return emit_values(
            stage.body, operands, point.lanes,
            indices=[resolve(index, point.lanes) for index in indices] if stage.uses_index else (),
            extract=extract, captured=self.kernel.scalars, mask=point.mask, only=only,
        )  # fmt: skip

    def operand(self, operand: Operand, indices: Sequence[IndexLane], point: Point) -> Lane:
        """The element of an operand at the stage's indices."""
        at = [evaluate(e, indices, point.lanes) for e in operand.indices]
        return self.read(operand.tensor, at, point)


def _square_axes(
    view: View, indices: Sequence[IndexLane], tile: Tile, row: int
) -> tuple[int, int] | None:
    """The dims of memory along which a square has its rows and its columns.

    None if there is not exactly one of each, if another index varies within the square, or if
    elements have another type in memory.
    """
    rows = [i for i, index in enumerate(indices) if index == tile.rows[row]]
    columns = [i for i, index in enumerate(indices) if index == tile.column]
    if len(rows) != 1 or len(columns) != 1:
        return None
    if ir.MemRefType(view.base.type).element_type != view.element:
        return None
    others = (x for i, x in enumerate(indices) if i not in (rows[0], columns[0]))
    return (rows[0], columns[0]) if all(isinstance(x, Uniform) for x in others) else None


def _square_key(indices: Sequence[IndexLane], axes: tuple[int, int]) -> tuple:
    """A key of a square of a view: its dims, and the other indices."""
    return (*axes, *(x for i, x in enumerate(indices) if i not in axes))


def _step_to(index: int, count: Index | None, step: Index) -> Index:
    """The distance to line `index`, or 0 if there are only `count`."""
    if count is None:
        return step
    return loops.select(loops.less(index, count), loops.value(step), loops.value(0))


def _undefined(operand: Operand) -> Lane:
    """A value of the right type for an unused block argument."""
    element = operand.tensor.element
    return Uniform(arith.constant(element, loops.zero_attr(element)))


def yielded(stage: Stage) -> list[ir.Value]:
    """The scalars that a stage's block yields."""
    block = stage.body
    return list(block.operations[len(block.operations) - 1].operands)
