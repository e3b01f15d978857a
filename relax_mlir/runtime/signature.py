"""The signature of a compiled function, read from the metadata of its module."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relax_mlir.runtime.objects import KIND
from relax_mlir.runtime.tensors import MAX_RANK, Slot

Dims = tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class Argument:
    """An argument of a compiled function.

    `kind` is "tensor", "shape", "scalar" or "host_object", `dtype` MLIR's element type, `dims`
    integers and expressions over symbols, None for one that is unknown (all None: any rank). An
    `inout` argument is updated in place. One `on_host` is there even if the module has a device.
    """

    name: str
    kind: str
    dtype: str
    dims: Dims
    inout: bool
    on_host: bool = False

    def __str__(self) -> str:
        inout = "inout " if self.inout else ""
        return f"{inout}{self.name}: {_described(self)}"

    def slot(self) -> Slot:
        """The checks that the runtime makes on it."""
        return Slot(self.dtype, is_shape=self.kind == "shape", is_written=self.inout)


@dataclass(frozen=True)
class Result:
    """A result of a compiled function; `alias` is the index of the argument that it is, or None."""

    kind: str
    dtype: str
    dims: Dims
    alias: int | None
    on_host: bool = False

    def __str__(self) -> str:
        return _described(self)

    @property
    def max_rank(self) -> int:
        """The rank, or the greatest possible one if it is unknown."""
        if self.kind == "shape":
            return 1
        return MAX_RANK if self.dims is None else len(self.dims)


def arguments_of(signature: Mapping[str, Any]) -> tuple[Argument, ...]:
    """The arguments of a function that the metadata describes."""
    return tuple(
        Argument(
            arg["name"],
            arg["kind"],
            arg["dtype"],
            _dims(arg["dims"]),
            arg["inout"],
            arg.get("on_host", False),
        )
        for arg in signature["arguments"]
    )


def results_of(signature: Mapping[str, Any]) -> tuple[Result, ...]:
    """The results of a function that the metadata describes."""
    return tuple(
        Result(
            result["kind"],
            result["dtype"],
            _dims(result["dims"]),
            result["alias"],
            result.get("on_host", False),
        )
        for result in signature["results"]
    )


def _described(value: Argument | Result) -> str:
    """How a signature shows what is passed: a scalar as its type, others with dims."""
    if value.kind == KIND:
        return "object"
    kind = "shape" if value.kind == "shape" else value.dtype
    return kind if value.kind == "scalar" else f"{kind}{_brackets(value.dims)}"


def _brackets(dims: Dims) -> str:
    known = () if dims is None else ("?" if dim is None else str(dim) for dim in dims)
    return "[...]" if dims is None else f"[{', '.join(known)}]"


def _dims(dims: Sequence[int | str | None] | None) -> Dims:
    return None if dims is None else tuple(dims)
