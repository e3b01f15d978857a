"""Rewriting: patterns as plain functions, snapshots and copies of ops, safe erasure, names.

A pattern takes an op of the class that annotates its parameter, and returns the replacement, or
None for no match; a pattern that returns None must not have built an op.

    def join_chain(op: ReshapeOp) -> ir.Value | None: ...

    rewrite_greedily(module, join_chain)
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar, get_type_hints, overload

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import MatchCastOp, annotation_of

Replacement: TypeAlias = ir.Value | ir.OpView | ir.Operation | Sequence[ir.Value]
Pattern = Callable[..., Replacement | None]
AnyOp = TypeVar("AnyOp", bound=ir.OpView)

MAX_REWRITES_PER_OP = 64
"""The limit of the greedy driver, per op at the start; more means patterns that cycle."""


def walk(root: ir.Operation | ir.OpView | ir.Module) -> Iterator[ir.Operation]:
    """Visits every op below `root` and then `root`, each after the ops nested in it.

    Walks lazily: use `walk_ops` if the loop changes the IR.
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

    An op comes after the ops nested in it, so erasing each op in turn is safe. Without classes,
    all ops.
    """
    ops: list[AnyOp] = []
    of_classes: dict[str, bool] = {}  # by the name of an op, which is quicker to get than its view

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if name not in of_classes:
            of_classes[name] = not classes or isinstance(op.opview, classes)
        if of_classes[name]:
            ops.append(op.opview)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return ops


def is_unused(op: ir.Operation | ir.OpView) -> bool:
    """Whether no result of the op is used."""
    return all(next(iter(result.uses), None) is None for result in op.operation.results)


def identity(op: ir.Operation) -> int:
    """A key of an op with results that stays when its operands change, as its hash does not."""
    return hash(op.results[0])


def safe_erase(op: ir.Operation | ir.OpView) -> None:
    """Erases an op; the bindings crash if an op with uses is erased.

    Raises ValueError if a result is still used.
    """
    if not is_unused(op):
        raise ValueError(f"cannot erase '{op.operation.name}': its results are still used")
    op.operation.erase()


def erase_unused_makers(values: Iterable[ir.Value]) -> None:
    """Erases the ops that make values, in this order, if nothing uses them; a value may recur."""
    for value in dict.fromkeys(values):
        if not isinstance(value.owner, ir.Block) and is_unused(value.owner):
            safe_erase(value.owner)


def replace(op: ir.Operation | ir.OpView, replacement: Replacement) -> None:
    """Replaces the op's results by values, and erases the op.

    Raises ValueError if there are more or fewer values than results.
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
    """The values of a replacement: itself, an op's results, or a sequence's items."""
    if isinstance(replacement, ir.Value):
        return [replacement]
    if isinstance(replacement, ir.Operation | ir.OpView):
        return list(replacement.operation.results)
    return list(replacement)


class SymbolNames:
    """The symbol names in the body of a module; makes new unique ones."""

    def __init__(self, block: ir.Block) -> None:
        self._taken = {
            op.attributes["sym_name"].value
            for op in block.operations
            if "sym_name" in op.attributes
        }

    def fresh(self, base: str) -> str:
        """`base`, or else the first of `base_1`, `base_2`, ... that is unused; used afterwards."""
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name


def rewrite_walk(root: ir.Operation | ir.OpView | ir.Module, *patterns: Pattern) -> int:
    """Tries the patterns once on each op present at the start; returns the count of replaced ops.

    New ops are built before the replaced op, at its location, and are not visited. A pattern may
    erase ops only if they come before its own in program order.
    """
    table = _by_class(patterns)
    return sum(_rewrite(op, table) for op in walk_ops(root, *table))


def rewrite_greedily(root: ir.Operation | ir.OpView | ir.Module, *patterns: Pattern) -> int:
    """Applies the patterns until none matches; returns the count of replaced ops.

    Repeats `rewrite_walk` until it changes nothing.

    Raises RuntimeError, a bug in the patterns, if they do not converge.
    """
    table = _by_class(patterns)
    budget = MAX_REWRITES_PER_OP * (len(walk_ops(root, *table)) + 1)
    total = 0
    while changed := rewrite_walk(root, *patterns):
        total += changed
        if total > budget:
            names = ", ".join(pattern.__name__ for pattern in patterns)
            raise RuntimeError(f"the patterns {names} did not converge in {total} rewrites")
    return total


def defining_op(value: ir.Value, kind: type[AnyOp]) -> AnyOp | None:
    """The op that defines a value if it is of the class `kind`; None for block arguments."""
    owner = value.owner
    if isinstance(owner, ir.Block) or not isinstance(owner.opview, kind):
        return None
    return owner.opview


def uncast(value: ir.Value) -> ir.Value:
    """What a chain of casts begins with: the same value."""
    while (cast := defining_op(value, MatchCastOp)) is not None:
        value = cast.input
    return value


def is_used_once(value: ir.Value) -> bool:
    """Whether a value has exactly one use."""
    return len(list(value.uses)) == 1


def retyped(value: ir.Value, type_: ir.Type) -> ir.Value:
    """The value under another type that it is known to have: itself, or a match_cast of it."""
    return value if value.type == type_ else MatchCastOp.build(value, annotation_of(type_)).result


def captured_values(op: ir.OpView) -> list[ir.Value]:
    """The values from outside that ops in the regions of an op use, in order of first use."""
    inside: set[ir.Value] = set()
    used: dict[ir.Value, None] = {}

    def visit(block: ir.Block) -> None:
        inside.update(block.arguments)
        for each in block.operations:
            used.update(dict.fromkeys(each.operation.operands))
            inside.update(each.operation.results)
            for region in each.operation.regions:
                for inner in region.blocks:
                    visit(inner)

    for region in op.operation.regions:
        for block in region.blocks:
            visit(block)
    return [value for value in used if value not in inside]


def copy_op(op: ir.Operation | ir.OpView, values: dict[ir.Value, ir.Value]) -> None:
    """Copies an op to the insertion point, with other operands, inside of it too.

    `values` maps operands to those of the copy, and gets the results.
    """
    copy = op.operation.clone().operation
    for each in walk_ops(copy):
        for index, value in enumerate(each.operation.operands):
            if value in values:
                each.operation.operands[index] = values[value]
    values.update(zip(op.operation.results, copy.results, strict=True))


def alone(op: ir.Operation | ir.OpView) -> ir.Module:
    """A new module, at the op's location, that has only a copy of the op."""
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
