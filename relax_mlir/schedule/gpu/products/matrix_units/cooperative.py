"""The rule for products of f16 or i8 on devices of Vulkan whose subgroups multiply matrices.

    for k in steps of 64 bytes:      the group's threads copy a step of both sides to its memory
      for each matrix along k:       a subgroup multiplies its rows of A by its columns of B
    sums -> memory of the group -> epilogue, a row of matrices of each subgroup at a time

Of a group's 128 threads, the first four subgroups have a quarter of the tile each; if these have
fewer than 32 threads, there are others, which only copy. Only the device knows which thread has
which element of a matrix. Elements beyond a side are zero. Sums are of f32, and the device adds up
the products of a matrix in whatever order, or of i32, which wrap.

Needs: nothing. Leaves: a scheduled kernel, or the function as it was.
Source: Khronos, SPV_KHR_cooperative_matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import gpu, ir
from relax_mlir.dialects.graph import element_bits
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import Contraction
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.gpu.launch import barrier
from relax_mlir.schedule.gpu.nests import ONE_LANE
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Device

from .. import few_rows
from ..sides import Product, Shape, Side, initial_sum, total_type
from .copies import Copier, SidePlan
from .narrow import match_narrow, narrow
from .pipeline import GROUPS, Tile, for_tiles
from .staging import Part, finish

THREADS, ACROSS = 128, 2
"""Threads of a group, and the subgroups that multiply, along rows and along columns."""
WIDTH, STEP_BYTES = 64, 64
"""Rows or columns of a tile, and bytes along k of a step."""
_NAMES = {"f16": "f16", "i8": "si8"}
"""Elements of sides as those of matrices."""


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a program that multiplies matrices of f16 or i8; False for others."""
    if device.cooperative("f16") is None:
        return False

    def emit(kernel: Kernel, contractions: Sequence[Contraction]) -> None:
        if len(contractions) > 1:
            raise Refusal("the sums of several products do not fit into memory of a group")
        product = Product.of(kernel, contractions, tile_of)
        few_rows.emit(product, device, lambda: launch(product, device))

    return rewrite(
        prim_func, ONE_LANE, lambda p: match_narrow(p, partial(multiplies, device)), emit
    )


def multiplies(device: Device, element: ir.Type) -> bool:
    """Whether elements are what subgroups multiply."""
    return device.cooperative(str(element)) is not None


def launch(product: Product, device: Device) -> None:
    """Emits a launch of a group for each tile."""
    plans = [_plan(side) for side in (product.left, *product.right)]
    shape = device.cooperative(str(plans[0].element))
    assert shape is not None
    depth = plans[0].depth
    for_tiles(
        product, device, THREADS, lambda tile: _Sums(tile, plans, shape).emit(), depth, GROUPS
    )


def tile_of(rows: Index) -> Shape:
    """The shape of tiles: half as high for few rows."""
    return WIDTH // 2 if isinstance(rows, int) and rows <= WIDTH // 2 else WIDTH, WIDTH


def _plan(side: Side) -> SidePlan:
    """How a side is copied: as it lies, element by element."""
    value = narrow(side.factor)
    depth = STEP_BYTES * 8 // element_bits(value.type)
    return SidePlan(side, value, depth, side.contiguous, is_direct=False)


@dataclass(frozen=True)
class _Sums:
    """The sums of a tile: of matrices, of which `shape` are rows, columns and depth."""

    tile: Tile
    plans: Sequence[SidePlan]
    shape: tuple[int, int, int]

    def emit(self) -> None:
        """Emits the loop along k, and the epilogue."""
        tile, product = self.tile, self.tile.product
        subgroup = gpu.subgroup_id(upper_bound=THREADS)
        multiplies = loops.less(subgroup, ACROSS * ACROSS)
        at = loops.floor_div(subgroup, ACROSS), loops.mod(subgroup, ACROSS)
        memory = [
            tile.group.memory(plan.elements, plan.element, slot)
            for slot, plan in enumerate(self.plans)
        ]
        copiers = [
            Copier.of(product, plan, tile.group, tile.batch, first)
            for plan, first in zip(self.plans, tile.first, strict=True)
        ]
        rows, columns = self._counts
        kind = total_type(product.contractions[0].stage.results[0].element)
        total = initial_sum(product.contractions[0], kind)
        start = gpu.subgroup_mma_constant_matrix(self._type(str(kind), "COp"), total)

        def step(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            for copier, to in zip(copiers, memory, strict=True):
                copier.copy(k, to, 0)
            barrier()
            result = loops.values_if(multiplies, lambda: self._multiplied(memory, at, sums), sums)
            barrier()
            return result

        depth = self.plans[0].depth
        sums = loops.for_range(*tile.range, depth, step, [start] * (rows * columns))
        finish(tile, [self._part(i, sums, at, multiplies) for i in range(rows)])

    @property
    def _counts(self) -> tuple[int, int]:
        """The matrices of sums of a subgroup: along rows, and along columns."""
        height, width = (plan.side.width // ACROSS for plan in self.plans)
        return height // self.shape[0], width // self.shape[1]

    def _type(self, element: str, use: str) -> ir.Type:
        """The type of matrices that are the side A or B, or sums (C)."""
        rows, columns, depth = self.shape
        height = depth if use == "BOp" else rows
        width = depth if use == "AOp" else columns
        return ir.Type.parse(f'!gpu.mma_matrix<{height}x{width}x{element}, "{use}">')

    def _multiplied(
        self, memory: Sequence[ir.Value], at: tuple[Index, Index], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums after a step, of the subgroup at a row and column."""
        result = list(sums)
        rows, columns = self._counts
        for k in range(0, self.plans[0].depth, self.shape[2]):
            left = [self._load(0, memory, at, i, k) for i in range(rows)]
            right = [self._load(1, memory, at, j, k) for j in range(columns)]
            for i, a in enumerate(left):
                for j, b in enumerate(right):
                    own = i * columns + j
                    result[own] = gpu.subgroup_mma_compute(a, b, result[own])
        return result

    def _load(
        self, index: int, memory: Sequence[ir.Value], at: tuple[Index, Index], matrix: int, k: int
    ) -> ir.Value:
        """A matrix of a side, from an element along k on."""
        plan, use = self.plans[index], ("AOp", "BOp")[index]
        along = loops.mul(at[index], plan.side.width // ACROSS)
        along = loops.add(along, matrix * self.shape[index])
        first = loops.value(plan.position(*plan.in_memory(along, k)))
        kind = self._type(_NAMES[str(plan.element)], use)
        transposes = plan.along_depth == (index == 1)
        return gpu.subgroup_mma_load_matrix(
            kind, memory[index], [first], plan.pitch, transpose=transposes
        )

    def _part(
        self, index: int, sums: Sequence[ir.Value], at: tuple[Index, Index],
        multiplies: bool | ir.Value,
    ) -> Part:  # fmt: skip
        """A row of matrices of each subgroup."""
        height, width = (plan.side.width // ACROSS for plan in self.plans)
        own, columns = self.shape[0], self._counts[1]

        def position(i: Index, j: Index) -> tuple[Index, Index]:
            begin = loops.mul(loops.floor_div(i, own), height)
            return loops.add(begin, loops.mod(i, own), index * own), j

        row, column = loops.mul(at[0], own), loops.mul(at[1], width)
        matrices = [
            _Matrix(x, row, loops.add(column, j * self.shape[1]), multiplies)
            for j, x in enumerate(sums[index * columns : (index + 1) * columns])
        ]
        return Part(ACROSS * own, ACROSS * width, position, [matrices])


@dataclass(frozen=True)
class _Matrix:
    """A matrix of sums of a subgroup that has some, from a row and a column of its part on."""

    value: ir.Value
    row: Index
    column: Index
    multiplies: bool | ir.Value

    def store(self, memory: ir.Value, pitch: int) -> None:
        """See `Stored`."""
        at = loops.value(loops.add(loops.mul(self.row, pitch), self.column))
        loops.if_else(
            self.multiplies,
            lambda: gpu.subgroup_mma_store_matrix(self.value, memory, [at], pitch),
        )
