"""The tables of operators: functions by the names of PyTorch's."""

from collections.abc import Callable
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]
"""Takes a `Call` and the operands of a node, and builds what it computes."""

_table: dict[str, Function] = {}
_of_pairs: dict[str, Function] = {}


def operator(
    *names: str, pairs: Callable[[Function], Function] | None = None
) -> Callable[[Function], Function]:
    """Registers a function for operators, such as "add.Tensor" of `aten`.

    `pairs` makes of it a function of complex tensors, as in `adapters.py`.
    """

    def register(function: Function) -> Function:
        _table.update({_full(name): function for name in names})
        if pairs is not None:
            of_pairs(*names)(pairs(function))
        return function

    return register


def of_pairs(*names: str) -> Callable[[Function], Function]:
    """Registers a function for operators that have a complex tensor as operand or result."""

    def register(function: Function) -> Function:
        _of_pairs.update({_full(name): function for name in names})
        return function

    return register


def _full(name: str) -> str:
    return name if "::" in name else f"aten::{name}"


def find(name: str, is_complex: bool = False) -> Function | None:
    """The function for an operator, such as "aten::add.Tensor"; None if there is none."""
    return (_of_pairs if is_complex else _table).get(name)


def names() -> list[str]:
    """The names of all operators."""
    return sorted(_table)
