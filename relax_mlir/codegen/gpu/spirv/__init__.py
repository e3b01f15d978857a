"""Kernels as SPIR-V for Vulkan 1.1: buffers are descriptors, scalars are push constants.

    gpu.func @k(%n: index, %x: memref<?xf32>) kernel { .. }      ->      words of a module

The binding of a buffer is its position among the buffers. Math functions are expanded, as for CPUs,
since drivers may compute them roughly, and operations of floats are not fused.
"""

from relax_mlir.bindings import gpu, ir, memref
from relax_mlir.codegen.vector_math import expand_math
from relax_mlir.diagnostics import Diagnostic, compile_error
from relax_mlir.passes import run_upstream
from relax_mlir.rewriting import walk_ops
from relax_mlir.target import Device, Target

from ..device_kernel import DeviceKernel
from ..remainder import expand_remainders
from .arith import ARITH
from .control import CONTROL
from .cooperative import COOPERATIVE, has_matrices
from .emitter import Emitter
from .maths import MATH
from .memory import (
    MEMORY,
    MOST_SCALAR_BYTES,
    declare_buffer,
    declare_group_memory,
    declare_indices,
    load_scalars,
    offsets_of,
)
from .opcodes import Op

__all__ = ["print_spirv"]

_RULES = {**ARITH, **MATH, **CONTROL, **MEMORY, **COOPERATIVE}
_EXPANDED = "builtin.module(gpu.module(arith-expand{include-bf16=true}))"


def print_spirv(kernel: DeviceKernel, device: Device) -> bytes:
    """The code of a kernel.

    Raises CompileError, located, for an op that the device has no code for, or if the kernel takes
    more scalars than push constants have room for.
    """
    with kernel.module.context, ir.Location.unknown():
        module = ir.Module.parse(str(kernel.module))
        cpu = Target.parse("x86-64-v3").host
        expand_math(module, cpu)
        expand_remainders(module, cpu)
        run_upstream(_EXPANDED, module.operation)
        (function,) = walk_ops(module.operation, gpu.GPUFuncOp)
        emitter = Emitter(_RULES, str(device))
        emitter.globals = {
            op.sym_name.value: op for op in walk_ops(module.operation, memref.GlobalOp)
        }
        if has_matrices(function):
            emitter.out.require_matrices()
        return _function(emitter, function, kernel)


def _function(emitter: Emitter, function: gpu.GPUFuncOp, kernel: DeviceKernel) -> bytes:
    """Emits the function, and what it takes."""
    out, block = emitter.out, function.operation.regions[0].blocks[0]
    taken = list(block.arguments)[: len(kernel.arguments)]
    buffers = [i for i, x in enumerate(taken) if isinstance(x.type, ir.MemRefType)]
    scalars = [x for x in taken if not isinstance(x.type, ir.MemRefType)]
    size = offsets_of([x.type for x in scalars])[1]
    if size > MOST_SCALAR_BYTES:
        text = f"takes scalars of {size} bytes; devices have {MOST_SCALAR_BYTES} for them"
        raise compile_error((Diagnostic.at(function.operation.location, "error", text),))
    emitter.indices = declare_indices(emitter)
    for binding, i in enumerate(buffers):
        declare_buffer(emitter, taken[i], binding, i in kernel.written, i in kernel.disjoint)
    for shared in list(block.arguments)[len(taken) :]:
        declare_group_memory(emitter, shared)
    entry = out.new_id()
    emitter.plain(Op.Function, out.void(), entry, 0, out.function_type())
    emitter.start(out.new_id())
    load_scalars(emitter, scalars)
    emitter.block(block)
    emitter.plain(Op.Return)
    emitter.plain(Op.FunctionEnd)
    return out.assemble(entry, list(emitter.indices.values()), kernel.block)
