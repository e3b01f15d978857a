"""The table of operators: functions by domain, name and version."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from relax_mlir.bindings import ir

from ..known import Known

if TYPE_CHECKING:
    from .node import Node

Value: TypeAlias = ir.Value | Known | list | None
"""A tensor, an array known during import, a sequence, or nothing, which is absent."""

Function: TypeAlias = Callable[["Node"], Any]
"""Builds what a node computes: its one output, or a tuple of them."""

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class _Row:
    since: int
    until: int
    function: Function


_table: dict[tuple[str, str], list[_Row]] = {}


def operator(
    *names: str, since: int = 1, until: int = 1 << 30, domain: str = ""
) -> Callable[[Function], Function]:
    """Registers a function for operators, of the opset versions from `since` to `until`."""

    def register(function: Function) -> Function:
        for name in names:
            _table.setdefault((domain, name), []).append(_Row(since, until, function))
        return function

    return register


def find(domain: str, name: str, version: int) -> Function | None:
    """The function for an operator of an opset version; None if there is none."""
    domain = "" if domain == "ai.onnx" else domain
    for row in _table.get((domain, name), ()):
        if row.since <= version <= row.until:
            return row.function
    return None


def names(domain: str = "") -> Sequence[str]:
    """The names of all operators of a domain."""
    return sorted(name for own, name in _table if own == domain)
