"""Objects of the host program, which may have floats in them that gradients are wanted of.

    %o = "graph.call_library"(%x) {callee = @put}     // an object that has %x in it
    %y = "graph.call_library"(%o) {callee = @get}     // has no gradient, as nobody knows what it is

Objects change and refer to each other, so any of a module may have what one is given.
"""

from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallLibraryOp, CallOp, InvokeClosureOp
from relax_mlir.dialects.graph.elementwise import FLOATS
from relax_mlir.dialects.lib import HOST_OPERANDS, HOST_RESULTS, FunctionOp
from relax_mlir.rewriting import walk_ops

NO_GRADIENT = "graph.no_grad"
"""On an op: its results count as constants, so nothing is differentiated through it."""


def may_read_objects(op: ir.OpView) -> bool:
    """Whether an op may return what an object was given."""
    if not isinstance(op, CallLibraryOp | CallOp | InvokeClosureOp):
        return False
    module = op.operation
    while module.parent is not None:
        module = module.parent.operation
    takers, makers = (_libraries(module, name) for name in (HOST_OPERANDS, HOST_RESULTS))
    calls = walk_ops(module, CallLibraryOp) if takers else []
    is_written = any(_passes_floats(c) and c.callee_name in takers | makers for c in calls)
    return is_written and _reads(op, takers, functions_by_name(module), set())


def _passes_floats(call: CallLibraryOp) -> bool:
    """Whether gradients are wanted of what a call is passed."""
    types = [value.type for value in call.ins if isinstance(value.type, ir.ShapedType)]
    has_floats = any(isinstance(type_.element_type, FLOATS) for type_ in types)
    return has_floats and NO_GRADIENT not in call.attributes


def _libraries(module: ir.Operation, handles: str) -> set[str]:
    """The names of declared functions that take objects, or that make some."""
    return {
        ir.StringAttr(op.attributes["sym_name"]).value
        for op in module.regions[0].blocks[0].operations
        if isinstance(op, FunctionOp)
        and handles in op.attributes
        and len(ir.DenseI64ArrayAttr(op.attributes[handles]))
    }


def _reads(
    op: ir.OpView, takers: set[str], functions: dict[str, func.FuncOp], seen: set[str]
) -> bool:
    """Whether an op, or what it calls, is a call of a function that takes objects."""
    if isinstance(op, InvokeClosureOp):
        return True
    if isinstance(op, CallLibraryOp):
        return op.callee_name in takers
    if op.callee_name in seen or op.callee_name not in functions:
        return False
    seen.add(op.callee_name)
    inner = walk_ops(functions[op.callee_name], CallLibraryOp, CallOp, InvokeClosureOp)
    return any(_reads(each, takers, functions, seen) for each in inner)
