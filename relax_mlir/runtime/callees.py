"""Python functions that compiled modules call."""

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.runtime.interface import INTERRUPTED
from relax_mlir.runtime.interrupts import give_up
from relax_mlir.runtime.objects import objects
from relax_mlir.runtime.tensors import (
    BFLOAT,
    BOOL,
    FLOAT,
    FLOAT8,
    INT,
    UINT,
    DLTensor,
    Slot,
    TensorError,
    describe,
    packed_dtype,
)

PYTHON = "python"
"""The provider of these functions in `lib.function`."""

OPAQUE = 3
"""The type code of a handle of 64 bits, and of the bytes of a text."""

_Callee = TypeVar("_Callee", bound=Callable[..., Any])


class _Registered(NamedTuple):
    """A function, and whether it is given the results to write to."""

    function: Callable[..., Any]
    writes: bool


_registered: dict[str, _Registered] = {}
_ELEMENTS = {INT: "i", UINT: "ui", FLOAT: "f", BFLOAT: "bf"}
_FLOAT8 = {code: element for element, code in FLOAT8.items()}
_KINDS = {INT: "i", UINT: "u", FLOAT: "f"}


def register_function(name: str, function: _Callee, *, writes: bool = False) -> _Callee:
    """Makes a Python function one that modules may call, and returns it.

        "lib.function"() {sym_name = "mine", c_symbol = "NAME", convention = "dlpack",
                          libraries = ["python"]} : () -> ()
        %y = "graph.call_dps_library"(%x) {callee = @mine, ...} : (!x) -> !y

    It is called with one array for each operand, which it must neither change nor keep, and returns
    an array or a number, several as a sequence, or None, as the call declares results. Operands and
    results that are `!graph.host_object` are any objects; a `str` for each of `lib.texts` follows
    the operands. It is looked up at each call, so that a later function of the name takes the place
    of an earlier one. What it raises ends the call, and is raised there.

    A function that `writes` is called with one more array for each result, which it fills, or, of
    `graph.call_library_inplace`, changes in place; what it returns is ignored.

    Raises:
        UsageError: the name is not text, or the function cannot be called.
    """
    if not isinstance(name, str) or not name:
        raise UsageError(f"expects a name for the function, but got {name!r}")
    if not callable(function):
        raise UsageError(f"expects a function for '{name}', but got {type(function).__name__}")
    _registered[name] = _Registered(function, writes)
    return function


FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.POINTER(DLTensor),
    ctypes.c_int32,
    ctypes.POINTER(DLTensor),
    ctypes.c_int32,
)
"""RxLibraryFunction."""


def address_of(name: str) -> int:
    """The address of a C function that calls the Python function of that name."""
    address = ctypes.cast(_trampoline(name), ctypes.c_void_p).value
    assert address is not None
    return address


@functools.cache
def _trampoline(name: str) -> Any:
    def call(args: Any, num_args: int, results: Any, num_results: int) -> int:
        try:
            _call(name, args[:num_args], results[:num_results])
        except BaseException as error:
            give_up(error)
            return INTERRUPTED
        return 0

    return FUNCTION(call)


def _call(name: str, args: Sequence[DLTensor], results: Sequence[DLTensor]) -> None:
    registered = _registered.get(name)
    if registered is None:
        raise ExecutionError(
            f"no Python function is called '{name}'; relax_mlir.register_function names one"
        )
    if registered.writes:
        if any(map(_is_handle, results)):
            raise ExecutionError(f"'{name}' is to return an object, but writes its results")
        registered.function(*map(_operand, args), *map(_array, results))
        return
    returned = registered.function(*map(_operand, args))
    is_object = len(results) == 1 and _is_handle(results[0])
    if is_object or (len(results) == 1 and not isinstance(returned, tuple | list)):
        returned = (returned,)
    values = () if returned is None else returned
    if not isinstance(values, tuple | list) or len(values) != len(results):
        count = len(values) if isinstance(values, tuple | list) else 1
        raise ExecutionError(f"'{name}' returns {count} values, but {len(results)} are expected")
    for index, (value, result) in enumerate(zip(values, results, strict=True)):
        try:
            _fill(result, value)
        except TensorError as error:
            raise ExecutionError(f"result {index} of '{name}': {error}") from None


def _fill(result: DLTensor, value: Any) -> None:
    """Copies a value to the memory of a result; raises TensorError if it is another kind."""
    if _is_handle(result):
        ctypes.c_int64.from_address(result.data).value = objects().add(value)
        return
    found, element = DLTensor(), _element(result)
    referent = describe(found, value, Slot(element))
    wanted, actual = _text(result), _text(found)
    if wanted != actual:
        raise TensorError(f"is {actual}, but {wanted} is expected")
    array = _array(result)
    if array.size:
        ctypes.memmove(result.data, found.data, array.nbytes)
    del referent


def _element(tensor: DLTensor) -> str:
    """MLIR's name of the element type."""
    if tensor.code == BOOL or tensor.code in _FLOAT8:
        return _FLOAT8.get(tensor.code, "i1")
    return f"{_ELEMENTS.get(tensor.code, '?')}{tensor.bits}"


def _text(tensor: DLTensor) -> str:
    return f"{_element(tensor)}[{', '.join(map(str, tensor.shape[: tensor.ndim]))}]"


def _array(tensor: DLTensor) -> np.ndarray:
    """The memory of a tensor, which must not outlive it."""
    shape = tuple(tensor.shape[: tensor.ndim])
    packed = packed_dtype(_element(tensor))
    if packed is not None:
        dtype = packed
    else:
        kind = "?" if tensor.code == BOOL else f"{_KINDS[tensor.code]}{tensor.bits // 8}"
        dtype = np.dtype(kind)
    if 0 in shape:
        return np.empty(shape, dtype)
    count = int(np.prod(shape, dtype=object)) * dtype.itemsize
    memory = (ctypes.c_char * count).from_address(tensor.data)
    return np.frombuffer(memoryview(memory), dtype).reshape(shape)


def _operand(tensor: DLTensor) -> Any:
    """What the function is called with: an array, an object, or a text."""
    if _is_handle(tensor):
        return objects().get(ctypes.c_int64.from_address(tensor.data).value)
    if tensor.code == OPAQUE:
        return ctypes.string_at(tensor.data, tensor.shape[0]).decode()
    return _read_only(tensor)


def _is_handle(tensor: DLTensor) -> bool:
    return tensor.code == OPAQUE and tensor.bits == 64


def _read_only(tensor: DLTensor) -> np.ndarray:
    array = _array(tensor)
    array.flags.writeable = False
    return array
