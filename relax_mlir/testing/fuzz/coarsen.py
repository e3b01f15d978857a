"""Makes annotations of a module coarser at random: what runs must stay what it was.

    %0 = "graph.exp"(%x) : ... -> tensor<?x4xf32, #graph.shape<["n", 4]>>
    %1 = scf.if %c -> tensor<?xf32, #graph.shape<["n"]>> { ... }
      ->
    %f = "graph.match_cast"(%x) : ... -> tensor<?x?xf32>
    %0 = "graph.exp"(%f) : ... -> tensor<*xf32>
    %1 = scf.if %c -> tensor<?xf32> { ... }

Results of operators, branches, loops and calls lose dims, the rank or the type of elements, and
values are cast to coarser types in front of what uses them: tuples to `!graph.any_tuple`, functions
to `!graph.callable`, anything to `!graph.object`. Dims of 1 stay where nothing infers them again:
an operator with a declared result takes for granted that dims of which nothing is known do not
broadcast. Casts to finer types and the results of tensor programs stay, since their annotations
say what is bound and how large memory is; so do arguments of public functions, which bind symbols,
and leaves and graphs of nodes, whose annotations say how tensors are cut.
"""

import random
from collections.abc import Iterator, Sequence

from relax_mlir.analysis.functions import graph_functions, inout_arguments, is_public
from relax_mlir.analysis.nodes import is_internal, is_leaf
from relax_mlir.analysis.signatures import update_results
from relax_mlir.bindings import func, ir, scf
from relax_mlir.dialects.graph import (
    AnyElementType,
    AnyTupleType,
    CallableType,
    CallOp,
    GraphOp,
    MatchCastOp,
    ObjectType,
    TensorToShapeOp,
    TensorType,
    annotation_of,
)
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import const

ONE = const(1)
FORGOTTEN = 0.3
"""How often a value loses some of its annotation."""
_BRANCHES = scf.IfOp | scf.IndexSwitchOp | scf.ExecuteRegionOp


def coarsened(module: ir.Module, seed: int) -> None:
    """Makes annotations of graph functions coarser, in place."""
    chance = random.Random(f"coarse {seed}")
    functions = [f for f in graph_functions(module.operation) if not (is_leaf(f) or is_internal(f))]
    for function in functions:
        for op in list(walk_ops(function)):
            _coarsen(op, chance)
        for value in list(_values(function)):
            if chance.random() < FORGOTTEN / 2:
                _forget(value, chance)
    for function in functions:
        _return(function, chance)


def _values(function: func.FuncOp) -> Iterator[ir.Value]:
    """The arguments of a function, and results of its operators."""
    yield from function.arguments
    for op in walk_ops(function):
        if isinstance(op, GraphOp):
            yield from op.operation.results


def _coarser(value: ir.Value, chance: random.Random, forgets_ones: bool) -> ir.Type | None:
    """A type that says less than that of a value; None if there is none."""
    annotation = annotation_of(value)
    if isinstance(annotation, ir.TupleType):
        return chance.choice([AnyTupleType, AnyTupleType, ObjectType]).get()
    if isinstance(annotation, ir.FunctionType):
        return chance.choice([CallableType, CallableType, ObjectType]).get()
    if not isinstance(annotation, TensorType) or not annotation.dims:
        return None
    is_any = chance.random() < 0.15
    element = AnyElementType.get() if is_any else annotation.element
    lost = [dim for dim in annotation.dims if forgets_ones or dim != ONE]
    if chance.random() < 0.2 and len(lost) == len(annotation.dims):
        return TensorType(None, element).to_mlir()
    share = chance.choice([0.5, 1.0])
    dims = [None if dim in lost and chance.random() < share else dim for dim in annotation.dims]
    coarse = TensorType(tuple(dims), element).to_mlir()
    return None if coarse == value.type else coarse


def _coarsen(op: ir.OpView, chance: random.Random) -> None:
    """Makes results of an op coarser, at random."""
    if chance.random() >= FORGOTTEN:
        return
    if isinstance(op, _BRANCHES):
        _coarsen_structured(op, chance, [])
    elif isinstance(op, scf.ForOp):
        body = op.operation.regions[0].blocks[0]
        _coarsen_structured(op, chance, [list(body.arguments)[1:]], first=3)
    elif isinstance(op, CallOp) or _is_inferred(op):
        for result in op.operation.results:
            coarse = _coarser(result, chance, forgets_ones=not isinstance(op, CallOp))
            if coarse is not None and chance.random() < 0.7:
                _retype(result, coarse)


def _is_inferred(op: ir.OpView) -> bool:
    return isinstance(op, GraphOp) and op.has_rule() and not isinstance(op, TensorToShapeOp)


def _coarsen_structured(
    op: ir.OpView, chance: random.Random, carried: Sequence[Sequence[ir.Value]], first: int = 0
) -> None:
    """Makes results coarser, with what is yielded and carried."""
    for index, result in enumerate(op.operation.results):
        coarse = _coarser(result, chance, forgets_ones=False)
        if coarse is None or chance.random() < 0.3:
            continue
        _retype(result, coarse)
        for values in carried:
            _retype(values[index], coarse)
            _cast_operand(op, first + index, coarse)
        for region in op.operation.regions:
            operations = region.blocks[0].operations
            _cast_operand(operations[len(operations) - 1], index, coarse)


def _retype(value: ir.Value, coarse: ir.Type) -> None:
    """Sets the type of a value; what needs the old one gets it by a cast."""
    fine, strict = value.type, [use for use in value.uses if _is_strict(use.owner.opview)]
    operands = [(use.owner, use.operand_number) for use in strict]
    value.set_type(coarse)
    for owner, index in operands:
        _cast_operand(owner.opview, index, fine)


def _is_strict(op: ir.OpView) -> bool:
    """Whether MLIR itself wants the types of operands to stay."""
    return not isinstance(op, GraphOp) or not (
        op.has_rule() or isinstance(op, CallOp | MatchCastOp)
    )


def _cast_operand(op: ir.OpView, index: int, type_: ir.Type) -> None:
    with ir.InsertionPoint(op), op.location:
        cast = MatchCastOp.build(op.operation.operands[index], type_)
    op.operation.operands[index] = cast.result


def _forget(value: ir.Value, chance: random.Random) -> None:
    """Casts a value to a coarser type for some of its users, and back for those that need it."""
    coarse, fine = _coarser(value, chance, forgets_ones=True), value.type
    is_tensor = isinstance(annotation_of(value), TensorType)
    users = [
        (use.owner.opview, use.operand_number)
        for use in value.uses
        if not is_tensor or not _is_strict(use.owner.opview)
    ]
    if coarse is None or not users:
        return
    for op, index in chance.sample(users, chance.randint(1, len(users))):
        _cast_operand(op, index, coarse)
        if _is_strict(op):
            _cast_operand(op, index, fine)


def _return(function: func.FuncOp, chance: random.Random) -> None:
    """Lets a function return coarser results."""
    operations = function.entry_block.operations
    end, updated = operations[len(operations) - 1], inout_arguments(function)
    if not is_public(function) and chance.random() < 0.5:
        return
    for index, value in enumerate(list(end.operands)):
        coarse = _coarser(value, chance, forgets_ones=is_public(function))
        if index not in updated and coarse is not None and chance.random() < FORGOTTEN:
            _cast_operand(end, index, coarse)
    update_results(function)
