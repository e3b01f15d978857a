"""Indices of threads, and barriers."""

from collections.abc import Callable

from relax_mlir.bindings import ir

from ..emitter import Emitter


def _builtin(name: str) -> Callable[[Emitter, ir.Operation], None]:
    def emit(emitter: Emitter, op: ir.Operation) -> None:
        emitter.builtins[name] = None
        axis = str(op.attributes["dimension"])[-2]
        emitter.let(op.results[0], f"bitcast<i32>({name}.{axis})")

    return emit


def _barrier(emitter: Emitter, op: ir.Operation) -> None:
    """Orders accesses to memory of the group, and to that of the device."""
    emitter.line("storageBarrier();")
    emitter.line("workgroupBarrier();")


OPS = {
    "barrier": _barrier,
    "block_id": _builtin("workgroup_id"),
    "grid_dim": _builtin("num_workgroups"),
    "thread_id": _builtin("local_invocation_id"),
}
