"""Affine maps of indices."""

from typing import Any

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]


BINARY = (
    ir.AffineAddExpr,
    ir.AffineMulExpr,
    ir.AffineModExpr,
    ir.AffineFloorDivExpr,
    ir.AffineCeilDivExpr,
)


def evaluate(expr: ir.AffineExpr, dims: tuple[Any, ...], symbols: tuple[Any, ...]) -> Any:
    """The value of an expression of indices; quotients are rounded down, and 0 if by 0."""
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    assert isinstance(expr, BINARY), expr
    lhs, rhs = (evaluate(side, dims, symbols) for side in (expr.lhs, expr.rhs))
    if isinstance(expr, ir.AffineAddExpr):
        return lhs + rhs
    if isinstance(expr, ir.AffineMulExpr):
        return lhs * rhs
    if np.ndim(rhs) == 0 and rhs == 0:
        return lhs * 0
    if isinstance(expr, ir.AffineModExpr):
        return lhs % rhs
    if isinstance(expr, ir.AffineFloorDivExpr):
        return lhs // rhs
    return -(-lhs // rhs)


def _results(map_: ir.AffineMap, operands: tuple[Any, ...]) -> list[Any]:
    dims, symbols = operands[: map_.n_dims], operands[map_.n_dims :]
    return [evaluate(expr, dims, symbols) for expr in map_.results]


def apply(*operands: Any, map: ir.AffineMapAttr) -> Any:
    """The one result of a map."""
    return _results(map.value, operands)[0]


def min(*operands: Any, map: ir.AffineMapAttr) -> Any:
    """The minimum of the results of a map."""
    return _extreme(np.minimum, _results(map.value, operands))


def max(*operands: Any, map: ir.AffineMapAttr) -> Any:
    """The maximum of the results of a map."""
    return _extreme(np.maximum, _results(map.value, operands))


def _extreme(choose: Any, values: list[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = choose(result, value)
    return result
