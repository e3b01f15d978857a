"""What affine expressions and maps depend on."""

from relax_mlir.bindings import ir


def dims_of(expression: ir.AffineExpr) -> frozenset[int]:
    """The loops that an affine expression reads."""
    if isinstance(expression, ir.AffineDimExpr):
        return frozenset([expression.position])
    if isinstance(expression, ir.AffineConstantExpr):
        return frozenset()
    lhs, rhs = operands_of(expression)
    return dims_of(lhs) | dims_of(rhs)


def operands_of(expression: ir.AffineExpr) -> tuple[ir.AffineExpr, ir.AffineExpr]:
    """The operands of a sum, product, quotient or remainder."""
    binary = ir.AffineAddExpr | ir.AffineMulExpr | ir.AffineModExpr
    assert isinstance(expression, binary | ir.AffineFloorDivExpr | ir.AffineCeilDivExpr)
    return expression.lhs, expression.rhs
