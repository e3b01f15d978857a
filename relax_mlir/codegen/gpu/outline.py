"""Outlines launches: kernels of devices that take buffers, scalars and maps alone.

    %c = arith.constant 2.0 : f32
    gpu.launch blocks(%n, 1, 1) threads(128, 1, 1) { use(%x, %n, %c) }
      ->
    gpu.launch_func @k_kernel::@k_kernel blocks in (%n, 1, 1) threads in (128, 1, 1) args(%x, %n)
    gpu.module @k_kernel { gpu.func @k_kernel(%x: memref<?xf32>, %n: index) {
      %c = arith.constant 2.0 : f32 .. } }

A buffer has one dim and its extent is a scalar of its own, where it is needed: printers pass bare
addresses. Constants are in kernels, tables of constants are buffers that the host passes.
"""

from relax_mlir.analysis.devices import DEVICE, function_around
from relax_mlir.analysis.tensor_maps import is_tensor_map
from relax_mlir.bindings import gpu, ir
from relax_mlir.passes import PassFailure, run_upstream
from relax_mlir.rewriting import walk, walk_ops

from .disjoint import mark_disjoint

_OUTLINE = "builtin.module(gpu-kernel-outlining,gpu.module(canonicalize,cse))"
_CLEAN = "func.func(canonicalize,cse)"
_ACCESSES = (
    *("memref.load", "memref.store", "memref.atomic_rmw"),
    "memref.extract_aligned_pointer_as_index",
    *("nvgpu.device_async_copy", "nvgpu.ldmatrix"),
    *("gpu.subgroup_mma_load_matrix", "gpu.subgroup_mma_store_matrix"),
)
_COPIED = ("arith.constant", "llvm.mlir.zero", "ub.poison")


def outline_launches(module: ir.Operation) -> None:
    """Outlines every launch of a module, in place.

    Raises PassFailure at a launch whose kernel would take other values than these.
    """
    launches = walk_ops(module, gpu.LaunchOp)
    for launch in launches:
        _copy_constants(launch.operation)
    if not launches:
        return
    run_upstream(_OUTLINE, module)
    launching = (function_around(launch) for launch in walk_ops(module, gpu.LaunchFuncOp))
    for function in dict.fromkeys(launching):  # others may have tensors, which it would select
        run_upstream(_CLEAN, function)
    for kernel in walk_ops(module, gpu.GPUFuncOp):
        _check(kernel)
    _mark_devices(module)
    mark_disjoint(module)


def _mark_devices(module: ir.Operation) -> None:
    """Has kernels say which device they are of, as the functions that launch them do."""
    symbols = ir.SymbolTable(module)
    for launch in walk_ops(module, gpu.LaunchFuncOp):
        function = function_around(launch)
        if DEVICE in function.attributes:
            name, _ = ir.SymbolRefAttr(launch.operation.attributes["kernel"]).value
            symbols[name].attributes[DEVICE] = function.attributes[DEVICE]


def _copy_constants(launch: ir.Operation) -> None:
    """Copies the constants that a launch uses into it."""
    inside = [op for op in walk(launch) if op != launch]
    own = {result for op in inside for result in op.results}
    start = ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0])
    copies: dict[ir.Value, ir.Value] = {}
    for op in inside:
        for i, x in enumerate(list(op.operands)):
            if isinstance(x.owner, ir.Block) or x in own:
                continue
            if x.owner.operation.name in _COPIED:
                if x not in copies:
                    copies[x] = x.owner.operation.clone(ip=start).operation.results[0]
                op.operands[i] = copies[x]


def _check(kernel: gpu.GPUFuncOp) -> None:
    for argument in kernel.body.blocks[0].arguments:
        type_ = argument.type
        if isinstance(type_, ir.MemRefType):
            if type_.rank != 1 or type_.layout != ir.AffineMapAttr.get(
                ir.AffineMap.get_identity(1)
            ):
                text = f"takes a buffer of '{type_}'; kernels of devices take buffers of one dim"
                raise PassFailure(kernel, text)
            users = [use.owner for use in argument.uses]
            if any(user.operation.name not in _ACCESSES for user in users):
                raise PassFailure(kernel, "takes a buffer that it does not only load and store")
        elif not isinstance(type_, ir.IndexType | ir.IntegerType | ir.FloatType):
            if not is_tensor_map(type_):
                text = f"takes a value of '{type_}'; expects buffers, scalars and tensor maps"
                raise PassFailure(kernel, text)
