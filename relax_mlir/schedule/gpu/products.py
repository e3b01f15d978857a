"""The rule for matrix products with an elementwise epilogue: a tile of the result for each group.

    for k in steps of 16:          the group copies 64 x 16 of A and 16 x 64 of B to its memory
      for i in 16:                 a thread multiplies 4 elements of A by 4 of B: 16 sums
    epilogue of each sum

Elements beyond a matrix are zero in the copies, so sums need no conditions; stores do. Copies
follow the side's contiguous dim, so that threads next to each other load elements next to each
other. What a thread owns is spread over the tile for the same reason.

Needs: nothing. Leaves: a scheduled kernel, or the function as it was.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir, math, memref, scf
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import FLOATS, Contraction, Factor, find_contractions
from relax_mlir.program.program import Program
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane, Part, evaluate
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.epilogue import Epilogue
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.lanes import Uniform, scalar
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.memory import View, load
from relax_mlir.schedule.build.product_parts import (
    computed_factor,
    epilogue_of,
    prepare_program,
    sliced_columns,
)
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Device

from .launch import Group, barrier, for_groups, unraveled
from .nests import ONE_LANE

ROWS, DEPTH, OWN = 64, 16, 4
"""Rows of a tile, elements along k that are copied at once, and rows and columns of a thread."""
FEW_ROWS = 4
"""So few rows, where that is known, are sums of a thread or a group each."""
COLUMNS = (64, 32)
"""Columns of a tile: as many as there are threads for."""


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a program that multiplies matrices; False for others."""

    def emit(kernel: Kernel, contractions: Sequence[Contraction]) -> None:
        _Product.of(kernel, device, contractions).emit()

    return rewrite(prim_func, ONE_LANE, _match, emit)


def _match(program: Program) -> list[Contraction] | None:
    """The products of a program; None for panels, which are layouts of CPUs."""
    contractions = find_contractions(program, lambda sums: -1)
    return None if contractions is None or contractions[0].pairs else contractions


@dataclass(frozen=True)
class _OneLane:
    """See `Lanes`."""

    lanes: int = 1
    has_masks: bool = False


@dataclass(frozen=True)
class _Side:
    """One side of a product, of which `extent` rows (or columns) are multiplied.

    `contiguous` says that elements along k are next to each other.
    """

    contraction: Contraction
    factor: Factor
    view: View
    extent: Index
    width: int
    along: tuple[int, ...]

    @property
    def contiguous(self) -> bool:
        at = self.factor.position(self.contraction.depth)
        return at is not None and self.view.strides[at] == 1


@dataclass(frozen=True)
class _Product:
    """Products that share their left side and loops; `shape` are the extents of these."""

    kernel: Kernel
    device: Device
    contractions: Sequence[Contraction]
    shape: Sequence[Index]
    left: _Side
    right: Sequence[_Side]
    total: ir.Type
    epilogue: Epilogue

    @staticmethod
    def of(kernel: Kernel, device: Device, contractions: Sequence[Contraction]) -> "_Product":
        """The products of a program; raises Refusal if a tile is no way to compute them."""
        prepare_program(kernel)
        first = contractions[0]
        shape = [kernel.extent(first.stage, loop) for loop in range(len(first.stage.extents))]
        rows = loops.mul(1, *(shape[loop] for loop in first.rows))
        if isinstance(rows, int) and rows <= FEW_ROWS:
            raise Refusal(f"{rows} rows are too few for a tile")
        columns = sliced_columns(kernel, contractions, shape)
        width = next((n for n in COLUMNS if _threads(n) <= device.workgroup), None)
        if width is None:
            raise Refusal(f"groups of {device.workgroup} threads are too small")
        total = _total(first.stage.results[0].element)
        left = _side(kernel, first, first.lhs, rows, ROWS, first.rows)
        right = [_side(kernel, c, c.rhs, columns, width, c.columns) for c in contractions]
        epilogue = epilogue_of(kernel, _OneLane(), contractions, shape)
        return _Product(kernel, device, contractions, shape, left, right, total, epilogue)

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.right[0].width

    def emit(self) -> None:
        """Emits the launch."""
        first = self.contractions[0]
        batch = [self.shape[loop] for loop in first.batch]
        tiles = [loops.ceil_div(side.extent, side.width) for side in (self.left, self.right[0])]
        counts = [*batch, *tiles]

        def tile(group: Group) -> None:
            *at, row, column = unraveled(group.index, counts)
            _Tile(self, group, at, loops.mul(row, ROWS), loops.mul(column, self.width)).emit()

        for_groups(loops.mul(1, *counts), _threads(self.width), self.device, tile)


@dataclass(frozen=True)
class _Tile:
    """The tile of a group: of the matrices at `batch`, from (row, column) on."""

    product: _Product
    group: Group
    batch: Sequence[Index]
    row: Index
    column: Index

    def emit(self) -> None:
        """Emits the sums of each thread, and the epilogue of each sum."""
        product, group = self.product, self.group
        depth = product.shape[product.contractions[0].depth]
        sides = [(product.left, self.row), *((side, self.column) for side in product.right)]
        copies = [
            group.memory(side.width * DEPTH, product.total, slot)
            for slot, (side, _) in enumerate(sides)
        ]
        own = self._own

        def part(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            for (side, first), copy in zip(sides, copies, strict=True):
                self._copy(side, first, k, depth, copy)
            barrier()
            result = loops.for_range(0, DEPTH, 1, partial(self._multiply, copies, own), sums)
            barrier()
            return result

        start = [_initial(product.contractions[0], product.total)] * (
            OWN * OWN * len(product.right)
        )
        sums = loops.for_range(0, depth, DEPTH, part, start)
        for index in range(OWN * OWN):
            self._finish(own, index, sums)

    @property
    def _own(self) -> tuple[Index, Index]:
        """The first row and column of a thread in the tile."""
        across = self.product.width // OWN
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
            result += [_add(sums[len(result) + i * OWN + j], a, b)
                       for i, a in enumerate(left) for j, b in enumerate(right)]  # fmt: skip
        return result

    def _finish(self, own: tuple[Index, Index], index: int, sums: Sequence[ir.Value]) -> None:
        """Emits the epilogue of one element of the tile, if it is one of the result."""
        product = self.product
        i, j = index // OWN * (ROWS // OWN), index % OWN * (product.width // OWN)
        row, column = loops.add(self.row, own[0], i), loops.add(self.column, own[1], j)
        block = Block(tuple(self.batch), row, 1, column, 1, (), 1)
        is_inside = loops.and_(
            loops.less(row, product.left.extent), loops.less(column, product.right[0].extent)
        )
        values = sums[index :: OWN * OWN]
        loops.if_else(is_inside, lambda: product.epilogue.of_element(block, values))

    def _copy(
        self, side: _Side, first: Index, begin: ir.Value, depth: Index, copy: ir.Value
    ) -> None:
        """Copies `width` x 16 elements of a side, from (first, begin) on, to the group."""
        threads, total = self.group.threads, self.product.total
        for start in range(0, side.width * DEPTH, threads):
            flat = loops.add(self.group.thread, start)
            by = DEPTH if side.contiguous else side.width
            outer, inner = loops.floor_div(flat, by), loops.mod(flat, by)
            row, k = (outer, inner) if side.contiguous else (inner, outer)
            at, depth_at = loops.add(first, row), loops.add(begin, k)
            is_inside = loops.and_(loops.less(at, side.extent), loops.less(depth_at, depth))
            load_one = partial(self._element, side, at, depth_at)
            x = _if_inside(is_inside, total, load_one)
            memref.store(x, copy, [loops.value(loops.add(loops.mul(k, side.width), row))])

    def _element(self, side: _Side, at: Index, k: Index) -> ir.Value:
        """What is multiplied: an element of a side, in the type of the sums."""
        contraction, shape = side.contraction, self.product.shape
        indices: list[IndexLane] = [Uniform(0)] * len(shape)
        for loop, index in zip(contraction.batch, self.batch, strict=True):
            indices[loop] = Uniform(index)
        extents = tuple(shape[loop] for loop in side.along)
        for position, loop in enumerate(side.along):
            one = len(side.along) == 1
            indices[loop] = Uniform(at) if one else Part(Uniform(at), extents, position)
        indices[contraction.depth] = Uniform(k)
        lane = load(side.view, [evaluate(e, indices, 1) for e in side.factor.indices], 1)
        kernel, factor = self.product.kernel, side.factor
        x = scalar(computed_factor(kernel, contraction.stage, factor, factor.value, lane, 1))
        return _widened(x, self.product.total)


def _side(
    kernel: Kernel, contraction: Contraction, factor: Factor, extent: Index, width: int,
    along: tuple[int, ...],
) -> _Side:  # fmt: skip
    view = kernel.view(factor.tensor)
    if view is None:
        raise Refusal("a side has gaps in memory")
    return _Side(contraction, factor, view, extent, width, along)


def _threads(columns: int) -> int:
    """Threads of a group whose tile has so many columns."""
    return ROWS * columns // (OWN * OWN)


def _total(element: ir.Type) -> ir.Type:
    """The type in which sums of a type are computed."""
    if isinstance(element, FLOATS):
        return element if isinstance(element, ir.F64Type) else ir.F32Type.get()
    return ir.IntegerType.get_signless(64 if ir.IntegerType(element).width > 32 else 32)


def _initial(contraction: Contraction, total: ir.Type) -> ir.Value:
    if isinstance(total, ir.FloatType):
        return arith.constant(total, float(contraction.initial))
    return arith.constant(total, ir.IntegerAttr.get(total, int(contraction.initial)))


def _add(total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    """total + a * b."""
    if isinstance(total.type, ir.FloatType):
        # May round twice, where a device has no instruction.
        return math.fma(a, b, total, fastmath=ir.Attribute.parse("#arith.fastmath<contract>"))
    return arith.addi(total, arith.muli(a, b))


def _widened(x: ir.Value, total: ir.Type) -> ir.Value:
    """A factor in the type of the sums: integers are multiplied modulo their width."""
    if x.type == total:
        return x
    return (arith.extf if isinstance(total, ir.FloatType) else arith.extsi)(total, x)


def _if_inside(
    condition: bool | ir.Value, element: ir.Type, inside: Callable[[], ir.Value]
) -> ir.Value:
    """A value if the condition holds, else zero."""
    if isinstance(condition, bool) and condition:
        return inside()
    zero = loops.zero_attr(element)
    if isinstance(condition, bool):
        return arith.constant(element, zero)
    branch = scf.IfOp(condition, [element], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([inside()])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([arith.constant(element, zero)])
    return branch.results[0]
