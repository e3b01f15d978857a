"""Tensor maps, which the host makes for kernels of NVIDIA's devices."""

from typing import Any

import numpy as np

from relax_mlir.bindings import ir, nvgpu
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame
from relax_mlir.interpreter.simt.tensor_maps import TensorMap

__all__ = ["read"]


def tma_create_descriptor(
    frame: Frame, op: nvgpu.TmaCreateDescriptorOp, tensor: np.ndarray, *box: int
) -> Any:
    """The map of a tensor in memory, of which boxes are copied."""
    kind = str(op.operation.results[0].type)
    known = "swizzle = swizzle_128b", "oob = zero", "interleave = none"
    if any(text not in kind for text in known):
        raise ValueError(f"makes a tensor map that is not known: {ir.Type(op.results[0].type)}")
    return TensorMap(tensor.ctypes.data, tensor.shape, tensor.strides[:-1], box, tensor)
