"""Arrays of devices and other libraries: DLPack and the CUDA array interface, without copies.

    torch.from_dlpack(array)       a DeviceArray as a tensor of PyTorch, on the same memory
    exe["main"](tensor)            a tensor on the device, as an argument

NumPy makes the capsules, in C, since a destructor in Python could lose an exception: they are of an
array that nobody reads, at the address on the device.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relax_mlir.runtime.tensors import CPU, NOWHERE, TensorError, exported_tensor, type_code

CUDA, EXTENSION = 2, 12
"""DLPack's types of devices whose addresses mean the same to everybody in the process."""
_NAME = "__cuda_array_interface__"


class _View:
    """What NumPy takes for an array: an address, and what keeps its memory."""

    def __init__(self, interface: Mapping[str, Any], owner: object) -> None:
        self.__array_interface__, self._owner = interface, owner


def capsule(
    address: int,
    shape: Sequence[int],
    strides: Sequence[int] | None,
    width: int,
    code: int,
    device: int,
    owner: object,
) -> object:
    """A DLPack capsule of memory of a device, which keeps `owner` alive.

    `width` are the bytes of an element, and `strides` too; `code` and `device` are DLPack's.
    """
    interface = {
        "version": 3,
        "data": (address or NOWHERE, False),  # null would mean that there is no buffer
        "shape": tuple(shape),
        "strides": strides if strides is None else tuple(strides),
        "typestr": f"{'|' if width == 1 else '<'}u{width}",
    }
    made = np.asarray(_View(interface, owner)).__dlpack__()
    tensor = exported_tensor(made)
    tensor.code, tensor.device_type = code, device
    return made


class Passed:
    """An array on a device, as an argument: its library has its work done before the module's."""

    def __init__(self, array: Any, stream: int) -> None:
        self._array, self._stream = array, stream

    def __dlpack__(self, **options: Any) -> object:
        return self._array.__dlpack__(**options, stream=self._stream)


class OfInterface:
    """An array that only has `__cuda_array_interface__`."""

    def __init__(self, array: Any, is_written: bool) -> None:
        self._array, self._is_written = array, is_written

    def __dlpack__(self, **_: Any) -> object:
        interface = getattr(self._array, _NAME)
        if interface.get("mask") is not None:
            raise TensorError(
                "an array with a value for each element is expected, but it is masked"
            )
        if interface.get("stream") is not None:
            text = "its stream is still in use; synchronise it, and export the array without one"
            raise TensorError(f"the {type(self._array).__name__} cannot be passed: {text}")
        dtype = np.dtype(interface["typestr"])
        if not dtype.isnative or dtype.kind not in "iufcb":
            raise TensorError(
                f"an array of integers or floats is expected, but dtype is {dtype.str}"
            )
        strides, shape = interface.get("strides"), interface["shape"]
        address, is_read_only = interface["data"]
        if is_read_only and self._is_written:
            raise TensorError("an array that can be written to is expected, but it is read-only")
        code = type_code("", dtype)
        return capsule(address, shape, strides, dtype.itemsize, code, CUDA, self._array)


def passed(value: Any, device: int, stream: int, is_written: bool) -> Any:
    """An argument that may be an array of another library, as what `describe` takes.

    Raises TensorError if it is on a device whose addresses are its library's own.
    """
    if isinstance(value, np.ndarray):
        return value
    if hasattr(type(value), "__dlpack__"):
        if _device_of(value) != device:
            return value  # of the host, or refused as any other
        if device not in (CUDA, EXTENSION):
            raise TensorError("is of another library, whose addresses of the device are its own")
        return Passed(value, stream) if stream else value
    if device == CUDA and hasattr(value, _NAME):
        return OfInterface(value, is_written)
    return value


def _device_of(array: Any) -> int:
    """DLPack's type of the device that an array says it is on; the host's if it does not say.

    Raises TensorError if it fails to.
    """
    if not hasattr(type(array), "__dlpack_device__"):
        return CPU  # what it exports tells
    try:
        return int(array.__dlpack_device__()[0])
    except Exception as error:
        text = f"the {type(array).__name__} does not tell its device: {error}"
        raise TensorError(text) from error
