"""Bounds of loops with barriers: WGSL wants proof that all threads of a group have equal ones.

    let end = min(positions[token] + 1, stop);         if (thread == 0) { own = end; }
    for (..; at < end; ..) { barrier }            ->   let same = workgroupUniformLoad(&own);
                                                       for (..; at < same; ..) { barrier }

What is loaded from memory is no proof for a browser, although barriers need it to be true.
"""

from relax_mlir.bindings import ir
from relax_mlir.rewriting import walk

from .emitter import Emitter

_VARYING = ("memref.load", "gpu.thread_id")


def uniform_bounds(emitter: Emitter, loop: ir.Operation) -> list[str]:
    """The bounds and the step of an `scf.for`, the same for all threads if there is a barrier."""
    names = [emitter.name(x) for x in list(loop.operands)[:3]]
    if not any(op.name == "gpu.barrier" for op in walk(loop)):
        return names
    return [
        _broadcast(emitter, name) if _may_vary(x) else name
        for name, x in zip(names, loop.operands, strict=False)
    ]


def _broadcast(emitter: Emitter, name: str) -> str:
    """What the first thread of a group has for a value."""
    own = emitter.fresh("own")
    emitter.declarations.append(f"var<workgroup> {own}: i32;")
    emitter.shared_bytes += 4
    emitter.builtins["local_invocation_index"] = None
    emitter.line(f"if (local_invocation_index == 0u) {{ {own} = {name}; }}")
    same = emitter.fresh()
    emitter.line(f"let {same} = workgroupUniformLoad(&{own});")
    return same


def _may_vary(x: ir.Value) -> bool:
    """Whether a value depends on memory, on a thread, or on what a loop or a branch computes."""
    seen: set[ir.Value] = set()
    left = [x]
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.owner, ir.Block):
            loop = value.owner.owner
            if loop.name != "gpu.func" and not (
                loop.name == "scf.for" and value == value.owner.arguments[0]
            ):
                return True
            continue
        op = value.owner.operation
        if op.name in _VARYING or len(op.regions):
            return True
        left += op.operands
    return False
