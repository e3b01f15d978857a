"""Finds products of sides with few bits, as tensor cores multiply them."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from relax_mlir.bindings import arith, ir
from relax_mlir.program.contraction import Contraction, Factor
from relax_mlir.program.program import Program
from relax_mlir.rewriting import defining_op

from ..sides import Product, match_products, total_type
from .copies import SidePlan, is_direct

Plan = TypeVar("Plan", bound=SidePlan)


def is_half(element: ir.Type) -> bool:
    """Whether it is a float of 16 bits."""
    return isinstance(element, ir.F16Type | ir.BF16Type)


def is_half_or_byte(element: ir.Type) -> bool:
    """Whether it is that, or an integer of 8 bits."""
    return is_half(element) or element == ir.IntegerType.get_signless(8)


def match_narrow(
    program: Program, is_narrow: Callable[[ir.Type], bool]
) -> list[Contraction] | None:
    """The products of a program whose sides are of one type of these; sums have up to 32 bits."""
    contractions = match_products(program)
    return contractions if contractions and are_narrow(contractions, is_narrow) else None


def are_narrow(contractions: Sequence[Contraction], is_narrow: Callable[[ir.Type], bool]) -> bool:
    """Whether all sides are of one type of these, and sums have up to 32 bits."""
    values = [narrow(side) for c in contractions for side in (c.lhs, c.rhs)]
    kinds = {x.type for x in values}
    totals = {total_type(c.stage.results[0].element) for c in contractions}
    long = {ir.F64Type.get(), ir.IntegerType.get_signless(64)}
    return len(kinds) == 1 and is_narrow(kinds.pop()) and not totals & long


def plan_sides(product: Product, kind: type[Plan], depth: int) -> list[Plan]:
    """How each side is copied, by steps of `depth`; emits what the host has to find out."""
    plans = []
    for side in (product.left, *product.right):
        value = narrow(side.factor)
        # Matrices of bytes cannot be transposed on the way to registers.
        along_depth = side.contiguous or not is_half(value.type)
        direct = is_direct(product, side, value) if along_depth == side.contiguous else False
        plans.append(kind(side, value, depth, along_depth, direct))
    return plans


def narrow(factor: Factor) -> ir.Value:
    """What a side multiplies, before it is widened."""
    for kind in (arith.ExtFOp, arith.ExtSIOp):
        widened = defining_op(factor.value, kind)
        if widened is not None:
            return widened.operands[0]
    return factor.value
