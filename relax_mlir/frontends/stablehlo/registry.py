"""The table of operators: functions by the names of ops and of custom calls."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from relax_mlir.bindings import ir

from ..complex import Pair
from ..known import Known

if TYPE_CHECKING:
    from .node import Node


Value: TypeAlias = "ir.Value | Known | Pair | tuple[Value, ...]"
"""What an op yields: a tensor, one that is known during import, a complex one, a tuple."""

Function: TypeAlias = "Callable[[Node], Value | tuple[Value, ...]]"


@dataclass(frozen=True)
class Entry:
    """How ops of a name are imported.

    `by_part`: what moves elements does so with real and imaginary parts alike. `elementwise`: one
    element of the result depends on one element of each operand. `takes_pairs`: complex operands.
    """

    function: Function
    by_part: bool = False
    elementwise: bool = False
    takes_pairs: bool = False


_table: dict[str, Entry] = {}
_of_quantized: dict[str, Function] = {}


def operator(
    *names: str, by_part: bool = False, elementwise: bool = False, takes_pairs: bool = False
) -> Callable[[Function], Function]:
    """Registers a function for ops, such as "add" of StableHLO, "chlo.erf" or "@a_custom_call"."""

    def register(function: Function) -> Function:
        for name in names:
            full = name if "." in name or name.startswith("@") else f"stablehlo.{name}"
            _table[full] = Entry(function, by_part, elementwise, takes_pairs)
        return function

    return register


def of_quantized(*names: str) -> Callable[[Function], Function]:
    """Registers a function for ops, without their dialect, that have quantised tensors.

    Others are functions of what only changes position, or of the floats that are meant.
    """

    def register(function: Function) -> Function:
        _of_quantized.update(dict.fromkeys(names, function))
        return function

    return register


def find(name: str) -> Entry | None:
    """The entry of ops such as "stablehlo.add"; None if there is none."""
    return _table.get(name)


def find_of_quantized(name: str) -> "Function | None":
    """The function of quantised tensors for ops such as "reduce"; None if there is none."""
    return _of_quantized.get(name)


def names() -> list[str]:
    """The names of all operators."""
    return sorted(_table)
