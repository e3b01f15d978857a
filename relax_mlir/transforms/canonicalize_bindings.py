"""Removes redundant bindings: casts, reshapes, permutations and the like.

    %0 = "graph.match_cast"(%x) : (tensor<?xf32, #graph.shape<["n"]>>)
                                  -> tensor<?xf32, #graph.shape<["k"]>>      %0 is %x, k is n
    %1 = "graph.reshape"(%0) {shape = #graph.shape<["2*n", ...]>}
    %2 = "graph.reshape"(%1) {shape = #graph.shape<["n"]>}                   %2 is %x

A fresh symbol that a cast gives to a known dim is replaced by that dim everywhere; a cast that
asserts nothing else is erased. Reshapes, permutations, broadcasts, slices and conversions without
effect are erased, and chains of them are merged. The shape of a tensor of known dims becomes
`graph.make_shape`. Unused operators are erased.

Fails with 'inconsistent match_cast' if casts contradict each other.

Needs: `relax-infer-shapes`, to be effective. Leaves: the same values.
Source: TVM `CanonicalizeBindings`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import facts_of, graph_functions
from relax_mlir.analysis.purity import is_pure_operator
from relax_mlir.analysis.rename import rename_symbols
from relax_mlir.analysis.scopes import argument_symbols, runs_once
from relax_mlir.analysis.signatures import update_results
from relax_mlir.analysis.symbols import dims_of
from relax_mlir.analysis.unique_symbols import make_symbols_unique
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    AstypeOp,
    BroadcastToOp,
    Dim,
    ExpandDimsOp,
    GraphOp,
    MakeShapeOp,
    MatchCastOp,
    PermuteDimsOp,
    ReshapeOp,
    ShapeOfOp,
    SqueezeOp,
    StridedSliceOp,
    TensorType,
    annotation_of,
    dims_equal,
    dims_of_attr,
)
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import is_unused, replace, rewrite_greedily, safe_erase, walk_ops
from relax_mlir.symbolic import Expr, Facts, differ

_RESHAPES = ReshapeOp | ExpandDimsOp | SqueezeOp


@dataclass(frozen=True)
class CanonicalizeBindings(Pass):
    """Removes redundant bindings: casts, reshapes, permutations and the like."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Simplifies every graph function of the module."""
        for function in graph_functions(op):
            make_symbols_unique(function)
            unify_fresh_symbols(function)
            rewrite_greedily(
                function,
                drop_cast,
                join_reshapes,
                join_permutations,
                drop_broadcast,
                drop_astype,
                drop_slice,
                fold_shape_of,
            )
            drop_dead(function)
            update_results(function)


def unify_fresh_symbols(function: func.FuncOp) -> None:
    """Replaces each symbol that a match_cast gives to a known dim by that dim.

    Raises PassFailure at a cast that contradicts those before it, or the function's facts.
    """
    facts = [str(fact) for fact in facts_of(function).items]
    values: dict[str, Expr] = {}
    _unify(function.entry_block, set(argument_symbols(function)), facts, values)
    if values:
        rename_symbols(function, _resolved(values))


def _unify(block: ir.Block, bound: set[str], facts: list[str], values: dict[str, Expr]) -> None:
    """Adds the values of symbols that casts of a block, nested ones included, determine.

    Symbols and facts of a region are local to it.
    """
    for op in block.operations:
        if isinstance(op, MatchCastOp):
            _unify_cast(op, bound, facts, values)
        for region in op.operation.regions:
            for inner in region.blocks:
                if runs_once(op):
                    _unify(inner, bound, facts, values)
                else:
                    _unify(inner, set(bound), list(facts), values)


def _unify_cast(
    cast: MatchCastOp, bound: set[str], facts: list[str], values: dict[str, Expr]
) -> None:
    pairs = zip(dims_of(annotation_of(cast.input)), dims_of(annotation_of(cast.result)))
    for axis, (source, target) in enumerate(pairs):
        if target is None:
            continue
        target = target.substitute(values)
        if source is not None:
            source = source.substitute(values)
            if str(target) in target.symbols and str(target) not in bound:
                values[str(target)] = source
                continue
            _assert_equal(cast, axis, source, target, facts)
        bound |= target.symbols


def _assert_equal(
    cast: MatchCastOp, axis: int, source: Expr, target: Expr, facts: list[str]
) -> None:
    """Adds `source == target` to the facts."""
    if differ(source, target, Facts.parse(facts)).proved:
        raise PassFailure(
            cast,
            f"is an inconsistent match_cast: asserts {target} of dim {axis}, which is {source}"
            + (f" with {' and '.join(facts)}" if facts else ""),
        )
    fact = f"{source} == {target}"
    if source != target and fact not in facts:
        facts.append(fact)


def _resolved(values: dict[str, Expr]) -> dict[str, Expr]:
    """The values, with the symbols in them replaced too; they are in program order."""
    done: dict[str, Expr] = {}
    for name, value in values.items():
        done[name] = value.substitute(done)
    return done


def _same(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    return len(a) == len(b) and all(map(dims_equal, a, b))


def _is_known(value: ir.Value, result: ir.Value) -> bool:
    """Whether the value is known to have the annotation of the result."""
    own, annotation = annotation_of(value), annotation_of(result)
    if not isinstance(own, TensorType) or not isinstance(annotation, TensorType):
        return False
    if own.element != annotation.element:
        return False
    if own.dims is None or annotation.dims is None:
        return False
    return _same(own.dims, annotation.dims)


def drop_cast(op: MatchCastOp) -> ir.Value | None:
    """A cast to a known annotation."""
    if op.input.type == op.result.type:
        return op.input
    return op.input if _is_known(op.input, op.result) else None


def join_reshapes(op: ReshapeOp) -> ir.Value | None:
    """A reshape to the same dims, and a reshape of a reshape."""
    if _is_known(op.input, op.result):
        return op.input
    inner = _producer(op.input)
    if isinstance(inner, _RESHAPES):
        return ReshapeOp.build(inner.input, shape=dims_of_attr(op.shape.dims)).result
    return None


def join_permutations(op: PermuteDimsOp) -> ir.Value | None:
    """The identity permutation, and a permutation of a permutation."""
    axes = list(ir.DenseI64ArrayAttr(op.attributes["axes"]))
    if axes == list(range(len(axes))):
        return op.input
    inner = _producer(op.input)
    if isinstance(inner, PermuteDimsOp):
        first = list(ir.DenseI64ArrayAttr(inner.attributes["axes"]))
        return PermuteDimsOp.build(inner.input, axes=[first[axis] for axis in axes]).result
    return None


def drop_broadcast(op: BroadcastToOp) -> ir.Value | None:
    """A broadcast to the operand's own dims."""
    return op.input if _is_known(op.input, op.result) else None


def drop_astype(op: AstypeOp) -> ir.Value | None:
    """A conversion to the operand's own element type."""
    return op.input if TensorType.of(op.input).element == op.dtype.value else None


def drop_slice(op: StridedSliceOp) -> ir.Value | None:
    """A slice of everything: from 0 to the end, with stride 1."""
    whole = all(begin is not None and begin.value == 0 for begin in dims_of_attr(op.begin.dims))
    steps = set(ir.DenseI64ArrayAttr(op.attributes["strides"]))
    same = _is_known(op.input, op.result)
    return op.input if whole and steps <= {1} and same else None


def fold_shape_of(op: ShapeOfOp) -> ir.Value | None:
    """The shape of a tensor of known dims."""
    annotation = TensorType.of(op.input)
    return MakeShapeOp.build(dims=annotation.dims).result if annotation.is_exact else None


def _producer(value: ir.Value) -> ir.OpView | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.opview


def drop_dead(function: func.FuncOp) -> None:
    """Erases unused pure ops, users first, and merges equal shape values of a block."""
    shapes: dict[tuple[ir.Block, ir.Type], ir.Value] = {}
    for shape in walk_ops(function, MakeShapeOp):
        first = shapes.setdefault((shape.operation.block, shape.result.type), shape.result)
        if first != shape.result:
            replace(shape, first)
    for op in reversed(walk_ops(function, GraphOp)):
        if is_pure_operator(op) and is_unused(op):
            safe_erase(op)
