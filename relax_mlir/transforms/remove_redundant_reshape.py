"""Joins chains of reshapes, and drops those that change nothing.

    %1 = "graph.reshape"(%0) : tensor<n x 4> -> tensor<4*n>
    %2 = "graph.reshape"(%1) : tensor<4*n>   -> tensor<2*n x 2>
      ->
    %2 = "graph.reshape"(%0) : tensor<n x 4> -> tensor<2*n x 2>

`graph.expand_dims` and `graph.squeeze` are reshapes too. What a chain goes through is erased if
nothing else uses it. A step that may be refused at run time, because its elements may be more or
fewer than those it is made of, stays: the facts have to show that it is not.

Needs: a verified module; known dims (`relax-infer-shapes`). Leaves: no reshape of a reshape, and
none to the dims of its operand, as far as proofs go.
Source: TVM `RemoveRedundantReshape`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.scopes import scoped_ops
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import (
    Dim,
    ExpandDimsOp,
    ReshapeOp,
    SqueezeOp,
    TensorType,
    known_dims,
)
from relax_mlir.passes import Pass
from relax_mlir.rewriting import is_unused, replace, retyped, safe_erase
from relax_mlir.symbolic import Facts, equal, product

Reshape: TypeAlias = ReshapeOp | ExpandDimsOp | SqueezeOp


@dataclass(frozen=True)
class RemoveRedundantReshape(Pass):
    """Joins chains of reshapes, and drops those that change nothing."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Simplifies every graph function of the module, in program order."""
        for function in graph_functions(op):
            ops = [(each, scope.facts) for each, scope in scoped_ops(function)]
            for each, facts in ops:
                if isinstance(each, Reshape) and _keeps_count(each, facts):
                    _simplify(each, facts)


def _simplify(op: Reshape, facts: Facts) -> None:
    """Replaces a reshape by its source, or by a reshape of what its chain begins with."""
    chain = _chain(op, facts)
    source = chain[-1].input
    dims = known_dims(TensorType.of(op.result).dims)
    with ir.InsertionPoint(op), op.location:
        if _are_equal(TensorType.of(source).dims, dims, facts):
            replace(op, retyped(source, op.result.type))
        elif len(chain) > 1 and dims is not None:
            replace(op, retyped(ReshapeOp.build(source, shape=dims).result, op.result.type))
    for each in chain[1:]:
        if is_unused(each):
            safe_erase(each)


def _chain(op: Reshape, facts: Facts) -> list[Reshape]:
    """The op and the reshapes in front of it that certainly have as many elements."""
    chain = [op]
    while True:
        inner = None if isinstance(op.input.owner, ir.Block) else op.input.owner.opview
        if not isinstance(inner, Reshape) or not _keeps_count(inner, facts):
            return chain
        op = inner
        chain.append(op)


def _keeps_count(op: Reshape, facts: Facts) -> bool:
    """Whether it is shown that the result has as many elements as the operand."""
    before, after = (known_dims(TensorType.of(value).dims) for value in (op.input, op.result))
    if before is None or after is None:
        return False
    return equal(product(before), product(after), facts).proved


def _are_equal(a: Sequence[Dim] | None, b: Sequence[Dim] | None, facts: Facts) -> bool:
    if a is None or b is None or len(a) != len(b):
        return False
    return all(x is not None and y is not None and equal(x, y, facts).proved for x, y in zip(a, b))
