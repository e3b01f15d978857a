"""Scans, which torch-mlir writes in a dialect of its own."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import emit
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

from ..function import Conversion
from ..registry import converts

_SCANS: dict[str, type[graph.InferredOp]] = {
    "arith.addf": graph.CumsumOp,
    "arith.addi": graph.CumsumOp,
    "arith.mulf": graph.CumprodOp,
    "arith.muli": graph.CumprodOp,
}


@converts("tm_tensor.scan")
def scan(conversion: Conversion, op: ir.Operation) -> None:
    """Sums or products up to each element along an axis."""
    names = [each.operation.name for each in op.regions[0].blocks[0].operations]
    is_inclusive = ir.BoolAttr(op.attributes["inclusive"]).value
    if len(names) != 2 or names[0] not in _SCANS or not is_inclusive:
        raise ShapeError("expects an inclusive scan of sums or products")
    if next(iter(op.results[1].uses), None) is not None:
        raise ShapeError("has a total that is used; expects the scan alone")
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    options = {"axis": axis, "exclusive": False, "reverse": False}
    result = emit(_SCANS[names[0]], conversion.value(op.operands[0]), **options)
    conversion.values[op.results[0]] = conversion.refined(result, op.results[0].type)
