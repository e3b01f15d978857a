"""Replaces what a pattern describes by values that a function builds."""

from collections.abc import Callable

from relax_mlir.analysis.purity import is_pure_operator
from relax_mlir.bindings import ir
from relax_mlir.rewriting import identity, is_unused, safe_erase, walk_ops

from .matching import Match, match
from .pattern import Pattern

Rewrite = Callable[[Match], ir.Value | None]
"""Builds the replacement before the matched value's op, at its location; None to leave it."""


def rewrite_matches(
    root: ir.Operation | ir.OpView | ir.Module, pattern: Pattern, rewrite: Rewrite
) -> int:
    """Replaces each matched value below `root`, users before producers; returns how many.

    Ops that are unused after that are erased. New ops are not looked at. A function that returns
    None must not have built an op, and none may use the matched value itself.

    Raises UsageError as `matches` does.
    """
    erased: set[int] = set()
    count = 0
    ops = [each.operation for each in walk_ops(root) if len(each.operation.results)]
    for key, op in reversed([(identity(op), op) for op in ops]):
        if key in erased:
            continue
        for value in list(op.results):
            matched = match(pattern, value)
            new = None if matched is None else _built(rewrite, matched)
            if matched is not None and new is not None:
                value.replace_all_uses_with(new)
                count += 1
                erased |= erase_unused(matched)
                break
    return count


def _built(rewrite: Rewrite, matched: Match) -> ir.Value | None:
    op = matched.value.owner
    with ir.InsertionPoint(op), op.location:
        return rewrite(matched)


def erase_unused(matched: Match) -> set[int]:
    """Erases the pure ops of a match that nothing uses any more; returns their identities."""
    erased: set[int] = set()
    waiting = [(identity(op), op) for op in (*matched.ops, *matched.constants)]
    changed = True
    while changed:
        changed = False
        for key, op in waiting:
            if key not in erased and is_pure_operator(op.opview) and is_unused(op):
                erased.add(key)
                safe_erase(op)
                changed = True
    return erased
