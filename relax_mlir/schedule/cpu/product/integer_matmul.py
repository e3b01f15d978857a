"""The rule for products of matrices of 8-bit integers: sums that are exact modulo 2^32.

    %z = linalg.fill                                          integer_kernel: tiles of 32-bit sums
    %c = linalg.generic (total + ext(a) * ext(b)) -> %z  ->   in registers, by the dot products
    %o = linalg.generic (elementwise) %c, %scale              of the machine, then the epilogue

On the left numbers are widened from 8 bits, signed or not; on the right they may be moved by a
constant besides: a zero point, or the 128 by which packed weights are moved for some machines. That
is one factor for the sum of each row of the left side:

    sum over k of a * (b + c)  =  sum over k of a * (b + s)  +  (c - s) * sum over k of a

where s moves stored numbers into the range that the machine multiplies.

Needs: named linalg ops generalised. Leaves: a scheduled kernel, or the function as it was.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import INTEGERS, Contraction, Factor, find_contractions
from relax_mlir.program.program import Program, Stage, all_known
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import ceil_div, if_else, less, mul, splat_integer
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.dot import GroupStep
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Target

from .amx_block import BLOCK_ROWS
from .gemm_tile import Tiling
from .integer_kernel import IntegerProblem, emit_integer_gemm
from .matmul import (
    FEWEST_IN_TILES,
    epilogue_of,
    kept_columns,
    matrix_of,
    prepare_program,
    rows_collide,
)
from .packing import Matrix

TILES_BLOCK_K = 192
"""Groups of k that tile registers take at once: more, of a panel and a tile, leave the L1 cache."""
TOP_BIT = -128
"""As an 8-bit number; flipping it moves signed numbers to unsigned ones and back."""


@dataclass(frozen=True)
class Form:
    """What a factor is made of: stored 8-bit numbers, `signed` or not, and a constant to add."""

    signed: bool
    offset: int


@dataclass(frozen=True)
class Found:
    """The products of a program, and how the machine multiplies them.

    `factor` times the sum of a row of the left side is what the sums of that row lack.
    """

    contractions: Sequence[Contraction]
    step: GroupStep
    is_moved: bool
    factor: int


def schedule_integer_matmul(kernel: PrimFunc, target: Target) -> bool:
    """Rewrites a tensor program that multiplies 8-bit matrices into loops over memrefs.

    Returns False, and leaves the function alone, if it is of another kind.
    """
    tiling, has_tiles = Tiling.of(target), amx.has_tiles(target, "int8")
    return rewrite(
        kernel,
        target,
        lambda program: find_integers(program, target),
        lambda k, found: _emit(k, tiling, found, has_tiles),
    )


def find_integers(program: Program, target: Target) -> Found | None:
    """The products of a program whose sums are 32-bit and whose factors are 8-bit, or None."""
    contractions = find_contractions(program, Tiling.of(target).columns, INTEGERS)
    if contractions is None:
        return None
    first = contractions[0]
    if first.stage.results[0].element != ir.IntegerType.get_signless(32):
        return None
    left = form_of(first.stage, first.lhs)
    rights = all_known(form_of(c.stage, c.rhs) for c in contractions)
    if left is None or left.offset or rights is None or len(set(rights)) != 1:
        return None
    right = rights[0]
    step = GroupStep.of(target, left.signed, right.signed)
    if step is None:
        return None
    moved = step.moves_right(right.signed)
    if first.packed and (moved or first.rhs.tensor.shape[3:] != (step.group,)):
        return None
    return Found(contractions, step, bool(moved), right.offset - moved)


def form_of(stage: Stage, factor: Factor) -> Form | None:
    """What a factor of a contraction is made of, or None if it is of another kind."""
    if factor.tensor.element != ir.IntegerType.get_signless(8):
        return None
    known: Form | bool | None = False
    for cast in factor.casts:
        if cast.block is not None:
            last = cast.block.operations[len(cast.block.operations) - 1]
            known = _follow(last.operands[0], cast.block.arguments[0], known)
    known = _follow(factor.value, stage.body.arguments[factor.number], known)
    return known if isinstance(known, Form) else None


def _follow(value: ir.Value, argument: ir.Value, known: Form | bool | None) -> Form | bool | None:
    """The form of what is computed from an argument that is `known`, or None.

    A bool stands for the stored numbers: whether their top bit has been flipped.
    """
    if value == argument or known is None:
        return known
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.opview
    constants = [constant_of(operand) for operand in op.operands]
    inner = _follow(op.operands[0], argument, known)
    if isinstance(op, arith.ExtSIOp | arith.ExtUIOp) and isinstance(inner, bool):
        signed = isinstance(op, arith.ExtSIOp)
        return Form(signed != inner, (TOP_BIT if signed else -TOP_BIT) if inner else 0)
    if isinstance(op, arith.XOrIOp) and isinstance(inner, bool) and constants[1] == TOP_BIT:
        return not inner
    if isinstance(inner, Form) and len(constants) == 2 and constants[1] is not None:
        if value.type == ir.IntegerType.get_signless(32):
            sign = {arith.AddIOp: 1, arith.SubIOp: -1}.get(type(op))
            return None if sign is None else Form(inner.signed, inner.offset + sign * constants[1])
    is_wider = isinstance(op, arith.ExtSIOp) and isinstance(inner, Form) and not inner.offset
    return inner if is_wider else None


def constant_of(value: ir.Value) -> int | None:
    """The integer that a value is known to be."""
    if isinstance(value.owner, ir.Block) or not isinstance(value.owner.opview, arith.ConstantOp):
        return None
    attribute = value.owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _emit(kernel: Kernel, tiling: Tiling, found: Found, has_tiles: bool) -> None:
    """Emits the body of the scheduled function."""
    prepare_program(kernel)
    contractions, step = found.contractions, found.step
    first = contractions[0]
    shape = [kernel.extent(first.stage, loop) for loop in range(len(first.stage.extents))]

    def side(c: Contraction, factor: Factor, rows: Sequence[int]) -> Callable[..., Matrix]:
        moved = found.is_moved and factor is c.rhs
        return matrix_of(kernel, tiling, c, factor, rows, shape, _flip if moved else None)

    epilogue = epilogue_of(kernel, tiling, contractions, shape)
    columns = kept_columns(kernel, contractions, shape)
    problem = IntegerProblem(
        batch=tuple(shape[loop] for loop in first.batch),
        rows=mul(1, *(shape[loop] for loop in first.rows)),
        columns=columns,
        depth=ceil_div(shape[first.depth], step.group),
        lhs=side(first, first.lhs, first.rows),
        rhs=tuple(side(c, c.rhs, c.columns) for c in contractions),
        packed=first.packed,
        initial=first.initial,
        epilogue=epilogue,
        collides=rows_collide(columns, epilogue.outputs),
        factor=found.factor,
        outputs=[kernel.memory(result) for result in epilogue.outputs],
    )
    if not has_tiles or step.group != amx.LANE_BYTES:
        emit_integer_gemm(tiling, step, problem)
        return
    few = replace(tiling, rows=FEWEST_IN_TILES - 1)
    many = replace(tiling, rows=BLOCK_ROWS, block_k=TILES_BLOCK_K, in_tiles=True)
    if_else(
        less(problem.rows, FEWEST_IN_TILES),
        lambda: emit_integer_gemm(few, step, problem),
        lambda: emit_integer_gemm(many, step, problem),
    )


def _flip(numbers: ir.Value) -> ir.Value:
    """A vector of 8-bit numbers with their top bits flipped."""
    kind = ir.VectorType(numbers.type)
    return arith.xori(numbers, splat_integer(TOP_BIT, kind.shape[0], kind.element_type))
