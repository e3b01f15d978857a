"""Reductions, which keep the axis as a dim of 1."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, emit, reduce
from relax_mlir.dialects import graph

from ..function import Conversion
from ..registry import converts
from .constants import require_propagation

_REDUCTIONS: dict[str, type[graph.InferredOp]] = {
    "tosa.reduce_all": graph.AllOp,
    "tosa.reduce_any": graph.AnyOp,
    "tosa.reduce_max": graph.MaxOp,
    "tosa.reduce_min": graph.MinOp,
    "tosa.reduce_product": graph.ProdOp,
    "tosa.reduce_sum": graph.SumOp,
}


@converts(*_REDUCTIONS)
def reduced(conversion: Conversion, op: ir.Operation) -> None:
    """A reduction along an axis."""
    require_propagation(op)
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    value = conversion.value(op.operands[0])
    conversion.define(op, reduce(_REDUCTIONS[op.name], value, [axis], keepdims=True))


@converts("tosa.argmax")
def argmax(conversion: Conversion, op: ir.Operation) -> None:
    """The index of the greatest element along an axis."""
    require_propagation(op)
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    value = conversion.value(op.operands[0])
    index = emit(graph.ArgmaxOp, value, axis=axis, keepdims=False)
    conversion.define(op, astype(index, ir.RankedTensorType(op.results[0].type).element_type))
