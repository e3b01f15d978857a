"""Rewriting by hand: patterns as plain functions, snapshots and copies of ops, safe erasure, names.

A pattern takes an op, of the class that its parameter is annotated with, and returns what replaces
it, or None for no match; a pattern that returns None must not have built an op.

    def join_chain(op: ReshapeOp) -> ir.Value | None: ...

    rewrite_greedily(module, join_chain)
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar, get_type_hints, overload

from relax_mlir.bindings import ir

Replacement: TypeAlias = ir.Value | ir.OpView | ir.Operation | Sequence[ir.Value]
Pattern = Callable[..., Replacement | None]
AnyOp = TypeVar("AnyOp", bound=ir.OpView)

MAX_REWRITES_PER_OP = 64
"""Rewrites a greedy driver may make for each op it starts with; more means patterns that cycle."""


def walk(root: ir.Operation | ir.OpView | ir.Module) -> Iterator[ir.Operation]:
    """Visits every op below `root` and then itself, each after the ops inside it.

    Looks at the IR lazily: use `walk_ops` when the loop changes it.
    """
    op = root.operation
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield from walk(child)
    yield op


@overload
def walk_ops(root: ir.Operation | ir.OpView | ir.Module) -> list[ir.OpView]: ...


@overload
def walk_ops(root: ir.Operation | ir.OpView | ir.Module, *classes: type[AnyOp]) -> list[AnyOp]: ...


def walk_ops(root: ir.Operation | ir.OpView | ir.Module, *classes: type[AnyOp]) -> list[AnyOp]:
    """A snapshot of the ops of the given classes below `root`, in program order.

    An op that holds regions comes after what it holds, so erasing each op in turn is safe. With no
    class given, every op.
    """
    found: list[AnyOp] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        view = op.opview
        if not classes or isinstance(view, classes):
            found.append(view)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return found


def is_unused(op: ir.Operation | ir.OpView) -> bool:
    """Whether no result of the op is used."""
    return all(next(iter(result.uses), None) is None for result in op.operation.results)


def safe_erase(op: ir.Operation | ir.OpView) -> None:
    """Erases an op; the bindings crash the process if one that is used is erased.

    Raises ValueError if a result is still used.
    """
    if not is_unused(op):
        raise ValueError(f"cannot erase '{op.operation.name}': its results are still used")
    op.operation.erase()


def replace(op: ir.Operation | ir.OpView, replacement: Replacement) -> None:
    """Puts the values in place of the op's results, and erases the op.

    Raises ValueError if the number of values differs from the number of results.
    """
    values, results = values_of(replacement), list(op.operation.results)
    if len(values) != len(results):
        raise ValueError(
            f"cannot replace the {len(results)} results of '{op.operation.name}' "
            f"by {len(values)} values"
        )
    for result, value in zip(results, values, strict=True):
        result.replace_all_uses_with(value)
    op.operation.erase()


def values_of(replacement: Replacement) -> list[ir.Value]:
    """The values that a replacement stands for: itself, an op's results, or a sequence's items."""
    if isinstance(replacement, ir.Value):
        return [replacement]
    if isinstance(replacement, ir.Operation | ir.OpView):
        return list(replacement.operation.results)
    return list(replacement)


class SymbolNames:
    """The names that symbols in the body of a module have, and new ones beside them."""

    def __init__(self, block: ir.Block) -> None:
        self._taken = {
            op.attributes["sym_name"].value
            for op in block.operations
            if "sym_name" in op.attributes
        }

    def fresh(self, base: str) -> str:
        """`base`, or else the first of `base_1`, `base_2`, ... that is free; taken from then on."""
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name


def rewrite_walk(root: ir.Operation | ir.OpView | ir.Module, *patterns: Pattern) -> int:
    """Tries the patterns once on each op there is at the start; returns how many were replaced.

    New ops go in front of the op replaced, take its location, and are not visited. A pattern may
    erase ops only if they come before its own in program order.
    """
    table = _by_class(patterns)
    return sum(_rewrite(op, table) for op in walk_ops(root, *table))


def rewrite_greedily(root: ir.Operation | ir.OpView | ir.Module, *patterns: Pattern) -> int:
    """Applies the patterns until none matches; returns how many ops were replaced.

    Sweeps over the IR as `rewrite_walk` does, until a sweep changes nothing.

    Raises RuntimeError, a bug in the patterns, if they do not come to an end.
    """
    table = _by_class(patterns)
    budget = MAX_REWRITES_PER_OP * (len(walk_ops(root, *table)) + 1)
    total = 0
    while changed := rewrite_walk(root, *patterns):
        total += changed
        if total > budget:
            names = ", ".join(pattern.__name__ for pattern in patterns)
            raise RuntimeError(f"the patterns {names} did not come to an end in {total} rewrites")
    return total


def defining_op(value: ir.Value, kind: type[AnyOp]) -> AnyOp | None:
    """The op that makes a value if it is of that class; None for others and block arguments."""
    owner = value.owner
    if isinstance(owner, ir.Block) or not isinstance(owner.opview, kind):
        return None
    return owner.opview


def alone(op: ir.Operation | ir.OpView) -> ir.Module:
    """A new module, at the op's location, that holds a copy of the op and nothing else."""
    module = ir.Module.create(op.location)
    with ir.InsertionPoint(module.body):
        op.operation.clone()
    return module


def _by_class(patterns: Sequence[Pattern]) -> dict[type[ir.OpView], list[Pattern]]:
    table: dict[type[ir.OpView], list[Pattern]] = {}
    for pattern in patterns:
        op_class = next(iter(get_type_hints(pattern).values()))
        table.setdefault(op_class, []).append(pattern)
    return table


def _rewrite(op: ir.OpView, table: dict[type[ir.OpView], list[Pattern]]) -> bool:
    for pattern in table[type(op)]:
        with ir.InsertionPoint(op), op.location:
            replacement = pattern(op)
        if replacement is not None:
            replace(op, replacement)
            return True
    return False
