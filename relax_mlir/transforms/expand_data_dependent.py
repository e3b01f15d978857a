"""Expands operators whose data decide how large results are: a count first, then what has its size.

    %0 = "graph.nonzero"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<1x?xi64>
      ->
    %1 = "graph.not_equal"(%x, 0)
    %2 = "graph.sum"(%1) : ... -> tensor<i64>
    %3 = "graph.tensor_to_shape"(%2)
    %4 = "graph.match_cast"(%3) : ... -> !graph.shape_value<["nonzero"]>
    "graph.require"() {any_of = ["nonzero <= n"], by = "graph.nonzero"}
    %5 = "graph.first_nonzero"(%x) {count = #graph.shape<["nonzero"]>}

The host reads the count, so that memory of that size is planned and allocated as any other. Proofs
and plans behind it may use the bound.

Needs: known dims of operands (`relax-name-dims`). Leaves: no operator with results of unknown dims.
Source: paper §3.2 (`unique` and `match_cast`); JAX `numpy.nonzero` with `size`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.purity import is_pure_operator
from relax_mlir.analysis.rename import FreshSymbols
from relax_mlir.bindings import ir
from relax_mlir.decompositions.data_dependent import (
    NameSize,
    nonzero,
    range_of,
    repeat_interleave,
    unique,
)
from relax_mlir.decompositions.emit import reshape
from relax_mlir.dialects.graph import (
    DataDependentOp,
    MatchCastOp,
    NonzeroOp,
    RangeOfOp,
    RepeatInterleaveOp,
    RequireOp,
    ShapeError,
    TensorToShapeOp,
    TensorType,
    UniqueOp,
    shape_value_type,
)
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import safe_erase, walk_ops
from relax_mlir.symbolic import Expr, Fact

Results = Sequence[ir.Value | None]
"""What stands for the results of an operator; None for one that nothing uses."""


@dataclass(frozen=True)
class ExpandDataDependent(Pass):
    """Expands operators whose data decide how large results are."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Expands the operators of every graph function."""
        for function in graph_functions(op):
            fresh = FreshSymbols(function)
            for operator in walk_ops(function, DataDependentOp):
                _expand(operator, fresh)


def _expand(op: DataDependentOp, fresh: FreshSymbols) -> None:
    """Replaces an operator by what it is expanded to."""
    if not is_pure_operator(op) or any(list(result.uses) for result in op.operation.results):
        with ir.InsertionPoint(op), op.location:
            try:
                results = _EXPANSIONS[type(op)](op, _name_size(op, fresh))
            except ShapeError as error:
                raise PassFailure(op, str(error)) from None
            for old, new in zip(op.operation.results, results, strict=True):
                if new is not None:
                    _replace(old, new)
    safe_erase(op)


def _replace(old: ir.Value, new: ir.Value) -> None:
    """Has a value in place of another one, under its annotation where that is not only coarser."""
    users = [use.owner.opview for use in old.uses]
    if not all(isinstance(user, MatchCastOp) for user in users) and new.type != old.type:
        new = MatchCastOp.build(new, old.type).result
    old.replace_all_uses_with(new)


def _name_size(op: DataDependentOp, fresh: FreshSymbols) -> NameSize:
    """Binds a symbol to a count at the insertion point, and states its bound."""

    def name(count: ir.Value, base: str, most: Expr | None) -> Expr:
        symbol = fresh(base)
        shape = TensorToShapeOp.build(reshape(count, [1])).result
        MatchCastOp.build(shape, shape_value_type([symbol]))
        if most is not None:
            RequireOp.build([Fact(symbol, "<=", most)], op.operation.name)
        return symbol

    return name


def _nonzero(op: NonzeroOp, name_size: NameSize) -> Results:
    return [nonzero(op.input, name_size)]


def _unique(op: UniqueOp, name_size: NameSize) -> Results:
    axes = list(ir.DenseI64ArrayAttr(op.attributes["axes"]))
    wanted = [bool(list(result.uses)) for result in op.operation.results]
    rank = len(TensorType.of(op.input).dims or ())
    axis = axes[0] % rank if axes else None
    return unique(op.input, axis, op.attributes["sorted"].value, wanted, name_size)


def _repeat_interleave(op: RepeatInterleaveOp, name_size: NameSize) -> Results:
    return [repeat_interleave(op.input, op.repeats, op.attributes["axis"].value, name_size)]


def _range_of(op: RangeOfOp, name_size: NameSize) -> Results:
    return [range_of(op.start, op.stop, op.step, name_size)]


_EXPANSIONS: dict[type, Callable[..., Results]] = {
    NonzeroOp: _nonzero,
    UniqueOp: _unique,
    RepeatInterleaveOp: _repeat_interleave,
    RangeOfOp: _range_of,
}
