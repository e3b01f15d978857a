"""The sides of products that share their left one, as a tile's group of threads reads them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import arith, ir, math, scf
from relax_mlir.program.contraction import FLOATS, Contraction, Factor, find_contractions
from relax_mlir.program.program import Program
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane, Part, evaluate
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

FEW_ROWS = 4
"""So few rows have no tile of their own."""
FEWEST_ALONG_K = 32
"""Sums of fewer products, where that is known, are those of a thread each."""

Shape = tuple[int, int]
"""Rows and columns of a tile."""


@dataclass(frozen=True)
class Side:
    """One side of a product, of which `extent` rows (or columns) are multiplied.

    `width` of them are those of a tile, `along` the loops that they are.
    """

    contraction: Contraction
    factor: Factor
    view: View
    extent: Index
    width: int
    along: tuple[int, ...]

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
    """Products that share their left side and loops; `shape` are the extents of these."""

    kernel: Kernel
    contractions: Sequence[Contraction]
    shape: Sequence[Index]
    left: Side
    right: Sequence[Side]
    epilogue: Epilogue

    @staticmethod
    def of(
        kernel: Kernel, contractions: Sequence[Contraction], tile: Callable[[Index], Shape]
    ) -> "Product":
        """The products of a program; `tile` returns the shape of tiles for so many rows.

        Raises Refusal if a tile is no way to compute them.
        """
        prepare_program(kernel)
        first = contractions[0]
        shape = [kernel.extent(first.stage, loop) for loop in range(len(first.stage.extents))]
        rows = loops.mul(1, *(shape[loop] for loop in first.rows))
        depth = shape[first.depth]
        if isinstance(rows, int) and rows <= FEW_ROWS and is_short(depth):
            raise Refusal(f"{rows} rows are too few for a tile")
        columns = sliced_columns(kernel, contractions, shape)
        height, width = tile(rows)
        left = _side(kernel, first, first.lhs, rows, height, first.rows)
        right = [_side(kernel, c, c.rhs, columns, width, c.columns) for c in contractions]
        epilogue = epilogue_of(kernel, _OneLane(), contractions, shape)
        return Product(kernel, contractions, shape, left, right, epilogue)

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
        return self.shape[self.contractions[0].depth]

    @property
    def counts(self) -> list[Index]:
        """How many tiles there are: along each batch loop, of rows, of columns."""
        tiles = [loops.ceil_div(side.extent, side.width) for side in (self.left, self.right[0])]
        return [*self.batch, *tiles]

    def position(self, side: Side, batch: Sequence[Index], at: Index, k: Index) -> list[IndexLane]:
        """The index of an element of a side in its tensor."""
        contraction, shape = side.contraction, self.shape
        indices: list[IndexLane] = [Uniform(0)] * len(shape)
        for loop, index in zip(contraction.batch, batch, strict=True):
            indices[loop] = Uniform(index)
        extents = tuple(shape[loop] for loop in side.along)
        for position, loop in enumerate(side.along):
            one = len(side.along) == 1
            indices[loop] = Uniform(at) if one else Part(Uniform(at), extents, position)
        indices[contraction.depth] = Uniform(k)
        return [evaluate(e, indices, 1) for e in side.factor.indices]

    def element(
        self, side: Side, batch: Sequence[Index], at: Index, k: Index, wanted: ir.Value
    ) -> ir.Value:
        """The scalar `wanted` of the product's body, for an element of a side."""
        lane = load(side.view, self.position(side, batch, at, k), 1)
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
