"""The rule for matrix products with an elementwise epilogue: a tile of the result for each group.

    for k in steps of 16:          the group copies 64 x 16 of A and 16 x 64 of B to its memory
      for i in 16:                 a thread multiplies 4 elements of A by 4 of B: 16 sums
    epilogue of each sum

Elements beyond a matrix are zero in the copies, so sums need no conditions; stores do. Copies
follow the side's contiguous dim, so that threads next to each other load elements next to each
other. What a thread owns is spread over the tile for the same reason. Where tiles are few, several
groups share the sums of each: see `split.py`.

Needs: nothing. Leaves: a scheduled kernel, or the function as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import ir, memref
from relax_mlir.dialects.graph import element_bits
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import Contraction
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.gpu.launch import GROUPS, RESERVED, Group, barrier, for_groups
from relax_mlir.schedule.gpu.nests import ONE_LANE
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Device

from . import few_rows
from .sides import (
    Product,
    Shape,
    Side,
    if_inside,
    initial_sum,
    match_products,
    multiply_add,
    total_type,
    widened,
)
from .split import Parts, split

ROWS, DEPTH, OWN = 64, 16, 4
"""Rows of a tile, elements along k that are copied at once, and rows and columns of a thread."""
FEWEST = 4
"""Elements along k, at least."""
COLUMNS = (64, 32)
"""Columns of a tile: as many as there are threads for."""


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a program that multiplies matrices; False for others."""

    def emit(kernel: Kernel, contractions: Sequence[Contraction]) -> None:
        product = Product.of(kernel, contractions, lambda rows: tile_of(device))
        few_rows.emit(product, device, lambda: launch(product, device))

    return rewrite(prim_func, ONE_LANE, match_products, emit)


def tile_of(device: Device) -> Shape:
    """The shape of a tile; raises Refusal if groups of a device are too small for one."""
    width = next((n for n in COLUMNS if _threads(n) <= device.workgroup), None)
    if width is None:
        raise Refusal(f"groups of {device.workgroup} threads are too small")
    return ROWS, width


def launch(product: Product, device: Device) -> None:
    """Emits a launch of a group for each tile, or for each part of its sums."""
    total = total_type(product.contractions[0].stage.results[0].element)
    width = product.right[0].width
    depth = _depth_of(product, total, device)
    with split(product, depth, GROUPS) as parts:

        def tile(group: Group) -> None:
            part, at, row, column = parts.tile_of(group.index)
            first = loops.mul(row, ROWS), loops.mul(column, width)
            _Tile(product, total, depth, parts, part, group, at, *first).emit()

        for_groups(parts.groups, _threads(width), device, tile)
        parts.combine(device)


def _depth_of(product: Product, total: ir.Type, device: Device) -> int:
    """Elements along k that are copied at once: fewer, where a group has little memory."""
    sides = product.left, *product.right
    bytes_ = sum(side.width for side in sides) * element_bits(total) // 8
    depth = DEPTH
    while depth > FEWEST and depth * bytes_ > device.shared_bytes - RESERVED:
        depth //= 2
    return depth


@dataclass(frozen=True)
class _Spot:
    """An element that a thread copies: its row and k in a step, and the indices of its row."""

    row: Index
    k: Index
    along: Sequence[IndexLane]
    is_inside: bool | ir.Value


@dataclass(frozen=True)
class _Tile:
    """The tile of a group: a part of the matrices at `batch`, from (row, column) on."""

    product: Product
    total: ir.Type
    depth: int
    parts: Parts
    part: Index
    group: Group
    batch: Sequence[Index]
    row: Index
    column: Index

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.product.right[0].width

    def emit(self) -> None:
        """Emits the sums of each thread, and the epilogue of each sum."""
        product, group = self.product, self.group
        sides = [(product.left, self.row), *((side, self.column) for side in product.right)]
        copies = [
            group.memory(side.width * self.depth, self.total, slot)
            for slot, (side, _) in enumerate(sides)
        ]
        spots = [(side, self._spots(side, first)) for side, first in sides]
        own = self._own

        def part(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            for (side, own_spots), copy in zip(spots, copies, strict=True):
                self._copy(side, own_spots, k, copy)
            barrier()
            result = loops.for_range(0, self.depth, 1, partial(self._multiply, copies, own), sums)
            barrier()
            return result

        start = [initial_sum(product.contractions[0], self.total)] * (
            OWN * OWN * len(product.right)
        )
        sums = loops.for_range(*self.parts.range(self.part), self.depth, part, start)
        for index in range(OWN * OWN):
            self._finish(own, index, sums)

    @property
    def _own(self) -> tuple[Index, Index]:
        """The first row and column of a thread in the tile."""
        across = self.width // OWN
        return loops.floor_div(self.group.thread, across), loops.mod(self.group.thread, across)

    def _multiply(
        self, copies: Sequence[ir.Value], own: tuple[Index, Index], k: ir.Value, *sums: ir.Value
    ) -> list[ir.Value]:
        """The sums of a thread after one more element along k."""
        widths = (ROWS, *(side.width for side in self.product.right))

        def owned(copy: ir.Value, width: int, first: Index) -> list[ir.Value]:
            begin = loops.add(loops.mul(k, width), first)
            steps = range(0, width, width // OWN)
            return [memref.load(copy, [loops.value(loops.add(begin, i))]) for i in steps]

        left = owned(copies[0], ROWS, own[0])
        result: list[ir.Value] = []
        for copy, width in zip(copies[1:], widths[1:], strict=True):
            right = owned(copy, width, own[1])
            result += [multiply_add(sums[len(result) + i * OWN + j], a, b)
                       for i, a in enumerate(left) for j, b in enumerate(right)]  # fmt: skip
        return result

    def _finish(self, own: tuple[Index, Index], index: int, sums: Sequence[ir.Value]) -> None:
        """Emits the epilogue of one element of the tile, if it is one of the result."""
        product = self.product
        i, j = index // OWN * (ROWS // OWN), index % OWN * (self.width // OWN)
        row, column = loops.add(self.row, own[0], i), loops.add(self.column, own[1], j)
        block = Block(tuple(self.batch), row, 1, column, 1, (), 1)
        is_inside = loops.and_(
            loops.less(row, product.left.extent), loops.less(column, product.right[0].extent)
        )
        values = sums[index :: OWN * OWN]
        loops.if_else(is_inside, lambda: self.parts.finish(self.part, block, values))

    def _spots(self, side: Side, first: Index) -> list[_Spot]:
        """The elements of a step that a thread copies, of a side from `first` on."""
        threads, by = self.group.threads, self.depth if side.contiguous else side.width
        spots: list[_Spot] = []
        for start in range(0, side.width * self.depth, threads):
            # A thread has one column of all that it copies, since `by` divides `threads`.
            outer = loops.add(loops.floor_div(self.group.thread, by), start // by)
            inner = loops.mod(self.group.thread, by)
            row, k = (outer, inner) if side.contiguous else (inner, outer)
            at = loops.add(first, row)
            is_inside = loops.less(at, side.extent)
            spots.append(_Spot(row, k, self.product.along(side, at), is_inside))
        return spots

    def _copy(self, side: Side, spots: Sequence[_Spot], begin: ir.Value, copy: ir.Value) -> None:
        """Copies elements of a side, from `begin` on along k, to the group."""
        product, total = self.product, self.total
        for spot in spots:
            k = loops.add(begin, spot.k)
            position = product.position(side, self.batch, spot.along, k)
            is_inside = loops.and_(spot.is_inside, loops.less(k, product.depth))
            is_inside = loops.and_(is_inside, product.is_element(side, position))
            x = if_inside(is_inside, total, partial(self._element, side, position))
            at = loops.add(loops.mul(spot.k, side.width), spot.row)
            memref.store(x, copy, [loops.value(at)])

    def _element(self, side: Side, position: Sequence[IndexLane]) -> ir.Value:
        """What is multiplied: an element of a side, in the type of the sums."""
        x = self.product.element(side, position, side.factor.value)
        return widened(x, self.total)


def _threads(columns: int) -> int:
    """Threads of a group whose tile has so many columns."""
    return ROWS * columns // (OWN * OWN)
