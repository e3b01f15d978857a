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


PARTS = {torch.complex64: torch.float32, torch.complex128: torch.float64}
"""The types of both parts of complex elements."""


def is_complex(value: Any) -> bool:
    """Whether a value that PyTorch describes is a complex tensor, or a list with one."""
    if isinstance(value, tuple | list):
        return any(map(is_complex, value))
    return isinstance(value, torch.Tensor) and value.is_complex()


def element_name(dtype: torch.dtype) -> str:
    """MLIR's name of an element type, or of the parts of a complex one.

    Raises ModelError for one that has none.
    """
    dtype = PARTS.get(dtype, dtype)
    if dtype not in ELEMENTS:
        raise ModelError(f"elements of {str(dtype).removeprefix('torch.')} are not supported")
    return ELEMENTS[dtype]


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as an array, of the same memory if that is contiguous.

    Elements that NumPy has no type for are their bits, complex ones both parts along a last dim.
    """
    plain = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg()
    name = element_name(plain.dtype)
    if plain.is_complex():
        return torch.view_as_real(plain).numpy()
    if name == "bf16":
        return plain.view(torch.uint16).numpy()
    return plain.view(torch.uint8).numpy() if name.startswith("f8") else plain.numpy()


def as_tensor(array: Any, dtype: torch.dtype) -> torch.Tensor:
    """An array, as `as_array` yields it, as a tensor of the same memory."""
    own = np.asarray(array)
    name = element_name(dtype)
    if dtype in PARTS:
        parts = torch.from_numpy(own)
        shape = own.shape[:-1]  # strides of an array without elements mean nothing
        return torch.view_as_complex(parts) if own.size else torch.empty(shape, dtype=dtype)
    if name == "bf16":
        return torch.from_numpy(own.view(np.int16)).view(dtype)
    return (
        torch.from_numpy(own.view(np.uint8)).view(dtype)
        if name.startswith("f8")
        else (torch.from_numpy(own))
    )
