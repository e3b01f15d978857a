"""A module with the interface of an `Executable` whose functions are interpreted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from relax_mlir.analysis.functions import (
    OPTIONAL,
    PRESENCE,
    argument_attribute,
    argument_name,
    graph_functions,
    host_object_results,
    is_host_object,
    is_public,
)
from relax_mlir.analysis.malformed import malformed
from relax_mlir.analysis.symbols import symbols_of
from relax_mlir.analysis.trees import ARGUMENT_TREE, RESULT_TREE, trees_on
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import compile_error
from relax_mlir.dialects.graph import (
    Annotation,
    Dim,
    HostObjectType,
    ShapeValueType,
    TensorType,
    annotation_of,
    leaf_suffixes,
    leaf_types,
    shape_value_dims,
    trees_of,
)
from relax_mlir.errors import ExecutionError
from relax_mlir.executable import Argument, Result
from relax_mlir.runtime.calls import buffers_of, check_count, thread_count
from relax_mlir.runtime.nesting import Nesting
from relax_mlir.runtime.objects import KIND, Objects, described, holding, new_handle
from relax_mlir.runtime.overlaps import Span, first_overlap
from relax_mlir.runtime.results import absent, number
from relax_mlir.runtime.tensors import (
    DLTensor,
    TensorError,
    describe,
    dtype_name,
    packed_dtype,
    type_code,
)

from .binding import ABSENT, Signature
from .depth import on_large_stack
from .elements import STORED, UnknownElement, stored_dtype
from .frame import Code, Frame, Launch
from .library import Raised


class Interpreted:
    """A module: `module["main"]` is a function of it, `module.functions` has their names."""

    def __init__(
        self,
        module: ir.Module | ir.Operation,
        before: Interpreted | None = None,
        launch: Launch | None = None,
    ) -> None:
        """Copies the module, which may be modified afterwards.

        `before` is the module before a pass: kernels that it had are run as the tensor programs
        that they were scheduled from. `launch` runs kernels of a device that are outlined; without
        it they are interpreted.

        Raises CompileError if it is malformed.
        """
        self._context = module.context
        with self._context, ir.Location.unknown():
            self._module = module.operation.clone()
            if diagnostics := malformed(self._module):
                raise compile_error(diagnostics)
            self._code: Code = Code(self._module, None if before is None else before._code, launch)
            self._before = before if self._code.scheduled else None  # whose programs may be used
            self._functions = {
                op.name.value: Function(self, self._code.signature(op))
                for op in graph_functions(self._module)
                if is_public(op)
            }

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that can be called."""
        return tuple(self._functions)

    def __getitem__(self, name: str) -> Function:
        try:
            return self._functions[name]
        except KeyError:
            known = ", ".join(f"'{known}'" for known in self._functions) or "none"
            raise KeyError(f"no function '{name}', the module has {known}") from None

    def __repr__(self) -> str:
        functions = "".join(f"\n  {function}" for function in self._functions.values())
        return f"<Interpreted{functions}>"


class Function:
    """A function of an interpreted module, with the interface of an executable's."""

    def __init__(self, module: Interpreted, signature: Signature) -> None:
        self.module, self.name, self._signature = module, signature.name, signature
        function = signature.function
        inputs, results = list(function.type.inputs), list(function.type.results)
        # The tuples of the function itself, and those of its users, which it may have no more.
        self._own = Nesting(self.name, trees_of(inputs), trees_of(results))
        aliases = _aliases(inputs, results, signature.inout)
        written = set(aliases.values())
        leaves = [
            (
                argument_name(function, index) + suffix,
                HostObjectType.get() if is_host_object(function, index) else annotation_of(leaf),
            )
            for index, type_ in enumerate(inputs)
            for suffix, leaf in zip(leaf_suffixes(type_), leaf_types(type_), strict=True)
        ]
        objects = host_object_results(function)
        self.arguments = tuple(
            Argument(name, *_described(annotation), index in written)
            for index, (name, annotation) in enumerate(leaves)
        )
        self.results = tuple(
            Result(
                *_described(HostObjectType.get() if index in objects else annotation_of(leaf)),
                aliases.get(index),
            )
            for index, leaf in enumerate(leaf for t in results for leaf in leaf_types(t))
        )
        # Arguments that may be left out: by themselves, or, after a pass, with an argument more.
        optional, presence = (
            {i for i in range(len(inputs)) if argument_attribute(function, i, name) is not None}
            for name in (OPTIONAL, PRESENCE)
        )
        self.optional = (
            {i for i in optional if i + 1 not in presence}
            if self._own.is_flat
            else {sum(len(leaf_types(type_)) for type_ in inputs[:i]) for i in optional}
        )
        arguments_tree, results_tree = (trees_on(function, n) for n in (ARGUMENT_TREE, RESULT_TREE))
        self.nesting = Nesting.of_optional(
            self.name,
            self._own.arguments if arguments_tree is None else arguments_tree,
            self._own.results if results_tree is None else results_tree,
            {i: absent(self.arguments[i]) for i in optional if i + 1 in presence},
        )
        self.facts = tuple(map(str, signature.facts))
        self.symbols = tuple(symbols_of([annotation for _, annotation in leaves]))

    @property
    def operation(self) -> func.FuncOp:
        """The function in the module."""
        return self._signature.function

    def __call__(self, /, *arrays: Any, threads: int | None = None, **named: Any) -> Any:
        """Runs the function once; see `Call.run`. `threads` has no effect."""
        return self.bind(*arrays, **named).run(threads)

    def bind(self, /, *arrays: Any, results: Sequence[Any] | None = None, **named: Any) -> Call:
        """Prepares calls with these arguments; see `relax_mlir.executable.Function.bind`."""
        if named:
            names = [argument.name for argument in self.arguments]
            arrays = tuple(self.nesting.in_order(arrays, named, names, self.optional))
        leaves = self.nesting.flat_arguments(arrays)
        return Call(self, leaves, self.nesting.flat_buffers(results))

    def flat(self, *leaves: Any) -> tuple[Any, ...]:
        """Runs the function once; elements of tuples are passed and returned one by one."""
        return Call(self, leaves, None).leaves()

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        return f"{self.name}({arguments}) -> ({', '.join(map(str, self.results))})"

    def __repr__(self) -> str:
        return f"<Function {self}>"


class Call:
    """A call of an interpreted function."""

    def __init__(
        self, function: Function, arrays: Sequence[Any], results: Sequence[Any] | None
    ) -> None:
        self.function, self.values = function, tuple(arrays)
        check_count(function.name, "argument", len(arrays), len(function.arguments))
        self._buffers = buffers_of(results, len(function.results))
        check_count(function.name, "result", len(self._buffers), len(function.results))
        self._objects: dict[int, Any] = {}
        self._arguments: list[Any] = [
            self._handle(array)
            if argument.kind == KIND
            else ABSENT
            if array is None and index in function.optional
            else _read(array, argument, _label(function, index))
            for index, (array, argument) in enumerate(zip(arrays, function.arguments, strict=True))
        ]
        for index, (buffer, result) in enumerate(zip(self._buffers, function.results, strict=True)):
            if buffer is not None and result.kind == KIND:
                raise ExecutionError(f"result {index}: is an object, for which there is no buffer")
        self._targets = {
            index: _read(buffer, Argument("", *_of(result), True), f"result {index}")
            for index, (buffer, result) in enumerate(
                zip(self._buffers, function.results, strict=True)
            )
            if buffer is not None
        }
        self._check_overlaps()

    def _handle(self, value: Any) -> np.ndarray:
        handle = new_handle()
        self._objects[handle] = value
        return described(handle)

    def _check_overlaps(self) -> None:
        """Refuses arrays that overlap if one is written to, as compiled functions do."""
        function = self.function
        count = len(function.arguments)
        spans = [
            _span(array, argument.inout, index)
            for index, (array, argument) in enumerate(
                zip(self._arguments, function.arguments, strict=True)
            )
            if argument.kind == "tensor" and array is not ABSENT
        ]
        for index, target in self._targets.items():
            alias = function.results[index].alias
            if alias is None or target.ctypes.data != self._arguments[alias].ctypes.data:
                spans.append(_span(target, True, count + index))
        if overlap := first_overlap(spans):
            first, second = (_label(function, each) for each in sorted(overlap))
            raise ExecutionError(
                f"{second}: shares memory with {first}, but an array that is "
                "written to needs memory of its own"
            )

    def run(self, threads: int | None = None) -> Any:
        """Runs the call; `threads` has no effect, but is checked.

        Returns:
            The result, a tuple of several, or None if there are none. An argument updated in place
            is that argument, others are new arrays.

        Raises:
            ExecutionError: the arguments are refused, or the function fails.
            CompileError: the function has an op that is not supported.
            UsageError: `threads` is not an integer, or negative.
        """
        if threads is not None:
            thread_count(threads)
        return self.function.nesting.nested_results(self.leaves())

    def leaves(self) -> tuple[Any, ...]:
        """Runs the call; returns the results, elements of tuples one by one."""
        live = Objects(self._objects)
        return tuple(
            live.get(int(value)) if result.kind == KIND else value
            for result, value in zip(self.function.results, self._run(live), strict=True)
        )

    def _run(self, live: Objects) -> tuple[Any, ...]:
        function = self.function
        signature, code = function._signature, function.module._code
        passed = function._own.nested_arguments(self._arguments)
        frame = Frame(code, signature, symbols=signature.bind(passed))

        def run() -> list[Any]:
            context = function.module._context
            with context, ir.Location.unknown(), np.errstate(all="ignore"), holding(live):
                return frame.run(signature.function.entry_block, passed)

        try:
            made = on_large_stack(run) if code.recursion.is_reached(function.name) else run()
        except Raised as raised:
            raise raised.error from None
        results = function._own.flat_results(made)
        if any(argument.inout for argument in function.arguments):
            # A result may be the old contents of an argument that another result updates.
            results = [
                value.copy() if isinstance(value, np.ndarray) else value for value in results
            ]
        return tuple(self._result(index, value) for index, value in enumerate(results))

    def _result(self, index: int, value: Any) -> Any:
        result, buffer = self.function.results[index], self._buffers[index]
        if result.alias is not None:
            own = self._arguments[result.alias]
            if buffer is not None and self._targets[index].ctypes.data != own.ctypes.data:
                raise ExecutionError(
                    f"result {index}: is an argument updated in place, so no buffer of its own is "
                    "expected"
                )
            self._arguments[result.alias][...] = value
            return self.values[result.alias]
        if result.kind == "object":
            if buffer is not None:
                raise ExecutionError(f"result {index}: is open, and has no buffer")
            return _plain(value, index)
        if result.kind == "shape":
            value = np.array(value, np.int64)
        elif result.kind == "scalar":
            value = np.array(value, stored_dtype(result.dtype))
        if buffer is not None:
            target = self._targets[index]
            if target.shape != value.shape:
                want, got = list(value.shape), list(target.shape)
                raise ExecutionError(f"result {index}: dims are {got}, but {want} are expected")
            target[...] = value
            return buffer
        if result.kind == "scalar":
            return number(value, result.dtype == "bf16")
        if result.kind == "shape":
            return tuple(value.tolist())
        copy = np.array(value, order="C")
        packed = packed_dtype(result.dtype)
        return copy if packed is None else copy.view(packed)


def _plain(value: Any, index: int) -> Any:
    """A value of an open annotation as Python gets it; raises ExecutionError for a function."""
    if isinstance(value, tuple):
        return tuple(_plain(each, index) for each in value)
    if isinstance(value, np.ndarray):
        return np.array(value, order="C")
    if isinstance(value, int | float | bool | np.generic):
        return value.item() if isinstance(value, np.generic) else value
    raise ExecutionError(f"result {index}: is a function, which only private functions return")


def _aliases(
    inputs: Sequence[ir.Type], results: Sequence[ir.Type], inout: Mapping[int, int]
) -> dict[int, int]:
    """Maps each leaf of a result that is an argument updated in place to that of the argument."""
    first_input, first_result = (
        list(accumulate((len(leaf_types(type_)) for type_ in types), initial=0))
        for types in (inputs, results)
    )
    return {
        first_result[result] + offset: first_input[argument] + offset
        for result, argument in inout.items()
        if result < len(results)
        for offset in range(len(leaf_types(results[result])))
    }


def _label(function: Function, index: int) -> str:
    """The name of an array in messages; indices of results follow those of arguments."""
    count = len(function.arguments)
    if index >= count:
        return f"result {index - count}"
    return f"argument {index} '{function.arguments[index].name}'"


def _span(array: np.ndarray, is_written: bool, index: int) -> Span:
    begin = array.ctypes.data
    return begin, begin + array.nbytes, is_written, index


def _of(result: Result) -> tuple[str, str, Any]:
    """What a buffer of the result is; that of a shape is a tensor."""
    if result.kind == "shape":
        return "tensor", "i64", (None,)
    return result.kind, result.dtype, result.dims


def _described(annotation: Annotation) -> tuple[str, str, Any]:
    """Kind, element type and dims, for `Argument`."""
    if isinstance(annotation, ShapeValueType):
        return "shape", "i64", _dims(shape_value_dims(annotation))
    if isinstance(annotation, HostObjectType):
        return KIND, "i64", ()
    if isinstance(annotation, TensorType):
        return "tensor", str(annotation.element), _dims(annotation.dims)
    if isinstance(annotation, ir.IntegerType | ir.IndexType | ir.FloatType):
        return "scalar", str(annotation), ()
    return "object", str(annotation), None


def _dims(dims: Sequence[Dim] | None) -> tuple[int | str | None, ...] | None:
    if dims is None:
        return None
    return tuple(d if d is None else str(d) if d.value is None else d.value for d in dims)


class _Memory:
    """An array interface, and the object that owns its memory."""

    def __init__(self, interface: dict[str, Any], keeps: object) -> None:
        self.__array_interface__, self._keeps = interface, keeps


_OPEN = ("!graph.any_element", "!graph.object")
"""What arguments are said to be of if nothing is known of their elements, or of them at all."""


def _told(value: Any, argument: Argument, where: str) -> Argument:
    """An open argument as the value that is passed tells; raises ExecutionError for others."""
    if argument.kind == "object" and type(value) in (int, np.int64):
        return Argument(argument.name, "scalar", "index", (), False)
    dtype = getattr(value, "dtype", None)
    names = [name for name, each in STORED.items() if each == dtype and name in _TELLING]
    if not isinstance(value, np.ndarray) or not names:
        got = type(value).__name__ if dtype is None else f"an array of {dtype}"
        raise ExecutionError(f"{where}: an array or an integer is expected, but got {got}")
    return Argument(argument.name, "tensor", names[0], argument.dims, argument.inout)


_TELLING = ("f64", "f32", "f16", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
"""Elements that the dtype of an array tells."""


def _read(value: Any, argument: Argument, where: str) -> Any:
    """A view of an argument, read-only unless it is updated; integers of a shape.

    Raises ExecutionError if it is not an array of the annotation's type and rank.
    """
    if argument.dtype in _OPEN:
        argument = _told(value, argument, where)
    tensor = DLTensor()
    try:
        keeps = describe(tensor, value, argument.slot())
        dtype = stored_dtype(argument.dtype)
    except (TensorError, UnknownElement) as error:
        raise ExecutionError(f"{where}: {error}") from error
    shape = tuple(tensor.shape[: tensor.ndim])
    code = type_code(argument.dtype, dtype)
    if (tensor.code, tensor.bits) != (code, 8 * dtype.itemsize):
        got = getattr(value, "dtype", type(value).__name__)
        want = dtype_name(argument.dtype) or dtype.name
        raise ExecutionError(f"{where}: dtype is {got}, but {want} is expected")
    rank = 1 if argument.kind == "shape" else None if argument.dims is None else len(argument.dims)
    if rank is not None and len(shape) != rank:
        raise ExecutionError(f"{where}: rank is {len(shape)}, but {rank} is expected")
    if 0 in shape:
        array = np.empty(shape, dtype)
    else:
        data = (tensor.data, not argument.inout)
        array = np.asarray(
            _Memory({"version": 3, "data": data, "shape": shape, "typestr": dtype.str}, keeps)
        )
    if argument.kind == "scalar":
        return int(array) if argument.dtype == "index" else array[()]
    if argument.kind != "shape":
        return array
    if argument.dims is not None and len(array) != len(argument.dims):
        count = len(argument.dims)
        raise ExecutionError(f"{where}: number of values is {len(array)}, but {count} is expected")
    return tuple(map(int, array))
