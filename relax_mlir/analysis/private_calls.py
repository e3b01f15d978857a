"""The calls of a private graph function, where its signature is the module's own business."""

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallOp
from relax_mlir.rewriting import walk_ops

from .functions import PRIMITIVE, is_public


def private_calls(module: ir.Operation, function: func.FuncOp) -> list[CallOp]:
    """The calls of a function whose signature may change with them; none if it has to stay.

    That is a public one, one that runs as one kernel, and one that calls itself.
    """
    if is_public(function) or PRIMITIVE in function.attributes:
        return []
    name = function.name.value
    if any(call.callee_name == name for call in walk_ops(function, CallOp)):
        return []
    return [call for call in walk_ops(module, CallOp) if call.callee_name == name]
