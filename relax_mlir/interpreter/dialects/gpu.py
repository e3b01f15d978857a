"""Launches of kernels of a device, which is the machine of `interpreter.simt`."""

from typing import Any

from relax_mlir.bindings import gpu, ir
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame
from relax_mlir.interpreter.simt import run_launch
from relax_mlir.interpreter.simt.dialects.gpu import (
    barrier,
    block_dim,
    block_id,
    grid_dim,
    thread_id,
)

__all__ = ["barrier", "block_dim", "block_id", "grid_dim", "read", "thread_id"]


def launch(frame: Frame, op: gpu.LaunchOp, *sizes: int) -> list[Any]:
    """Runs a region on all threads of a grid."""
    shared = _shared(op)
    run_launch(frame, op.operation.regions[0].blocks[0], sizes[:3], sizes[3:6], [], shared)
    return []


def launch_func(frame: Frame, op: gpu.LaunchFuncOp, *operands: Any) -> list[Any]:
    """Runs a kernel on all threads of a grid."""
    module, name = ir.SymbolRefAttr(op.operation.attributes["kernel"]).value
    kernel = frame.code.kernel(module, name)
    if kernel is None:
        raise ValueError(f"launches '@{module}::@{name}', which is not there")
    if frame.code.launch is not None:
        frame.code.launch(module, operands[:3], operands[6:])
        return []
    block = kernel.operation.regions[0].blocks[0]
    run_launch(frame, block, operands[:3], operands[3:6], operands[6:], _shared(kernel))
    return []


def _shared(op: ir.OpView) -> int:
    """How many buffers of each group an op has."""
    attributes = op.operation.attributes
    name = "workgroup_attributions"
    return ir.IntegerAttr(attributes[name]).value if name in attributes else 0
