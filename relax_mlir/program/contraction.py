"""Finds the matrix multiplication in a tensor program, and what each of its loops means.

    C[b.., m, n] = initial + sum over k of f(A[b.., m, k]) * g(B[b.., k, n])

n is the last loop of C, B the operand that has it, A the other one. Loops of neither, or of both
operands are batch loops, as are all m but the last, unless they are adjacent in A and in C and can
be collapsed to one m. f and g, of the body or of stages before it, are functions of one element:
mostly casts.
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


def is_numeric(element: ir.Type) -> bool:
    """Whether elements of a type can be multiplied: floats and integers, but not predicates."""
    return isinstance(element, FLOATS) or (
        isinstance(element, ir.IntegerType) and element.width > 1
    )


@dataclass(frozen=True)
class Factor:
    """One side of the product: `tensor`, in memory, at affine `indices` of the contraction's loops.

    `casts` are the stages that its elements go through, in order; then the body computes `value`
    from its argument `read`.
    """

    tensor: Tensor
    indices: tuple[ir.AffineExpr, ...]
    casts: tuple[Stage, ...]
    read: int
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
    """A stage that sums products of two sides, and the roles of its result's loops."""

    @property
    def stage(self) -> Stage:
        """The stage."""

    @property
    def before(self) -> tuple[Stage, ...]:
        """The stages before it that belong to it."""

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch loops."""

    @property
    def rows(self) -> tuple[int, ...]:
        """The loops that are collapsed to rows, outermost first."""

    @property
    def columns(self) -> tuple[int, ...]:
        """The loops that are collapsed to columns, outermost first."""

    @property
    def packed(self) -> bool:
        """Whether the columns are (panel, column of the panel)."""


@dataclass(frozen=True)
class Contraction:
    """A stage that multiplies matrices, and the roles of its loops.

    `rows` are loops that are collapsed to one, outermost first, and so are `columns`. If `packed`,
    `columns` are (panel, column of the panel). With `pairs`, panels are of pairs along k, and if it
    `counts_pairs`, `depth` is a loop over pairs. With `bf16`, as with `pairs`, the elements of both
    sides are exact in bf16.
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
    """The contractions of a program that multiplies matrices and then is elementwise.

    `panel` returns the columns of packed panels, by the element type of the sums. None for other
    programs; several contractions share their left side and loops.
    """
    contractions: list[Contraction] = []
    for stage in program.stages:
        if stage.window is not None or stage.gathers:
            return None
        if stage.has_reduction:
            contraction = match_contraction(stage, panel(stage.results[0].element))
            if contraction is None:
                return None
            contractions.append(contraction)
    if not contractions or not all(_alike(contractions[0], other) for other in contractions[1:]):
        return None
    return contractions


def _alike(a: Contraction, b: Contraction) -> bool:
    """Whether two contractions can share loops and their packed left side."""
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
    """The stage as a matrix product, or None."""
    if len(stage.reads) != 2 or len(stage.inits) != 1 or stage.block is None:
        return None
    out = stage.inits[0]
    initial = constant_of(out.tensor)
    values = factors_of(stage)
    if initial is None or values is None:
        return None
    result_loops = loops_of(out.indices)
    if result_loops is None or len(set(result_loops)) != len(result_loops):
        return None
    sides = all_known(factor_of(stage, read, values[read]) for read in range(2))
    if sides is None:
        return None
    plain = [_without_groups(side) for side in sides]
    grouped = [old for new, old in zip(plain, sides, strict=True) if new is not old]
    in_pairs = bool(grouped) and isinstance(out.tensor.element, FLOATS)
    if in_pairs and not (all(map(_is_bf16, sides)) and grouped[0].tensor.shape[3] == 2):
        return None
    return _assign(stage, plain, result_loops, initial, panel, in_pairs)


def _assign(
    stage: Stage,
    sides: list[Factor],
    result_loops: list[int],
    initial: float,
    panel: int,
    in_pairs: bool,
) -> Contraction | None:
    """Gives the loops their roles; panels may be `in_pairs` with a loop over single k."""
    reduced = [loop for loop, reduces in enumerate(stage.reduces) if reduces]
    own = [sides[i].dims - sides[1 - i].dims for i in range(2)]
    outputs = [loop for loop in result_loops if stage.extents[loop] != 1]
    if outputs and outputs[-1] in own[0] | own[1]:
        last = outputs[-1]
    else:
        # A vector times a matrix of one column: any loop of one side only.
        candidates = [loop for loop in result_loops if loop in own[0] | own[1]]
        if not candidates or (outputs and outputs[-1] not in own[0] | own[1]):
            return None
        last = candidates[-1]
    lhs, rhs = sides if last in own[1] else reversed(sides)
    lhs_own = lhs.dims - rhs.dims
    pairs = _pairs(stage, lhs, rhs, reduced)
    k_loops = [loop for loop in reduced if stage.extents[loop] != 1] or reduced[-1:]
    k_loops = [pairs] if pairs is not None else k_loops
    if len(k_loops) != 1 or (pairs is None and any(s.position(k_loops[0]) is None for s in sides)):
        return None
    columns = _packed_columns(stage, rhs, result_loops, last, k_loops[0], panel) or (last,)
    in_pairs |= pairs is not None
    if in_pairs and len(columns) != 2:
        return None
    rows = row_loops(stage, lhs, [loop for loop in result_loops if loop in lhs_own], result_loops)
    roles = {*rows, *columns, *reduced}
    batch = tuple(loop for loop in range(len(stage.reduces)) if loop not in roles)
    plain = {*rows, *columns, k_loops[0]}
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
        k_loops[0],
        len(columns) == 2,
        initial,
        in_pairs,
        _is_bf16(lhs) and _is_bf16(rhs),
        pairs is not None,
    )


def _without_groups(factor: Factor) -> Factor:
    """Indices [p, k floordiv g, j, k mod g] as [p, k, j, 0]; others unchanged."""
    if len(factor.indices) != 4 or not isinstance(factor.indices[1], ir.AffineFloorDivExpr):
        return factor
    panel, group, column, position = factor.indices
    k, divisor = operands_of(group)
    size = ir.AffineConstantExpr(divisor).value
    if loop_of(k) is None or position != k % size or factor.tensor.shape[3] != size:
        return factor
    return replace(factor, indices=(panel, k, column, ir.AffineExpr.get_constant(0)))


def _pairs(stage: Stage, lhs: Factor, rhs: Factor, reduced: list[int]) -> int | None:
    """The loop over pairs along k, if B is [panels, pairs, columns, 2] and A has k = 2 pair + i."""
    rhs_loops = loops_of(rhs.indices)
    if (
        rhs_loops is None
        or len(rhs_loops) != 4
        or sorted(reduced) != sorted((rhs_loops[1], rhs_loops[3]))
    ):
        return None
    pair, one = rhs_loops[1], rhs_loops[3]
    index = ir.AffineExpr.get_dim(pair) * 2 + ir.AffineExpr.get_dim(one)
    exact = stage.extents[one] == 2 and any(e == index for e in lhs.indices)
    return pair if exact and _is_bf16(lhs) and _is_bf16(rhs) else None


def _is_bf16(factor: Factor) -> bool:
    """Whether a factor is a widened bf16 element."""
    widened = defining_op(factor.value, arith.ExtFOp)
    return widened is not None and isinstance(widened.operands[0].type, ir.BF16Type)


def row_loops(
    stage: Stage, lhs: Factor, loops: list[int], result_loops: list[int]
) -> tuple[int, ...]:
    """The last row loop, and those directly outside of it both in A and in C, if there are any."""
    loops = [loop for loop in loops if stage.extents[loop] != 1] or loops[-1:]
    if not loops:
        return ()
    rows = [loops[-1]]
    if not isinstance(lhs.tensor, Argument):
        return tuple(rows)
    for loop in reversed(loops[:-1]):
        at, out = lhs.position(loop), result_loops.index(loop)
        if at is None or lhs.position(rows[0]) != at + 1 or result_loops.index(rows[0]) != out + 1:
            break
        rows.insert(0, loop)
    return tuple(rows)


def _packed_columns(
    stage: Stage, rhs: Factor, result_loops: list[int], last: int, depth: int, panel: int
) -> tuple[int, int] | None:
    """The loops over panels and over the columns of a panel, if B is [panels, k, columns]."""
    if len(result_loops) < 2 or result_loops[-1] != last or stage.extents[last] != panel:
        return None
    rhs_loops = [loop_of(expression) for expression in rhs.indices]
    packed = rhs_loops[:3] == [result_loops[-2], depth, last] and rhs.tensor.shape[2] == panel
    plain = isinstance(rhs.tensor, Argument) and not rhs.casts
    return (result_loops[-2], last) if packed and plain and len(rhs_loops) in (3, 4) else None


def loop_of(expression: ir.AffineExpr) -> int | None:
    """The loop whose index an affine expression is, or None."""
    return expression.position if isinstance(expression, ir.AffineDimExpr) else None


def loops_of(expressions: Iterable[ir.AffineExpr]) -> list[int] | None:
    """The loops whose indices affine expressions are, or None if one is another expression."""
    return all_known(map(loop_of, expressions))


def constant_of(tensor: Tensor) -> float | None:
    """The constant that fills a tensor, or None."""
    if not isinstance(tensor, Splat):
        return None
    scalar = tensor.scalar
    if isinstance(scalar, ir.Value):
        if isinstance(scalar.owner, ir.Block) or scalar.owner.name != "arith.constant":
            return None
        scalar = scalar.owner.attributes["value"]
    return scalar.value if isinstance(scalar, ir.FloatAttr | ir.IntegerAttr) else None


def sides_of(stage: Stage) -> tuple[ir.Value, ir.Value] | None:
    """The factors a, b of a body that yields accumulator + a * b, or None."""
    block, is_float = stage.body, isinstance(stage.results[0].element, FLOATS)
    sum_, product_ = (arith.AddFOp, arith.MulFOp) if is_float else (arith.AddIOp, arith.MulIOp)
    accumulator = block.arguments[len(stage.reads)]
    total = defining_op(block.operations[len(block.operations) - 1].operands[0], sum_)
    others = [x for x in total.operands if x != accumulator] if total is not None else []
    product = defining_op(others[0], product_) if len(others) == 1 else None
    return (product.operands[0], product.operands[1]) if product is not None else None


def factors_of(stage: Stage) -> dict[int, ir.Value] | None:
    """The factors of the body's sum of products, by the read that they depend on."""
    block, element = stage.body, stage.results[0].element
    if not is_numeric(element):
        return None
    sides = sides_of(stage)
    if sides is None:
        return None
    factors: dict[int, ir.Value] = {}
    for operand in sides:
        reads = block_arguments(operand, block)
        if reads is None or len(reads) != 1:
            return None
        factors[reads.pop()] = operand
    return factors if sorted(factors) == [0, 1] else None


def block_arguments(value: ir.Value, block: ir.Block) -> set[int] | None:
    """The block arguments that a value depends on; None unless by arithmetic."""
    if isinstance(value.owner, ir.Block):
        return {ir.BlockArgument(value).arg_number} if value.owner == block else None
    op = value.owner.opview
    name = op.operation.name
    if not name.startswith(("arith.", "math.")) or op.operation.block != block:
        return set() if name == "arith.constant" else None
    result: set[int] = set()
    for operand in op.operands:
        inner = block_arguments(operand, block)
        if inner is None:
            return None
        result |= inner
    return result


def factor_of(stage: Stage, read: int, value: ir.Value) -> Factor | None:
    """A read of the contraction, traced through elementwise stages to memory."""
    operand = stage.reads[read]
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
    if not is_input or not is_numeric(tensor.element):
        return None
    return Factor(tensor, operand.indices, tuple(casts), read, value)


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
