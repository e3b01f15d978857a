"""Types of PyTorch by their names in MLIR."""

from typing import Any

import numpy as np
import torch

from relax_mlir.errors import ModelError

ELEMENTS = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "ui8",
    torch.uint16: "ui16",
    torch.uint32: "ui32",
    torch.uint64: "ui64",
    torch.bool: "i1",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e4m3fnuz: "f8E4M3FNUZ",
    torch.float8_e5m2: "f8E5M2",
    torch.float8_e5m2fnuz: "f8E5M2FNUZ",
}


def element_name(dtype: torch.dtype) -> str:
    """MLIR's name of an element type; raises ModelError for one that has none."""
    if dtype not in ELEMENTS:
        raise ModelError(f"elements of {str(dtype).removeprefix('torch.')} are not supported")
    return ELEMENTS[dtype]


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as an array, of the same memory if that is contiguous.

    Elements that NumPy has no type for are their bits.
    """
    plain = tensor.detach().cpu().contiguous()
    name = element_name(plain.dtype)
    if name == "bf16":
        return plain.view(torch.uint16).numpy()
    return plain.view(torch.uint8).numpy() if name.startswith("f8") else plain.numpy()


def as_tensor(array: Any, dtype: torch.dtype) -> torch.Tensor:
    """An array as a tensor of the same memory, whose elements may be the bits of its type."""
    own = np.asarray(array)
    name = element_name(dtype)
    if name == "bf16":
        return torch.from_numpy(own.view(np.int16)).view(dtype)
    return (
        torch.from_numpy(own.view(np.uint8)).view(dtype)
        if name.startswith("f8")
        else (torch.from_numpy(own))
    )
