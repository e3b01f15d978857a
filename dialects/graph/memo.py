"""Annotations and rules of ops, remembered within the run of a pipeline.

Passes ask the same of the same types again: layers of a model are alike, and each of infer,
verify and name applies the rule of every op. A rule sees annotations and attributes alone, so its
results, and what it takes for granted, follow from types and attributes.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from relax_mlir.bindings import ir

from .assumed import Assumption, note, noted

if TYPE_CHECKING:
    from .types import TensorType

Result = TypeVar("Result")


@dataclass
class Memo:
    """What is known of types and ops of one context: it keeps the context alive."""

    annotations: dict[ir.Type, "TensorType"] = field(default_factory=dict)
    types: dict["TensorType", ir.Type] = field(default_factory=dict)
    rules: dict[Hashable, tuple[Any, list[Assumption]]] = field(default_factory=dict)


_MEMO: ContextVar[Memo | None] = ContextVar("memo", default=None)


@contextmanager
def remembering(memo: Memo | None = None) -> Iterator[None]:
    """Remembers what is asked of types and ops within the block, in `memo` if one is given."""
    token = _MEMO.set(Memo() if memo is None else memo)
    try:
        yield
    finally:
        _MEMO.reset(token)


def memo() -> Memo | None:
    """What is remembered here; None outside of `remembering`."""
    return _MEMO.get()


def recall(key: Hashable, rule: Callable[[], Result]) -> Result:
    """The result of `rule`, of which `key` tells all that it depends on; errors are not kept.

    What it takes for granted is noted each time.
    """
    known = _MEMO.get()
    if known is None:
        return rule()
    entry = known.rules.get(key)
    if entry is None:
        with noted() as assumed:
            result = rule()
        known.rules[key] = (result, assumed)
        return result
    note(entry[1])
    return entry[0]
