"""Lowers a kernel from the gpu dialect to LLVM IR for NVIDIA's devices.

    gpu.func @k(%x: memref<?xf32>, %n: index)  ->  define ptx_kernel void @k(ptr addrspace(1), i64)

Needs: a kernel that was outlined. Leaves: LLVM IR without calls but of intrinsics that LLVM 22 has.
"""

from math import prod

from relax_mlir.analysis.tensor_maps import MAP_ALIGNMENT, MAP_BYTES, is_tensor_map
from relax_mlir.bindings import gpu, ir, llvm, nvgpu, nvvm, scf
from relax_mlir.codegen.gpu.device_kernel import DeviceKernel
from relax_mlir.codegen.gpu.index_bounds import IndexBounds
from relax_mlir.codegen.gpu.remainder import expand_remainders
from relax_mlir.codegen.llvm import to_llvm_22
from relax_mlir.codegen.lower import annotate_loop, fuse_multiply_adds
from relax_mlir.codegen.vector_math import expand_math
from relax_mlir.diagnostics import compile_error, diagnostics_of
from relax_mlir.errors import CompileError
from relax_mlir.passes import run_upstream
from relax_mlir.rewriting import walk, walk_ops
from relax_mlir.schedule.build.loops import LOOP_ANNOTATION, UNROLLED
from relax_mlir.target import Target

from .intrinsics import call_intrinsics
from .memory import use_addresses

_PIPELINE = (
    "builtin.module(gpu.module(arith-expand,convert-scf-to-cf,{}"
    "convert-gpu-to-nvvm{{index-bitwidth={}}},{}convert-ub-to-llvm,"
    "reconcile-unrealized-casts,canonicalize,cse))"
)
_MATRICES = "convert-nvgpu-to-nvvm,convert-vector-to-llvm,", "convert-nvvm-to-llvm,"
"""What products of matrices need besides, before and after that."""
_RESIDENT_THREADS, _MULTIPLYING_THREADS, _EXCHANGING_THREADS = 512, 384, 256
"""Threads of a multiprocessor, of whose registers each may have 128 then, or 168 for matrices, or
all 255 where warps exchange what they compute of one product for the next one."""
_UNROLL = 4
"""Iterations of an innermost loop at once, whose loads a thread waits for together."""
_HOST = Target.parse("x86-64-v3")
"""Expansions of math ask what the CPU has, but for vectors only, which kernels do not have."""


def to_llvm_ir(kernel: DeviceKernel) -> str:
    """The LLVM IR of a kernel, of which it consumes the module; raises CompileError."""
    module = kernel.module
    with module.context, ir.Location.unknown():
        (device_module,) = walk_ops(module, gpu.GPUModuleOp)
        (kernel_function,) = walk_ops(device_module, gpu.GPUFuncOp)
        # Kernels of several launches of one function have equal names, in modules of their own.
        kernel_function.operation.attributes["sym_name"] = ir.StringAttr.get(kernel.name)
        multiplies = bool(walk_ops(kernel_function, nvgpu.MmaSyncOp, nvvm.WgmmaMmaAsyncOp))
        resident = _MULTIPLYING_THREADS if multiplies else _RESIDENT_THREADS
        if multiplies and walk_ops(kernel_function, gpu.ShuffleOp):
            resident = _EXCHANGING_THREADS
        _allow_registers(kernel_function.operation, kernel.block, resident)
        _unroll_loops(kernel_function.operation)
        fuse_multiply_adds(kernel_function.operation)
        expand_remainders(module, _HOST.host)
        expand_math(module, _HOST.host)
        call_intrinsics(module)
        bits = 32 if IndexBounds(kernel_function).fit else 64
        use_addresses(module, device_module, kernel_function)
        before, after = _MATRICES if multiplies else ("", "")
        passes = _PIPELINE.format(before, bits, after)
        try:
            run_upstream(passes, module.operation)
        except ir.MLIRError as error:
            raise compile_error(diagnostics_of(error)) from None
        (device_module,) = walk_ops(module, gpu.GPUModuleOp)
        for branch in walk_ops(device_module, llvm.BrOp, llvm.CondBrOp):
            annotate_loop(branch.operation)
        _check_lowered(device_module.operation)
        _mark_arguments(device_module, kernel)
        plain = ir.Module.create()
        for op in list(device_module.operation.regions[0].blocks[0].operations):
            op.operation.detach_from_parent()
            plain.body.append(op)
        return to_llvm_22(llvm.translate_module_to_llvmir(plain.operation), _HOST)


def _allow_registers(kernel: ir.Operation, block: tuple[int, int, int], threads: int) -> None:
    """States how many groups are to run on a multiprocessor, by their threads.

    Without it the driver's compiler takes so few registers that it spills some.
    """
    groups = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), max(1, threads // prod(block)))
    kernel.attributes["nvvm.minctasm"] = groups


def _unroll_loops(kernel: ir.Operation) -> None:
    """Has LLVM unroll innermost loops, and the driver's compiler leave them as they are.

    It would unroll them until registers spill. Those that multiply matrices have enough to do.
    """
    for loop in walk_ops(kernel, scf.ForOp):
        if len(walk_ops(loop.operation, scf.ForOp)) == 1:
            multiplies = walk_ops(loop.operation, nvgpu.MmaSyncOp, nvvm.WgmmaMmaAsyncOp)
            count = 1 if multiplies else _UNROLL
            annotation = ir.Attribute.parse(UNROLLED.format(count))
            loop.operation.attributes[LOOP_ANNOTATION] = annotation


def _mark_arguments(device_module: gpu.GPUModuleOp, kernel: DeviceKernel) -> None:
    """Has loads of what nobody stores to while the kernel runs be `ld.global.nc`.

    Tensor maps are passed by value.

    Buffers that are stored to are not marked, though they be disjoint: LLVM would take it that no
    other thread stores to them, barriers or not.
    """
    constant = kernel.disjoint - kernel.written
    unit, i64 = ir.UnitAttr.get(), ir.IntegerType.get_signless(64)
    marks = {"llvm.noalias": unit, "llvm.readonly": unit}
    of_map = {
        "llvm.byval": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{MAP_BYTES} x i8>")),
        "llvm.align": ir.IntegerAttr.get(i64, MAP_ALIGNMENT),
        "nvvm.grid_constant": unit,
    }
    functions = walk_ops(device_module, llvm.LLVMFuncOp)
    (function,) = (each for each in functions if each.sym_name.value == kernel.name)
    rows = [
        ir.DictAttr.get(of_map if is_tensor_map(kind) else marks if i in constant else {})
        for i, kind in enumerate(kernel.arguments)
    ]
    function.operation.attributes["arg_attrs"] = ir.ArrayAttr.get(rows)


def _check_lowered(module: ir.Operation) -> None:
    """Raises CompileError for an op that is not LLVM's: its translator would crash."""
    for op in walk(module):
        if op != module and not op.name.startswith(("llvm.", "nvvm.")):
            raise CompileError(f"{op.location}: '{op.name}' op has no lowering to PTX")
