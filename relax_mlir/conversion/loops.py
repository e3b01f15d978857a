"""The loops of an op with indexing maps: their extents, and what has to hold of operands.

    matmul  (i, j, k) -> (i, k), (k, j), (i, j)    of tensor<a x b>, tensor<c x d>, tensor<a x d>
      extents a, d, b;  b == c is checked

A dim that a map reads directly is as large as its loop. Of other maps, as those of convolutions,
the least and the greatest index have to be within the dim, unless a loop is empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import Expr, Fact, const

from .function import Conversion

Range = tuple[Expr, Expr]
"""The least and the greatest index."""


@dataclass(frozen=True)
class Loops:
    """The extents of loops."""

    maps: Sequence[ir.AffineMap]
    extents: tuple[Expr, ...]

    def dims(self, operand: int, own: Sequence[Expr]) -> tuple[Expr, ...]:
        """The dims of an operand in the program: those that are loops, as extents."""
        results = self.maps[operand].results
        return tuple(
            self.extents[_loop_of(result)] if _is_loop(result) else dim
            for result, dim in zip(results, own, strict=True)
        )


def loops_of(
    conversion: Conversion, maps: Sequence[ir.AffineMap], shapes: Sequence[Sequence[Expr]]
) -> Loops:
    """The loops over operands of these dims; has checked what has to hold.

    Raises ShapeError where it never does.
    """
    count = maps[0].n_dims
    extents: list[Expr | None] = [None] * count
    for map_, shape in zip(maps, shapes, strict=True):
        for result, dim in zip(map_.results, shape, strict=True):
            if not _is_loop(result):
                continue
            own = extents[_loop_of(result)]
            if own is None or (own.value is None and dim.value is not None):
                extents[_loop_of(result)] = dim
    if None in extents:
        raise ShapeError(f"has loop {extents.index(None)}, whose extent no operand has")
    loops = Loops(maps, tuple(extent for extent in extents if extent is not None))
    for operand, (map_, shape) in enumerate(zip(maps, shapes)):
        for axis, (result, dim) in enumerate(zip(map_.results, shape)):
            what = f"dim {axis} of operand {operand}"
            if _is_loop(result):
                _check_loop(conversion, dim, loops.extents[_loop_of(result)], what)
            else:
                _check_range(conversion, result, dim, loops.extents)
    return loops


def _check_loop(conversion: Conversion, dim: Expr, extent: Expr, what: str) -> None:
    conversion.same(dim, extent, what)


def _check_range(
    conversion: Conversion, index: ir.AffineExpr, dim: Expr, extents: Sequence[Expr]
) -> None:
    low, high = _range(index, extents)
    empty = [Fact(extents[i], "==", const(0)) for i in sorted(_loops_in(index))]
    conversion.require(Fact(high + 1, "<=", dim), *empty)
    if low.value is None or low.value < 0:
        conversion.require(Fact(const(0), "<=", low), *empty)


def _range(expr: ir.AffineExpr, extents: Sequence[Expr]) -> Range:
    """The least and the greatest value over loops that are not empty."""
    if isinstance(expr, ir.AffineConstantExpr):
        value = const(ir.AffineConstantExpr(expr).value)
        return value, value
    if isinstance(expr, ir.AffineDimExpr):
        return const(0), extents[ir.AffineDimExpr(expr).position] - 1
    if isinstance(expr, ir.AffineSymbolExpr):
        raise ShapeError("has a map with symbols, which is not supported")
    a, b = _range(expr.lhs, extents)  # type: ignore[attr-defined]  # a binary one
    c, d = _range(expr.rhs, extents)  # type: ignore[attr-defined]
    if isinstance(expr, ir.AffineAddExpr):
        return a + c, b + d
    factor = c.value if c == d else None
    if factor is None:
        raise ShapeError(f"has a map with '{expr}', which is not supported")
    if isinstance(expr, ir.AffineMulExpr):
        return (a * factor, b * factor) if factor >= 0 else (b * factor, a * factor)
    if isinstance(expr, ir.AffineModExpr):
        return const(0), const(factor - 1)
    if isinstance(expr, ir.AffineFloorDivExpr):
        return a // factor, b // factor
    return (a + (factor - 1)) // factor, (b + (factor - 1)) // factor


def _is_loop(expr: ir.AffineExpr) -> bool:
    return isinstance(expr, ir.AffineDimExpr)


def _loop_of(expr: ir.AffineExpr) -> int:
    return ir.AffineDimExpr(expr).position


def _loops_in(expr: ir.AffineExpr) -> set[int]:
    if isinstance(expr, ir.AffineDimExpr):
        return {_loop_of(expr)}
    if isinstance(expr, ir.AffineConstantExpr | ir.AffineSymbolExpr):
        return set()
    sides = expr.lhs, expr.rhs  # type: ignore[attr-defined]  # a binary one
    return _loops_in(sides[0]) | _loops_in(sides[1])
