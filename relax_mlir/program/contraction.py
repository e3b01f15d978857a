"""Finds the matrix multiplication in a tensor program, and what each of its loops means.

    C[b.., m, n] = initial + sum over k of f(A[b.., m, k]) * g(B[b.., k, n])

n is the last loop of C, B the operand that has it, A the other one. Loops that neither, or both,
of the operands have are batch loops, as are all m but the last, unless A and C hold them side by
side (they are one m then). f and g, given by the body or by stages before it, look at one element:
casts, mostly.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from relax_mlir.analysis.affine import dims_of, operands_of
from relax_mlir.bindings import arith, ir
from relax_mlir.rewriting import defining_op

from .program import (
    Argument,
    Computed,
    Operand,
    Program,
    Reshape,
    Slice,
    Splat,
    Stage,
    Tensor,
    all_known,
)

FLOATS = (ir.F32Type, ir.F16Type, ir.BF16Type, ir.F64Type)


def is_number(element: ir.Type) -> bool:
    """Whether elements of a type can be multiplied: floats and integers, but no predicates."""
    return isinstance(element, FLOATS) or (
        isinstance(element, ir.IntegerType) and element.width > 1
    )


@dataclass(frozen=True)
class Factor:
    """One side of the product: `tensor`, in memory, at affine `indices` of the contraction's loops.

    `casts` are the stages that its elements go through, first one first; then the body computes
    `value` from its argument number `number`.
    """

    tensor: Tensor
    indices: tuple[ir.AffineExpr, ...]
    casts: tuple[Stage, ...]
    number: int
    value: ir.Value

    def position(self, loop: int) -> int | None:
        """The index that is this loop, or None."""
        for position, expression in enumerate(self.indices):
            if isinstance(expression, ir.AffineDimExpr) and expression.position == loop:
                return position
        return None

    @property
    def dims(self) -> frozenset[int]:
        """The loops that the indices read."""
        return frozenset().union(*map(dims_of, self.indices))


class Summed(Protocol):
    """A stage that adds up products of two sides, and the roles of its result's loops."""

    @property
    def stage(self) -> Stage:
        """The stage."""

    @property
    def before(self) -> tuple[Stage, ...]:
        """The stages in front of it that belong to it."""

    @property
    def batch(self) -> tuple[int, ...]:
        """The loops that are walked one by one."""

    @property
    def rows(self) -> tuple[int, ...]:
        """The loops that are walked as rows, outermost first."""

    @property
    def columns(self) -> tuple[int, ...]:
        """The loops that are walked as columns, outermost first."""

    @property
    def packed(self) -> bool:
        """Whether columns are a panel and the column in it."""


@dataclass(frozen=True)
class Contraction:
    """A stage that multiplies matrices, and the roles of its loops.

    `rows` are loops that are walked as one, outermost first, and so are `columns`. Where `packed`,
    `columns` are the number of a panel and the place in it. With `pairs`, panels are of pairs of
    neighbours along k, which `depth` counts if k is even: it `counts_pairs`. With `bf16`, as with
    `pairs`, both sides are numbers that bf16 holds.
    """

    stage: Stage
    lhs: Factor
    rhs: Factor
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    depth: int
    packed: bool
    initial: float
    pairs: bool = False
    bf16: bool = False
    counts_pairs: bool = False

    @property
    def before(self) -> tuple[Stage, ...]:
        """The stages that elements of either side go through."""
        return (*self.lhs.casts, *self.rhs.casts)


def find_contractions(
    program: Program, panel: Callable[[ir.Type], int]
) -> list[Contraction] | None:
    """The contractions of a program that multiplies matrices and then works elementwise.

    `panel` is the width of packed weights by the element type of the sums. None if the program is
    of another kind; several contractions have one left side and the same loops.
    """
    found: list[Contraction] = []
    for stage in program.stages:
        if stage.window is not None or stage.gathers:
            return None
        if stage.has_reduction:
            contraction = match_contraction(stage, panel(stage.results[0].element))
            if contraction is None:
                return None
            found.append(contraction)
    if not found or not all(_alike(found[0], other) for other in found[1:]):
        return None
    return found


def _alike(a: Contraction, b: Contraction) -> bool:
    """Whether two contractions can share loops and their copy of the left side."""
    same_roles = replace(a, stage=b.stage, lhs=b.lhs, rhs=b.rhs) == b
    same_left = all(
        getattr(a.lhs, name) == getattr(b.lhs, name) for name in ("tensor", "indices", "casts")
    )
    outputs = a.stage.inits[0].indices == b.stage.inits[0].indices
    return (
        same_roles
        and same_left
        and str(a.lhs.value) == str(b.lhs.value)
        and a.stage.extents == b.stage.extents
        and a.stage.results[0].element == b.stage.results[0].element
        and outputs
    )


def match_contraction(stage: Stage, panel: int) -> Contraction | None:
    """The stage as a multiplication of matrices, or None."""
    if len(stage.reads) != 2 or len(stage.inits) != 1 or stage.block is None:
        return None
    out = stage.inits[0]
    initial = constant_of(out.tensor)
    values = factors_of(stage)
    if initial is None or values is None:
        return None
    places = loops_of(out.indices)
    if places is None or len(set(places)) != len(places):
        return None
    sides = all_known(factor_of(stage, number, values[number]) for number in range(2))
    if sides is None:
        return None
    plain = [_without_groups(side) for side in sides]
    grouped = [old for new, old in zip(plain, sides, strict=True) if new is not old]
    in_pairs = bool(grouped) and isinstance(out.tensor.element, FLOATS)
    if in_pairs and not (all(map(_is_bf16, sides)) and grouped[0].tensor.shape[3] == 2):
        return None
    return _assign(stage, plain, places, initial, panel, in_pairs)


def _assign(
    stage: Stage,
    sides: list[Factor],
    places: list[int],
    initial: float,
    panel: int,
    in_pairs: bool,
) -> Contraction | None:
    """Gives the loops their roles; panels are `in_pairs` though one loop counts numbers along k."""
    reduced = [loop for loop, reduces in enumerate(stage.reduces) if reduces]
    own = [sides[i].dims - sides[1 - i].dims for i in range(2)]
    outputs = [loop for loop in places if stage.extents[loop] != 1]
    if outputs and outputs[-1] in own[0] | own[1]:
        last = outputs[-1]
    else:
        # A vector times a matrix of one column: any loop that one side has for itself will do.
        candidates = [loop for loop in places if loop in own[0] | own[1]]
        if not candidates or (outputs and outputs[-1] not in own[0] | own[1]):
            return None
        last = candidates[-1]
    lhs, rhs = sides if last in own[1] else reversed(sides)
    lhs_own = lhs.dims - rhs.dims
    pairs = _pairs(stage, lhs, rhs, reduced)
    wide = [loop for loop in reduced if stage.extents[loop] != 1] or reduced[-1:]
    wide = [pairs] if pairs is not None else wide
    if len(wide) != 1 or (pairs is None and any(s.position(wide[0]) is None for s in sides)):
        return None
    columns = _packed_columns(stage, rhs, places, last, wide[0], panel) or (last,)
    in_pairs |= pairs is not None
    if in_pairs and len(columns) != 2:
        return None
    rows = _row_loops(stage, lhs, [loop for loop in places if loop in lhs_own], places)
    roles = {*rows, *columns, *reduced}
    batch = tuple(loop for loop in range(len(stage.reduces)) if loop not in roles)
    plain = {*rows, *columns, wide[0]}
    for side in (lhs, rhs):
        for expression in side.indices:
            own_pairs = pairs is not None and dims_of(expression) == set(reduced)
            if loop_of(expression) is None and dims_of(expression) & plain and not own_pairs:
                return None
    return Contraction(
        stage,
        lhs,
        rhs,
        batch,
        rows,
        columns,
        wide[0],
        len(columns) == 2,
        initial,
        in_pairs,
        _is_bf16(lhs) and _is_bf16(rhs),
        pairs is not None,
    )


def _without_groups(factor: Factor) -> Factor:
    """[p, k floordiv g, j, k mod g] as if it were [p, k, j, 0]; other indices as they are."""
    if len(factor.indices) != 4 or not isinstance(factor.indices[1], ir.AffineFloorDivExpr):
        return factor
    panel, group, column, place = factor.indices
    k, divisor = operands_of(group)
    size = ir.AffineConstantExpr(divisor).value
    if loop_of(k) is None or place != k % size or factor.tensor.shape[3] != size:
        return factor
    return replace(factor, indices=(panel, k, column, ir.AffineExpr.get_constant(0)))


def _pairs(stage: Stage, lhs: Factor, rhs: Factor, reduced: list[int]) -> int | None:
    """The loop over pairs along k, if B is [panels, pairs, columns, 2] and A has k = 2 pair + i."""
    found = loops_of(rhs.indices)
    if found is None or len(found) != 4 or sorted(reduced) != sorted((found[1], found[3])):
        return None
    pair, one = found[1], found[3]
    index = ir.AffineExpr.get_dim(pair) * 2 + ir.AffineExpr.get_dim(one)
    exact = stage.extents[one] == 2 and any(e == index for e in lhs.indices)
    return pair if exact and _is_bf16(lhs) and _is_bf16(rhs) else None


def _is_bf16(factor: Factor) -> bool:
    """Whether a factor is a bf16 number that has been widened."""
    wide = defining_op(factor.value, arith.ExtFOp)
    return wide is not None and isinstance(wide.operands[0].type, ir.BF16Type)


def _row_loops(stage: Stage, lhs: Factor, loops: list[int], places: list[int]) -> tuple[int, ...]:
    """The last row loop with those that lie right in front of it in A and in C, if there is one."""
    loops = [loop for loop in loops if stage.extents[loop] != 1] or loops[-1:]
    if not loops:
        return ()
    rows = [loops[-1]]
    if not isinstance(lhs.tensor, Argument):
        return tuple(rows)
    for loop in reversed(loops[:-1]):
        at, out = lhs.position(loop), places.index(loop)
        if at is None or lhs.position(rows[0]) != at + 1 or places.index(rows[0]) != out + 1:
            break
        rows.insert(0, loop)
    return tuple(rows)


def _packed_columns(
    stage: Stage, rhs: Factor, places: list[int], last: int, depth: int, panel: int
) -> tuple[int, int] | None:
    """The loops over panels and over the columns of a panel, if B is [panels, k, columns]."""
    if len(places) < 2 or places[-1] != last or stage.extents[last] != panel:
        return None
    found = [loop_of(expression) for expression in rhs.indices]
    packed = found[:3] == [places[-2], depth, last] and rhs.tensor.shape[2] == panel
    plain = isinstance(rhs.tensor, Argument) and not rhs.casts
    return (places[-2], last) if packed and plain and len(found) in (3, 4) else None


def loop_of(expression: ir.AffineExpr) -> int | None:
    """The loop that an affine expression is, or None."""
    return expression.position if isinstance(expression, ir.AffineDimExpr) else None


def loops_of(expressions: Iterable[ir.AffineExpr]) -> list[int] | None:
    """The loops that affine expressions are, or None if one is none."""
    return all_known(map(loop_of, expressions))


def constant_of(tensor: Tensor) -> float | None:
    """The number that fills a tensor, or None."""
    if not isinstance(tensor, Splat):
        return None
    scalar = tensor.scalar
    if isinstance(scalar, ir.Value):
        if isinstance(scalar.owner, ir.Block) or scalar.owner.name != "arith.constant":
            return None
        scalar = scalar.owner.attributes["value"]
    return scalar.value if isinstance(scalar, ir.FloatAttr | ir.IntegerAttr) else None


def factors_of(stage: Stage) -> dict[int, ir.Value] | None:
    """What the body multiplies and adds up, by the number of the read that it comes from."""
    block, element = stage.body, stage.results[0].element
    if not is_number(element):
        return None
    is_float = isinstance(element, FLOATS)
    sum_, product_ = (arith.AddFOp, arith.MulFOp) if is_float else (arith.AddIOp, arith.MulIOp)
    accumulator = block.arguments[2]
    total = defining_op(block.operations[len(block.operations) - 1].operands[0], sum_)
    if total is None:
        return None
    others = [operand for operand in total.operands if operand != accumulator]
    product = defining_op(others[0], product_) if len(others) == 1 else None
    if product is None:
        return None
    found: dict[int, ir.Value] = {}
    for operand in product.operands:
        reads = _block_arguments(operand, block)
        if reads is None or len(reads) != 1:
            return None
        found[reads.pop()] = operand
    return found if sorted(found) == [0, 1] else None


def _block_arguments(value: ir.Value, block: ir.Block) -> set[int] | None:
    """Numbers of the block arguments that a value follows from; None if it is no arithmetic."""
    if isinstance(value.owner, ir.Block):
        return {ir.BlockArgument(value).arg_number} if value.owner == block else None
    op = value.owner.opview
    name = op.operation.name
    if not name.startswith(("arith.", "math.")) or op.operation.block != block:
        return set() if name == "arith.constant" else None
    found: set[int] = set()
    for operand in op.operands:
        below = _block_arguments(operand, block)
        if below is None:
            return None
        found |= below
    return found


def factor_of(stage: Stage, number: int, value: ir.Value) -> Factor | None:
    """A read of the contraction, followed through elementwise stages down to memory."""
    operand = stage.reads[number]
    casts: list[Stage] = []
    while isinstance(operand.tensor, Computed):
        producer = operand.tensor.stage
        if not _is_cast(producer):
            return None
        casts.insert(0, producer)
        written = loops_of(producer.inits[0].indices)
        if written is None or sorted(written) != list(range(len(producer.extents))):
            return None
        loops = [operand.indices[written.index(i)] for i in range(len(written))]
        source = producer.reads[0]
        own = ir.AffineMap.get(len(stage.extents), 0, loops)
        indices = tuple(e.compose(own).maybe_downcast() for e in source.indices)
        operand = Operand(source.tensor, indices)
    tensor = operand.tensor
    root = tensor
    while isinstance(root, Slice | Reshape):
        root = root.source
    is_input = isinstance(root, Argument) and root.out is None
    if not is_input or not is_number(tensor.element):
        return None
    return Factor(tensor, operand.indices, tuple(casts), number, value)


def _is_cast(stage: Stage) -> bool:
    """Whether the stage computes each element from one element of one tensor."""
    if stage.window is not None or stage.has_reduction or stage.gathers:
        return False
    if len(stage.reads) != 1 or len(stage.inits) != 1:
        return False
    if stage.block is None:
        return True
    names = [op.operation.name for op in stage.block.operations]
    plain = all(name.startswith(("arith.", "math.", "linalg.yield")) for name in names)
    return plain and not stage.uses_init(0)
