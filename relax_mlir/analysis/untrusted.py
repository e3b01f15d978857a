"""Finds the ops of a module that could do harm: open libraries, address memory unchecked.

Operators check their arrays; loops over memory, from which kernels are made, do not. So every op
is refused that is not known to be an operator or structure around operators.
"""

from relax_mlir.bindings import arities, func, ir
from relax_mlir.diagnostics import Diagnostic, compile_error, parse_module
from relax_mlir.dialects import make_context
from relax_mlir.dialects.tir import PrimFunc

LIBRARIES = (
    *("lib.function", "graph.call_dps_library", "graph.call_library"),
    "graph.call_library_inplace",
)
STRUCTURE = (
    *("builtin.module", "func.func", "func.return", "tensor.dim", "tensor.extract"),
    *("tensor.insert", "tensor.from_elements"),
    *("scf.execute_region", "scf.if", "scf.index_switch", "scf.for", "scf.while"),
    *("scf.condition", "scf.yield"),
)
HARMLESS = ("graph.", "arith.")
"""Dialects whose other ops compute or are checked when they run."""
MEMORY = (
    *("graph.alloc_storage", "graph.alloc_tensor", "graph.view", "graph.copy", "graph.keep"),
    "graph.store",
    *("graph.call_dps", "graph.call_tir", "graph.call_tir_inplace"),
)
"""Ops that passes lower operators to."""


def check_untrusted(text: str) -> None:
    """Raises CompileError, located, if a module, in a context of its own, could do harm."""
    with make_context(), ir.Location.unknown():
        if diagnostics := untrusted(parse_module(text).operation):
            raise compile_error(diagnostics)


def untrusted(root: ir.Operation) -> list[Diagnostic]:
    """Finds the ops below `root` that an untrusted module must not contain."""
    diagnostics: list[Diagnostic] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        reason = _reason(op)
        if reason is None:
            return ir.WalkResult.ADVANCE
        message = f"'{op.name}' op {reason}; untrusted modules have operators only"
        diagnostics.append(Diagnostic.at(op.location, "error", message))
        return ir.WalkResult.SKIP

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return diagnostics


def _reason(op: ir.Operation) -> str | None:
    """Why an op is refused, if it is."""
    own = arities.plain_name(op)
    if own in LIBRARIES:
        return "opens a library"
    if isinstance(op.opview, func.FuncOp):
        name = op.opview.name.value
        if PrimFunc.is_prim_func(op.opview):
            return f"'{name}' is a tensor program, which may address any memory"
        if op.opview.is_external:
            return f"'{name}' has no body"
    elif own in MEMORY or not (own in STRUCTURE or own.startswith(HARMLESS)):
        return "may address any memory"
    return None
