"""Key and value caches of one sequence, in memory of the host or of the decoder's device.

Their only symbolic dim is the capacity; caches of layers with states have none. They begin small,
and are copied to larger ones as they grow.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_mlir.executable import Argument, Function
from relax_mlir.llm.decoder.arrays import ALIGNMENT, ELEMENTS, Kind, total_bytes, views_of
from relax_mlir.runtime.device import DeviceMemory

FIRST_ROOM = 512
"""The initial capacity in tokens."""


class Caches(ABC):
    """Caches for at most `capacity` tokens, of which `arrays` have room for `room` now."""

    def __init__(self, arguments: Sequence[Argument], capacity: int) -> None:
        self._arguments, self._capacity = arguments, capacity
        self.room = min(capacity, FIRST_ROOM)
        self.arrays: Sequence[Any] = ()
        self._are_states = [all(isinstance(d, int) for d in a.dims or ()) for a in arguments]

    def grow(self, length: int, count: int) -> bool:
        """Has room for `count` tokens after `length`; whether `arrays` are others now.

        If there is no memory for that, nothing changes.
        """
        room = self.room
        while room < length + count:
            room *= 2
        if room == self.room:
            return False
        room = min(room, self._capacity)
        self._move(length, room)
        self.room = room
        return True

    @abstractmethod
    def clear(self) -> None:
        """Fills them with zeros."""

    @abstractmethod
    def copy(self, source: Any, length: int) -> None:
        """Copies the first `length` tokens of other caches of the decoder, which fit."""

    @abstractmethod
    def _move(self, length: int, room: int) -> None:
        """Moves `length` tokens to arrays of a new room."""

    def _kinds(self, room: int) -> list[Kind]:
        """Shapes and element types for a capacity of `room` tokens."""
        return [_kind(argument, room) for argument in self._arguments]

    def _copy(self, new: Sequence[np.ndarray], old: Sequence[np.ndarray], length: int) -> None:
        for to, source, is_state in zip(new, old, self._are_states, strict=True):
            columns = slice(None if is_state else length)
            to[:, columns] = source[:, columns]


class HostCaches(Caches):
    """Memory for all tokens is reserved but not touched: arrays are at its beginning."""

    def __init__(self, arguments: Sequence[Argument], capacity: int) -> None:
        super().__init__(arguments, capacity)
        # One allocation gets huge pages even if each cache is small, and reads are a third faster.
        size = total_bytes(self._kinds(capacity))
        try:
            memory = np.zeros(size + ALIGNMENT, np.uint8)
        except MemoryError:
            raise MemoryError(
                f"caches of {size} bytes for {capacity} tokens; a smaller context needs less"
            ) from None
        self._memory = memory[-memory.ctypes.data % ALIGNMENT :]
        self.arrays = views_of(self._memory, self._kinds(self.room))

    def clear(self) -> None:
        """See `Caches`."""
        for cache in self.arrays:
            cache[:] = 0

    def copy(self, source: "HostCaches", length: int) -> None:
        """See `Caches`."""
        self._copy(self.arrays, source.arrays, length)

    def _move(self, length: int, room: int) -> None:
        end = self._memory.ctypes.data + total_bytes(self._kinds(self.room))
        grown = views_of(self._memory, self._kinds(room))
        # Each moves to memory of itself and later ones only.
        for old, new, is_state in reversed(
            list(zip(self.arrays, grown, self._are_states, strict=True))
        ):
            if is_state:
                new[:] = old.copy()
                continue
            new[:, :length] = old[:, :length]
            if new.ctypes.data < end:  # memory after it was never touched
                new[:, length:] = 0
        self.arrays = grown


class DeviceCaches(Caches):
    """Arrays of a device; what moves does so through the host."""

    def __init__(self, device: DeviceMemory, arguments: Sequence[Argument], capacity: int) -> None:
        super().__init__(arguments, capacity)
        self._device = device
        self._upload(self._zeros(self.room))

    def clear(self) -> None:
        """See `Caches`; it needs no more memory."""
        for array, zeros in zip(self.arrays, self._zeros(self.room), strict=True):
            self._device.upload(array.address, zeros.ctypes.data, zeros.nbytes)

    def copy(self, source: "DeviceCaches", length: int) -> None:
        """See `Caches`."""
        self._fill(source.arrays, length, self.room)

    def _move(self, length: int, room: int) -> None:
        self._fill(self.arrays, length, room)

    def _zeros(self, room: int) -> list[np.ndarray]:
        return [np.zeros(shape, dtype) for shape, dtype in self._kinds(room)]

    def _fill(self, source: Sequence[Any], length: int, room: int) -> None:
        new = self._zeros(room)
        self._copy(new, [array.numpy() for array in source], length)
        self._upload(new)

    def _upload(self, arrays: Sequence[np.ndarray]) -> None:
        given = zip(arrays, self._arguments, strict=True)
        self.arrays = [self._device.array(array, each.dtype) for array, each in given]


def caches_for(main: Function, capacity: int) -> Caches:
    """Empty caches of a decoder, where its arrays are; raises MemoryError."""
    arguments = [argument for argument in main.arguments if argument.inout]
    device = main.executable.device
    if device is None:
        return HostCaches(arguments, capacity)
    return DeviceCaches(device, arguments, capacity)


def _kind(argument: Argument, room: int) -> Kind:
    dims = tuple(dim if isinstance(dim, int) else room for dim in argument.dims or ())
    return dims, ELEMENTS[argument.dtype]


def placed(main: Function, arrays: Sequence[np.ndarray]) -> Sequence[Any]:
    """The last arguments of a decoder, once where its kernels read them.

    Raises OutOfMemoryError if the device does not have so much.
    """
    device = main.executable.device
    if device is None:
        return arrays
    arguments = main.arguments[len(main.arguments) - len(arrays) :]
    return [device.array(array, each.dtype) for array, each in zip(arrays, arguments, strict=True)]
