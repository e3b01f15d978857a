"""Runs compiled modules for WebAssembly by the package `wasmtime`.

    library = open_module(data)          the functions of `interface.declare`, on instances

Arrays are copied to the memory of the module before a call, and back: the module checks them, so
messages are those of other CPUs. Layouts are those of `csrc/relax_runtime.h` with addresses of 32
bits.
"""

import atexit
import ctypes
import functools
import importlib.util
import json
import math
import os
import struct
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from relax_mlir.errors import ExecutionError
from relax_mlir.runtime.helper import Helper
from relax_mlir.runtime.interface import OUT_OF_MEMORY, Call
from relax_mlir.runtime.results import UNWRITTEN, typestr
from relax_mlir.runtime.tensors import MAX_RANK, DLTensor

MAGIC = b"\0asm"
ERROR = 1  # RX_ERROR

_CALL = struct.Struct("<8I6qI4x40x")
_TENSOR = struct.Struct("<IiiiBBHIIxxxxQ")
_FRESH = struct.Struct("<IxxxxQ")
_READABLE = (1, 3, 11, 13)
"""DLPack's devices whose memory the host can read."""
_LINE = 64
_CHUNK = 1 << 15
_NEEDED = ("memory", "__stack_pointer", "rx_metadata", "rx_create", "rx_call_on", "rx_recover")


def open_module(data: bytes) -> "WasmLibrary":
    """Compiles and instantiates a module.

    Raises ExecutionError if the package `wasmtime` is missing, or the module is damaged, or needs
    what the engine does not have; AttributeError if it is not one of the compiler's.
    """
    if importlib.util.find_spec("wasmtime") is None:
        raise ExecutionError(
            "modules for WebAssembly run by the package 'wasmtime', which is missing: "
            "pip install 'relax-mlir[wasm]'"
        )
    return WasmLibrary(data)


@functools.cache
def _engine() -> Any:
    import wasmtime

    config = wasmtime.Config()
    config.wasm_threads = True
    config.shared_memory = True
    engine = wasmtime.Engine(config)
    atexit.register(engine.close)
    return engine


@functools.cache
def _shared_memory_type() -> Any:
    """A shared memory to import; version 50 of the package passes its address wrongly."""
    import wasmtime
    from wasmtime import _ffi

    class Shared(wasmtime.SharedMemory):
        """A memory that threads may share."""

        def _as_extern(self) -> Any:
            union = _ffi.wasmtime_extern_union(sharedmemory=self.ptr())
            return _ffi.wasmtime_extern_t(_ffi.WASMTIME_EXTERN_SHAREDMEMORY, union)

    return Shared


class WasmLibrary:
    """An instance of a module, with the functions of a loaded shared object.

    It makes one call at a time; other threads wait.
    """

    def __init__(self, data: bytes) -> None:
        import wasmtime

        self._wasmtime = wasmtime
        self._store = wasmtime.Store(_engine())
        weakref.finalize(self, self._store.close)  # also at exit, before the package is gone
        try:
            module = wasmtime.Module(_engine(), data)
            if any(str(each.name).startswith("device_") for each in module.imports):
                raise ExecutionError(
                    "its kernels run on WebGPU: load it in a page, by web/webgpu.js"
                )
            linker = wasmtime.Linker(_engine())
            for name, (kinds, results, function) in self._host_functions().items():
                linker.define_func("relax", name, wasmtime.FuncType(kinds, results), function)
            self._shared = self._shared_memory(module)
            if self._shared is not None:
                linker.define(self._store, "relax", "memory", self._shared)
            exports: Any = linker.instantiate(self._store, module).exports(self._store)
        except wasmtime.WasmtimeError as error:
            raise ExecutionError(f"the engine refuses it: {error}") from None
        self._exports = exports
        missing = [name for name in _NEEDED if name not in self._exports]
        if missing:
            raise AttributeError(f"it does not export {missing[0]}")
        self._memory: Any = self._exports["memory"]
        if self._shared is not None:
            self._function("rx_initialize")
        self._stack: Any = self._exports["__stack_pointer"]
        # Host code that loops, or calls itself, exports the functions by which it asks.
        loops = "rx_poll" in exports or "rx_enter" in exports
        self._stop = self._function("rx_stop_word") if loops else 0
        self._helper: Helper | None = None
        self._lock = threading.Lock()
        self._owner = 0
        self._error: bytes | None = None
        self._buffers: dict[int, np.ndarray] = {}
        functions = json.loads(self.rx_metadata())["functions"]
        self.signatures = {self.entry(name): each for name, each in functions.items()}

    def _shared_memory(self, module: Any) -> Any:
        """The memory of a module whose threads share it, of which there is one here; or None."""
        kinds = [each.type for each in module.imports if each.name == "memory"]
        return _shared_memory_type()(_engine(), kinds[0]) if kinds else None

    def _host_functions(self) -> dict[str, tuple[list, list, Any]]:
        i32, i64 = self._wasmtime.ValType.i32(), self._wasmtime.ValType.i64()
        return {
            "now": ([], [i64], time.monotonic_ns),
            "print": ([i32, i32], [], self._print),
        }

    def _print(self, text: int, length: int) -> None:
        sys.stdout.write(self.read(text, length).decode(errors="replace"))
        sys.stdout.flush()

    # The memory.

    @property
    def base(self) -> int:
        """Where the memory begins, until it grows."""
        if self._shared is not None:
            return ctypes.addressof(self._shared.data_ptr().contents)
        return ctypes.addressof(self._memory.data_ptr(self._store).contents)

    def read(self, address: int, count: int) -> bytes:
        """A copy of bytes."""
        return ctypes.string_at(self.base + _unsigned(address), count)

    def write(self, address: int, data: bytes) -> None:
        """Copies bytes to a block."""
        ctypes.memmove(self.base + address, data, len(data))

    def allocate(self, count: int) -> int:
        """The address of a block; raises MemoryError."""
        address = _unsigned(self._function("rx_allocate", count))
        if not address:
            raise MemoryError
        return address

    def free(self, address: int) -> None:
        """Frees a block."""
        self._function("rx_free", address)

    def free_result(self, fresh: int) -> None:
        """Frees the memory of a result in the module."""
        self._function("rx_release", fresh)

    def keep(self, fresh: int, room: int, element: str) -> None:
        """Copies a result out of the module, for the RxFresh of the host that is at `room`."""
        data, rank = _FRESH.unpack(self.read(fresh, _FRESH.size))
        dims = struct.unpack(f"<{rank}q", self.read(fresh + _FRESH.size, 8 * rank))
        count = math.prod(dims) * np.dtype(typestr(element)).itemsize
        room_of_array = np.empty(count + _LINE, np.uint8)
        address = -(-room_of_array.ctypes.data // _LINE) * _LINE
        ctypes.memmove(address, self.base + data, count)
        self._buffers[address] = room_of_array
        (ctypes.c_int64 * (2 + rank)).from_address(room)[:] = [address, rank, *dims]

    def _text(self, address: int) -> bytes:
        return ctypes.string_at(self.base + _unsigned(address))

    def _function(self, name: str, *arguments: int) -> Any:
        return self._exports[name](self._store, *arguments)

    # The functions of `interface.declare`.

    def entry(self, name: str) -> int:
        """What stands for a function in a call."""
        return self._exports[f"rx_entry_{name}"].value(self._store)

    def rx_metadata(self) -> bytes:
        """The metadata, as JSON."""
        return self._text(self._function("rx_metadata"))

    def rx_get_threads(self) -> int:
        """The threads of calls."""
        return 1

    def rx_set_poll(self, poll: object) -> None:
        """Signals are handled anyway."""

    def rx_set_context_threads(self, context: int, threads: int) -> None:
        """There is one."""

    def rx_create(self) -> int:
        """A context; 0 if there is no memory."""
        return self._function("rx_create")

    def rx_destroy(self, context: int) -> None:
        """Gives a context back."""
        self._function("rx_destroy", context)

    def rx_last_error(self, context: int | None) -> bytes:
        """The message of the last call."""
        if self._error is not None:
            return self._error
        return self._text(self._function("rx_last_error", context or 0))

    def rx_counter(self, which: int) -> int:
        """A counter."""
        return self._function("rx_counter", which)

    def rx_profile(self, capacity: int) -> int:
        """Starts to record spans; nonzero if there is no memory."""
        return self._function("rx_profile", capacity)

    def rx_spans(self, copies: int | None, capacity: int) -> int:
        """The count of spans, of which the first are copied."""
        count = self._function("rx_spans", 0, 0)
        size = 24 * min(count, capacity)
        if copies and size:
            address = self.allocate(size)
            self._function("rx_spans", address, size // 24)
            ctypes.memmove(copies, self.base + address, size)
            self.free(address)
        return count

    def rx_release(self, fresh: Any) -> None:
        """Frees the memory of a result."""
        self._buffers.pop(fresh[0], None)
        fresh[0] = 0

    def rx_exchange_argument(self, operand: Any, index: int, tensor: Any) -> int:
        """Swaps an argument of a call and a descriptor."""
        arguments = (DLTensor * operand._obj.num_args).from_address(operand._obj.args)
        with self._locked():
            before = DLTensor.from_buffer_copy(arguments[index])
            arguments[index] = tensor._obj
            ctypes.pointer(tensor._obj)[0] = before
        return 0

    def rx_call(self, operand: Any) -> int:
        """Makes a call whose results all have memory."""
        return self.rx_call_on(operand, 0, None)

    def rx_call_on(self, operand: Any, threads: int, rooms: Any) -> int:
        """Makes a call; `rooms` has the address of a RxFresh for each result."""
        call: Call = operand._obj
        with self._locked():
            self._error = None
            marshalled = _Marshalled(self, call, rooms)
            try:
                return marshalled.run()
            except MemoryError:
                self._error = b"out of memory: " + marshalled.doing.encode()
                return OUT_OF_MEMORY
            finally:
                marshalled.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keeps other threads out; raises ExecutionError within a call."""
        if self._owner == threading.get_ident():
            raise ExecutionError("a call is not over: what it calls cannot use its module")
        with self._lock:
            self._owner = threading.get_ident()
            try:
                yield
            finally:
                self._owner = 0

    def run(self, call: int, fresh: int) -> int:
        """The status of a call that is in the memory of the module.

        Loops may be endless, and Python runs the handlers of signals in its main thread, but not
        while that is in a module: so another thread makes such calls.
        """
        if not self._stop or threading.current_thread() is not threading.main_thread():
            return self._run(call, fresh)
        if self._helper is None or self._helper.process != os.getpid():
            self._helper = Helper()
            weakref.finalize(self, self._helper.end)
        return self._helper.run(lambda: self._run(call, fresh), self._set_stop)

    def _set_stop(self, stop: bool) -> None:
        self.write(self._stop, bytes([stop]))

    def _run(self, call: int, fresh: int) -> int:
        stack = self._stack.value(self._store)
        try:
            return self._function("rx_call_on", call, 0, fresh)
        except self._wasmtime.Trap as trap:
            self._stack.set_value(self._store, stack)
            status = self._function("rx_recover")
            if status != OUT_OF_MEMORY:
                self._error = self._described(trap).encode()
            return status
        except BaseException:  # of the handler of a signal
            self._stack.set_value(self._store, stack)
            self._function("rx_recover")
            raise

    def _described(self, trap: Any) -> str:
        if trap.trap_code == self._wasmtime.TrapCode.STACK_OVERFLOW:
            return "the stack of the module is used up"
        return f"the module stopped: {trap.message.splitlines()[0]}"


def _unsigned(address: int) -> int:
    return address % (1 << 32)


class _Marshalled:
    """A call in the memory of a module: descriptors, data, and what is to be copied back.

    `doing` says what memory is allocated for.
    """

    def __init__(self, library: WasmLibrary, call: Call, rooms: Any) -> None:
        self._library, self._call, self._rooms = library, call, rooms
        self._signature = library.signatures[call.entry]
        self._blocks: list[int] = []
        self._chunk = 0, 0
        self._copies: dict[tuple[int, int], int] = {}
        self._fresh: dict[int, int] = {}
        self.doing = "a call"

    def run(self) -> int:
        """Runs the call and copies what it wrote."""
        call = self._call
        arguments = (DLTensor * call.num_args).from_address(call.args)
        results = (DLTensor * call.num_results).from_address(call.results)
        args = [self._tensor(each, f"argument {i}") for i, each in enumerate(arguments)]
        rows = [self._result(each, i) for i, each in enumerate(results)]
        fresh = [self._fresh.get(i, 0) for i in range(len(results))]
        self.doing = "a call"
        tables = (self._block(b"".join(table)) for table in (args, rows))
        head = (call.context, call.entry, *tables, len(args), len(rows), 0, 0, *[0] * 7)
        rooms = self._block(struct.pack(f"<{len(fresh)}I", *fresh)) if self._rooms else 0
        status = self._library.run(self._block(_CALL.pack(*head)), rooms)
        for tensor, argument in zip(arguments, self._signature["arguments"], strict=True):
            if argument["inout"]:
                self._take_back(tensor)
        for index, tensor in enumerate(results):
            if status == 0:
                self._take(index, tensor)
        return status

    def close(self) -> None:
        """Frees the memory."""
        for address in self._fresh.values():
            self._library.free_result(address)
        for address in self._blocks:
            self._library.free(address)

    def _block(self, data: bytes) -> int:
        """The address of a copy."""
        address = self._room(len(data))
        self._library.write(address, data)
        return address

    def _room(self, count: int) -> int:
        """The address of memory until the end of the call: of a chunk, since few calls are fast."""
        if count > _CHUNK // 4:
            self._blocks.append(self._library.allocate(count))
            return self._blocks[-1]
        size = -(-count // _LINE) * _LINE
        if self._chunk[1] < size:
            self._blocks.append(self._library.allocate(_CHUNK))
            self._chunk = self._blocks[-1], _CHUNK
        address, left = self._chunk
        self._chunk = address + size, left - size
        return address

    def _tensor(self, tensor: DLTensor, doing: str, is_read: bool = True) -> bytes:
        """The descriptor of an argument or a buffer, whose elements are copied if it is read."""
        count = tensor.ndim
        self.doing = f"{doing} of {_bytes_of(tensor)} bytes"
        data = self._data(tensor, is_read)
        strides = self._integers(tensor.strides[:count]) if tensor.strides else 0
        dims = self._integers(tensor.shape[:count])
        kind = tensor.device_type, tensor.device_id, count, tensor.code, tensor.bits, tensor.lanes
        return _TENSOR.pack(data, *kind, dims, strides, tensor.byte_offset)

    def _integers(self, values: Sequence[int]) -> int:
        return self._block(struct.pack(f"<{len(values)}q", *values))

    def _data(self, tensor: DLTensor, is_read: bool) -> int:
        """The address of elements: of a copy, aligned as they are, or one that is refused."""
        source, count = tensor.data or 0, _bytes_of(tensor)
        if not source or tensor.device_type not in _READABLE or tensor.strides:
            return source and _LINE
        if (source, count) not in self._copies:
            address = self._room(count + _LINE) + source % _LINE
            self._copies[source, count] = address
            if is_read:
                ctypes.memmove(self._library.base + address, source, count)
        return self._copies[source, count]

    def _result(self, tensor: DLTensor, index: int) -> bytes:
        """The descriptor of a result: a buffer, or room for one that the call allocates."""
        if self._rooms and self._rooms[index]:
            self._fresh[index] = self._room(_FRESH.size + 8 * MAX_RANK)
            self._library.write(self._fresh[index], _FRESH.pack(0, 0))
            return bytes(_TENSOR.size)
        return self._tensor(tensor, f"the buffer of result {index}", is_read=False)

    def _take_back(self, tensor: DLTensor) -> None:
        """Copies elements back to where they came from."""
        source, count = tensor.data or 0, _bytes_of(tensor)
        if (source, count) in self._copies:
            address = self._library.base + self._copies[source, count]
            ctypes.memmove(source, address, count)

    def _take(self, index: int, tensor: DLTensor) -> None:
        """Copies a result: to its buffer, or to new memory."""
        if index not in self._fresh:
            self._take_back(tensor)
        elif self._rooms[index] != ctypes.addressof(UNWRITTEN):
            result = self._signature["results"][index]
            self._library.keep(self._fresh[index], self._rooms[index], result["dtype"])


def _bytes_of(tensor: DLTensor) -> int:
    count = math.prod(tensor.shape[: tensor.ndim]) if tensor.ndim else 1
    return (count * tensor.bits * tensor.lanes + 7) // 8
