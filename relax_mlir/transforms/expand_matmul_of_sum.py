"""Multiplies by each part of a sum: x (a + b) becomes x a + x b.

    %0 = "graph.add"(%w, %d) : tensor<k x n>
    %1 = "graph.matmul"(%x, %0)
      ->
    %0 = "graph.matmul"(%x, %w)
    %1 = "graph.matmul"(%x, %d)
    %2 = "graph.add"(%0, %1)

It is for weights with a correction that is a product of two small matrices, as `relax-adjust-
matmul-order` then finds: the sum need not be made anew for each correction. A sum that is
transposed in between counts too. One that broadcasts, or that something else uses, stays.

Sums are rounded otherwise; where x a and x b are infinite of different signs, the result is NaN. So
it is in no default pipeline.

Needs: a verified module; known dims (`relax-infer-shapes`). Leaves: no product of a sum.
Source: TVM `ExpandMatmulOfSum`; LoRA, arXiv 2106.09685.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.purity import Purity
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import (
    AddOp,
    MatmulOp,
    PermuteDimsOp,
    TensorType,
    dims_equal,
    known_dims,
)
from relax_mlir.passes import Pass
from relax_mlir.rewriting import defining_op, is_used_once, retyped

from .dead_code_elimination import rewrite_and_clean


@dataclass(frozen=True)
class ExpandMatmulOfSum(Pass):
    """Multiplies by each part of a sum: x (a + b) becomes x a + x b."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites every graph function of the module."""
        purity = Purity.of(op)
        for function in graph_functions(op):
            rewrite_and_clean(function, purity, expand)


def expand(op: MatmulOp) -> ir.Value | None:
    """The product of a sum on the right."""
    permutation = defining_op(op.rhs, PermuteDimsOp)
    total = defining_op(op.rhs if permutation is None else permutation.input, AddOp)
    if total is None or not is_used_once(op.rhs) or not is_used_once(total.result):
        return None
    a, b = (known_dims(TensorType.of(part).dims) for part in (total.lhs, total.rhs))
    if a is None or b is None or len(a) != len(b) or not all(map(dims_equal, a, b)):
        return None
    parts = [total.lhs, total.rhs]
    if permutation is not None:
        axes = tuple(ir.DenseI64ArrayAttr(permutation.attributes["axes"]))
        parts = [PermuteDimsOp.build(part, axes=axes).result for part in parts]
    products = [MatmulOp.build(op.lhs, part).result for part in parts]
    return retyped(AddOp.build(*products).result, op.result.type)
