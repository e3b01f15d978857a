"""Which buffers of a kernel share no memory with others, of which one is written.

    gpu.launch_func @k::@k .. args(%x, %y, %z)       %z is a view of %y, which the kernel writes
      ->
    gpu.func @k(%x: memref<?xf32> {llvm.noalias}, %y: memref<?xf32>, %z: memref<?xf32>)

Arguments of one function are apart: memory is planned so, what is updated in place is one argument,
and callers that pass overlapping arrays are refused.
"""

from relax_mlir.bindings import func, gpu, ir, memref
from relax_mlir.rewriting import walk_ops

NOALIAS = "llvm.noalias"
_VIEWS = (
    *("memref.cast", "memref.collapse_shape", "memref.expand_shape"),
    *("memref.reinterpret_cast", "memref.subview"),
)
_MADE = ("memref.alloc", "memref.get_global")


def mark_disjoint(module: ir.Operation) -> None:
    """Marks the buffers of kernels whose launches are outlined."""
    symbols = ir.SymbolTable(module)
    disjoint: dict[str, set[int]] = {}
    for launch in walk_ops(module, gpu.LaunchFuncOp):
        name, _ = ir.SymbolRefAttr(launch.operation.attributes["kernel"]).value
        own = _disjoint(list(launch.kernelOperands), written_of(_kernel(symbols[name])))
        disjoint[name] = disjoint.get(name, own) & own
    for name, indices in disjoint.items():
        kernel = _kernel(symbols[name])
        count = len(ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).inputs)
        marks = {NOALIAS: ir.UnitAttr.get()}
        rows = [ir.DictAttr.get(marks if i in indices else {}) for i in range(count)]
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(rows)


def disjoint_of(kernel: ir.Operation) -> frozenset[int]:
    """The arguments of a kernel that are marked so, or its only buffer."""
    kinds = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).inputs
    buffers = [index for index, kind in enumerate(kinds) if isinstance(kind, ir.MemRefType)]
    if "arg_attrs" not in kernel.attributes or len(buffers) == 1:
        return frozenset(buffers if len(buffers) == 1 else ())
    rows = enumerate(ir.ArrayAttr(kernel.attributes["arg_attrs"]))
    return frozenset(index for index, row in rows if NOALIAS in ir.DictAttr(row))


def written_of(kernel: ir.Operation) -> frozenset[int]:
    """The arguments that a kernel stores to."""
    stores = walk_ops(kernel.opview, memref.StoreOp, memref.AtomicRMWOp)
    targets = {op.memref for op in stores}
    arguments = kernel.regions[0].blocks[0].arguments
    return frozenset(i for i, argument in enumerate(arguments) if argument in targets)


def _kernel(own: ir.OpView) -> ir.Operation:
    (function,) = walk_ops(own, gpu.GPUFuncOp)
    return function.operation


def _disjoint(operands: list[ir.Value], written: frozenset[int]) -> set[int]:
    buffers = {i: _root(x) for i, x in enumerate(operands) if isinstance(x.type, ir.MemRefType)}
    if any(root is None for root in buffers.values()):
        return set()
    shared = {
        i
        for i, root in buffers.items()
        for j, other in buffers.items()
        if i != j and root == other and not written.isdisjoint((i, j))
    }
    return set(buffers) - shared


def _root(buffer: ir.Value) -> ir.Value | None:
    """The memory that a buffer is a view of; None if that is not known."""
    while not isinstance(buffer.owner, ir.Block):
        name = buffer.owner.operation.name
        if name in _MADE:
            return buffer
        if name not in _VIEWS:
            return None
        buffer = buffer.owner.operation.operands[0]
    return buffer if isinstance(buffer.owner.owner.opview, func.FuncOp) else None
