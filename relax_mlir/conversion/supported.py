"""What a conversion takes: it is checked before anything is changed, and all at once."""

from collections.abc import Sequence

from relax_mlir.analysis.tensor_programs import DIALECTS
from relax_mlir.bindings import func, ir
from relax_mlir.rewriting import walk_ops

from .registry import rule_of

AS_THEY_ARE = ("arith.", "graph.")
"""Dialects of which functions may have ops without rules."""
BY_UPSTREAM = (
    *("affine.apply", "affine.min", "affine.max"),
    *("tosa.cond_if", "tosa.while_loop", "tosa.yield"),
)
"""Ops that passes of MLIR lower first; those of arith and math on tensors are too."""
HOST = ("tensor.extract", "tensor.insert", "tensor.from_elements")
PASSES = {name: f"relax-convert-{name}" for name in ("linalg", "tosa", "torch")}
"""The passes that convert dialects."""
BODIES = ("linalg.", "tensor.generate", "tensor.pad", "tm_tensor.scan")
"""Ops whose regions are of a tensor program."""


def needs_conversion(function: func.FuncOp, dialects: Sequence[str]) -> bool:
    """Whether a function has ops of the dialects, or other ops on tensors without their rules."""
    for op in walk_ops(function):
        name = op.operation.name
        if name.partition(".")[0] in dialects or name == "func.call":
            return True
        if name.startswith("tensor.") and name not in (*HOST, "tensor.dim"):
            return True
        if name.startswith(("arith.", "math.")) and name != "arith.constant" and _on_tensors(op):
            return True
    return False


def _on_tensors(op: ir.OpView) -> bool:
    return any(isinstance(value.type, ir.ShapedType) for value in op.operation.results)


def report_unsupported(functions: Sequence[func.FuncOp], dialects: Sequence[str]) -> bool:
    """Emits an error at each op that is not supported; whether there is one."""
    wrong = False
    for function in functions:
        for op in walk_ops(function):
            reason = _reason(op.operation, dialects)
            if reason is not None:
                op.location.emit_error(f"'{op.operation.name}' op {reason}")
                wrong = True
    return wrong


def _reason(op: ir.Operation, dialects: Sequence[str]) -> str | None:
    dialect = op.name.partition(".")[0]
    if op.name == "func.func":
        return _unsupported_type(ir.FunctionType(op.attributes["function_type"].value).inputs)
    if _in_body(op):
        if dialect in DIALECTS or op.name in ("cf.assert", "tm_tensor.yield"):
            return None
        return f"is not supported in a tensor program; expects ops of {', '.join(DIALECTS)}"
    if rule_of(op.name) is not None and (dialect not in PASSES or dialect in dialects):
        return _unsupported_type([value.type for value in op.results])
    by_others = op.name in (*HOST, *BY_UPSTREAM) and (dialect not in PASSES or dialect in dialects)
    if by_others or op.name.startswith(AS_THEY_ARE):
        return None
    if dialect == "math" and isinstance(op.results[0].type, ir.ShapedType):
        return None
    if dialect in PASSES and dialect not in dialects:
        return f"is not converted by this pass; run {PASSES[dialect]}"
    return "is not supported"


def _in_body(op: ir.Operation) -> bool:
    """Whether an op is in a region that becomes a part of a tensor program."""
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        if parent.name.startswith(BODIES):
            return True
        parent = parent.parent
    return False


def _unsupported_type(types: Sequence[ir.Type]) -> str | None:
    for type_ in types:
        if str(type_).startswith("!tosa.shape"):
            continue
        if isinstance(type_, ir.MemRefType | ir.VectorType):
            return f"has '{type_}'; expects tensors"
        element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
        if not _is_element(element):
            return f"has '{type_}', whose elements are not supported"
    return None


def _is_element(type_: ir.Type) -> bool:
    if isinstance(type_, ir.IntegerType):
        signs = type_.is_signless or type_.is_unsigned
        return signs and type_.width in (1, 8, 16, 32, 64)
    return not isinstance(type_, ir.ComplexType) or str(type_).startswith("!graph")
