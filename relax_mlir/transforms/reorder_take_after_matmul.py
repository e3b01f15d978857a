"""Multiplies first and picks columns or rows of the product, instead of those of a factor.

    %0 = "graph.take"(%w, %i) {axis = 1}     columns of weights [k, n]
    %1 = "graph.matmul"(%x, %0)
      ->
    %0 = "graph.matmul"(%x, %w)
    %1 = "graph.take"(%0, %i) {axis = -1}

Rows of the left side likewise. What is picked from is then a plain parameter, which can be packed,
and what was picked is not written before the product. That is a gain where about as many are picked
as there are, or more; where few are picked, the product is larger than it was. Which of both it is,
is for who runs the pass to know. What something else uses stays.

An index outside is clamped to the same last row or column. Each element is the same sum, in an
order that may follow from the product's size.

Needs: a verified module; known dims (`relax-infer-shapes`).
Source: TVM `ReorderTakeAfterMatmul`, of which it is the case of a table of columns; a table of
matrices is left out, since a product with all of them takes as many times the work.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.purity import Purity
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import MatmulOp, TakeOp, TensorType, dims_equal, known_dims
from relax_mlir.passes import Pass
from relax_mlir.rewriting import defining_op, is_used_once, retyped

from .dead_code_elimination import rewrite_and_clean


@dataclass(frozen=True)
class ReorderTakeAfterMatmul(Pass):
    """Multiplies first and picks columns or rows of the product."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites every graph function of the module."""
        purity = Purity.of(op)
        for function in graph_functions(op):
            rewrite_and_clean(function, purity, pick_columns, pick_rows)


def pick_columns(op: MatmulOp) -> ir.Value | None:
    """A product with columns that are picked."""
    take = _picks(op.rhs, -1)
    if take is None or not _fit(op.lhs, take.input):
        return None
    return _picked(MatmulOp.build(op.lhs, take.input), take, -1, op)


def pick_rows(op: MatmulOp) -> ir.Value | None:
    """A product of rows that are picked."""
    take = _picks(op.lhs, -2)
    if take is None or not _fit(take.input, op.rhs):
        return None
    return _picked(MatmulOp.build(take.input, op.rhs), take, -2, op)


def _picks(value: ir.Value, axis: int) -> TakeOp | None:
    """The take that makes a value, if it picks along that axis by a list of indices."""
    take = defining_op(value, TakeOp)
    if take is None or not is_used_once(value):
        return None
    dims, count = TensorType.of(take.input).dims, TensorType.of(take.indices).rank
    if dims is None or len(dims) < 2 or count != 1:
        return None
    along = ir.IntegerAttr(take.attributes["axis"]).value
    return take if along in (axis, axis + len(dims)) else None


def _fit(lhs: ir.Value, rhs: ir.Value) -> bool:
    """Whether the dims that are added up are known to be equal."""
    a, b = (known_dims(TensorType.of(value).dims) for value in (lhs, rhs))
    return a is not None and b is not None and len(a) > 1 and dims_equal(a[-1], b[-2])


def _picked(product: MatmulOp, take: TakeOp, axis: int, op: MatmulOp) -> ir.Value:
    rank = TensorType.of(product.result).rank
    assert rank is not None
    picked = TakeOp.build(product.result, take.indices, axis=rank + axis).result
    return retyped(picked, op.result.type)
