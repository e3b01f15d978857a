"""Where the results of a call come from; new ones are NumPy arrays that own their memory."""

import ctypes
import functools
from collections.abc import Callable, Sequence

import numpy as np

from relax_mlir.runtime.signature import Result
from relax_mlir.runtime.tensors import bfloat16


class Owner(functools.partial):
    """Calls what it is a partial of when it dies.

    No Python code is run for that, in which an interrupt could be raised, and lost.
    """

    __array_interface__: dict[str, object]
    __del__ = functools.partial.__call__


class FreshResult:
    """A result that is allocated by each run of a call.

    An owner is made before the run. It owns what the run allocates from then on, whatever happens
    in Python afterwards, until the last array that looks at the memory is gone.
    """

    def __init__(self, result: Result, release: Callable[[ctypes.Array], None]) -> None:
        self._release = release
        self._room = ctypes.c_int64 * (2 + result.room)  # RxFresh: data, ndim, dims
        self._typestr = _typestr(result.dtype)
        self._is_bfloat16 = result.dtype == "bf16"

    def owner(self) -> Owner:
        """The owner of what the next run allocates."""
        return Owner(self._release, self._room())

    def array(self, owner: Owner) -> np.ndarray:
        """The array of what a run has allocated.

        bf16 becomes `ml_dtypes.bfloat16` if that package is installed, else uint16 with the same
        bits.
        """
        words = owner.args[0][:]
        owner.__array_interface__ = {
            "version": 3,
            "data": (words[0], False),
            "shape": tuple(words[2 : 2 + words[1]]),
            "typestr": self._typestr,
        }
        array = np.asarray(owner)
        return array.view(bfloat16()) if self._is_bfloat16 else array


# In place of an RxFresh, for a result that is an argument updated in place.
_UNWRITTEN = ctypes.c_int64()


class Plan:
    """What a call does for its results: for each a new array, a buffer, or an argument."""

    def __init__(
        self, fresh: Sequence[FreshResult], results: Sequence[Result], lent: Sequence[int]
    ):
        free = [i for i in range(len(results)) if i not in lent]
        self.fresh = [(i, fresh[i]) for i in free if results[i].alias is None]
        self.updated = [(i, alias) for i in free if (alias := results[i].alias) is not None]
        self._rooms: list[int | None] = [None] * len(results)
        for i in free:
            self._rooms[i] = ctypes.addressof(_UNWRITTEN)
        self._rooms_type = ctypes.c_void_p * len(results)

    def owners(self) -> tuple[list[Owner], ctypes.Array]:
        """Owners of what the next run allocates, and where it writes that: RxFresh pointers."""
        owners = [fresh.owner() for _, fresh in self.fresh]
        if len(owners) == len(self._rooms) == 1:
            return owners, self._rooms_type(ctypes.addressof(owners[0].args[0]))
        rooms = self._rooms.copy()
        for (index, _), owner in zip(self.fresh, owners, strict=True):
            rooms[index] = ctypes.addressof(owner.args[0])
        return owners, self._rooms_type(*rooms)

    def values(
        self, buffers: Sequence[object], arguments: Sequence[object], owners: Sequence[Owner]
    ) -> object:
        """What a run returns."""
        if len(buffers) == len(owners) == 1:
            return self.fresh[0][1].array(owners[0])
        values = list(buffers)
        for index, argument in self.updated:
            values[index] = arguments[argument]
        for (index, fresh), owner in zip(self.fresh, owners, strict=True):
            values[index] = fresh.array(owner)
        return values[0] if len(values) == 1 else tuple(values) or None


def _typestr(element: str) -> str:
    """NumPy's name of what elements of a type of MLIR are stored as."""
    if element in ("i1", "bf16", "index"):
        return {"i1": "|b1", "bf16": "<u2", "index": "<i8"}[element]
    kind = element.rstrip("0123456789")
    size = int(element.removeprefix(kind)) // 8
    return ("|" if size == 1 else "<") + {"f": "f", "ui": "u"}.get(kind, "i") + str(size)
