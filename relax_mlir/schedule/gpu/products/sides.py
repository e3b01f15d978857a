"""The sides of products that share their left one, as a tile's group of threads reads them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import arith, ir, math, scf
from relax_mlir.program.contraction import FLOATS, Contraction, Factor, find_contractions, loops_of
from relax_mlir.program.padding import Padding
from relax_mlir.program.program import Program
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane, Part, evaluate, resolve
from relax_mlir.schedule.build.epilogue import Epilogue
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.lanes import Uniform, scalar, value_of
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.memory import View, load
from relax_mlir.schedule.build.product_parts import (
    computed_factor,
    epilogue_of,
    prepare_program,
    sliced_columns,
)
from relax_mlir.schedule.build.refusal import Refusal

FEW_ROWS = 4
"""So few rows have no tile of their own."""
FEWEST_ALONG_K = 32
"""Sums of fewer products, where that is known, are those of a thread each."""

Shape = tuple[int, int]
"""Rows and columns of a tile."""


@dataclass(frozen=True)
class Side:
    """One side of a product, of which `extent` rows (or columns) are multiplied.

    `width` of them are those of a tile, `along` the loops that they are. `padding` are the zeros in
    front of each dim of its tensor, as `take_padding` returns them.
    """

    contraction: Contraction
    factor: Factor
    view: View
    extent: Index
    width: int
    along: tuple[int, ...]
    padding: Padding = ()

    @property
    def is_flat(self) -> bool:
        """Whether collapsed loops need no indices of their own, since memory has them in a row."""
        return self.view.whole and loops_of(self.factor.indices) is not None

    @property
    def contiguous(self) -> bool:
        """Whether elements along k are next to each other."""
        at = self.factor.position(self.contraction.depth)
        return at is not None and self.view.strides[at] == 1


@dataclass(frozen=True)
class _OneLane:
    """See `Lanes`."""

    lanes: int = 1
    has_masks: bool = False


@dataclass(frozen=True)
class Product:
    """Products that share their left side and loops; `shape` are the extents of these.

    `summed` are the loops that are collapsed to k, outermost first.
    """

    kernel: Kernel
    contractions: Sequence[Contraction]
    shape: Sequence[Index]
    summed: tuple[int, ...]
    left: Side
    right: Sequence[Side]
    epilogue: Epilogue

    @staticmethod
    def of(
        kernel: Kernel,
        contractions: Sequence[Contraction],
        tile: Callable[[Index], Shape],
        summed: tuple[int, ...] = (),
        padding: tuple[Padding, Padding] = ((), ()),
    ) -> "Product":
        """The products of a program; `tile` returns the shape of tiles for so many rows.

        The loops `summed` are k, or the one that contractions have; `padding` is of left and right.
        Raises Refusal if a tile is no way to compute them.
        """
        prepare_program(kernel)
        first = contractions[0]
        shape = [kernel.extent(first.stage, loop) for loop in range(len(first.stage.extents))]
        rows = loops.mul(1, *(shape[loop] for loop in first.rows))
        summed = summed or (first.depth,)
        depth = loops.mul(1, *(shape[loop] for loop in summed))
        if isinstance(rows, int) and rows <= FEW_ROWS and is_short(depth):
            raise Refusal(f"{rows} rows are too few for a tile")
        columns = sliced_columns(kernel, contractions, shape)
        height, width = tile(rows)
        left = _side(kernel, first, first.lhs, rows, height, first.rows)
        right = [_side(kernel, c, c.rhs, columns, width, c.columns) for c in contractions]
        left = replace(left, padding=padding[0])
        right = [replace(side, padding=padding[1]) for side in right]
        epilogue = epilogue_of(kernel, _OneLane(), contractions, shape)
        return Product(kernel, contractions, shape, summed, left, right, epilogue)

    def tiled(self, height: int, width: int) -> "Product":
        """The same products by tiles of another shape."""
        left = replace(self.left, width=height)
        return replace(self, left=left, right=[replace(x, width=width) for x in self.right])

    @property
    def batch(self) -> list[Index]:
        """The extents of the batch loops."""
        return [self.shape[loop] for loop in self.contractions[0].batch]

    @property
    def depth(self) -> Index:
        """The extent of the sums."""
        return loops.mul(1, *(self.shape[loop] for loop in self.summed))

    @property
    def counts(self) -> list[Index]:
        """How many tiles there are: along each batch loop, of rows, of columns."""
        tiles = [loops.ceil_div(side.extent, side.width) for side in (self.left, self.right[0])]
        return [*self.batch, *tiles]

    def along(self, side: Side, at: Index) -> list[IndexLane]:
        """The indices of the loops that are a row of a side."""
        return self._indices(side, side.along, at)

    def position(
        self, side: Side, batch: Sequence[Index], along: Sequence[IndexLane], k: Index
    ) -> list[IndexLane]:
        """The index of an element of a side in its tensor; negative, or too large, in padding."""
        contraction, shape = side.contraction, self.shape
        indices: list[IndexLane] = [Uniform(0)] * len(shape)
        for loop, index in zip(contraction.batch, batch, strict=True):
            indices[loop] = Uniform(index)
        of_sums = self._indices(side, self.summed, k)
        for loop, lane in zip((*side.along, *self.summed), (*along, *of_sums), strict=True):
            indices[loop] = lane
        result = [evaluate(e, indices, 1) for e in side.factor.indices]
        for dim, zeros in enumerate(side.padding):
            if zeros is not None:
                result[dim] = Uniform(loops.sub(value_of(resolve(result[dim], 1)), zeros))
        return result

    def _indices(self, side: Side, collapsed: Sequence[int], flat: Index) -> list[IndexLane]:
        """The indices of collapsed loops, from their row-major linear index."""
        if len(collapsed) == 1:
            return [Uniform(flat)]
        extents = tuple(self.shape[loop] for loop in collapsed)
        parts = [Part(Uniform(flat), extents, i) for i in range(len(extents))]
        return [*parts] if side.is_flat else [resolve(part, 1) for part in parts]

    def is_element(self, side: Side, position: Sequence[IndexLane]) -> bool | ir.Value:
        """Whether a position is not in padding."""
        result: bool | ir.Value = True
        for index, size, zeros in zip(position, side.view.sizes, side.padding, strict=False):
            if zeros is not None:
                result = loops.and_(result, loops.less(value_of(resolve(index, 1)), size))
        return result

    def element(self, side: Side, position: Sequence[IndexLane], wanted: ir.Value) -> ir.Value:
        """The scalar `wanted` of the product's body, for an element of a side."""
        lane = load(side.view, position, 1)
        stage, factor = side.contraction.stage, side.factor
        return scalar(computed_factor(self.kernel, stage, factor, wanted, lane, 1))


def is_short(depth: Index) -> bool:
    """Whether sums are known to be of few products."""
    return isinstance(depth, int) and depth < FEWEST_ALONG_K


def match_products(program: Program) -> list[Contraction] | None:
    """The products of a program; None for panels, which are layouts of CPUs."""
    contractions = find_contractions(program, lambda sums: -1)
    return None if contractions is None or contractions[0].pairs else contractions


def total_type(element: ir.Type) -> ir.Type:
    """The type in which sums of a type are computed."""
    if isinstance(element, FLOATS):
        return element if isinstance(element, ir.F64Type) else ir.F32Type.get()
    return ir.IntegerType.get_signless(64 if ir.IntegerType(element).width > 32 else 32)


def if_inside(
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


def initial_sum(contraction: Contraction | None, total: ir.Type) -> ir.Value:
    """What the sums of a product begin with; zero without one."""
    initial = 0 if contraction is None else contraction.initial
    if isinstance(total, ir.FloatType):
        return arith.constant(total, float(initial))
    return arith.constant(total, ir.IntegerAttr.get(total, int(initial)))


def multiply_add(total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    """total + a * b."""
    if isinstance(total.type, ir.FloatType):
        # May round twice, where a device has no instruction.
        return math.fma(a, b, total, fastmath=ir.Attribute.parse("#arith.fastmath<contract>"))
    return arith.addi(total, arith.muli(a, b))


def widened(x: ir.Value, total: ir.Type) -> ir.Value:
    """A factor in the type of the sums: integers are multiplied modulo their width."""
    if x.type == total:
        return x
    return (arith.extf if isinstance(total, ir.FloatType) else arith.extsi)(total, x)


def added(a: ir.Value, b: ir.Value) -> ir.Value:
    """a + b."""
    return (arith.addf if isinstance(a.type, ir.FloatType) else arith.addi)(a, b)


def _side(
    kernel: Kernel, contraction: Contraction, factor: Factor, extent: Index, width: int,
    along: tuple[int, ...],
) -> Side:  # fmt: skip
    view = kernel.view(factor.tensor)
    if view is None:
        raise Refusal("a side has gaps in memory")
    return Side(contraction, factor, view, extent, width, along)
