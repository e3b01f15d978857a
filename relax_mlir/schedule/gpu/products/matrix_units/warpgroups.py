"""The rule for products whose sides have 16 bits, on devices whose warpgroups multiply matrices.

    for k in steps of 64:          a warpgroup begins to multiply 64 x 64 of A by 64 x 128 of B,
                                   read from memory of the group, and waits for the step before;
                                   later steps are copied meanwhile
    sums -> memory of the group -> epilogue, 32 columns at a time

A group has two warpgroups, of four warps each. `tensor_cores.py` says what else holds; it has the
products of few rows, and those of one left side.

Needs: nothing. Leaves: a scheduled kernel, or the function as it was.
Source: NVIDIA, PTX ISA 8.5, wgmma.mma_async.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from relax_mlir.bindings import ir, llvm, memref, nvvm
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import Contraction
from relax_mlir.program.program import all_known
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.gpu.nests import ONE_LANE
from relax_mlir.schedule.gpu.shuffles import WARP
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Device

from .. import few_rows
from ..sides import Product, Shape
from .bulk import BoxCopies, BulkPipeline, for_tiles_in_turn, most_tiles
from .descriptors import ROW_BYTES, STEP, SwizzledPlan
from .narrow import is_half, match_narrow, plan_sides
from .pipeline import Emit, Pipeline, Sums, Tile, for_tiles
from .staging import Matrix, Part, finish
from .tensor_maps import mapped

DEPTH, STAGES, COPIED = 64, 4, 2
"""Elements along k of a step, steps that are in memory of the group at once, and those of them that
are copied: one is multiplied, and one may still be."""
WARPGROUPS, WARPS = 2, 4
"""Warpgroups of a group, along rows, and warps of each."""
ROWS, COLUMNS, MANY = 64, 128, 256
"""Rows and columns of a warpgroup's product; more columns for large products."""
_CLOCKS, _CLOCKS_OF_MANY = 5, 8
"""What a step takes by the 128 bytes per clock of a group's memory: (32 + 48) and (48 + 80) KiB, of
copies and of both warpgroups. Multiplying takes 4 and 8."""
_PART = 32
"""Columns of sums that are in memory of the group at once."""


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a program that multiplies matrices of 16 bits; False for others."""
    if not device.has_warpgroups:
        return False

    def emit(kernel: Kernel, contractions: Sequence[Contraction]) -> None:
        if len(contractions) > 1:
            raise Refusal("the sums of several products do not fit into registers")
        if contractions[0].initial:
            raise Refusal("sums begin with something else than zero")
        product = Product.of(kernel, contractions, _shape)
        plans = plan_sides(product, SwizzledPlan, DEPTH)
        few_rows.emit(product, device, lambda: _launch(product, plans, device))

    return rewrite(prim_func, ONE_LANE, lambda program: match_narrow(program, is_half), emit)


def _shape(rows: Index) -> Shape:
    """The shape of tiles; raises Refusal for fewer rows than a warpgroup's."""
    if isinstance(rows, int) and rows < ROWS:
        raise Refusal(f"{rows} rows are fewer than a warpgroup multiplies")
    return WARPGROUPS * ROWS, COLUMNS


def _launch(product: Product, plans: Sequence[SwizzledPlan], device: Device) -> None:
    """Emits launches: with maps of both sides where there are some, else with copies by threads."""
    threads = WARPGROUPS * WARPS * device.subgroup

    def by_threads() -> None:
        for_tiles(
            product,
            device,
            threads,
            lambda tile: _emit(_Copying(tile, plans, STAGES, COPIED), plans),
        )

    def by_maps(columns: int) -> None:
        tiled = product.tiled(WARPGROUPS * ROWS, columns)
        own = [
            replace(plan, side=side)
            for plan, side in zip(plans, (tiled.left, *tiled.right), strict=True)
        ]
        maps = [(side, side.create()) for plan in own if (side := mapped(tiled, plan))]
        copies = BoxCopies(maps, STAGES)
        for_tiles_in_turn(tiled, device, threads, copies, lambda pipeline: _emit(pipeline, own))

    sides = all_known(mapped(product, plan) for plan in plans)
    fits: bool | ir.Value = sides is not None
    for side in sides or ():
        fits = loops.and_(fits, side.fits())

    def by_some_maps() -> None:
        loops.if_else(_has_many_columns(product), lambda: by_maps(MANY), lambda: by_maps(COLUMNS))

    loops.if_else(fits, by_some_maps, by_threads)


def _has_many_columns(product: Product) -> bool | ir.Value:
    """Whether tiles of more columns take less time, or as much."""
    columns = product.right[0].extent
    if isinstance(columns, int) and columns <= COLUMNS:
        return False
    few, many = (most_tiles(product.tiled(WARPGROUPS * ROWS, x)) for x in (COLUMNS, MANY))
    return loops.less(loops.mul(many, _CLOCKS_OF_MANY), loops.add(loops.mul(few, _CLOCKS), 1))


@dataclass(frozen=True)
class _Copying(Pipeline):
    """Copies by threads, which warpgroups are to see."""

    is_again: ClassVar[bool] = False

    def wait(self, step: Index) -> None:
        """See `Pipeline`."""
        super().wait(step)
        kind = ir.Attribute.parse("#nvvm.proxy_kind<async.shared>")
        nvvm.fence_proxy(kind, space=ir.Attribute.parse("#nvvm.shared_space<cta>"))

    def end(self) -> None:
        """Emits what comes after the last product."""


def _emit(pipeline: _Copying | BulkPipeline, plans: Sequence[SwizzledPlan]) -> None:
    """Emits the loop along k, and the epilogue."""
    tile = pipeline.tile
    memory = pipeline.memory()
    own = loops.floor_div(tile.group.thread, WARPS * WARP)

    def multiply(slot: Index, sums: Sums, copy_later: Emit) -> list[ir.Value]:
        addresses = []
        for plan, buffer in zip(plans, memory, strict=True):
            first = memref.extract_aligned_pointer_as_index(buffer)
            addresses.append(loops.add(first, loops.mul(slot, plan.elements * 2)))
        addresses[0] = loops.add(addresses[0], loops.mul(own, _own_bytes(plans[0])))
        nvvm.wgmma_fence_aligned()
        (total,) = sums
        for k in range(0, DEPTH, STEP):
            a, b = (plan.descriptor(at, k) for plan, at in zip(plans, addresses, strict=True))
            total = _multiplied(plans, a, b, total)
        nvvm.wgmma_commit_group_sync_aligned()
        copy_later()
        nvvm.wgmma_wait_group_sync_aligned(1)
        return [total]

    start = llvm.mlir_zero(_sums_type(plans[1].side.width))
    (total,) = pipeline.run([start], multiply)
    nvvm.wgmma_wait_group_sync_aligned(0)
    pipeline.end()
    finish(tile, _parts(tile, total), pipeline.is_again)


def _own_bytes(plan: SwizzledPlan) -> int:
    """How far apart the rows of warpgroups are: 64 rows, or a block of 64 that are along rows."""
    return (ROWS if plan.along_depth else plan.outer) * ROW_BYTES


def _sums_type(columns: int) -> ir.Type:
    """The sums of a thread."""
    count = ROWS * columns // (WARPS * WARP)
    return ir.Type.parse(f"!llvm.struct<({', '.join(['f32'] * count)})>")


def _multiplied(
    plans: Sequence[SwizzledPlan], a: ir.Value, b: ir.Value, total: ir.Value
) -> ir.Value:
    """Begins to add a product to sums, which nobody may use before the wait."""
    one_in = ir.Attribute.parse("#nvvm.wgmma_scale_in<one>")
    element = ir.Attribute.parse(f"#nvvm.wgmma_type<{plans[0].element}>")
    across, down = (ir.Attribute.parse(f"#nvvm.mma_layout<{x}>") for x in ("row", "col"))
    return nvvm.wgmma_mma_async(
        total.type,
        total,
        a,
        b,
        ir.Attribute.parse(f"#nvvm.shape<m = {ROWS}, n = {plans[1].side.width}, k = {STEP}>"),
        element,
        element,
        ir.Attribute.parse("#nvvm.wgmma_type<f32>"),
        ir.Attribute.parse("#nvvm.wgmma_scale_out<one>"),
        one_in,
        one_in,
        across if plans[0].along_depth else down,
        down if plans[1].along_depth else across,
    )


def _parts(tile: Tile, total: ir.Value) -> list[Part]:
    """The sums by parts: some columns of all rows, of which a warp has 16."""
    f32, columns = ir.F32Type.get(), tile.product.right[0].width
    count = ROWS * columns // (WARPS * WARP)
    values = [llvm.extractvalue(f32, total, ir.DenseI64ArrayAttr.get([i])) for i in range(count)]
    row = loops.mul(loops.floor_div(tile.group.thread, WARP), 16)

    def part(begin: int) -> Part:
        matrices = [
            Matrix(tile.group.thread, row, column, values[(begin + column) // 2 :][:4])
            for column in range(0, _PART, 8)
        ]
        return Part(WARPGROUPS * ROWS, _PART, lambda i, j: (i, loops.add(j, begin)), [matrices])

    return [part(begin) for begin in range(0, columns, _PART)]
