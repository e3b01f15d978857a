"""Compiled modules: load a shared object and call its functions with arrays.

    exe = load("model.so")
    y = exe["main"](x, weight)                     # NumPy, torch, JAX, ...: any DLPack array
    step = exe["decode"].bind(token, cache, results=[logits])
    step.run()                                     # no allocation, no copies

Nothing here imports the compiler: a program that only runs compiled modules needs NumPy alone.
`runtime/csrc/relax_runtime.h` describes the interface of the shared object.
"""

import ctypes
import json
import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from relax_mlir.errors import ExecutionError, OutOfMemoryError, UsageError
from relax_mlir.runtime.calls import (
    buffers_of,
    check_count,
    natural,
    sequence_of,
    thread_count,
)
from relax_mlir.runtime.device import fresh_result, memory_of
from relax_mlir.runtime.device_call import OnDevice
from relax_mlir.runtime.external import save
from relax_mlir.runtime.interface import (
    COUNTERS,
    INTERRUPTED,
    OUT_OF_MEMORY,
    SPAN,
    Call,
    declare,
    entry_of,
)
from relax_mlir.runtime.interrupts import POLL, take_raised
from relax_mlir.runtime.libraries import (
    architecture,
    find_function,
    is_truncated,
    this_architecture,
)
from relax_mlir.runtime.nesting import Nesting, Tree
from relax_mlir.runtime.objects import KIND, Objects, described, holding, new_handle
from relax_mlir.runtime.overlaps import Span, first_overlap, overlap_with, span
from relax_mlir.runtime.results import Plan, absent
from relax_mlir.runtime.signature import Argument, Result, arguments_of, results_of
from relax_mlir.runtime.tensors import DLTensor, Referent, Slot, TensorError, describe
from relax_mlir.runtime.wasm import MAGIC, WasmLibrary, open_module
from relax_mlir.target import lacking

__all__ = ["Argument", "BoundCall", "Executable", "Function", "Result", "load"]


def load(path: str | os.PathLike) -> "Executable":
    """Loads a compiled module, a shared object that `Executable.save` or the compiler wrote.

    Raises:
        ExecutionError: the file cannot be read, or is not a compiled module for this machine.
    """
    return Executable(path)


class Executable:
    """A loaded module: `exe["main"]` is a function of it, `exe.functions` has their names.

    Calls from several threads run concurrently, and each may use several threads itself: all
    executables of a process share one thread pool. A forked child may make its parent's calls.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path).resolve()
        try:
            # Stays open, so that `save` works after a cache has removed the file.
            self._file = self.path.open("rb")
            weakref.finalize(self, self._file.close)
            self._library = _open_library(path, self.path, self._file)
        except OSError as error:
            raise ExecutionError(f"cannot load '{path}': {error.strerror or error}") from error
        except AttributeError as error:
            raise ExecutionError(f"'{path}' is not a compiled module: {error}") from error
        self._metadata = json.loads(self._library.rx_metadata())
        _check_machine(path, self._metadata)
        _check_threads(self._library)
        _connect_libraries(self._library, self._metadata.get("libraries", ()))
        self._library.rx_set_poll(POLL)
        self._context = self._library.rx_create()
        if not self._context:
            reason = self._library.rx_last_error(None).decode(errors="replace")
            if reason != "out of memory":
                raise ExecutionError(f"cannot load '{path}': {reason}")
            raise OutOfMemoryError("out of memory: a context of the executable")
        # Not freed at exit: daemon threads may be in calls then.
        weakref.finalize(self, self._library.rx_destroy, self._context).atexit = False
        self.device = memory_of(self._library, self._metadata.get("devices", ()))
        self._threads = 0
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
        """The records of the compiler: functions, kernels, target, versions."""
        return self._metadata

    @property
    def threads(self) -> int:
        """Threads of a call; by default all CPUs of the process, or RELAX_NUM_THREADS.

        A loop gets those that other calls do not use at that moment. 0 restores the default; at
        most 256 are used.

        Raises:
            UsageError: the value set is not an integer, or negative.
        """
        return self._threads or self._library.rx_get_threads()

    @threads.setter
    def threads(self, count: int) -> None:
        self._threads = thread_count(count)
        self._library.rx_set_context_threads(self._context, self._threads)

    def counters(self) -> dict[str, int]:
        """Counters of work since the module was loaded.

        `allocations` on the heap, `kernels` called, `parallel_regions` run by several threads,
        and the `arena_bytes` that are allocated now.
        """
        return {name: self._library.rx_counter(which) for which, name in enumerate(COUNTERS)}

    def record(self, capacity: int = 1 << 16) -> None:
        """Starts to record a time span per kernel call, at most `capacity`; 0 stops it.

        Raises:
            UsageError: `capacity` is not an integer, or negative.
            OutOfMemoryError: there is no memory for that many.
        """
        count = natural("capacity", capacity)
        if self._library.rx_profile(min(count, 2**63 - 1)):
            raise OutOfMemoryError(f"out of memory: recording {count} spans")

    def spans(self) -> np.ndarray:
        """The spans recorded since `record`: an array of site, call, begin, end.

        `site` indexes `metadata["functions"][name]["sites"]`; spans of one call of a function have
        the same `call`; times are nanoseconds of the monotonic clock.
        """
        copies = np.empty(self._library.rx_spans(None, 0), SPAN)
        count = self._library.rx_spans(copies.ctypes.data, len(copies))
        return copies[:count]

    def save(self, path: str | os.PathLike, external_data: bool = False) -> None:
        """Writes the shared object to `path`, replacing a file there in one step.

        With `external_data`, large constants go to a safetensors file beside it, which the object
        names, and which has to stay beside it. Those of a module that was loaded so remain so.

        Raises:
            OSError: a file cannot be written.
            UsageError: a module for WebAssembly has its constants in it.
        """
        if external_data and isinstance(self._library, WasmLibrary):
            raise UsageError("external_data is about shared objects, not modules for WebAssembly")
        save(self._file, Path(path), external_data)

    def __getitem__(self, name: str) -> "Function":
        try:
            return self._functions[name]
        except KeyError:
            known = ", ".join(f"'{known}'" for known in self._functions) or "none"
            raise KeyError(f"no function '{name}', the module has {known}") from None

    def __repr__(self) -> str:
        functions = "".join(f"\n  {function}" for function in self._functions.values())
        return f"<Executable '{self.path}'{functions}>"


def _open_library(given: str | os.PathLike, path: Path, file: BinaryIO) -> Any:
    """The functions of a shared object, or of a module for WebAssembly.

    Raises OSError or AttributeError if the file is neither.
    """
    if os.pread(file.fileno(), len(MAGIC), 0) == MAGIC:
        try:
            return open_module(path.read_bytes())
        except ExecutionError as error:
            raise ExecutionError(f"cannot load '{given}': {error}") from error
    if is_truncated(file):
        raise ExecutionError(f"cannot load '{given}': the file is truncated")
    made_for = architecture(file)
    if made_for not in (None, this_architecture()):
        raise ExecutionError(
            f"cannot run '{given}': it is compiled for {made_for}, but this machine is "
            f"{this_architecture()}"
        )
    return declare(ctypes.CDLL(_distinct_name(path, file)))


_LOADED: dict[Path, list[tuple[int, int]]] = {}
"""The files, by device and inode, that had a path when they were loaded."""


def _distinct_name(path: Path, file: BinaryIO) -> str:
    """A spelling of the path for this file only.

    The dynamic loader takes what it has loaded by the same name, even if that file was replaced.
    """
    status = os.fstat(file.fileno())
    identity, known = (status.st_dev, status.st_ino), _LOADED.setdefault(path, [])
    if identity not in known:
        known.append(identity)
    return os.path.join(path.parent, *["."] * known.index(identity), path.name)


def _check_machine(path: str | os.PathLike, metadata: Mapping[str, Any]) -> None:
    """Refuses code with instructions that this machine lacks."""
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
            "expects a thread count of 1 or more"
        )


def _connect_libraries(module: ctypes.CDLL, libraries: Sequence[Mapping[str, Any]]) -> None:
    """Writes the address of each library function into the module's variable for it."""
    for library in libraries:
        try:
            address = find_function(library["c_symbol"], library["providers"])
        except LookupError as error:
            raise ExecutionError(f"library function '{library['function']}': {error}") from error
        ctypes.c_void_p.in_dll(module, library["slot"]).value = address


def _trees(trees: list[Tree] | None, count: int) -> Sequence[Tree]:
    return range(count) if trees is None else trees


class Function:
    """A function of an executable."""

    def __init__(self, executable: Executable, name: str, signature: Mapping[str, Any]) -> None:
        self.executable = executable
        self.name = name
        self.arguments = arguments_of(signature)
        self.results = results_of(signature)
        library, memory = executable._library, executable.device
        self._fresh = [fresh_result(result, library, memory) for result in self.results]
        self._plans: dict[tuple[int, ...], Plan] = {}
        self._updates = any(argument.inout for argument in self.arguments)
        self.facts = tuple(signature["facts"])
        # The tuples that users pass and get, of the arguments and results in order.
        self.nesting = Nesting.of_optional(
            name,
            _trees(signature.get("argument_tree"), len(self.arguments)),
            _trees(signature.get("result_tree"), len(self.results)),
            {
                index: absent(self.arguments[index])
                for index, described in enumerate(signature["arguments"])
                if described.get("optional")
            },
        )
        libraries = executable._metadata.get("libraries", ())
        kinds = {value["kind"] for key in ("arguments", "results") for value in signature[key]}
        has_objects = KIND in kinds or any(each.get("has_objects") for each in libraries)
        self._flat = _bound_class(False, has_objects, memory is not None)
        self._bound = _bound_class(not self.nesting.is_flat, has_objects, memory is not None)
        self._entry = entry_of(executable._library, name)

    def __call__(self, /, *arrays: Any, threads: int | None = None, **named: Any) -> Any:
        """Runs the function once; see `bind` for arguments, `BoundCall.run` for results."""
        return self.bind(*arrays, **named).run(threads)

    def bind(
        self, /, *arrays: Any, results: Sequence[Any] | None = None, **named: Any
    ) -> "BoundCall":
        """Prepares a call that can run many times.

        Args:
            arrays: one value per argument: a NumPy array, any DLPack array, a number for a tensor
                of rank 0, integers for a shape. Contiguous arrays are not copied.
            named: arguments after those, by their names.
            results: for each result, a buffer that every run fills, or None if every run makes a
                new array; None for all.

        Where the module has tuples, `arrays` and `results` are nested tuples likewise.

        Arguments that are updated in place, and buffers, must be writable contiguous arrays that
        share no memory with each other or with an argument. The buffer of a result that is an
        argument updated in place is that argument.

        Raises:
            ExecutionError: a wrong count of values, a value that is not an array, or arrays that
                share memory which the call writes to; the message names the argument or result.
        """
        if named:
            names = [argument.name for argument in self.arguments]
            return self._bound(self, self.nesting.in_order(arrays, named, names), results)
        return self._bound(self, arrays, results)

    def flat(self, *leaves: Any) -> tuple[Any, ...]:
        """Runs the function once; elements of tuples are passed and returned one by one."""
        return sequence_of(self._flat(self, leaves, None).run(), len(self.results))

    def _plan(self, *lent: int) -> Plan:
        """The plan of a call with buffers for the results `lent`."""
        if lent not in self._plans:
            self._plans[lent] = Plan(self._fresh, self.results, lent)
        return self._plans[lent]

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        return f"{self.name}({arguments}) -> ({', '.join(map(str, self.results))})"

    def __repr__(self) -> str:
        return f"<Function {self}>"


class BoundCall:
    """A call whose arguments are described once and checked at the first run.

    `run` costs about 0.3 microseconds of Python. If several threads run one call, or set its
    arguments, they take turns.
    """

    def __init__(
        self, function: Function, arrays: Sequence[Any], results: Sequence[Any] | None
    ) -> None:
        library = function.executable._library
        check_count(function.name, "argument", len(arrays), len(function.arguments))
        buffers = buffers_of(results, len(function.results))
        check_count(function.name, "result", len(buffers), len(function.results))
        self._function, self._library = function, library
        self._values, self._buffers = list(arrays), buffers
        self._args = (DLTensor * len(arrays))()
        self._results = (DLTensor * len(buffers))()
        # The objects that descriptors point to, by the address of the dims, which is unique.
        described = map(self._describe_argument, range(len(arrays)), self._args, arrays)
        self._referents = {ctypes.addressof(each[1]): each for each in described}
        self._lent = {
            i: self._describe_buffer(i, buffer)
            for i, buffer in enumerate(buffers)
            if buffer is not None
        }
        self._spans = self._separate_spans()
        self._call = Call(
            function.executable._context,
            function._entry,
            ctypes.addressof(self._args),
            ctypes.addressof(self._results),
            len(arrays),
            len(buffers),
        )
        self._enter, self._operand = library.rx_call, ctypes.byref(self._call)
        self._plan = function._plan(*self._lent)
        self._packed = None if self._plan.fresh else self._plan.values(buffers, arrays, ())
        self._is_lent_all = not self._plan.fresh and not self._plan.updated

    @property
    def function(self) -> Function:
        """The function that the call runs."""
        return self._function

    @property
    def values(self) -> tuple[Any, ...]:
        """The arguments, as given."""
        return tuple(self._values)

    def _describe_argument(self, index: int, tensor: DLTensor, array: Any) -> Referent:
        try:
            return describe(tensor, array, self._function.arguments[index].slot())
        except TensorError as error:
            raise ExecutionError(f"{self._label(index)}: {error}") from error

    def _describe_buffer(self, index: int, buffer: Any) -> Referent:
        slot = Slot(self._function.results[index].dtype, is_written=True)
        try:
            return describe(self._results[index], buffer, slot)
        except TensorError as error:
            raise ExecutionError(f"result {index}: {error}") from error

    def _label(self, index: int) -> str:
        """The name of an array in messages; indices of results follow those of arguments."""
        arguments = self._function.arguments
        if index >= len(arguments):
            return f"result {index - len(arguments)}"
        name = arguments[index].name
        return f"argument {index} '{name}'" if name else f"argument {index}"

    def _separate_spans(self) -> list[Span]:
        """The spans of the arrays, if some are written to; refuses arrays that overlap."""
        arguments, results = self._function.arguments, self._function.results
        if not self._function._updates and not self._lent:
            return []
        spans = [span(self._args[i], a.inout, i) for i, a in enumerate(arguments)]
        for i in self._lent:
            tensor, alias = self._results[i], results[i].alias
            if alias is None or self._args[alias].data != tensor.data:
                spans.append(span(tensor, True, len(arguments) + i))
        overlap = first_overlap(spans)
        if overlap:
            self._refuse_overlap(*overlap)
        return spans

    def _refuse_overlap(self, first: int, second: int) -> NoReturn:
        first, second = sorted((first, second))
        raise ExecutionError(
            f"{self._label(second)}: shares memory with {self._label(first)}, but an array that is "
            "written to needs memory of its own"
        )

    def set(self, index: int, array: Any) -> None:
        """Replaces argument `index` of later runs.

        Raises:
            ExecutionError: the value is not an array, cannot be updated in place, or shares memory
                which the call writes to, or there is no such argument.
        """
        if index not in range(len(self._args)):
            count = len(self._args)
            raise ExecutionError(
                f"'{self._function.name}' has {count} arguments, none is {index!r}"
            )
        tensor = DLTensor()
        referent = self._describe_argument(index, tensor, array)
        if self._spans:
            new = span(tensor, self._function.arguments[index].inout, index)
            other = overlap_with(new, self._spans)
            if other is not None:
                self._refuse_overlap(index, other)
        # Even if this is interrupted, an array lives as long as a descriptor points to it.
        self._referents[ctypes.addressof(referent[1])] = referent
        status = self._library.rx_exchange_argument(self._operand, index, ctypes.byref(tensor))
        if status:
            self._fail(status)
        self._referents.pop(ctypes.addressof(tensor.shape.contents), None)
        self._values[index] = array
        if self._spans:
            self._spans[index] = new
        if not self._plan.fresh:
            self._packed = self._plan.values(self._buffers, self._values, ())

    def run(self, threads: int | None = None) -> Any:
        """Runs the call, on `threads` threads if given, on those of the executable if that is 0.

        Returns:
            The result, a tuple of several, or None if there are none. A result with a buffer is
            that buffer, an argument updated in place is that argument, others are NumPy arrays that
            own their memory.

        Raises:
            ExecutionError: the runtime refused the arguments or the buffers.
            OutOfMemoryError: there is no memory for a result, for temporaries, or in a kernel.
            UsageError: `threads` is not an integer, or negative.
            BaseException: whatever the handler of a signal raises, as KeyboardInterrupt, while the
                function loops in the main thread; arguments updated in place hold anything then.
        """
        if threads is None and self._is_lent_all:
            status = self._enter(self._operand)  # saves a third of the time
            if status:
                self._fail(status)
            return self._packed
        count = 0 if threads is None else thread_count(threads)
        owners, rooms = (None, None) if self._is_lent_all else self._plan.owners()
        status = self._library.rx_call_on(self._operand, count, rooms)
        if status:
            self._fail(status)
        return self._plan.values(self._buffers, self._values, owners) if owners else self._packed

    def _fail(self, status: int) -> NoReturn:
        if status == INTERRUPTED:
            raise take_raised()
        text = self._library.rx_last_error(self._call.context).decode(errors="replace")
        raise (OutOfMemoryError if status == OUT_OF_MEMORY else ExecutionError)(text)


class _ObjectCall(BoundCall):
    """A call that takes, makes or returns objects, which it owns while it runs."""

    def __init__(
        self, function: Function, arrays: Sequence[Any], results: Sequence[Any] | None
    ) -> None:
        self._passed: dict[int, Any] = {}
        self._handles: dict[int, int] = {}
        super().__init__(function, arrays, results)
        self._returned = [i for i, each in enumerate(function.results) if each.kind == KIND]

    def _describe_argument(self, index: int, tensor: DLTensor, array: Any) -> Referent:
        if self._function.arguments[index].kind != KIND:
            return super()._describe_argument(index, tensor, array)
        self._handles[index] = handle = new_handle()
        self._passed[handle] = array
        return super()._describe_argument(index, tensor, described(handle))

    def _describe_buffer(self, index: int, buffer: Any) -> Referent:
        if self._function.results[index].kind == KIND:
            raise ExecutionError(f"result {index}: is an object, for which there is no buffer")
        return super()._describe_buffer(index, buffer)

    def set(self, index: int, array: Any) -> None:
        """Replaces an argument of later runs."""
        before = self._handles.get(index)
        try:
            super().set(index, array)
        except BaseException:
            if before is not None and self._handles[index] != before:
                del self._passed[self._handles[index]]
                self._handles[index] = before
            raise
        if before is not None:
            del self._passed[before]

    def run(self, threads: int | None = None) -> Any:
        """Runs the call; objects that it made and does not return are released."""
        count = len(self._function.results)
        with holding(Objects(self._passed)) as live:
            values = list(sequence_of(super().run(threads), count))
            for index in self._returned:
                values[index] = live.get(int(values[index]))
        return values[0] if count == 1 else tuple(values) or None


class _NestedCall(BoundCall):
    """A call of a function whose arguments or results are tuples for its users."""

    def __init__(self, function: Function, values: Sequence[Any], results: Any) -> None:
        self._nesting, self._nested = function.nesting, list(values)
        leaves = self._nesting.flat_arguments(values)
        super().__init__(function, leaves, self._nesting.flat_buffers(results))

    @property
    def values(self) -> tuple[Any, ...]:
        """The arguments, as given."""
        return tuple(self._nested)

    def set(self, index: int, array: Any) -> None:
        """Replaces an argument of later runs, all elements of a tuple or none."""
        if index not in range(len(self._nested)):
            count = len(self._nested)
            raise ExecutionError(
                f"'{self._function.name}' has {count} arguments, none is {index!r}"
            )
        before = tuple(self._values)
        leaves = self._nesting.flat_argument(index, array)
        try:
            for leaf, value in leaves.items():
                super().set(leaf, value)
        except ExecutionError:
            for leaf in leaves:
                if self._values[leaf] is not before[leaf]:
                    super().set(leaf, before[leaf])
            raise
        self._nested[index] = array

    def run(self, threads: int | None = None) -> Any:
        """Runs the call; tuples are returned as the function's users know them."""
        values = super().run(threads)
        return self._nesting.nested_results(sequence_of(values, len(self._function.results)))


class _NestedObjectCall(_NestedCall, _ObjectCall):
    """Both."""


class _DeviceCall(OnDevice, BoundCall):
    """A call of a function whose tensors are on a device: there are no objects then."""


class _NestedDeviceCall(_NestedCall, _DeviceCall):
    """Both."""


def _bound_class(is_nested: bool, has_objects: bool, has_device: bool) -> type[BoundCall]:
    """The calls of a function, by whether users know tuples, and what may be passed."""
    if has_device:
        return _NestedDeviceCall if is_nested else _DeviceCall
    if has_objects:
        return _NestedObjectCall if is_nested else _ObjectCall
    return _NestedCall if is_nested else BoundCall
