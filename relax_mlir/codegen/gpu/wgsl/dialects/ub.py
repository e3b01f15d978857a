"""Values that nobody needs."""

from relax_mlir.bindings import ir

from ..emitter import Emitter


def _poison(emitter: Emitter, op: ir.Operation) -> None:
    """Any value: zero."""
    (result,) = op.results
    emitter.names[result] = f"{emitter.kind(result).value}()"


OPS = {"poison": _poison}
