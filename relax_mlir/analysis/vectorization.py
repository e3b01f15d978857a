"""Finds loops of scheduled kernels that walk contiguous memory one scalar at a time.

    scf.for %i = ... {
      %x = memref.load %a[%i]              reported: contiguous accesses, no vector in the loop
      memref.store %x, %b[%i]
    }

Scalar loads that vectors use, as those of the left side of a matrix product, cost nothing, so a
loop with vector ops is never reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import Diagnostic, compile_error
from relax_mlir.rewriting import walk

_LOOPS = ("scf.for", "scf.parallel", "scf.while")
_SCALAR_ACCESSES = {"memref.load": 1, "memref.store": 2}


@dataclass(frozen=True)
class ScalarLoop:
    """An innermost loop over contiguous elements without vectors, and one access in it."""

    kernel: str
    access: str
    location: ir.Location

    def __str__(self) -> str:
        return (
            f"kernel '{self.kernel}' has an innermost loop that walks neighbouring elements by "
            f"scalar '{self.access}'"
        )


def scalar_inner_loops(module: ir.Operation | ir.OpView) -> list[ScalarLoop]:
    """The innermost loops of all scheduled kernels that access contiguous elements as scalars."""
    loops: list[ScalarLoop] = []
    for function in module.regions[0].blocks[0].operations:
        if "tir.scheduled" not in function.operation.attributes:
            continue
        name = ir.StringAttr(function.operation.attributes["sym_name"]).value
        for loop in _innermost_loops(function.operation):
            access = _contiguous_scalar_access(loop)
            if access is not None and not _works_on_vectors(loop):
                loops.append(ScalarLoop(name, access.name, access.location))
    return loops


def assert_no_scalar_inner_loop(module: ir.Operation | ir.OpView) -> None:
    """Raises CompileError, with a diagnostic for each loop that `scalar_inner_loops` finds."""
    loops = scalar_inner_loops(module)
    if loops:
        raise compile_error([Diagnostic.at(loop.location, "error", str(loop)) for loop in loops])


def _innermost_loops(function: ir.Operation) -> Iterator[ir.Operation]:
    for op in walk(function):
        if op.name in _LOOPS and sum(inner.name in _LOOPS for inner in walk(op)) == 1:
            yield op


def _works_on_vectors(loop: ir.Operation) -> bool:
    return any(
        isinstance(value.type, ir.VectorType)
        for op in walk(loop)
        for value in [*op.results, *op.operands]
    )


def _contiguous_scalar_access(loop: ir.Operation) -> ir.Operation | None:
    """The first scalar access whose last index advances by one per iteration."""
    known: dict[ir.Value, int | None] = dict.fromkeys(loop.regions[0].blocks[0].arguments[:1], 1)
    step = _constant(loop.operands[2]) if len(loop.operands) > 2 else None
    for op in walk(loop):
        if op.name not in _SCALAR_ACCESSES:
            continue
        indices = list(op.operands)[_SCALAR_ACCESSES[op.name] :]
        if not indices or isinstance(_accessed(op), ir.VectorType):
            continue
        advance = _coefficient(indices[-1], known)
        if advance is not None and step is not None and abs(advance * step) == 1:
            return op
    return None


def _accessed(op: ir.Operation) -> ir.Type:
    return op.results[0].type if op.name == "memref.load" else op.operands[0].type


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.operation.attributes["value"]).value


def _coefficient(value: ir.Value, known: dict[ir.Value, int | None]) -> int | None:
    """How much the value grows when a loop variable grows by one; None if that is not constant.

    `known` caches the results and has the loop variables: values share operands.
    """
    if value not in known:
        owner = value.owner
        known[value] = 0 if isinstance(owner, ir.Block) else _growth(owner.operation, known)
    return known[value]


def _growth(op: ir.Operation, known: dict[ir.Value, int | None]) -> int | None:
    coefficients = [_coefficient(operand, known) for operand in op.operands]
    parts = [part for part in coefficients if part is not None]
    if len(parts) < len(coefficients):
        return None
    if not any(parts):
        return 0
    if op.name == "arith.addi":
        return parts[0] + parts[1]
    if op.name == "arith.subi":
        return parts[0] - parts[1]
    if op.name in ("arith.index_cast", "arith.index_castui"):
        return parts[0]
    if op.name == "arith.muli":
        for part, other in zip(parts, reversed(op.operands), strict=True):
            factor = _constant(other)
            if part and factor is not None:
                return part * factor
    return None
