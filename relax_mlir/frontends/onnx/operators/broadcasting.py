"""Operands that broadcast, where their dims are expressions."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import MatchCastOp, RequireOp, TensorType, dims_differ, dims_equal
from relax_mlir.symbolic import Expr, Fact


def aligned(values: Sequence[ir.Value]) -> list[ir.Value]:
    """Tensors whose dims agree where they are meant to.

    Computed dims of which nothing is known, such as those of two paths through strided windows,
    are taken to be equal, which is checked at run time; dims that are symbols of inputs may be 1.
    """
    first, *rest = values
    result = [first]
    for other in rest:
        result.append(_like(other, first))
        first = max(first, other, key=_rank)
    return result


def _rank(value: ir.Value) -> int:
    return len(TensorType.of(value).dims or ())


def _like(value: ir.Value, other: ir.Value) -> ir.Value:
    own, theirs = (graph.known_dims(TensorType.of(each).dims) for each in (value, other))
    if own is None or theirs is None:
        return value
    dims = list(own)
    for back in range(1, min(len(own), len(theirs)) + 1):
        mine, wanted = own[-back], theirs[-back]
        if _is_computed(mine) and _is_computed(wanted) and not dims_equal(mine, wanted):
            if not dims_differ(mine, wanted):
                RequireOp.build([Fact(mine, "==", wanted)], "broadcast")
                dims[-back] = wanted
    if dims == list(own):
        return value
    return MatchCastOp.build(value, TensorType.of(value).with_dims(dims)).result


def _is_computed(dim: Expr) -> bool:
    return dim.value is None and str(dim) not in dim.symbols
