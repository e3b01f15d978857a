"""Finds products whose sides have 16 bits, as tensor cores multiply them."""

from typing import TypeVar

from relax_mlir.bindings import arith, ir
from relax_mlir.program.contraction import Contraction, Factor
from relax_mlir.program.program import Program
from relax_mlir.rewriting import defining_op

from .copies import SidePlan, is_direct
from .sides import Product, match_products

Plan = TypeVar("Plan", bound=SidePlan)


def match_halves(program: Program) -> list[Contraction] | None:
    """The products of a program, if their sides are of one type of 16 bits."""
    contractions = match_products(program)
    if contractions is None:
        return None
    values = [_narrow(side) for c in contractions for side in (c.lhs, c.rhs)]
    kinds = {None if x is None else x.type for x in values}
    sums = {c.stage.results[0].element for c in contractions}
    is_known = len(kinds) == 1 and None not in kinds and ir.F64Type.get() not in sums
    return contractions if is_known else None


def plan_sides(product: Product, kind: type[Plan], depth: int) -> list[Plan]:
    """How each side is copied, by steps of `depth`; emits what the host has to find out."""
    plans = []
    for side in (product.left, *product.right):
        value = _narrow(side.factor)
        assert value is not None, "all sides have 16 bits"
        plans.append(kind(side, value, depth, side.contiguous, is_direct(side, value)))
    return plans


def _narrow(factor: Factor) -> ir.Value | None:
    """What a side multiplies, before it is widened to f32; None if that has not 16 bits."""
    x = factor.value
    if isinstance(x.type, ir.F32Type) and (widened := defining_op(x, arith.ExtFOp)) is not None:
        x = widened.operands[0]
    return x if isinstance(x.type, ir.F16Type | ir.BF16Type) else None
