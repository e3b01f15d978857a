"""Multiplies three matrices in the order that takes fewer multiplications.

    %0 = "graph.matmul"(%a, %b)          [k, r] x [r, n]
    %1 = "graph.matmul"(%x, %0)          [m, k] x [k, n]
      ->
    %0 = "graph.matmul"(%x, %a)          [m, k] x [k, r]
    %1 = "graph.matmul"(%0, %b)          [m, r] x [r, n]

Likewise the other way, (a b) x to a (b x), and where the inner product is transposed in between.
Rows may have a batch in front. The order changes if fewer multiplications are proved, from the dims
and the function's facts, for all sizes; if nothing can be told it stays, and so does an inner
product that something else uses.

Sums are rounded otherwise, and an intermediate that overflows may do so in one order only: it is in
no default pipeline. What the inner product is of parameters alone can be computed once instead
(`relax-lift-params`): then it is better left.

Needs: a verified module; known dims (`relax-infer-shapes`).
Source: TVM `AdjustMatmulOrder`; LoRA, arXiv 2106.09685.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import facts_of, graph_functions
from relax_mlir.analysis.purity import Purity
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import MatmulOp, PermuteDimsOp, TensorType, known_dims
from relax_mlir.passes import Pass
from relax_mlir.rewriting import defining_op, is_used_once, retyped
from relax_mlir.symbolic import Expr, Facts, at_most, equal, product

from .dead_code_elimination import rewrite_and_clean


@dataclass(frozen=True)
class AdjustMatmulOrder(Pass):
    """Multiplies three matrices in the order that takes fewer multiplications."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Reorders products in every graph function of the module."""
        purity = Purity.of(op)
        for function in graph_functions(op):
            order = _Order(facts_of(function))
            rewrite_and_clean(function, purity, order.rows_first, order.columns_first)


@dataclass(frozen=True)
class _Factor:
    """A matrix, or one whose last two dims are exchanged."""

    value: ir.Value
    is_transposed: bool = False

    @property
    def dims(self) -> tuple[Expr, ...] | None:
        """The dims of the factor, None where one is not known."""
        dims = known_dims(TensorType.of(self.value).dims)
        return dims[::-1] if dims is not None and self.is_transposed else dims

    def emit(self) -> ir.Value:
        """The factor as a value."""
        if not self.is_transposed:
            return self.value
        return PermuteDimsOp.build(self.value, axes=(1, 0)).result


@dataclass(frozen=True)
class _Order:
    facts: Facts

    def rows_first(self, op: MatmulOp) -> ir.Value | None:
        """The product x (a b) as (x a) b."""
        inner = _factors(op.rhs)
        sizes = None if inner is None else self._sizes(_Factor(op.lhs), *inner)
        if inner is None or sizes is None:
            return None
        m, k, r, n = sizes
        if not self._is_less(m * k * r + m * r * n, k * r * n + m * k * n):
            return None
        first = MatmulOp.build(op.lhs, inner[0].emit()).result
        return retyped(MatmulOp.build(first, inner[1].emit()).result, op.result.type)

    def columns_first(self, op: MatmulOp) -> ir.Value | None:
        """The product (a b) x as a (b x)."""
        inner = _factors(op.lhs)
        sizes = None if inner is None else self._sizes(*inner, _Factor(op.rhs))
        if inner is None or sizes is None:
            return None
        m, k, r, n = sizes
        if not self._is_less(k * r * n + m * k * n, m * k * r + m * r * n):
            return None
        last = MatmulOp.build(inner[1].emit(), op.rhs).result
        return retyped(MatmulOp.build(inner[0].emit(), last).result, op.result.type)

    def _sizes(self, *factors: _Factor) -> tuple[Expr, Expr, Expr, Expr] | None:
        """Of a chain [..., m, k] x [k, r] x [r, n]: m with the batch, k, r and n; else None."""
        first, second, third = (factor.dims for factor in factors)
        if first is None or second is None or third is None or len(first) < 2:
            return None
        if len(second) != 2 or len(third) != 2:
            return None
        pairs = ((first[-1], second[0]), (second[1], third[0]))
        if not all(equal(*pair, self.facts).proved for pair in pairs):
            return None
        return product(first[:-1]), first[-1], second[1], third[1]

    def _is_less(self, new: Expr, old: Expr) -> bool:
        """Whether an order never takes more, and not always as many."""
        return at_most(new, old, self.facts).proved and not at_most(old, new, self.facts).proved


def _factors(value: ir.Value) -> tuple[_Factor, _Factor] | None:
    """The factors of a product that nothing else uses, seen through a transposition."""
    transposition = defining_op(value, PermuteDimsOp)
    if transposition is not None:
        axes = tuple(ir.DenseI64ArrayAttr(transposition.attributes["axes"]))
        if axes != (1, 0) or not is_used_once(value):
            return None
        value = transposition.input
    inner = defining_op(value, MatmulOp)
    if inner is None or not is_used_once(value):
        return None
    if transposition is None:
        return _Factor(inner.lhs), _Factor(inner.rhs)
    return _Factor(inner.rhs, True), _Factor(inner.lhs, True)
