"""The rule for products of sides with 16 or 8 bits, on devices whose warps multiply matrices.

    for k in steps of 32:          while the group's threads copy what the next step needs,
      for 16 of them:              a warp multiplies 64 x 16 of A by 16 x 32 of B
    sums -> memory of the group -> epilogue, 32 rows at a time

A group has four warps, in two rows and two columns. Copies go from memory of the device to that of
the group without registers, 16 bytes each, where the side's elements lie so; `copies.py` has other
sides. Elements beyond a matrix are zero. Sums are of f32, and the device adds up the products of
16 elements at once, in whatever order, without rounding in between.

Needs: nothing. Leaves: a scheduled kernel, or the function as it was.
Source: NVIDIA, PTX ISA 8.5, mma.m16n8k16, ldmatrix, cp.async.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import element_bits
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import Contraction
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.gpu.nests import ONE_LANE
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Device

from .. import few_rows
from ..sides import Product, Shape
from .copies import SidePlan
from .fragments import WARPS, Fragments
from .matrices import COLUMNS, ROWS
from .narrow import is_half_or_byte, match_narrow, narrow, plan_sides
from .pipeline import GROUPS, Emit, Pipeline, Sums, Tile, for_tiles
from .staging import finish

STEP_BYTES, STAGES = 64, 2
"""Bytes along k of a step, and steps that are in memory of the group at once."""
MATRICES = 4
"""Columns of a warp's tile, in matrices of 8."""
_MOST = {1: 4, 2: 2}
"""Rows of a warp's tile, in matrices of 16, by products: sums have to fit into registers."""


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a program that multiplies matrices of 16 or 8 bits; False for others."""
    if not device.multiplies_matrices:
        return False

    def emit(kernel: Kernel, contractions: Sequence[Contraction]) -> None:
        product = Product.of(kernel, contractions, lambda rows: tile_of(rows, len(contractions)))
        plans = plan_sides(product, SidePlan, depth_of(contractions[0]))
        few_rows.emit(product, device, lambda: launch(product, plans, device))

    return rewrite(prim_func, ONE_LANE, lambda p: match_narrow(p, is_half_or_byte), emit)


def depth_of(contraction: Contraction) -> int:
    """Elements along k of a step."""
    return STEP_BYTES * 8 // element_bits(narrow(contraction.lhs).type)


def tile_of(rows: Index, products: int = 1) -> Shape:
    """The shape of tiles; raises Refusal if sums of so many products are too many."""
    if products not in _MOST:
        raise Refusal(f"the sums of {products} products do not fit into registers")
    height = _MOST[products]
    while isinstance(rows, int) and height > 1 and rows <= WARPS * ROWS * height // 2:
        height //= 2
    return WARPS * ROWS * height, WARPS * COLUMNS * MATRICES


def launch(product: Product, plans: Sequence[SidePlan], device: Device) -> None:
    """Emits a launch of four warps for each tile."""
    threads = WARPS * WARPS * device.subgroup
    for_tiles(product, device, threads, lambda tile: _emit(tile, plans), plans[0].depth, GROUPS)


def _emit(tile: Tile, plans: Sequence[SidePlan]) -> None:
    """Emits the loop along k, and the epilogue."""
    pipeline = Pipeline(tile, plans, STAGES, copied=STAGES - 1)
    fragments = Fragments(tile.product, plans, pipeline.memory(), tile.group.thread)

    def multiply(slot: Index, sums: Sums, copy_later: Emit) -> list[ir.Value]:
        copy_later()
        return fragments.multiply(slot, sums)

    sums = pipeline.run(fragments.initial(), multiply)
    finish(tile, fragments.parts(sums))
