"""Compiled modules: load a shared object and call its functions with arrays.

    exe = load("model.so")
    y = exe["main"](x, weight)                     # NumPy, torch, JAX, ...: any DLPack array
    step = exe["decode"].bind(token, cache, results=[logits])
    step.run()                                     # no allocation, no copies

Nothing here imports the compiler: a program that only runs compiled modules needs NumPy alone.
What the shared object offers is described in `runtime/csrc/relax_runtime.h`.
"""

import ctypes
import json
import os
import platform
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relax_mlir.errors import ExecutionError, OutOfMemoryError, UsageError
from relax_mlir.runtime.libraries import architecture, find_function, is_cut_off
from relax_mlir.runtime.tensors import DLTensor, Slot, TensorError, describe, own
from relax_mlir.target import lacking

__all__ = ["Argument", "BoundCall", "Executable", "Function", "Result", "load"]

COUNTERS = ("allocations", "kernels", "parallel_regions", "arena_bytes")

OUT_OF_MEMORY = 2  # RX_OUT_OF_MEMORY


class _Call(ctypes.Structure):
    """RxCall of relax_runtime.h."""

    _fields_ = (
        ("context", ctypes.c_void_p),
        ("entry", ctypes.c_void_p),
        ("args", ctypes.c_void_p),
        ("results", ctypes.c_void_p),
        ("num_args", ctypes.c_int32),
        ("num_results", ctypes.c_int32),
        ("known", ctypes.c_int32),
        ("symbols", ctypes.c_int64 * 6),
    )


# One recorded kernel call: RxSpan of relax_runtime.h.
SPAN = np.dtype([("site", "<i4"), ("pad", "<i4"), ("begin", "<i8"), ("end", "<i8")])

# Room for the dims of a result whose rank is not known before the call.
MAX_RANK = 32

Dims = tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class Argument:
    """An argument of a compiled function.

    `kind` is "tensor" or "shape", `dtype` MLIR's element type, `dims` numbers and expressions over
    symbols, None for one that is not known (all None: any rank). An `inout` argument is updated
    in place.
    """

    name: str
    kind: str
    dtype: str
    dims: Dims
    inout: bool

    def __str__(self) -> str:
        inout = "inout " if self.inout else ""
        kind = "shape" if self.kind == "shape" else self.dtype
        return f"{inout}{self.name}: {kind}{_brackets(self.dims)}"

    def slot(self) -> Slot:
        """What the runtime expects of it."""
        return Slot(self.dtype, is_shape=self.kind == "shape", is_written=self.inout)


@dataclass(frozen=True)
class Result:
    """A result of a compiled function; `alias` is the index of the argument it is, if it is one."""

    kind: str
    dtype: str
    dims: Dims
    alias: int | None

    def __str__(self) -> str:
        return f"{'shape' if self.kind == 'shape' else self.dtype}{_brackets(self.dims)}"

    @property
    def room(self) -> int:
        """Number of dims to make room for."""
        if self.kind == "shape":
            return 1
        return MAX_RANK if self.dims is None else len(self.dims)


def _brackets(dims: Dims) -> str:
    known = () if dims is None else ("?" if dim is None else str(dim) for dim in dims)
    return "[...]" if dims is None else f"[{', '.join(known)}]"


def _dims(dims: Sequence[int | str | None] | None) -> Dims:
    return None if dims is None else tuple(dims)


def load(path: str | os.PathLike) -> "Executable":
    """Loads a compiled module, a shared object that `Executable.save` or the compiler wrote.

    Raises:
        ExecutionError: the file cannot be read, or is no compiled module for this machine.
    """
    return Executable(path)


class Executable:
    """A loaded module: `exe["main"]` is a function of it, `exe.functions` are their names.

    Calls of one executable run one after the other, also from several threads; each call may use
    several threads itself.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path).resolve()
        self._lock = threading.Lock()
        try:
            # Kept open, so that `save` works after a cache has removed the file.
            self._file = self.path.open("rb")
            weakref.finalize(self, self._file.close)
            if is_cut_off(self._file):
                raise ExecutionError(f"cannot load '{path}': the file is cut off")
            made_for = architecture(self._file)
            if made_for not in (None, platform.machine()):
                raise ExecutionError(
                    f"cannot run '{path}': it is compiled for {made_for}, but this machine is "
                    f"{platform.machine()}"
                )
            self._library = _declare(ctypes.CDLL(str(self.path)))
        except OSError as error:
            raise ExecutionError(f"cannot load '{path}': {error.strerror or error}") from error
        except AttributeError as error:
            raise ExecutionError(f"'{path}' is no compiled module: {error}") from error
        self._metadata = json.loads(self._library.rx_metadata())
        _check_machine(path, self._metadata)
        _check_threads(self._library)
        _connect_libraries(self._library, self._metadata.get("libraries", ()))
        self._context = self._library.rx_create()
        if not self._context:
            raise ExecutionError("out of memory")
        weakref.finalize(self, self._library.rx_destroy, self._context)
        self._functions = {
            name: Function(self, name, signature)
            for name, signature in self._metadata["functions"].items()
        }

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that can be called."""
        return tuple(self._functions)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the compiler recorded: functions, kernels, target, versions."""
        return self._metadata

    @property
    def threads(self) -> int:
        """Threads of a call; by default all CPUs of the process, or RELAX_NUM_THREADS."""
        return self._library.rx_get_threads()

    @threads.setter
    def threads(self, number: int) -> None:
        """Sets the threads of later calls; 0 restores the default."""
        self._library.rx_set_threads(number)

    def counters(self) -> dict[str, int]:
        """Work since the module was loaded.

        `allocations` on the heap, `kernels` called, `parallel_regions` run by several threads,
        and the `arena_bytes` that are held now.
        """
        return {name: self._library.rx_counter(which) for which, name in enumerate(COUNTERS)}

    def record(self, capacity: int = 1 << 16) -> None:
        """Starts to record a span of time per kernel call, at most `capacity`; 0 stops it.

        Raises:
            ExecutionError: out of memory.
        """
        if self._library.rx_profile(capacity):
            raise ExecutionError(f"out of memory: recording {capacity} spans")

    def spans(self) -> np.ndarray:
        """Returns what was recorded since `record`: an array of site, begin, end.

        `site` indexes `metadata["functions"][name]["sites"]`; times are nanoseconds of the
        monotonic clock.
        """
        number = self._library.rx_num_spans()
        data = ctypes.string_at(self._library.rx_spans(), number * SPAN.itemsize) if number else b""
        return np.frombuffer(data, SPAN)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the shared object to `path`, replacing a file there in one step.

        Raises:
            OSError: the file cannot be written.
        """
        target = Path(path)
        size = os.fstat(self._file.fileno()).st_size
        with tempfile.NamedTemporaryFile(dir=target.absolute().parent, delete=False) as copy:
            try:
                copy.write(os.pread(self._file.fileno(), size, 0))
                os.fchmod(copy.fileno(), 0o755)
                os.replace(copy.name, target)
            except BaseException:
                os.unlink(copy.name)
                raise

    def __getitem__(self, name: str) -> "Function":
        try:
            return self._functions[name]
        except KeyError:
            known = ", ".join(f"'{known}'" for known in self._functions) or "none"
            raise KeyError(f"no function '{name}', the module has {known}") from None

    def __repr__(self) -> str:
        functions = "".join(f"\n  {function}" for function in self._functions.values())
        return f"<Executable '{self.path}'{functions}>"


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Gives the runtime's functions their C types; AttributeError if one is missing."""
    pointer, int32 = ctypes.c_void_p, ctypes.c_int32
    for name, result, arguments in (
        ("rx_create", pointer, ()),
        ("rx_destroy", None, (pointer,)),
        ("rx_last_error", ctypes.c_char_p, (pointer,)),
        ("rx_set_threads", None, (int32,)),
        ("rx_get_threads", int32, ()),
        ("rx_call", int32, None),  # converting one pointer, as it is, takes half the time
        ("rx_counter", ctypes.c_int64, (int32,)),
        ("rx_free", None, (pointer,)),
        ("rx_metadata", ctypes.c_char_p, ()),
        ("rx_profile", int32, (ctypes.c_int64,)),
        ("rx_num_spans", ctypes.c_int64, ()),
        ("rx_spans", pointer, ()),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _check_machine(path: str | os.PathLike, metadata: Mapping[str, Any]) -> None:
    """Refuses code with instructions that would end the process."""
    missing = lacking(metadata.get("needs", ()))
    if missing:
        raise ExecutionError(
            f"cannot run '{path}': it is compiled for {metadata['target']}, but this machine has "
            f"no {', '.join(missing)}"
        )


def _check_threads(library: ctypes.CDLL) -> None:
    if library.rx_get_threads() < 1:
        raise UsageError(
            f"RELAX_NUM_THREADS is '{os.environ['RELAX_NUM_THREADS']}'; "
            "expects a number of threads, 1 or more"
        )


def _connect_libraries(module: ctypes.CDLL, libraries: Sequence[Mapping[str, Any]]) -> None:
    """Writes the address of each library function into the module's variable for it."""
    for library in libraries:
        try:
            address = find_function(library["c_symbol"], library["providers"])
        except LookupError as error:
            raise ExecutionError(f"library function '{library['function']}': {error}") from error
        ctypes.c_void_p.in_dll(module, library["slot"]).value = address


class Function:
    """A function of an executable."""

    def __init__(self, executable: Executable, name: str, signature: Mapping[str, Any]) -> None:
        self.executable = executable
        self.name = name
        self.arguments = tuple(
            Argument(arg["name"], arg["kind"], arg["dtype"], _dims(arg["dims"]), arg["inout"])
            for arg in signature["arguments"]
        )
        self.results = tuple(
            Result(result["kind"], result["dtype"], _dims(result["dims"]), result["alias"])
            for result in signature["results"]
        )
        self.facts = tuple(signature["facts"])
        entry = getattr(executable._library, f"rx_fn_{name}")
        self._entry = ctypes.cast(entry, ctypes.c_void_p).value

    def __call__(self, *arrays: Any, threads: int | None = None) -> Any:
        """Runs the function once; see `BoundCall.run` for results and errors."""
        return self.bind(*arrays).run(threads)

    def bind(self, *arrays: Any, results: Sequence[Any] | None = None) -> "BoundCall":
        """Prepares a call that can run many times.

        Args:
            arrays: one value per argument: a NumPy array, any DLPack array, a number for a tensor
                of rank 0, integers for a shape. Arrays without gaps are not copied.
            results: one buffer per result that is filled by each run, or None where each run
                makes a new array; None for all.

        Raises:
            ExecutionError: a wrong number of values, or one that is no array.
        """
        return BoundCall(self, arrays, results)

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        return f"{self.name}({arguments}) -> ({', '.join(map(str, self.results))})"

    def __repr__(self) -> str:
        return f"<Function {self}>"


class BoundCall:
    """A call whose arguments are described once, and checked at the first run.

    `run` costs about 0.4 microseconds of Python.
    """

    def __init__(
        self, function: Function, arrays: Sequence[Any], results: Sequence[Any] | None
    ) -> None:
        self._function = function
        self._library, self._context = function.executable._library, function.executable._context
        self._call = _Call()
        _check_number(function.name, "argument", len(arrays), len(function.arguments))
        if results is None:
            results = (None,) * len(function.results)
        _check_number(function.name, "result", len(results), len(function.results))
        self._values = list(arrays)
        self._kept: list[object] = [None] * len(arrays)
        self._args = (DLTensor * len(arrays))()
        for index, array in enumerate(arrays):
            self._describe(index, array)
        self._results = (DLTensor * len(results))()
        self._buffers = list(results)
        self._rooms = [self._prepare_result(i, buffer) for i, buffer in enumerate(results)]
        self._without_buffer = tuple(i for i, buffer in enumerate(results) if buffer is None)
        self._packed = None if self._without_buffer else self._pack({})
        self._call.context, self._call.entry = self._context, function._entry
        self._call.args = ctypes.addressof(self._args)
        self._call.results = ctypes.addressof(self._results)
        self._call.num_args, self._call.num_results = len(arrays), len(results)
        self._enter, self._operand = self._library.rx_call, ctypes.byref(self._call)
        self._acquire = function.executable._lock.acquire
        self._release = function.executable._lock.release

    @property
    def function(self) -> Function:
        """What is called."""
        return self._function

    @property
    def values(self) -> tuple[Any, ...]:
        """The arguments, as they were given."""
        return tuple(self._values)

    def _prepare_result(self, index: int, buffer: Any) -> object:
        """Describes a buffer, or makes room for the dims of a result without one."""
        result, tensor = self._function.results[index], self._results[index]
        if buffer is None:
            room = (ctypes.c_int64 * result.room)()
            tensor.shape = room
            return room
        try:
            return describe(tensor, buffer, Slot(result.dtype, is_written=True))
        except TensorError as error:
            raise ExecutionError(f"result {index}: {error}") from error

    def set(self, index: int, array: Any) -> None:
        """Replaces argument `index` of later runs.

        Raises:
            ExecutionError: the value is no array, or cannot be updated in place.
        """
        with self._function.executable._lock:  # a run of another thread reads the descriptor
            self._call.known = 0  # RX_NOTHING
            self._describe(index, array)

    def _describe(self, index: int, array: Any) -> None:
        argument = self._function.arguments[index]
        try:
            kept = describe(self._args[index], array, argument.slot())
        except TensorError as error:
            raise ExecutionError(f"argument {index} '{argument.name}': {error}") from error
        self._values[index], self._kept[index] = array, kept

    def run(self, threads: int | None = None) -> Any:
        """Runs the call, on `threads` threads if given.

        Returns:
            The result, a tuple of them if there are several, None if there are none. A result with
            a buffer is that buffer, one that is an argument updated in place is that argument,
            others are NumPy arrays that own their memory.

        Raises:
            ExecutionError: the runtime refused the arguments or the buffers.
            OutOfMemoryError: there is no memory for a result, for temporaries, or in a kernel.
        """
        self._acquire()  # with a `with` block, this would take twice as long
        try:
            status = self._enter(self._operand) if threads is None else self._run_on(threads)
            fresh = self._take_fresh(status) if self._without_buffer else None
            if status:
                text = self._library.rx_last_error(self._context).decode(errors="replace")
        finally:
            self._release()
        if status:
            raise (OutOfMemoryError if status == OUT_OF_MEMORY else ExecutionError)(text)
        return self._packed if fresh is None else self._pack(fresh)

    def _run_on(self, threads: int) -> int:
        previous = self._library.rx_get_threads()
        self._library.rx_set_threads(threads)
        try:
            return self._enter(self._operand)
        finally:
            self._library.rx_set_threads(previous)

    def _take_fresh(self, status: int) -> dict[int, np.ndarray]:
        """The new arrays by index; none if the call failed, whose allocations are released."""
        fresh = {}
        free = self._library.rx_free
        for i in self._without_buffer:
            tensor = self._results[i]
            if self._function.results[i].alias is None:
                if status:
                    free(tensor.data)
                else:
                    fresh[i] = own(tensor, free)
            tensor.data = None
        return fresh

    def _pack(self, fresh: dict[int, np.ndarray]) -> Any:
        values = []
        for i, result in enumerate(self._function.results):
            if i in fresh:
                values.append(fresh[i])
            elif self._buffers[i] is not None or result.alias is None:
                values.append(self._buffers[i])
            else:
                values.append(self._values[result.alias])
        return values[0] if len(values) == 1 else tuple(values) or None


def _check_number(function: str, what: str, got: int, want: int) -> None:
    if got != want:
        plural = "" if want == 1 else "s"
        raise ExecutionError(f"'{function}' has {want} {what}{plural}, but got {got}")
