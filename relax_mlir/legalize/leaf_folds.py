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
    """A loop that combines a term of each round; `extent` is how many rounds there are."""

    loop: scf.ForOp
    combiner: ir.OpView
    term: ir.Value
    extent: Expr

    @property
    def start(self) -> ir.Value:
        """What the terms are combined with."""
        return self.loop.initArgs[0]

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
    """The first loop of a leaf that is a fold; `extent_of` tells bounds that instances share."""
    for op in leaf.entry_block.operations:
        if isinstance(op, scf.ForOp) and (made := _read(op, extent_of)) is not None:
            return made
    return None


def _read(loop: scf.ForOp, extent_of: Callable[[ir.Value], Expr | None]) -> Fold | None:
    *body, terminator = list(loop.body.operations)
    is_plain = len(loop.initArgs) == 1 and not any(len(op.regions) for op in body)
    if not is_plain or (_constant(loop.lowerBound), _constant(loop.step)) != (0, 1):
        return None
    extent, carried = extent_of(loop.upperBound), loop.inner_iter_args[0]
    uses, last = list(carried.uses), terminator.operands[0].owner
    if extent is None or len(uses) != 1 or isinstance(last, ir.Block):
        return None
    combiner = last.opview
    if combiner.operation.name not in COMBINERS or uses[0].owner != combiner.operation:
        return None
    if len(list(terminator.operands[0].uses)) != 1:
        return None
    (term,) = (x for i, x in enumerate(combiner.operands) if i != uses[0].operand_number)
    return Fold(loop, combiner, term, extent)


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def leaf_of_terms(leaf: func.FuncOp, fold: Fold, axis: int) -> func.FuncOp:
    """A leaf that returns the term of a round, whose index is that of the node in dim `axis`."""
    position = list(leaf.entry_block.operations).index(fold.loop)
    copy = leaf.operation.clone().opview
    loop = list(copy.entry_block.operations)[position]
    with ir.InsertionPoint(loop), loop.location:
        i64 = ir.IntegerType.get_signless(64)
        dims = {"level": ir.IntegerAttr.get(i64, 0), "dim": ir.IntegerAttr.get(i64, axis)}
        name = NodeIdOp.OPERATION_NAME
        query = ir.Operation.create(name, results=[ir.IndexType.get()], attributes=dims)
    loop.induction_variable.replace_all_uses_with(query.results[0])
    *body, terminator = list(loop.body.operations)
    combiner = terminator.operands[0].owner
    carried = loop.inner_iter_args[0]
    (term,) = (x for x in combiner.operands if x != carried)
    end = list(copy.entry_block.operations)[-1]
    for op in body:
        if op.operation != combiner:
            op.operation.move_before(loop)
    with ir.InsertionPoint(end), loop.location:
        func.ReturnOp([term])
    end.operation.erase()
    loop.operation.erase()
    remove_unused(copy)
    return copy


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
