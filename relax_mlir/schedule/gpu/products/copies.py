"""Copies of a side's tile to memory of a group, along whose rows elements are next to each other.

    side [rows, k], k contiguous     ->  memory [rows of the tile][k of a step]
    side [k, rows], rows contiguous  ->  memory [k of a step][rows of the tile]

For warps, 16 bytes at the end of a row are none, so that eight rows, of which a matrix is loaded,
are in different banks of memory; `descriptors.py` has the order that warpgroups read. Where rows of
the side begin at multiples of 16 bytes, threads copy 16 at a time, and the device fills what is
beyond the side with zeros; the host finds out, if only it knows. Other sides are loaded and stored
by element, as those that the body of the product computes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.analysis.affine import dims_of
from relax_mlir.bindings import arith, ir, memref, nvgpu
from relax_mlir.dialects.graph import element_bits
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.lanes import Uniform
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.launch import Group

from .sides import Product, Side, if_inside

UNIT_BYTES = 16
"""What is copied at once, and what a row of a matrix has."""

At = tuple[Sequence[Index], Index, Index]
"""The matrices, the first row and the first k of a tile."""


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

    def position(self, outer: Index, inner: Index) -> Index:
        """Where in memory of a step an element is."""
        return loops.add(loops.mul(outer, self.pitch), inner)


def unit_of(element: ir.Type) -> int:
    """Elements of 16 bytes."""
    return UNIT_BYTES * 8 // element_bits(element)


def is_direct(side: Side, value: ir.Value) -> bool | ir.Value:
    """Whether rows begin at multiples of 16 bytes: known, or computed at the insertion point."""
    contraction, factor, view = side.contraction, side.factor, side.view
    loop = contraction.depth if side.contiguous else side.along[-1]
    at = factor.position(loop)
    is_plain = not factor.casts and value == contraction.stage.body.arguments[factor.read]
    has_rows = at is not None and view.strides[at] == 1
    is_one = sum(loop in dims_of(index) for index in factor.indices) == 1
    if not (is_plain and has_rows and is_one) or (not side.contiguous and len(side.along) > 1):
        return False
    others = [s for i, s in enumerate(view.strides) if i != at and view.sizes[i] != 1]
    steps, unit = [view.offset, *others], unit_of(value.type)
    if any(isinstance(step, int) and step % unit for step in steps):
        return False
    address = memref.extract_aligned_pointer_as_index(view.base)
    condition = _is_multiple(address, UNIT_BYTES)
    for step in steps:
        if not isinstance(step, int):
            condition = arith.andi(condition, _is_multiple(step, unit))
    return condition


def _is_multiple(x: ir.Value, of: int) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.eq, loops.value(loops.mod(x, of)), loops.value(0))


def copy(
    product: Product, plan: SidePlan, group: Group, at: At, to: tuple[ir.Value, Index]
) -> None:
    """Has a group copy a tile of a side to memory, from an element of it on.

    Copies of 16 bytes are complete after the next wait.
    """
    arguments = product, plan, group, at, to
    loops.if_else(plan.is_direct, partial(_by_units, *arguments), partial(_by_elements, *arguments))


@dataclass(frozen=True)
class _Spot:
    """An element of a tile: its row and k in the side, and how many are left along memory."""

    row: Index
    k: Index
    is_row_inside: bool | ir.Value
    is_k_inside: bool | ir.Value


def _spot(product: Product, plan: SidePlan, at: At, outer: Index, inner: Index) -> _Spot:
    _, first, begin = at
    row, k = (outer, inner) if plan.along_depth else (inner, outer)
    row, k = loops.add(first, row), loops.add(begin, k)
    side, depth = plan.side, product.depth
    return _Spot(
        row, k,
        _divides(side.width, side.extent) or loops.less(row, side.extent),
        _divides(plan.depth, depth) or loops.less(k, depth),
    )  # fmt: skip


def _divides(tile: int, extent: Index) -> bool:
    """Whether all elements of a tile that has one are inside."""
    return isinstance(extent, int) and extent % tile == 0


def _flat(plan: SidePlan, group: Group, unit: int) -> Iterator[tuple[Index, Index]]:
    """The first of each `unit` elements that a thread copies, by row of memory and in it."""
    per_row = plan.inner // unit
    for start in range(0, plan.outer * per_row, group.threads):
        flat = loops.add(group.thread, start)
        yield loops.floor_div(flat, per_row), loops.mul(loops.mod(flat, per_row), unit)


def _by_units(
    product: Product, plan: SidePlan, group: Group, at: At, to: tuple[ir.Value, Index]
) -> None:
    """Begins to copy 16 bytes at a time."""
    side, unit, (memory, start) = plan.side, plan.unit, to
    for outer, inner in _flat(plan, group, unit):
        spot = _spot(product, plan, at, outer, inner)
        is_inside = loops.and_(spot.is_row_inside, spot.is_k_inside)
        offset = side.view.at(
            product.position(side, at[0], product.along(side, spot.row), spot.k), 1
        )
        assert isinstance(offset, Uniform)
        end, position = (product.depth, spot.k) if plan.along_depth else (side.extent, spot.row)
        is_whole = (spot.is_k_inside if plan.along_depth else spot.is_row_inside) is True
        count = unit if is_whole else loops.minimum(loops.sub(end, position), unit)
        nvgpu.device_async_copy(
            memory,
            [loops.value(loops.add(start, plan.position(outer, inner)))],
            side.view.base,
            [loops.value(loops.select(is_inside, offset.value, 0))],
            unit,
            src_elements=None if is_inside is True and count == unit
            else loops.value(loops.select(is_inside, count, 0)),
            bypass_l1=True,
            results=[ir.Type.parse("!nvgpu.device.async.token")],
        )  # fmt: skip


def _by_elements(
    product: Product, plan: SidePlan, group: Group, at: At, to: tuple[ir.Value, Index]
) -> None:
    """Copies element by element, threads next to each other elements next to each other."""
    side, (memory, start) = plan.side, to

    def one(step: ir.Value) -> None:
        flat = loops.add(group.thread, loops.mul(step, group.threads))
        outer, inner = loops.floor_div(flat, plan.inner), loops.mod(flat, plan.inner)
        spot = _spot(product, plan, at, outer, inner)
        position = product.position(side, at[0], product.along(side, spot.row), spot.k)
        is_inside = loops.and_(spot.is_row_inside, spot.is_k_inside)
        load_one = partial(product.element, side, position, plan.value)
        x = if_inside(is_inside, plan.element, load_one)
        index = loops.add(start, plan.position(outer, inner))
        memref.store(x, memory, [loops.value(index)])

    loops.for_range(0, plan.outer * plan.inner // group.threads, 1, one)
