"""The rule for products whose sides have 16 bits, on devices whose warps multiply matrices.

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
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, ir, nvvm
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import Contraction, Factor
from relax_mlir.program.program import Program
from relax_mlir.rewriting import defining_op
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.gpu.launch import Group, barrier, for_groups, unraveled
from relax_mlir.schedule.gpu.nests import ONE_LANE
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Device

from . import few_rows
from .copies import DEPTH, SidePlan, copy, plan_side
from .fragments import Fragments
from .sides import Product, Shape, match_products
from .staging import finish

STAGES = 2
"""Steps along k that are in memory of the group at once."""
WARPS = 2
"""Warps of a group along rows, and along columns."""
MATRICES = 4
"""Columns of a warp's tile, in matrices of 8."""
_MOST = {1: 4, 2: 2}
"""Rows of a warp's tile, in matrices of 16, by products: sums have to fit into registers."""


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a program that multiplies matrices of 16 bits; False for others."""
    if not device.multiplies_matrices:
        return False

    def emit(kernel: Kernel, contractions: Sequence[Contraction]) -> None:
        product = Product.of(kernel, contractions, lambda rows: _shape(rows, len(contractions)))
        plans = []
        for side in (product.left, *product.right):
            value = narrow(side.factor)
            assert value is not None, "all sides have 16 bits"
            plans.append(plan_side(side, value))

        def tile(group: Group) -> None:
            *at, row, column = unraveled(group.index, product.counts)
            first = loops.mul(column, product.right[0].width)
            _Tile(product, plans, group, at, loops.mul(row, product.left.width), first).emit()

        threads = WARPS * WARPS * device.subgroup

        def launch() -> None:
            for_groups(loops.mul(1, *product.counts), threads, device, tile)

        few_rows.emit(product, device, launch)

    return rewrite(prim_func, ONE_LANE, _match, emit)


def _match(program: Program) -> list[Contraction] | None:
    """The products of a program, if their sides are of one type of 16 bits."""
    contractions = match_products(program)
    if contractions is None:
        return None
    values = [narrow(side) for c in contractions for side in (c.lhs, c.rhs)]
    kinds = {None if x is None else x.type for x in values}
    sums = {c.stage.results[0].element for c in contractions}
    is_known = len(kinds) == 1 and None not in kinds and ir.F64Type.get() not in sums
    return contractions if is_known else None


def narrow(factor: Factor) -> ir.Value | None:
    """What a side multiplies, before it is widened to f32; None if that has not 16 bits."""
    x = factor.value
    if isinstance(x.type, ir.F32Type) and (widened := defining_op(x, arith.ExtFOp)) is not None:
        x = widened.operands[0]
    return x if isinstance(x.type, ir.F16Type | ir.BF16Type) else None


def _shape(rows: Index, products: int) -> Shape:
    """The shape of tiles; raises Refusal if sums of so many products are too many."""
    if products not in _MOST:
        raise Refusal(f"the sums of {products} products do not fit into registers")
    height = _MOST[products]
    while isinstance(rows, int) and height > 1 and rows <= WARPS * 16 * height // 2:
        height //= 2
    return WARPS * 16 * height, WARPS * 8 * MATRICES


@dataclass(frozen=True)
class _Tile:
    """The tile of a group: of the matrices at `batch`, from (row, column) on."""

    product: Product
    plans: Sequence[SidePlan]
    group: Group
    batch: Sequence[Index]
    row: Index
    column: Index
    memory: list[ir.Value] = field(default_factory=list)

    def emit(self) -> None:
        """Emits the loop along k, and the epilogue."""
        depth = self.product.depth
        for slot, plan in enumerate(self.plans):
            self.memory.append(self.group.memory(STAGES * plan.elements, plan.element, slot))
        for step in range(STAGES - 1):
            self._copy(step * DEPTH, step)
        fragments = Fragments(self.product, self.plans, self.memory, self.group.thread)

        def multiply(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            step = loops.floor_div(k, DEPTH)
            if self.is_asynchronous:
                nvvm.cp_async_wait_group(STAGES - 2)
            barrier()
            later = STAGES - 1
            self._copy(loops.add(k, later * DEPTH), loops.mod(loops.add(step, later), STAGES))
            everyone = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), -1)
            nvvm.bar_warp_sync(arith.constant(everyone.type, everyone))
            return fragments.multiply(loops.mod(step, STAGES), sums)

        sums = loops.for_range(0, depth, DEPTH, multiply, fragments.initial())
        finish(self.product, self.group, self.batch, (self.row, self.column), sums)

    @property
    def is_asynchronous(self) -> bool:
        """Whether any copy may go on while threads do something else."""
        return any(plan.is_direct is not False for plan in self.plans)

    def _copy(self, k: Index, slot: Index) -> None:
        """Begins to copy what a step multiplies, if there is one at k."""

        def copies() -> None:
            for i, plan in enumerate(self.plans):
                at = self.batch, self.column if i else self.row, k
                to = self.memory[i], loops.mul(slot, plan.elements)
                copy(self.product, plan, self.group, at, to)

        loops.if_else(loops.less(k, self.product.depth), copies)
        if self.is_asynchronous:
            nvvm.cp_async_commit_group()
