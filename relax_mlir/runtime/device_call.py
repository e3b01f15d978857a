"""Calls of functions whose tensors are on a device: arrays of the host are copied, and back."""

import ctypes
import itertools
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from relax_mlir.errors import ExecutionError
from relax_mlir.runtime.calls import sequence_of
from relax_mlir.runtime.device import (
    DeviceArray,
    DeviceMemory,
    Sent,
    is_of_host,
    is_on_device,
)
from relax_mlir.runtime.sharing import CUDA, passed
from relax_mlir.runtime.tensors import DLTensor, Referent, TensorError


class OnDevice:
    """What is different in calls of a module whose kernels run on a device, before `BoundCall`.

    Arrays of the host are copied to the device by each run, and copied back if they are written
    to. New results are on the device if an argument or a buffer is, else on the host.
    """

    _function: Any
    _args: Any
    _results: Any
    _lent: Any
    _values: list[Any]
    _buffers: tuple[Any, ...]
    _label: Any

    def __init__(self, function: Any, arrays: Sequence[Any], results: Sequence[Any] | None) -> None:
        memory = function.executable.device
        assert memory is not None, "the module is for a device"
        self._memory: DeviceMemory = memory
        self._sent: dict[int, Sent] = {}  # by the addresses of dims, as `_referents`
        self._running = threading.Lock()
        initialise: Any = super().__init__
        initialise(function, arrays, results)

    @property
    def _plain(self) -> Any:
        """The call of arrays that are where the function has them."""
        return super()

    def _describe_argument(self, index: int, tensor: DLTensor, array: Any) -> Referent:
        is_tensor = is_on_device(self._function.arguments[index])
        if isinstance(array, DeviceArray):
            if not is_tensor:
                raise ExecutionError(
                    f"{self._label(index)}: is on the host, as scalars and shapes are"
                )
            return self._on_device(self._label(index), tensor, array)
        value = self._passed(self._label(index), array, self._function.arguments[index].inout)
        referent = self._plain._describe_argument(index, tensor, value)
        return self._send(tensor, referent) if is_tensor else referent

    def _describe_buffer(self, index: int, buffer: Any) -> Referent:
        tensor, result = self._results[index], self._function.results[index]
        if isinstance(buffer, DeviceArray):
            if not is_on_device(result):
                raise ExecutionError(f"result {index}: is on the host")
            return self._on_device(f"result {index}", tensor, buffer)
        value = self._passed(f"result {index}", buffer, True)
        referent = self._plain._describe_buffer(index, value)
        if not is_on_device(result):
            return referent
        if result.alias is not None:
            updated = next(itertools.islice(self._sent_of(self._args), result.alias, None))
            if updated is not None and updated.is_of(tensor):
                updated.describe(tensor)
                return referent
        return self._send(tensor, referent)

    def _on_device(self, label: str, tensor: DLTensor, array: DeviceArray) -> Referent:
        if array.memory is not self._memory:
            if not array.memory.type == self._memory.type == CUDA:
                name = array.memory.name
                raise ExecutionError(f"{label}: is an array of {name}, of another module")
            array.memory.sync()
        return array.describe(tensor)

    def _passed(self, label: str, value: Any, is_written: bool) -> Any:
        """An array, which may be one of another library that is on the device."""
        try:
            return passed(value, self._memory.type, self._memory.stream, is_written)
        except TensorError as error:
            raise ExecutionError(f"{label}: {error}") from error

    def _send(self, tensor: DLTensor, referent: Referent) -> Referent:
        """Gives an array of the host memory of the device."""
        if is_of_host(tensor):
            self._sent[ctypes.addressof(referent[-1])] = Sent(self._memory, tensor)
        return referent

    def set(self, index: int, array: Any) -> None:
        """Replaces an argument of later runs; see `BoundCall.set`."""
        with self._running:
            self._plain.set(index, array)
            self._sent = {at: each for at, each in self._sent.items() if at in self._described()}

    def _described(self) -> Collection[int]:
        """The addresses of the dims of arguments and buffers."""
        descriptors = [*self._args, *(self._results[i] for i in self._lent)]
        return {ctypes.addressof(each.shape.contents) for each in descriptors if each.shape}

    def run(self, threads: int | None = None) -> Any:
        """Runs the call; see `BoundCall.run`."""
        arguments, results = self._function.arguments, self._function.results
        with self._running:
            for each in self._sent_of(self._args):
                if each is not None:
                    each.upload()
            values = self._plain.run(threads)
            for argument, each in zip(arguments, self._sent_of(self._args), strict=True):
                if each is not None and argument.inout:
                    each.download()
            for index, each in enumerate(self._sent_of(self._results)):
                if each is not None and index in self._lent and results[index].alias is None:
                    each.download()
        if self._has_device_array:
            return values
        copies = [
            x.numpy() if isinstance(x, DeviceArray) else x
            for x in sequence_of(values, len(results))
        ]
        return copies[0] if len(copies) == 1 else tuple(copies) or None

    @property
    def _has_device_array(self) -> bool:
        """Whether an argument or a buffer is on the device by itself."""
        own = [self._results[i] for i in self._lent if self._function.results[i].alias is None]
        described = [*self._args, *own]
        pairs = zip(described, self._sent_of(described), strict=True)
        return any(x.device_type == self._memory.type and sent is None for x, sent in pairs)

    def _sent_of(self, descriptors: Iterable[DLTensor]) -> Iterator[Sent | None]:
        """For each descriptor, the array of the host that it stands for."""
        for each in descriptors:
            at = ctypes.addressof(each.shape.contents) if each.shape else 0
            yield self._sent.get(at)
