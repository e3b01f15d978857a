"""The results of a call: buffers, updated arguments, or new NumPy arrays that own their memory."""

import ctypes
import functools
from collections.abc import Callable, Sequence

import numpy as np

from relax_mlir.runtime.signature import Argument, Result
from relax_mlir.runtime.tensors import FLOAT8, packed_dtype


class Owner(functools.partial):
    """Calls the function that it is a partial of when it is deallocated.

    This runs no Python code, in which an interrupt could be raised and lost.
    """

    __array_interface__: dict[str, object]
    __del__ = functools.partial.__call__


class FreshResult:
    """A result that is allocated by each run of a call.

    An owner is made before the run. It owns the memory that the run allocates, whatever exception
    Python raises afterwards, until the last array that views the memory is gone.
    """

    def __init__(self, result: Result, release: Callable[[ctypes.Array], None]) -> None:
        self._release = release
        self._struct = ctypes.c_int64 * (2 + result.max_rank)  # RxFresh: data, ndim, dims
        self._typestr = typestr(result.dtype)
        self._is_bfloat16 = result.dtype == "bf16"
        self._packed = packed_dtype(result.dtype)
        self._is_scalar = result.kind == "scalar"
        self._is_shape = result.kind == "shape"

    def owner(self) -> Owner:
        """The owner of the memory that the next run allocates."""
        return Owner(self._release, self._struct())

    def value(self, owner: Owner) -> "np.ndarray | bool | int | float | tuple[int, ...]":
        """The array of what a run has allocated; a number for a scalar, integers for a shape.

        Arrays of bf16 have the dtype `ml_dtypes.bfloat16` if that package is installed, else uint16
        with the same bits; of floats of 8 bits likewise, else uint8.
        """
        words = owner.args[0][:]
        owner.__array_interface__ = {
            "version": 3,
            "data": (words[0], False),
            "shape": tuple(words[2 : 2 + words[1]]),
            "typestr": self._typestr,
        }
        array = np.asarray(owner)
        if self._is_scalar:
            return number(array, self._is_bfloat16)
        if self._is_shape:
            return tuple(array.tolist())
        return array if self._packed is None else array.view(self._packed)


def number(array: np.ndarray, is_bfloat16: bool = False) -> "bool | int | float":
    """The element of an array of rank 0; the bits of a bfloat16 may be stored as uint16."""
    if is_bfloat16:
        array = (np.asarray(array, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array.item()


UNWRITTEN = ctypes.c_int64()
"""In place of an RxFresh, for a result that is an argument updated in place."""


class Plan:
    """The source of each result of a call: a new array, a buffer, or an argument."""

    def __init__(
        self, fresh: Sequence[FreshResult], results: Sequence[Result], lent: Sequence[int]
    ):
        free = [i for i in range(len(results)) if i not in lent]
        self.fresh = [(i, fresh[i]) for i in free if results[i].alias is None]
        self.updated = [(i, alias) for i in free if (alias := results[i].alias) is not None]
        self._structs: list[int | None] = [None] * len(results)
        for i in free:
            self._structs[i] = ctypes.addressof(UNWRITTEN)
        self._structs_type = ctypes.c_void_p * len(results)

    def owners(self) -> tuple[list[Owner], ctypes.Array]:
        """Owners of the memory that the next run allocates, and their RxFresh pointers."""
        owners = [fresh.owner() for _, fresh in self.fresh]
        if len(owners) == len(self._structs) == 1:
            return owners, self._structs_type(ctypes.addressof(owners[0].args[0]))
        rooms = self._structs.copy()
        for (index, _), owner in zip(self.fresh, owners, strict=True):
            rooms[index] = ctypes.addressof(owner.args[0])
        return owners, self._structs_type(*rooms)

    def values(
        self, buffers: Sequence[object], arguments: Sequence[object], owners: Sequence[Owner]
    ) -> object:
        """The value that a run returns."""
        if len(buffers) == len(owners) == 1:
            return self.fresh[0][1].value(owners[0])
        values = list(buffers)
        for index, argument in self.updated:
            values[index] = arguments[argument]
        for (index, fresh), owner in zip(self.fresh, owners, strict=True):
            values[index] = fresh.value(owner)
        return values[0] if len(values) == 1 else tuple(values) or None


def absent(argument: Argument) -> np.ndarray:
    """What is passed for an optional argument that is left out: an array without elements."""
    return np.zeros((0,) * len(argument.dims or ()), typestr(argument.dtype))


def typestr(element: str) -> str:
    """NumPy's name of the storage type of an MLIR element type."""
    if element in ("i1", "bf16", "index"):
        return {"i1": "|b1", "bf16": "<u2", "index": "<i8"}[element]
    if element in FLOAT8:
        return "|u1"
    kind = element.rstrip("0123456789")
    size = int(element.removeprefix(kind)) // 8
    return ("|" if size == 1 else "<") + {"f": "f", "ui": "u"}.get(kind, "i") + str(size)
