"""Memory of the devices that the kernels of a module run on, and calls of such modules.

exe.device.array(x)            x on the device, as a DeviceArray
exe["main"](x_on_device)       results are DeviceArrays, nothing is copied
exe["main"](x)                 x is copied there, and results back, as NumPy arrays
"""

import ctypes
import math
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relax_mlir.errors import ExecutionError, OutOfMemoryError
from relax_mlir.runtime.results import FreshResult, Owner
from relax_mlir.runtime.sharing import CUDA, EXTENSION, capsule
from relax_mlir.runtime.signature import Argument, Result
from relax_mlir.runtime.tensors import CPU, DLTensor, Slot, describe, type_code

_TEXT = 512
_HOST = (1, 3, 11, 13)
"""DLPack's types of memory that the host can read."""


class DeviceArray:
    """A contiguous array in memory of a device, which it owns.

    `numpy` copies it to the host. `dtype` is NumPy's, and `code` DLPack's type code.
    """

    def __init__(
        self,
        memory: "DeviceMemory",
        address: int,
        shape: Sequence[int],
        dtype: np.dtype,
        code: int,
        owner: object,
    ) -> None:
        self.memory, self.address, self.dtype, self.code = memory, address, dtype, code
        self.shape = tuple(shape)
        self._owner = owner

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def numpy(self) -> np.ndarray:
        """A copy on the host; raises ExecutionError if the device fails."""
        result = np.empty(self.shape, self.dtype)
        self.memory.download(result.ctypes.data, self.address, result.nbytes)
        return result

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array as CuPy, PyTorch and Numba read it; AttributeError if no NVIDIA device has it.

        Its elements are there: calls of functions wait for the device, and so does this.
        """
        if self.memory.type != CUDA:
            raise AttributeError(f"{self!r} is not in memory of an NVIDIA device")
        self.memory.sync()
        address = self.address if self.nbytes else 0
        described = {"shape": self.shape, "typestr": self.dtype.str, "data": (address, False)}
        return {**described, "strides": None, "version": 3}

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.memory.type, 0

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule of the array's memory, which lives as long; of a copy on the host if asked for.

        Its elements are there, so no stream has to wait. Raises BufferError if other libraries
        cannot use the addresses of the device, or it is to be on another one.
        """
        if dl_device == (CPU, 0) and copy is not False:
            return self.numpy().view(f"u{self.dtype.itemsize}").__dlpack__()
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"{self!r} is on device {self.__dlpack_device__()}, not {dl_device}")
        if self.memory.type not in (CUDA, EXTENSION):
            raise BufferError(f"{self!r} has an address that only its module can use; copy it")
        if copy:
            return self.memory.array(self.numpy()).__dlpack__()
        self.memory.sync()
        width, code = self.dtype.itemsize, self.code
        return capsule(self.address, self.shape, None, width, code, self.memory.type, self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array of a device is read by a copy of it")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def describe(self, tensor: DLTensor) -> tuple[object, ctypes.Array]:
        """Fills a descriptor; returns what it points to, its dims last."""
        dims = (ctypes.c_int64 * len(self.shape))(*self.shape)
        tensor.data, tensor.device_type, tensor.device_id = self.address, self.memory.type, 0
        tensor.ndim, tensor.code, tensor.bits = len(dims), self.code, 8 * self.dtype.itemsize
        tensor.lanes, tensor.shape, tensor.byte_offset = 1, dims, 0
        return self, dims

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype}{list(self.shape)} of {self.memory.name}>"


class DeviceMemory:
    """The memory of the first device of a loaded module, which has several if `names` says so."""

    def __init__(self, library: ctypes.CDLL, names: Sequence[str]) -> None:
        self.library, self.names, self.name = _declared(library), tuple(names), names[0]
        self.type: int = library.rx_tensor_device()
        self._process = os.getpid()

    @property
    def bytes(self) -> int:
        """Bytes of all devices that the module uses."""
        return self.library.rx_tensor_bytes()

    @property
    def bytes_by_device(self) -> tuple[int, ...]:
        """Bytes that the module uses of each device, in the order of `names`."""
        return tuple(map(self.library.rx_device_bytes, range(len(self.names))))

    def array(self, value: Any, element: str = "") -> DeviceArray:
        """A copy of an array on the device, where bits may be those of the `element` type "bf16".

        Raises ExecutionError if the value is no array, or the device fails; OutOfMemoryError.
        """
        array = np.asarray(value, order="C")
        tensor = DLTensor()
        _, dims = describe(tensor, array, Slot(element))
        made = self._new(tuple(dims), array.dtype, tensor.code)
        self.upload(made.address, array.ctypes.data, array.nbytes)
        return made

    def zeros(self, shape: Sequence[int], dtype: Any) -> DeviceArray:
        """An array of zeros; raises as `array` does."""
        return self.array(np.zeros(shape, dtype))

    def _new(self, shape: Sequence[int], dtype: np.dtype, code: int) -> DeviceArray:
        address = self.new(math.prod(shape) * dtype.itemsize)
        array = DeviceArray(self, address, shape, dtype, code, None)
        weakref.finalize(array, self.library.rx_tensor_free, address).atexit = False
        return array

    def new(self, size: int) -> int:
        """The address of new memory, which the caller frees; raises OutOfMemoryError.

        Raises ExecutionError if the device has failed, or in a forked process, which must not use
        the device of its parent.
        """
        if os.getpid() != self._process:
            text = "a forked process cannot use the device of its parent"
            raise ExecutionError(f"{self.name}: {text}")
        address = self.library.rx_tensor_new(size)
        if not address:
            self.sync()  # a device that has failed gives no memory either
            raise OutOfMemoryError(f"out of memory: {self.name} has no {size} bytes for an array")
        return address

    @property
    def stream(self) -> int:
        """The stream that all is queued on, as DLPack passes one; 0 if there is none."""
        return self.library.rx_tensor_stream()

    def sync(self) -> None:
        """Waits until what was queued is done; raises ExecutionError if the device fails."""
        text = ctypes.create_string_buffer(_TEXT)
        if self.library.rx_tensor_sync(text, _TEXT):
            raise ExecutionError(text.value.decode(errors="replace"))

    def upload(self, to: int, source: int, size: int) -> None:
        """Copies bytes of the host; raises ExecutionError if the device fails."""
        self._copy(self.library.rx_tensor_upload, to, source, size)

    def download(self, to: int, source: int, size: int) -> None:
        """Copies bytes of the device; raises ExecutionError if it fails."""
        self._copy(self.library.rx_tensor_download, to, source, size)

    def _copy(self, copy: Callable[..., int], to: int, source: int, size: int) -> None:
        text = ctypes.create_string_buffer(_TEXT)
        if copy(to, source, size, text, _TEXT):
            raise ExecutionError(text.value.decode(errors="replace"))


def memory_of(library: Any, devices: Sequence[str]) -> DeviceMemory | None:
    """The memory that has the tensors of a module; None if that is the host's."""
    return DeviceMemory(library, devices) if devices else None


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    """Gives the functions for memory of devices their C types."""
    pointer, int32, int64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
    copy = (pointer, pointer, int64, ctypes.c_char_p, int32)
    for name, result, arguments in (
        ("rx_tensor_new", pointer, (int64,)),
        ("rx_tensor_free", None, (pointer,)),
        ("rx_tensor_release", None, None),
        ("rx_tensor_upload", int32, copy),
        ("rx_tensor_download", int32, copy),
        ("rx_tensor_sync", int32, (ctypes.c_char_p, int32)),
        ("rx_tensor_stream", int64, ()),
        ("rx_tensor_bytes", int64, ()),
        ("rx_device_bytes", int64, (int32,)),
        ("rx_tensor_device", int32, ()),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class DeviceResult(FreshResult):
    """A tensor that is allocated on the device by each run of a call."""

    def __init__(self, result: Result, memory: DeviceMemory) -> None:
        super().__init__(result, memory.library.rx_tensor_release)
        self._memory = memory
        self._dtype = self._packed or np.dtype(self._typestr)
        self._code = type_code(result.dtype, self._dtype)

    def value(self, owner: Owner) -> Any:
        """The array on the device."""
        words = owner.args[0][:]
        shape = words[2 : 2 + words[1]]
        return DeviceArray(self._memory, words[0], shape, self._dtype, self._code, owner)


class Sent:
    """Memory of the device for an array of the host, which calls copy there, or back."""

    def __init__(self, memory: DeviceMemory, tensor: DLTensor) -> None:
        """Has a descriptor of memory of the host be of new memory of the device."""
        self._memory, self._data = memory, tensor.data
        self.size = math.prod(tensor.shape[: tensor.ndim]) * tensor.bits // 8
        self.address = memory.new(self.size)
        weakref.finalize(self, memory.library.rx_tensor_free, self.address).atexit = False
        self.describe(tensor)

    def is_of(self, tensor: DLTensor) -> bool:
        """Whether it stands for the array of the host that a descriptor is of."""
        return is_of_host(tensor) and tensor.data == self._data

    def describe(self, tensor: DLTensor) -> None:
        """Has a descriptor of the array be of this memory."""
        tensor.data, tensor.device_type = self.address, self._memory.type

    def upload(self) -> None:
        """Copies the array to the device."""
        self._memory.upload(self.address, self._data, self.size)

    def download(self) -> None:
        """Copies the array back."""
        self._memory.download(self._data, self.address, self.size)


def is_of_host(tensor: DLTensor) -> bool:
    """Whether the host can read what a descriptor is of."""
    return tensor.device_type in _HOST


def is_on_device(value: Argument | Result) -> bool:
    """Whether a module with a device takes or returns a tensor there."""
    return value.kind == "tensor" and not value.on_host


def fresh_result(result: Result, library: Any, memory: DeviceMemory | None) -> FreshResult:
    """A result of a module: a tensor is on the device, if there is one."""
    if memory is None or not is_on_device(result):
        return FreshResult(result, library.rx_release)
    return DeviceResult(result, memory)
