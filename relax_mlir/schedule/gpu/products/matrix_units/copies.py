"""Copies of a side's tile to memory of a group, along whose rows elements are next to each other.

    side [rows, k], k contiguous     ->  memory [rows of the tile][k of a step]
    side [k, rows], rows contiguous  ->  memory [k of a step][rows of the tile]

For warps, 16 bytes at the end of a row are none, so that eight rows, of which a matrix is loaded,
are in different banks of memory; `descriptors.py` has the order that warpgroups read. Where rows of
the side begin at multiples of 16 bytes, threads copy 16 at a time, and the device fills what is
beyond the side with zeros; the host finds out, if only it knows. Other sides are loaded and stored
by element, as those that the body of the product computes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.analysis.affine import dims_of
from relax_mlir.bindings import arith, ir, memref, nvgpu
from relax_mlir.dialects.graph import element_bits
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane
from relax_mlir.schedule.build.lanes import Uniform
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.launch import Group

from ..sides import Product, Side, if_inside

UNIT_BYTES = 16
"""What is copied at once, and what a row of a matrix has."""


@dataclass(frozen=True)
class SidePlan:
    """How a side is copied: its scalar `value`, of 16 or 8 bits, is what is multiplied.

    `depth` are the elements along k of a step. `along_depth` says that rows of memory are along k;
    `is_direct` whether 16 bytes may be copied at once, a truth value if only the host knows.
    """

    side: Side
    value: ir.Value
    depth: int
    along_depth: bool
    is_direct: bool | ir.Value

    @property
    def element(self) -> ir.Type:
        """The type of elements."""
        return self.value.type

    @property
    def unit(self) -> int:
        """Elements of 16 bytes."""
        return unit_of(self.element)

    @property
    def outer(self) -> int:
        """Rows of memory."""
        return self.side.width if self.along_depth else self.depth

    @property
    def inner(self) -> int:
        """Elements of a row that are some."""
        return self.depth if self.along_depth else self.side.width

    @property
    def pitch(self) -> int:
        """Elements from one row to the next."""
        return self.inner + self.unit

    @property
    def elements(self) -> int:
        """Elements of memory for a step."""
        return self.outer * self.pitch

    def in_memory(self, row: Index, k: Index) -> tuple[Index, Index]:
        """The row of memory of an element, and where it is in it."""
        return (row, k) if self.along_depth else (k, row)

    def position(self, outer: Index, inner: Index) -> Index:
        """Where in memory of a step an element is."""
        return loops.add(loops.mul(outer, self.pitch), inner)


def unit_of(element: ir.Type) -> int:
    """Elements of 16 bytes."""
    return UNIT_BYTES * 8 // element_bits(element)


def is_direct(product: Product, side: Side, value: ir.Value) -> bool | ir.Value:
    """Whether rows begin at multiples of 16 bytes: known, or computed at the insertion point."""
    factor, view = side.factor, side.view
    collapsed = product.summed if side.contiguous else side.along
    row = _row(side, collapsed)
    is_plain = not factor.casts and value == side.contraction.stage.body.arguments[factor.read]
    if not (is_plain and row):
        return False
    steps = [s for i, s in enumerate(view.strides) if i not in row and view.sizes[i] != 1]
    if len(row) < len(collapsed):  # what is copied at once has to be in one row, also of a slice
        steps.append(loops.mul(*(product.shape[loop] for loop in collapsed[-len(row) :])))
    steps.append(view.offset)
    unit = unit_of(value.type)
    if any(isinstance(step, int) and step % unit for step in steps):
        return False
    address = memref.extract_aligned_pointer_as_index(view.base)
    condition = _is_multiple(address, UNIT_BYTES)
    for step in steps:
        if not isinstance(step, int):
            condition = arith.andi(condition, _is_multiple(step, unit))
    return condition


def _row(side: Side, collapsed: Sequence[int]) -> list[int]:
    """The dims of a row of memory, outermost first, which are the last of these loops."""
    row: list[int] = []
    for loop in reversed(collapsed):
        at = side.factor.position(loop)
        is_one = sum(loop in dims_of(index) for index in side.factor.indices) == 1
        if at is None or not is_one or side.padding[at : at + 1] not in ((), (None,)):
            break
        is_next = at + 1 == row[0] and side.is_flat if row else side.view.strides[at] == 1
        if not is_next:
            break
        row.insert(0, at)
    return row


def _is_multiple(x: ir.Value, of: int) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.eq, loops.value(loops.mod(x, of)), loops.value(0))


@dataclass(frozen=True)
class _Spot:
    """An element of a tile: its row and k in a step, and the indices of its row in the side."""

    row: Index
    k: Index
    along: Sequence[IndexLane]


@dataclass(frozen=True)
class Copier:
    """What copies the tile of a side whose first row is `first`, of the matrices at `batch`.

    `units` are those of a thread, `own` is the only row of a thread's elements, if there is one.
    """

    product: Product
    plan: SidePlan
    group: Group
    batch: Sequence[Index]
    first: Index
    units: Sequence[_Spot]
    own: _Spot | None

    @staticmethod
    def of(
        product: Product, plan: SidePlan, group: Group, batch: Sequence[Index], first: Index
    ) -> "Copier":
        """Emits the indices of rows, in front of the loop along k."""

        def spot(row: Index, k: Index) -> _Spot:
            return _Spot(row, k, product.along(plan.side, loops.add(first, row)))

        units: list[_Spot] = []
        if plan.is_direct is not False:
            per_row = plan.inner // plan.unit
            for start in range(0, plan.outer * per_row, group.threads):
                flat = loops.add(group.thread, start)
                at = loops.floor_div(flat, per_row), loops.mul(loops.mod(flat, per_row), plan.unit)
                units.append(spot(*(at if plan.along_depth else reversed(at))))
        own = None
        if not plan.side.contiguous and group.threads % plan.side.width == 0:
            own = spot(loops.mod(group.thread, plan.side.width), 0)
        return Copier(product, plan, group, batch, first, units, own)

    def copy(self, begin: Index, memory: ir.Value, start: Index) -> None:
        """Has a group copy a step that begins at a k to memory, from an element of it on.

        Copies of 16 bytes are complete after the next wait.
        """
        loops.if_else(
            self.plan.is_direct,
            lambda: self._by_units(begin, memory, start),
            lambda: self._by_elements(begin, memory, start),
        )

    def _by_units(self, begin: Index, memory: ir.Value, start: Index) -> None:
        """Begins to copy 16 bytes at a time."""
        plan, side, unit = self.plan, self.plan.side, self.plan.unit
        for spot in self.units:
            k = loops.add(begin, spot.k)
            position = self.product.position(side, self.batch, spot.along, k)
            is_inside = self._is_inside(spot, k, position)
            offset = side.view.at(position, 1)
            assert isinstance(offset, Uniform)
            count = self._count(spot, k)
            nvgpu.device_async_copy(
                memory,
                [loops.value(loops.add(start, plan.position(*plan.in_memory(spot.row, spot.k))))],
                side.view.base,
                [loops.value(loops.select(is_inside, offset.value, 0))],
                unit,
                src_elements=None if is_inside is True and count == unit
                else loops.value(loops.select(is_inside, count, 0)),
                bypass_l1=True,
                results=[ir.Type.parse("!nvgpu.device.async.token")],
            )  # fmt: skip

    def _by_elements(self, begin: Index, memory: ir.Value, start: Index) -> None:
        """Copies element by element, threads next to each other elements next to each other."""
        plan, side, group = self.plan, self.plan.side, self.group
        across = plan.depth if side.contiguous else side.width

        def one(step: ir.Value) -> None:
            flat = loops.add(group.thread, loops.mul(step, group.threads))
            far, near = loops.floor_div(flat, across), loops.mod(flat, across)
            row, own_k = (far, near) if side.contiguous else (near, far)
            if self.own is not None:
                spot = _Spot(self.own.row, own_k, self.own.along)
            else:
                along = self.product.along(side, loops.add(self.first, row))
                spot = _Spot(row, own_k, along)
            k = loops.add(begin, own_k)
            position = self.product.position(side, self.batch, spot.along, k)
            load_one = partial(self.product.element, side, position, plan.value)
            x = if_inside(self._is_inside(spot, k, position), plan.element, load_one)
            index = loops.add(start, plan.position(*plan.in_memory(spot.row, own_k)))
            memref.store(x, memory, [loops.value(index)])

        loops.for_range(0, plan.outer * plan.inner // group.threads, 1, one)

    def _is_inside(self, spot: _Spot, k: Index, position: Sequence[IndexLane]) -> bool | ir.Value:
        """Whether an element is one of the side."""
        inside = loops.and_(self._is_row(spot), self._is_k(k))
        return loops.and_(inside, self.product.is_element(self.plan.side, position))

    def _is_row(self, spot: _Spot) -> bool | ir.Value:
        side = self.plan.side
        row = loops.add(self.first, spot.row)
        return _divides(side.width, side.extent) or loops.less(row, side.extent)

    def _is_k(self, k: Index) -> bool | ir.Value:
        return _divides(self.plan.depth, self.product.depth) or loops.less(k, self.product.depth)

    def _count(self, spot: _Spot, k: Index) -> Index:
        """Elements of a unit that are in the side."""
        plan, end, at, is_whole = self.plan, self.product.depth, k, self._is_k(k)
        if not plan.along_depth:
            end, at = plan.side.extent, loops.add(self.first, spot.row)
            is_whole = self._is_row(spot)
        if is_whole is True:
            return plan.unit
        return loops.minimum(loops.sub(end, at), plan.unit)


def _divides(tile: int, extent: Index) -> bool:
    """Whether all elements of a tile that has one are inside."""
    return isinstance(extent, int) and extent % tile == 0
