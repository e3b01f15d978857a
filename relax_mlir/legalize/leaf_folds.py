"""Loops of a leaf that only combine values, as reductions over one more axis of the grid.

    %s = scf.for %p = 0 to %k iter_args(%acc = 0.0) { yield %acc + %a[%i, %p] * %b[%p, %j] }
      ->
    linalg.generic over the grid and p, which has the schedules of operators' sums and products

Values are combined in any order, as those of operators are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from relax_mlir.bindings import func, ir, scf, tensor
from relax_mlir.dialects.tir import GridSizeOp, NodeIdOp
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, as_expr

COMBINERS = {
    "arith.addf": 0.0, "arith.mulf": 1.0, "arith.maximumf": -inf, "arith.minimumf": inf,
    "arith.addi": 0, "arith.muli": 1, "arith.ori": 0, "arith.xori": 0, "arith.andi": -1,
}  # fmt: skip
"""The ops that combine in any order, each with the value that changes nothing."""


@dataclass(frozen=True)
class Fold:
    """Nested loops that combine a term of each round; `extents` are how many rounds they have."""

    loops: tuple[scf.ForOp, ...]
    combiner: ir.OpView
    term: ir.Value
    extents: tuple[Expr, ...]

    @property
    def start(self) -> ir.Value:
        """What the terms are combined with."""
        return self.loops[0].initArgs[0]

    @property
    def neutral(self) -> float:
        """The value that changes nothing."""
        return COMBINERS[self.combiner.operation.name]

    @property
    def starts_at_constant(self) -> bool:
        """Whether all instances start at one constant."""
        owner = self.start.owner
        return not isinstance(owner, ir.Block) and owner.name == "arith.constant"

    def combine(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Writes the op that combines two values."""
        name = self.combiner.operation.name
        attributes = {key: self.combiner.attributes[key] for key in self.combiner.attributes}
        return ir.Operation.create(name, [a.type], [a, b], attributes).result


def fold_of(leaf: func.FuncOp, extent_of: Callable[[ir.Value], Expr | None]) -> Fold | None:
    """The first loops of a leaf that are a fold; `extent_of` tells bounds that instances share."""
    for op in leaf.entry_block.operations:
        if isinstance(op, scf.ForOp) and (made := _read(_nest(op), extent_of)) is not None:
            return made
    return None


def _nest(loop: scf.ForOp) -> list[scf.ForOp]:
    """A loop, and the loops in it that do nothing but go on with what it carries."""
    loops = [loop]
    while (inner := _only_loop(loops[-1])) is not None:
        loops.append(inner)
    return loops


def _only_loop(loop: scf.ForOp) -> scf.ForOp | None:
    *body, terminator = list(loop.body.operations)
    inner = [op for op in body if len(op.regions)]
    if len(inner) != 1 or not isinstance(inner[0], scf.ForOp) or len(loop.initArgs) != 1:
        return None
    carried = loop.inner_iter_args[0]
    goes_on = list(inner[0].initArgs) == [carried] and len(list(carried.uses)) == 1
    is_all = list(terminator.operands) == list(inner[0].results)
    return inner[0] if goes_on and is_all else None


def _read(loops: list[scf.ForOp], extent_of: Callable[[ir.Value], Expr | None]) -> Fold | None:
    *body, terminator = list(loops[-1].body.operations)
    if len(loops[0].initArgs) != 1 or any(len(op.regions) for op in body):
        return None
    if any((_constant(each.lowerBound), _constant(each.step)) != (0, 1) for each in loops):
        return None
    extents = [extent for each in loops if (extent := extent_of(each.upperBound)) is not None]
    carried = loops[-1].inner_iter_args[0]
    uses, last = list(carried.uses), terminator.operands[0].owner
    if len(extents) < len(loops) or len(uses) != 1 or isinstance(last, ir.Block):
        return None
    combiner = last.opview
    if combiner.operation.name not in COMBINERS or uses[0].owner != combiner.operation:
        return None
    if len(list(terminator.operands[0].uses)) != 1:
        return None
    (term,) = (x for i, x in enumerate(combiner.operands) if i != uses[0].operand_number)
    return Fold(tuple(loops), combiner, term, tuple(extents))


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def leaf_of_terms(leaf: func.FuncOp, fold: Fold, first: int) -> func.FuncOp:
    """A leaf that returns the term of a round; the indices are dims `first`, ... of its node."""
    position = list(leaf.entry_block.operations).index(fold.loops[0])
    copy = leaf.operation.clone().opview
    outer = list(copy.entry_block.operations)[position]
    loops = _nest(outer)
    *_, terminator = loops[-1].body.operations
    combiner = terminator.operands[0].owner.operation
    (term,) = (x for x in combiner.operands if x != loops[-1].inner_iter_args[0])
    for dim, loop in enumerate(loops, first):
        with ir.InsertionPoint(outer), loop.location:
            loop.induction_variable.replace_all_uses_with(_index_in(dim))
        for op in list(loop.body.operations)[:-1]:
            if op.operation != combiner and op not in loops:
                op.operation.move_before(outer)
    end = list(copy.entry_block.operations)[-1]
    with ir.InsertionPoint(end), outer.location:
        func.ReturnOp([term])
    end.operation.erase()
    remove_unused(copy)  # the loop too, after what used its results
    return copy


def _index_in(dim: int) -> ir.Value:
    """Asks for the index in a dim of the leaf's own node."""
    return NodeIdOp.build(0, dim)


def remove_unused(leaf: func.FuncOp) -> None:
    """Erases what nothing uses: all ops of a leaf are pure."""
    for op in reversed(list(leaf.entry_block.operations)[:-1]):
        if not any(next(iter(result.uses), None) for result in op.results):
            op.operation.erase()


def elements_at_ids(
    leaf: func.FuncOp, axis_of: Callable[[NodeIdOp], int], is_exact: Callable[..., bool]
) -> list[tuple[int, list[int]]]:
    """Makes elements that an instance reads at its own indices parameters of the leaf.

    Returns, for each new one, the parameter that it is of, and the axes of the grid that index it;
    `is_exact(parameter, position, axis)` says that a dim has the extent of an axis.
    """
    made: list[tuple[int, list[int]]] = []
    known: dict[tuple[int, tuple[int, ...]], ir.Value] = {}
    parameters = list(leaf.arguments)
    for op in walk_ops(leaf, tensor.ExtractOp):
        if op.tensor not in parameters or not len(op.indices):
            continue
        owners = [x.owner.opview for x in op.indices if not isinstance(x.owner, ir.Block)]
        queries = [owner for owner in owners if isinstance(owner, NodeIdOp)]
        if len(queries) < len(op.indices):
            continue
        axes, parameter = list(map(axis_of, queries)), parameters.index(op.tensor)
        exact = all(is_exact(parameter, i, axis) for i, axis in enumerate(axes))
        if len(set(axes)) < len(axes) or not exact:
            continue
        key = parameter, tuple(axes)
        if key not in known:
            known[key] = leaf.entry_block.add_argument(op.result.type, op.location)
            made.append((parameter, axes))
        op.result.replace_all_uses_with(known[key])
        op.operation.erase()
    return made


def bound_of(
    value: ir.Value, dim_of: Callable[[tensor.DimOp], Expr | None], size_of: Callable[..., Expr]
) -> Expr | None:
    """The extent that a bound of a loop is for all instances, or None."""
    constant = _constant(value) if isinstance(value.type, ir.IndexType) else None
    if constant is not None:
        return as_expr(constant) if constant > 0 else None
    owner = None if isinstance(value.owner, ir.Block) else value.owner.opview
    if isinstance(owner, GridSizeOp):
        return size_of(owner)
    return dim_of(owner) if isinstance(owner, tensor.DimOp) else None
