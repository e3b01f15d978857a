"""Memory as kernels address it: buffers of the device, and memory of groups."""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from relax_mlir.interpreter.simt.mbarriers import BARRIER_BYTES, Mbarriers
from relax_mlir.interpreter.simt.shadow import NOBODY, Access, Shadow

from .kinds import KINDS, Kind, PtxFault


@dataclass(frozen=True)
class Buffer:
    """Memory of the device from an address on, and whether a kernel may write to it."""

    address: int
    data: np.ndarray
    is_written: bool

    @staticmethod
    def of(array: np.ndarray, is_written: bool) -> "Buffer":
        """The memory of an array, at its address in this process."""
        return Buffer(array.ctypes.data, array.reshape(-1).view(np.uint8), is_written)


class GlobalMemory:
    """Buffers by address; accesses are noted in words of `unit` bytes."""

    def __init__(self, buffers: Sequence[Buffer], unit: int) -> None:
        self._buffers = _apart(buffers)
        self._starts = np.array([b.address for b in self._buffers], np.int64)
        self._ends = np.array([b.address + b.data.size for b in self._buffers], np.int64)
        self._unit = unit
        self._shadows: dict[int, Shadow] = {}
        self._constant: dict[int, np.ndarray] = {}
        """The words that were read as constants, which nobody may write while the kernel runs."""

    def load_constant(self, addresses: np.ndarray, kind: Kind, by: Access) -> np.ndarray:
        """As `load`, of what no thread writes; PtxFault if one has, or does so later."""
        for _, at, index in self._split(addresses, kind, by):
            words = at // self._unit
            shadow = self._shadows.get(index)
            if shadow is not None and (shadow.writer[words] != NOBODY).any():
                raise PtxFault("reads as a constant what the kernel has written")
            if index not in self._constant:
                count = self._buffers[index].data.size // self._unit + 1
                self._constant[index] = np.zeros(count, bool)
            self._constant[index][words] = True
        return self.load(addresses, kind, by)

    def peek(self, addresses: np.ndarray, kind: Kind, by: Access) -> np.ndarray:
        """The bits of what nobody needs; raises PtxFault if there is no memory."""
        result = np.empty(len(by.thread), kind.bits)
        for chosen, at, index in self._split(addresses, kind, by):
            result[chosen] = _words(self._buffers[index].data, kind)[at // kind.bits.itemsize]
        return result

    def load(self, addresses: np.ndarray, kind: Kind, by: Access) -> np.ndarray:
        """The bits of values; raises PtxFault if an access is refused."""
        result = np.empty(len(by.thread), kind.bits)
        for chosen, at, index in self._split(addresses, kind, by):
            buffer = self._buffers[index]
            if buffer.is_written:
                self._note(index, at, kind, _chosen(by, chosen), is_write=False)
            result[chosen] = _words(buffer.data, kind)[at // kind.bits.itemsize]
        return result

    def store(self, addresses: np.ndarray, bits: np.ndarray, kind: Kind, by: Access) -> None:
        """Writes values; raises PtxFault if an access is refused."""
        bits = np.broadcast_to(bits, by.thread.shape)
        for chosen, at, index in self._split(addresses, kind, by):
            buffer = self._buffers[index]
            self._require_writable(index, at)
            self._note(index, at, kind, _chosen(by, chosen), is_write=True)
            _words(buffer.data, kind)[at // kind.bits.itemsize] = bits[chosen]

    def update(
        self, addresses: np.ndarray, combine: np.ufunc, values: np.ndarray, kind: Kind, by: Access
    ) -> None:
        """Combines what is there with values, atomically; PtxFault if an access is refused."""
        values = np.broadcast_to(values, by.thread.shape)
        for chosen, at, index in self._split(addresses, kind, by):
            buffer, size = self._buffers[index], kind.bits.itemsize
            self._require_writable(index, at)
            shadow, own = self._shadow_of(index), _chosen(by, chosen).atomic
            for part in range(0, size, self._unit):
                if shadow.write((at + part) // self._unit, own).any():
                    raise PtxFault("updates what a thread of the kernel accesses otherwise")
            combine.at(_words(buffer.data, kind).view(kind.dtype), at // size, values[chosen])

    def _require_writable(self, index: int, at: np.ndarray) -> None:
        if not self._buffers[index].is_written:
            raise PtxFault("writes to a buffer that it is said not to write to")
        if index in self._constant and self._constant[index][at // self._unit].any():
            raise PtxFault("writes what the kernel has read as a constant")

    def _split(
        self, addresses: np.ndarray, kind: Kind, by: Access
    ) -> Iterator[tuple[slice | np.ndarray, np.ndarray, int]]:
        """The threads of each buffer that is accessed, with their offsets in it."""
        size = kind.bits.itemsize
        addresses = np.broadcast_to(addresses, by.thread.shape)
        if (addresses % size).any():
            raise PtxFault(f"an address is no multiple of {size}")
        which = np.searchsorted(self._starts, addresses, "right") - 1
        outside = (which < 0) | (addresses + size > self._ends[which])
        if outside.any():
            first = int(np.flatnonzero(outside)[0])
            raise PtxFault(
                f"address {addresses[first]:#x} of {size} bytes is in no buffer"
                f"{self._nearest(which[first])}: thread {by.thread[first]} of all, of group "
                f"{by.group[first]}"
            )
        first = int(which[0])
        if (which == first).all():
            yield slice(None), addresses - self._starts[first], first
            return
        for index in np.unique(which):
            chosen = which == index
            yield chosen, addresses[chosen] - self._starts[index], int(index)

    def _nearest(self, index: int) -> str:
        if index < 0:
            return ""
        return f", the last one before it ends at {self._ends[index]:#x}"

    def _note(self, index: int, at: np.ndarray, kind: Kind, by: Access, is_write: bool) -> None:
        size = kind.bits.itemsize
        _require_order(self._shadow_of(index), at, size, self._unit, by, is_write)

    def _shadow_of(self, index: int) -> Shadow:
        if index not in self._shadows:
            self._shadows[index] = Shadow(self._buffers[index].data.size // self._unit + 1)
        return self._shadows[index]


def _apart(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Buffers in the order of addresses; those that overlap are one."""
    result: list[Buffer] = []
    for buffer in sorted((b for b in buffers if b.data.size), key=lambda b: b.address):
        last = result[-1] if result else None
        if last is None or buffer.address >= last.address + last.data.size:
            result.append(buffer)
            continue
        end = max(b.address + b.data.size for b in (last, buffer))
        memory = (ctypes.c_uint8 * (end - last.address)).from_address(last.address)
        is_written = last.is_written or buffer.is_written
        result[-1] = Buffer(last.address, np.ctypeslib.as_array(memory), is_written)
    return result


class GroupMemory:
    """Memory of each of some groups, `size` bytes; nobody has written to it yet."""

    def __init__(self, first_group: int, groups: int, size: int, unit: int, per_group: int) -> None:
        self._first, self._size, self._unit = first_group, -(-size // 16) * 16, unit
        self.barriers = Mbarriers(per_group)
        self._data = np.zeros(groups * self._size, np.uint8)
        self._shadow = Shadow(self._data.size // unit)
        self._copied = np.zeros(0, bool)
        """The bytes that copies which are not complete are to."""
        self._arrived = np.zeros(0, np.int64)
        """The index of the copy that each word is of, which a barrier tells the end of; or -1."""
        self._reserved = np.zeros(0, bool)
        """The bytes of barriers."""
        self._stored: list[np.ndarray] = []
        self._unpublished = np.zeros(0, bool)
        """The words that threads stored since the last fence, if warpgroups read any."""
        self._readers = np.zeros(0, np.int64)
        """How many products still read a word."""

    def track(self) -> None:
        """Has it note what threads store, which warpgroups see after a fence."""
        self._unpublished = np.zeros(self._data.size // self._unit, bool)
        self._readers = np.zeros(self._unpublished.size, np.int64)

    def hold(self, addresses: np.ndarray, size: int, by: Access, count: int) -> None:
        """Adds to the count of products that read memory later, which nobody may change before."""
        at = self._flat(addresses, size, by)
        np.add.at(self._readers, at // self._unit, count)

    def peek(self, addresses: np.ndarray, kind: Kind, by: Access) -> np.ndarray:
        """The bits of what nobody needs; raises PtxFault if there is no memory."""
        at = self._flat(addresses, kind.bits.itemsize, by)
        return _words(self._data, kind)[at // kind.bits.itemsize]

    def load(self, addresses: np.ndarray, kind: Kind, by: Access) -> np.ndarray:
        """The bits of values; raises PtxFault if an access is refused."""
        at = self._flat(addresses, kind.bits.itemsize, by)
        for part in range(0, kind.bits.itemsize, self._unit):
            if (self._shadow.writer[(at + part) // self._unit] == -1).any():
                raise PtxFault("reads memory of the group that no thread wrote")
        self._require_arrived(at, kind.bits.itemsize, by)
        _require_order(self._shadow, at, kind.bits.itemsize, self._unit, by, is_write=False)
        return _words(self._data, kind)[at // kind.bits.itemsize]

    def store(self, addresses: np.ndarray, bits: np.ndarray, kind: Kind, by: Access) -> None:
        """Writes values; raises PtxFault if an access is refused."""
        at = self._flat(addresses, kind.bits.itemsize, by)
        self._require_free(at, kind.bits.itemsize)
        self._require_arrived(at, kind.bits.itemsize, by, are_stored=True)
        _require_order(self._shadow, at, kind.bits.itemsize, self._unit, by, is_write=True)
        _words(self._data, kind)[at // kind.bits.itemsize] = bits
        if self._unpublished.size:
            for part in range(0, kind.bits.itemsize, self._unit):
                self._stored.append((at + part) // self._unit)
                self._unpublished[self._stored[-1]] = True

    def publish(self, by: Access) -> None:
        """Has warpgroups see what threads stored, after the next barrier."""
        words = np.unique(np.concatenate([*self._stored, np.zeros(0, np.int64)]))
        writers = self._shadow.writer[words]
        order = np.searchsorted(by.thread, writers).clip(0, len(by.thread) - 1)
        own = by.thread[order] == writers
        self._unpublished[words[own]] = False
        self._shadow.written_at[words[own]] = by.epoch[order[own]]
        self._stored = [words[~own]]

    def load_published(self, addresses: np.ndarray, kind: Kind, by: Access) -> np.ndarray:
        """As `load`, what warpgroups see; raises PtxFault if that is not all."""
        at = self._flat(addresses, kind.bits.itemsize, by)
        if self._unpublished[at // self._unit].any():
            raise PtxFault("a warpgroup reads what was stored without fence.proxy.async")
        return self.load(addresses, kind, by)

    def begin(self, addresses: np.ndarray, size: int, by: Access) -> None:
        """Begins copies of `size` bytes to memory, which nobody may access before their end."""
        if not self._copied.size:
            self._copied = np.zeros(self._data.size, bool)
        at = self._flat(addresses, size, by)
        self._require_free(at, size)
        for part in range(0, size, self._unit) if self._arrived.size else ():
            word = (at + part) // self._unit
            self.barriers.require_done(self._arrived[word], by)
            self._shadow.forget(word[self._arrived[word] >= 0])
        _require_order(self._shadow, at, size, self._unit, by, is_write=True)
        for part in range(size):
            self._copied[at + part] = True

    def complete(self, addresses: np.ndarray, size: int, by: Access) -> None:
        """Ends copies; what they copied is stored next."""
        at = self._at(addresses, by)
        for part in range(size):
            self._copied[at + part] = False

    def deliver(self, addresses: np.ndarray, words: np.ndarray, copy: int, by: Access) -> None:
        """Ends a copy, of words at each address; the barrier of the copy tells threads so."""
        if not self._arrived.size:
            self._arrived = np.full(self._shadow.count, -1, np.int64)
        at, kind, count = self._at(addresses, by), KINDS["b64"], words.shape[1]
        for part in range(count * kind.bits.itemsize):
            self._copied[at + part] = False
        for i in range(count):
            _words(self._data, kind)[at // kind.bits.itemsize + i] = words[:, i]
        for part in range(0, count * kind.bits.itemsize, self._unit):
            word = (at + part) // self._unit
            self._shadow.written_at[word], self._arrived[word] = NOBODY, copy

    def reserve(self, address: int, by: Access) -> None:
        """Has nobody access a barrier but by its instructions."""
        if not self._reserved.size:
            self._reserved = np.zeros(self._data.size, bool)
        at = int(self._flat(np.array([address]), BARRIER_BYTES, by)[0])
        self._reserved[at : at + BARRIER_BYTES] = True

    def require_arrived(self, addresses: np.ndarray, size: int, by: Access) -> None:
        """Raises unless each thread may read what copies have brought to all addresses."""
        at = self._flat(addresses, size, by.some(np.zeros(len(addresses), np.int64)))
        copies = np.unique(self._arrived[at // self._unit]) if self._arrived.size else ()
        for copy in copies:
            self.barriers.require_seen(np.full(len(by.thread), copy), by)

    def note_reads(self, addresses: np.ndarray, size: int, by: Access) -> None:
        """Notes that each thread reads what copies have brought to all addresses."""
        one = by.some(np.zeros(1, np.int64)).repeated(len(addresses))
        words = self._at(addresses, one) // self._unit
        for copy in np.unique(self._arrived[words]) if self._arrived.size else ():
            self.barriers.note(np.full(len(by.thread), copy), by)

    def _require_arrived(
        self, at: np.ndarray, size: int, by: Access, are_stored: bool = False
    ) -> None:
        for part in range(0, size, self._unit) if self._arrived.size else ():
            word = (at + part) // self._unit
            self.barriers.require_seen(self._arrived[word], by)
            self.barriers.note(self._arrived[word], by)
            if are_stored:
                self._arrived[word] = -1

    def _require_free(self, at: np.ndarray, size: int) -> None:
        parts = range(0, size, self._unit) if self._readers.size else ()
        if any(self._readers[(at + part) // self._unit].any() for part in parts):
            raise PtxFault("writes what a product of a warpgroup still reads")

    def _flat(self, addresses: np.ndarray, size: int, by: Access) -> np.ndarray:
        addresses = np.broadcast_to(addresses, by.thread.shape)
        if (addresses % size).any():
            raise PtxFault(f"an address is no multiple of {size}")
        outside = (addresses < 0) | (addresses + size > self._size)
        if outside.any():
            raise PtxFault(
                f"address {addresses[outside][0]:#x} is beyond the {self._size} bytes of a group"
            )
        at = self._at(addresses, by)
        if self._reserved.size and any(self._reserved[at + part].any() for part in range(size)):
            raise PtxFault("accesses a barrier as memory")
        if self._copied.size and any(self._copied[at + part].any() for part in range(size)):
            raise PtxFault("accesses memory of the group before a copy to it is complete")
        return at

    def _at(self, addresses: np.ndarray, by: Access) -> np.ndarray:
        """Where addresses are in memory of all groups."""
        return (by.group - self._first) * self._size + addresses


def _words(data: np.ndarray, kind: Kind) -> np.ndarray:
    """Bytes as words, as many as there are."""
    size = kind.bits.itemsize
    return data[: data.size // size * size].view(kind.bits)


def _require_order(
    shadow: Shadow, at: np.ndarray, size: int, unit: int, by: Access, is_write: bool
) -> None:
    for part in range(0, size, unit):
        words = (at + part) // unit
        raced = shadow.write(words, by) if is_write else shadow.read(words, by)
        if raced.any():
            thread, group = by.thread[raced][0], by.group[raced][0]
            what = (
                "writes what another thread accesses" if is_write else "reads what another writes"
            )
            raise PtxFault(
                f"{what} without a barrier between them: thread {thread} of all, of group {group}"
            )


def _chosen(by: Access, chosen: slice | np.ndarray) -> Access:
    return by if isinstance(chosen, slice) else by.some(chosen)
