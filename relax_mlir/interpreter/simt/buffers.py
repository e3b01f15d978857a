"""Memory of a launch: buffers of the device, and those of each group."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .mbarriers import Mbarriers
from .shadow import NOBODY, Access, Shadow


@dataclass
class Buffer:
    """Elements that threads access: `words` flat ones of a device buffer of dims `shape`.

    The word of element i is `first + i` of the shadow, which views of the same memory share; there
    is none if no thread writes to the memory.
    """

    words: np.ndarray
    shape: tuple[int, ...]
    shadow: Shadow | None
    first: int = 0

    def load(self, indices: Sequence[Any], by: Access) -> Any:
        """The element of each thread, or the one of all threads; raises ValueError if refused."""
        at = self._flat(indices)
        if self.shadow is not None:
            words = np.broadcast_to(self.first + at, by.thread.shape)
            _require(self.shadow.read(words, by), by, "reads what another thread writes")
        return self.words[at]

    def store(self, value: Any, indices: Sequence[Any], by: Access) -> None:
        """Writes an element of each thread; raises ValueError if it is refused."""
        assert self.shadow is not None, "the memory is known to be written"
        at = np.broadcast_to(self._flat(indices), by.thread.shape)
        raced = self.shadow.write(self.first + at, by)
        _require(raced, by, "writes what another thread accesses")
        self.words[at] = value

    def update(
        self, combine: tuple[np.ufunc, str], value: Any, indices: Sequence[Any], by: Access
    ) -> None:
        """Combines an element of each thread with a value, as integers of a NumPy kind.

        Raises ValueError if it is refused.
        """
        assert self.shadow is not None, "the memory is known to be written"
        at = np.broadcast_to(self._flat(indices), by.thread.shape)
        raced = self.shadow.write(self.first + at, by.atomic)
        _require(raced, by, "updates what a thread accesses otherwise")
        function, kind = combine
        dtype = np.dtype(f"{kind}{self.words.itemsize}")
        function.at(self.words.view(dtype), at, np.asarray(value, self.words.dtype).view(dtype))

    def _flat(self, indices: Sequence[Any]) -> Any:
        """The linear index of elements; raises ValueError if one is out of bounds."""
        flat: Any = 0
        for axis, (index, extent) in enumerate(zip(indices, self.shape, strict=True)):
            outside = (np.asarray(index) < 0) | (np.asarray(index) >= extent)
            if np.any(outside):
                wrong = np.asarray(index)[outside].flat[0]
                raise ValueError(f"accesses index {wrong} of dim {axis}, which has {extent}")
            flat = flat * extent + index
        return flat


ALIGNMENT = 1024
"""Bytes of which addresses of memory of a group are multiples."""


@dataclass
class GroupBuffer:
    """Memory of each of some groups: `words[group - first_group]` are those of a group."""

    words: np.ndarray
    first_group: int
    shadow: Shadow
    address: int
    copied: np.ndarray
    """The words that copies which are not complete are to."""
    arrived: np.ndarray
    """The index of the copy that each word is of, which a barrier tells the end of; or -1."""
    barriers: Mbarriers

    @staticmethod
    def of(
        first: int,
        last: int,
        shape: Sequence[int],
        dtype: np.dtype,
        address: int,
        barriers: Mbarriers,
    ) -> "GroupBuffer":
        """Memory of the groups from `first` up to `last`, which nobody wrote yet.

        `address` is the one that it has in each group.
        """
        count = prod(shape)
        words = np.zeros((last - first, count), dtype)
        shadow = Shadow(words.size)
        copied, arrived = np.zeros(words.size, np.bool_), np.full(words.size, -1)
        return GroupBuffer(words, first, shadow, address, copied, arrived, barriers)

    def load(self, indices: Sequence[Any], by: Access) -> Any:
        """The element of each thread; raises ValueError if it is refused."""
        at = self._flat(indices, by)
        if (self.shadow.writer[at] == -1).any():
            raise ValueError("reads memory of the group that no thread wrote")
        self._use_copied(at, by)
        _require(self.shadow.read(at, by), by, "reads what another thread writes")
        return self.words.reshape(-1)[at]

    def store(self, value: Any, indices: Sequence[Any], by: Access) -> None:
        """Writes an element of each thread; raises ValueError if it is refused."""
        at = self._flat(indices, by)
        self._use_copied(at, by)
        self.arrived[at] = -1
        raced = self.shadow.write(at, by)
        _require(raced, by, "writes what another thread accesses")
        self.words.reshape(-1)[at] = value

    def note_reads(self, indices: Sequence[Any], by: Access) -> None:
        """Notes that threads read elements as others do; raises ValueError for those too early."""
        self._use_copied(self._flat(indices, by), by)

    def _use_copied(self, at: np.ndarray, by: Access) -> None:
        copies = self.arrived[at]
        self.barriers.require_seen(copies, by)
        self.barriers.note(copies, by)

    def begin(self, first: np.ndarray, count: int, by: Access) -> None:
        """Begins copies of `count` elements, which nobody may access before their end."""
        for i in range(count):
            at = self._flat([first + i], by)
            again = self.arrived[at] >= 0
            self.barriers.require_done(self.arrived[at], by)
            self.shadow.forget(at[again])
            _require(self.shadow.write(at, by), by, "writes what another thread accesses")
            self.copied[at] = True

    def complete(self, first: np.ndarray, data: np.ndarray, by: Access) -> None:
        """Ends copies, of `data`: [thread, element]."""
        begin = (by.group - self.first_group) * self.words.shape[1] + first
        for i in range(data.shape[1]):
            self.copied[begin + i] = False
            self.store(data[:, i], [first + i], by)

    def deliver(self, first: np.ndarray, data: np.ndarray, copy: int, by: Access) -> None:
        """Ends a copy, of `data`: [row, element]; the barrier of the copy tells threads so."""
        begin = (by.group - self.first_group) * self.words.shape[1] + first
        at = begin[:, None] + np.arange(data.shape[1])
        self.copied[at], self.arrived[at] = False, copy
        self.words.reshape(-1)[at] = data
        self.shadow.written_at[at] = NOBODY

    def _flat(self, indices: Sequence[Any], by: Access) -> np.ndarray:
        (index,), count = indices, self.words.shape[1]
        index = np.broadcast_to(index, by.thread.shape)
        outside = (index < 0) | (index >= count)
        if outside.any():
            raise ValueError(f"accesses index {index[outside][0]} of memory of {count} elements")
        at = (by.group - self.first_group) * count + index
        if self.copied[at].any():
            raise ValueError("accesses memory of the group before a copy to it is complete")
        return at


def _require(raced: np.ndarray, by: Access, what: str) -> None:
    if raced.any():
        thread, group = by.thread[raced][0], by.group[raced][0]
        raise ValueError(
            f"{what} without a barrier between them: thread {thread} of all, of group {group}"
        )


class DeviceMemory:
    """The buffers of a launch; views of memory that it writes to share a shadow."""

    def __init__(self, written: Iterable[np.ndarray]) -> None:
        """`written` are the arrays that it writes to."""
        self._arrays = list(written)
        roots = [_root(array) for array in self._arrays]
        self._written = {id(root): root for root in roots}
        self._shadows: dict[tuple[int, int], Shadow] = {}
        self._buffers: dict[int, tuple[np.ndarray, Buffer]] = {}

    def is_written(self, memory: np.ndarray) -> bool:
        """Whether the launch writes to some memory."""
        return any(np.may_share_memory(array, memory) for array in self._arrays)

    def buffer(self, array: np.ndarray) -> Buffer:
        """The buffer of an array of the host."""
        if id(array) not in self._buffers:
            self._buffers[id(array)] = (array, self._make(array))
        return self._buffers[id(array)][1]

    def _make(self, array: np.ndarray) -> Buffer:
        words = array.reshape(-1)
        root = _root(words)
        if id(root) not in self._written:
            return Buffer(words, array.shape, None)
        size = words.itemsize
        key = (id(root), size)
        if key not in self._shadows:
            self._shadows[key] = Shadow(root.nbytes // size + 1)
        first = (words.ctypes.data - root.ctypes.data) // size
        return Buffer(words, array.shape, self._shadows[key], first)


def _root(array: np.ndarray) -> np.ndarray:
    """The array that others are views of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
