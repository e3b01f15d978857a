"""The tables of rules: functions by the names of the ops that they convert."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from relax_mlir.bindings import ir

if TYPE_CHECKING:
    from .function import Conversion

Rule: TypeAlias = Callable[["Conversion", ir.Operation], None]
"""Builds what an op computes, and defines the op's results."""

_table: dict[str, Rule] = {}


def converts(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule for ops, such as "tensor.pad"."""

    def register(rule: Rule) -> Rule:
        _table.update(dict.fromkeys(names, rule))
        return rule

    return register


def rule_of(name: str) -> Rule | None:
    """The rule for an op; None if there is none."""
    return _table.get(name)


def converted_ops(dialect: str) -> list[str]:
    """The names of the ops of a dialect that have rules."""
    return sorted(name for name in _table if name.startswith(f"{dialect}."))
