"""Memory: buffers of a launch, and memory of a group."""

from relax_mlir.bindings import ir

from ..emitter import Emitter


def _load(emitter: Emitter, op: ir.Operation) -> None:
    buffer, index = op.operands
    emitter.let(op.results[0], emitter.buffers[buffer].loaded(emitter.name(index)))


def _store(emitter: Emitter, op: ir.Operation) -> None:
    value, buffer, index = op.operands
    emitter.line(emitter.buffers[buffer].stored(emitter.name(index), emitter.name(value)))


OPS = {"load": _load, "store": _store}
