"""Evaluates stages at points of their loops: loads, bodies, producers computed where they are read.

A point is one iteration of all loops around: each index is a scalar, or runs along the lanes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, ir, memref, tensor
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
from .kernel import Kernel
from .lanes import Lane, Ramp, Uniform, Varying, to_vector, value_of
from .loops import Index
from .memory import View, load, row_major, store
from .transposes import transpose

_AHEAD = 2  # squares


@dataclass
class Tile:
    """A square of points, as many `rows` as lanes; `column` is the lane axis.

    `along_rows` is the row axis as lanes. What memory holds contiguously along it is loaded once
    for all rows, and transposed; if it `fetches`, what later squares load comes closer meanwhile.
    A part of a square has only `height` rows and `width` columns, which are `most_width` at most.
    What is loaded and stored beyond is in the place of the last one: rows have to be stored from
    the last to the first.
    `stored` are the places of the last row that was stored: each is found from the one before,
    since products with all the rows' numbers would not fit into registers.
    """

    rows: list[Uniform]
    along_rows: Ramp
    column: Ramp
    fetches: bool
    height: Index | None = None
    width: Index | None = None
    most_width: int | None = None
    turned: dict[tuple, list[ir.Value]] = field(default_factory=dict)
    stored: dict[tuple, Index] = field(default_factory=dict)


@dataclass
class Point:
    """One iteration: indices by axis, and what was already loaded or computed in it."""

    lanes: int = 1
    mask: ir.Value | None = None
    index: dict[int, IndexLane] = field(default_factory=dict)
    known: dict[tuple, Lane] = field(default_factory=dict)
    forwarded: dict[Computed, Lane] = field(default_factory=dict)
    tile: Tile | None = None
    row: int = 0

    def inside(self) -> "Point":
        """This point, with nothing computed in it yet."""
        return Point(self.lanes, self.mask, self.index, tile=self.tile, row=self.row)

    def at(self, axis: int, lane: IndexLane) -> "Point":
        """This point with one more index."""
        return Point(self.lanes, self.mask, {**self.index, axis: lane})


@dataclass
class Evaluator:
    """Reads tensors and runs the blocks of stages.

    `registers` holds results that are one value a row, `rows` the views of those that are kept in
    scratch for one row; these have room for whole vectors if `has_padded_rows`.
    """

    kernel: Kernel
    registers: dict[Computed, Lane] = field(default_factory=dict)
    rows: dict[Computed, View] = field(default_factory=dict)
    has_padded_rows: bool = False
    _waiting: list[Callable[[], None]] | None = None

    @contextmanager
    def stores_at_end(self) -> Iterator[None]:
        """Emits the stores of the `with` block behind its loads.

        A load that comes after a store waits for it where the low bits of their addresses are the
        same, as if it read what was stored.
        """
        self._waiting = []
        yield
        waiting, self._waiting = self._waiting, None
        for emit in waiting:
            emit()

    def write(self, view: View, indices: Sequence[IndexLane], lane: Lane, point: Point) -> None:
        """Stores one element a lane, now or at the end of `stores_at_end`."""

        def emit() -> None:
            tile = point.tile
            place = None if tile is None else self._place_of_row(view, indices, point, tile)
            if place is None:
                store(view, indices, lane, point.lanes, self._mask(view, point))
            else:
                loops.store(to_vector(lane, point.lanes), view.base, place, point.mask)

        if self._waiting is None:
            emit()
        else:
            self._waiting.append(emit)

    def _mask(self, view: View, point: Point) -> ir.Value | None:
        """The lanes to load or store; all of them where that lets a row stay in registers."""
        is_padded = self.has_padded_rows and any(view is row for row in self.rows.values())
        return None if is_padded else point.mask

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
        row = self.rows.get(source) if isinstance(source, Computed) else None
        view = row or self.kernel.view(source)
        if view is not None:
            tile = point.tile
            turned = None if tile is None else self._transposed(view, indices, point, tile)
            return turned or load(view, indices, point.lanes, self._mask(view, point))
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
        """This row of a square that memory holds column by column; None if it is none."""
        lanes = point.lanes
        found = _square_axes(view, indices, tile, point.row)
        if found is None or view.strides[found[0]] != 1:
            return None
        across, down = found
        key = (view, *_beside_square(indices, found))
        if key not in tile.turned:
            at, step = list(indices), view.strides[down]
            at[across] = Uniform(tile.along_rows.base)
            at[down] = Uniform(tile.column.base)
            first = value_of(view.at(at, 1))
            later = loops.add(first, loops.mul(step, _AHEAD * lanes))
            columns = []
            mask = None if tile.height is None else loops.mask(tile.height, lanes)
            for number in range(tile.most_width or lanes):
                columns.append(loops.load(view.base, first, lanes, mask))
                first = loops.add(first, _step_to(number + 1, tile.width, step))
                if tile.fetches:
                    memref.prefetch(view.base, [loops.value(later)], False, 2, True)
                    later = loops.add(later, step)
            columns += [columns[-1]] * (lanes - len(columns))
            tile.turned[key] = transpose(columns)
        return Varying(tile.turned[key][point.row])

    def _place_of_row(
        self, view: View, indices: Sequence[IndexLane], point: Point, tile: Tile
    ) -> Index | None:
        """Where this row of a square begins in memory; None if it is not contiguous there."""
        found = _square_axes(view, indices, tile, point.row)
        if found is None or view.strides[found[1]] != 1:
            return None
        own, along = found
        key = (view, *_beside_square(indices, found))
        step = view.strides[own]
        if key in tile.stored and tile.height is None:
            tile.stored[key] = loops.add(tile.stored[key], step)
        elif key in tile.stored:
            step = _step_to(point.row + 1, tile.height, step)
            tile.stored[key] = loops.sub(tile.stored[key], step)
        else:
            at = list(indices)
            at[along] = Uniform(tile.column.base)
            tile.stored[key] = value_of(view.at(at, 1))
        return tile.stored[key]

    def _slice_indices(
        self, source: Slice, indices: Sequence[IndexLane], lanes: int
    ) -> list[IndexLane]:
        window, inner = source.window, iter(indices)
        result: list[IndexLane] = []
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
                self.operand(init, indices, point) if stage.uses_init(n) else _unread(init)
                for n, init in enumerate(stage.inits)
            ]

        def extract(op: tensor.ExtractOp, at: list[Lane]) -> Lane:
            source = self.kernel.placement.program.tensors[op.operands[0]]
            return self.read(source, at, point)

        return emit_values(
            stage.body, [*operands, *accumulators], point.lanes,
            indices=[resolve(index, point.lanes) for index in indices] if stage.uses_index else (),
            extract=extract, captured=self.kernel.scalars, mask=point.mask,
        )  # fmt: skip

    def operand(self, operand: Operand, indices: Sequence[IndexLane], point: Point) -> Lane:
        """The element of an operand at the stage's indices."""
        at = [evaluate(e, indices, point.lanes) for e in operand.indices]
        return self.read(operand.tensor, at, point)


def _square_axes(
    view: View, indices: Sequence[IndexLane], tile: Tile, row: int
) -> tuple[int, int] | None:
    """The dims of memory along which a square has its row and its columns.

    None if there is more or less than one of either, if another index changes within the square,
    or if memory holds elements of another type.
    """
    rows = [i for i, index in enumerate(indices) if index == tile.rows[row]]
    columns = [i for i, index in enumerate(indices) if index == tile.column]
    if len(rows) != 1 or len(columns) != 1:
        return None
    if ir.MemRefType(view.base.type).element_type != view.element:
        return None
    others = (x for i, x in enumerate(indices) if i not in (rows[0], columns[0]))
    return (rows[0], columns[0]) if all(isinstance(x, Uniform) for x in others) else None


def _beside_square(indices: Sequence[IndexLane], axes: tuple[int, int]) -> tuple:
    """What tells one square of a view from others: its dims, and the other indices."""
    return (*axes, *(x for i, x in enumerate(indices) if i not in axes))


def _step_to(number: int, count: Index | None, step: Index) -> Index:
    """The distance to line `number` if it is one of `count`."""
    if count is None:
        return step
    return loops.select(loops.less(number, count), loops.value(step), loops.value(0))


def _unread(operand: Operand) -> Lane:
    """Something of the right type for a block argument that is not read."""
    element = operand.tensor.element
    return Uniform(arith.constant(element, loops.zero_attr(element)))


def yielded(stage: Stage) -> list[ir.Value]:
    """The scalars that a stage's block yields."""
    block = stage.body
    return list(block.operations[len(block.operations) - 1].operands)
