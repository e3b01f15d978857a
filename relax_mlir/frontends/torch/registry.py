"""The table of operators: functions by the names of PyTorch's."""

from collections.abc import Callable
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]
"""Takes a `Call` and the operands of a node, and builds what it computes."""

_table: dict[str, Function] = {}


def operator(*names: str) -> Callable[[Function], Function]:
    """Registers a function for operators, such as "add.Tensor" of `aten`."""

    def register(function: Function) -> Function:
        for name in names:
            _table[name if "::" in name else f"aten::{name}"] = function
        return function

    return register


def find(name: str) -> Function | None:
    """The function for an operator, such as "aten::add.Tensor"; None if there is none."""
    return _table.get(name)


def names() -> list[str]:
    """The names of all operators."""
    return sorted(_table)
