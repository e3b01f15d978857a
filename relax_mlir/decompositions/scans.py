"""Running values along an axis that no operator has."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

from .emit import astype, broadcast_to, dims_of, element_of, emit, is_integer, scalar, widen
from .loops import Round, each_index


def logcumsumexp(x: ir.Value, *, axis: int) -> ir.Value:
    """The logarithms of running sums of exponentials, by a loop along the axis.

    No sum overflows, and none vanishes for what comes later. Source: ATen `logcumsumexp`.
    """
    if is_integer(element_of(x)):
        raise ShapeError(f"expects floats, but got {element_of(x)}")
    dims = dims_of(x)
    along = graph.normalize_axis(axis, len(dims))
    widened = widen(x)

    def body(turn: Round, row: ir.Value, result: ir.Value) -> Sequence[ir.Value]:
        row = emit(graph.LogaddexpOp, row, turn.take(widened, along))
        return [row, turn.put(result, row, along)]

    none = scalar(float("-inf"), element_of(widened))
    rows = broadcast_to(none, [*dims[:along], *dims[along + 1 :]])
    _, result = each_index(widened, along, [rows, broadcast_to(none, dims)], body)
    return astype(result, element_of(x))
