"""Moves permutations after element-wise operators, where they meet others and cancel.

    %1 = "graph.permute_dims"(%0) {axes = [0, 2, 3, 1]}      channels last
    %2 = "graph.add"(%1, %bias)                              [c]
    %3 = "graph.nn_relu"(%2)
    %4 = "graph.permute_dims"(%3) {axes = [0, 3, 1, 2]}
      ->
    %b = "graph.reshape"(%bias) {shape = [1, c, 1, 1]}
    %2 = "graph.add"(%0, %b)
    %4 = "graph.nn_relu"(%2)

Models whose images have their channels last permute in front of each convolution and after it: so
they run in the layout that convolutions have, and what follows one can be its epilogue. Both
operands of an operator may be permuted alike, or one of them, where the other one has at most one
dim that is not 1. A permutation that something else uses stays. Elements are only copied: no bit
changes.

Needs: a verified module; known dims (`relax-infer-shapes`). Leaves: no such operator after such a
permutation.
Source: TVM `ConvertLayout`; MLIR `linalg` propagation of `pack` ops.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.purity import Purity
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import (
    AstypeOp,
    BinaryOp,
    InferredOp,
    PermuteDimsOp,
    ReshapeOp,
    TensorType,
    UnaryOp,
    dims_equal,
    known_dims,
)
from relax_mlir.passes import Pass
from relax_mlir.rewriting import defining_op, replace, retyped, walk_ops
from relax_mlir.symbolic import Expr, const

from .canonicalize_bindings import join_permutations
from .dead_code_elimination import erase_dead

CLASSES = (UnaryOp, BinaryOp, AstypeOp, PermuteDimsOp)
_ONE = const(1)


@dataclass(frozen=True)
class SinkPermuteDims(Pass):
    """Moves permutations after element-wise operators, where they meet others and cancel."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites every graph function of the module."""
        purity = Purity.of(op)
        for function in graph_functions(op):
            while any([_rewrite(each) for each in walk_ops(function, *CLASSES)]):
                erase_dead(function, purity)


def _rewrite(op: InferredOp) -> bool:
    """Replaces an op if something better does; its permutations only move towards the end."""
    with ir.InsertionPoint(op), op.location:
        better = join_permutations(op) if isinstance(op, PermuteDimsOp) else _sunk(op)
        if better is None:
            return False
        replace(op, retyped(better, op.operation.results[0].type))
    return True


def _sunk(op: InferredOp) -> ir.Value | None:
    """What an op computes, permuted after it instead of before."""
    permutations = [_permutation(value, op) for value in op.operands]
    orders = {_axes(each) for each in permutations if each is not None}
    if len(orders) != 1:
        return None
    axes = orders.pop()
    shapes = [TensorType.of(value).dims for value in op.operands]
    dims = next(d for d, each in zip(shapes, permutations, strict=True) if each is not None)
    inputs = [
        _unpermuted(value, known_dims(dims), axes) if each is None else (each.input, None)
        for value, each in zip(op.operands, permutations, strict=True)
    ]
    fitting = [each for each in inputs if each is not None]
    if len(fitting) < len(inputs):
        return None
    operands = [
        value if shape is None else ReshapeOp.build(value, shape=shape).result
        for value, shape in fitting
    ]
    if isinstance(op, AstypeOp):
        result = AstypeOp.build(*operands, dtype=op.dtype.value).result
    else:
        result = type(op).build(*operands).result
    return PermuteDimsOp.build(result, axes=axes).result


def _permutation(value: ir.Value, user: InferredOp) -> PermuteDimsOp | None:
    """The permutation that makes a value which nothing but the op uses."""
    op = defining_op(value, PermuteDimsOp)
    if op is None or any(use.owner.operation != user.operation for use in value.uses):
        return None
    return op


def _axes(op: PermuteDimsOp) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(op.attributes["axes"]))


def _unpermuted(
    value: ir.Value, dims: Sequence[Expr] | None, axes: Sequence[int]
) -> tuple[ir.Value, Sequence[Expr] | None] | None:
    """An operand with the dims by which it broadcasts before the permutation, None for its own.

    Nothing if it has several dims that are not 1, or one that is not that of the tensor of `dims`.
    """
    own = known_dims(TensorType.of(value).dims)
    if own is None or dims is None or len(own) > len(dims):
        return None
    padded = (_ONE,) * (len(dims) - len(own)) + tuple(own)
    long = [i for i, dim in enumerate(padded) if dim != _ONE]
    if len(long) > 1 or not all(dims_equal(padded[i], dims[i]) for i in long):
        return None
    shape = [_ONE] * len(dims)
    for i in long:
        shape[axes[i]] = padded[i]
    return value, tuple(shape) if long else None
