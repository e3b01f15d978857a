"""What affine expressions and maps depend on."""

from relax_mlir.bindings import ir


def dims_of(expression: ir.AffineExpr) -> frozenset[int]:
    """The loops that an affine expression reads."""
    if isinstance(expression, ir.AffineDimExpr):
        return frozenset([expression.position])
    if isinstance(expression, ir.AffineConstantExpr):
        return frozenset()
    return dims_of(expression.lhs) | dims_of(expression.rhs)
