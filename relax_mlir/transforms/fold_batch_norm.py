"""Scales the filters of a convolution instead of its result.

    %0 = "graph.nn_conv2d"(%x, %w)                    filters [o, c, kh, kw]
    %1 = "graph.subtract"(%0, %mean)                  or add, or neither; [o, 1, 1] or [1, o, 1, 1]
    %2 = "graph.multiply"(%1, %scale)                 or divide
      ->
    %s = "graph.reshape"(%scale) {shape = [o, 1, 1, 1]}
    %v = "graph.multiply"(%w, %s)
    %0 = "graph.nn_conv2d"(%x, %v)
    %m = "graph.multiply"(%mean, %scale)
    %1 = "graph.subtract"(%0, %m)

That is the form of a batch normalisation whose statistics are known: two scales in a row fold one
after the other, and what is added after it stays. Filters, scale and mean have to be constants, or
parameters (arguments from `graph.num_inputs` on), or be computed from these alone:
`relax-lift-params` or `relax-fold-constants` then do it once. One value for each channel, or one
for all.

Products are rounded otherwise. A scale of 0 gives 0, where 0 times an infinite or NaN sum was NaN.
So it is in no default pipeline.

Needs: a verified module; known dims (`relax-infer-shapes`). Leaves: no convolution that is only
scaled.
Source: TVM `FoldBatchnormToConv2D`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from relax_mlir.analysis.functions import graph_functions, lifted_parameters
from relax_mlir.analysis.purity import Purity, is_pure_operator
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    AddOp,
    Conv2dOp,
    DivideOp,
    MultiplyOp,
    ReshapeOp,
    SubtractOp,
    TensorType,
    dims_equal,
    known_dims,
)
from relax_mlir.passes import Pass
from relax_mlir.rewriting import defining_op, is_used_once, retyped
from relax_mlir.symbolic import Expr, const

from .dead_code_elimination import rewrite_and_clean

Scaling: TypeAlias = MultiplyOp | DivideOp
_ONE = const(1)


@dataclass(frozen=True)
class FoldBatchNorm(Pass):
    """Scales the filters of a convolution instead of its result."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites every graph function of the module."""
        purity = Purity.of(op)
        for function in graph_functions(op):
            fold = _Fold(function)
            rewrite_and_clean(function, purity, fold.multiplied, fold.divided)


@dataclass(frozen=True)
class _Fold:
    function: func.FuncOp

    def multiplied(self, op: MultiplyOp) -> ir.Value | None:
        """A convolution, or one with something added, times a scale."""
        return self._scaled(op, op.lhs, op.rhs) or self._scaled(op, op.rhs, op.lhs)

    def divided(self, op: DivideOp) -> ir.Value | None:
        """The same, divided by one."""
        return self._scaled(op, op.lhs, op.rhs)

    def _scaled(self, op: Scaling, value: ir.Value, scale: ir.Value) -> ir.Value | None:
        if not is_used_once(value):
            return None
        convolution = defining_op(value, Conv2dOp)
        if convolution is not None and self._folds(convolution, scale):
            return retyped(_with_scale(op, convolution, scale), op.result.type)
        added = defining_op(value, AddOp) or defining_op(value, SubtractOp)
        if added is None:
            return None
        convolution, offset = defining_op(added.lhs, Conv2dOp), added.rhs
        if convolution is None and isinstance(added, AddOp):
            convolution, offset = defining_op(added.rhs, Conv2dOp), added.lhs
        if convolution is None or not is_used_once(convolution.result):
            return None
        if not self._folds(convolution, scale) or not self._folds(convolution, offset):
            return None
        result = _with_scale(op, convolution, scale)
        scaled = type(op).build(offset, scale).result
        return retyped(type(added).build(result, scaled).result, op.result.type)

    def _folds(self, convolution: Conv2dOp, value: ir.Value) -> bool:
        """Whether a scale is known before a call, one for each channel or for all."""
        filters = known_dims(TensorType.of(convolution.weight).dims)
        if filters is None or not all(map(self._is_known, (convolution.weight, value))):
            return False
        return _by_channel(known_dims(TensorType.of(value).dims), filters[0])

    def _is_known(self, value: ir.Value) -> bool:
        """Whether constants and parameters alone make a value."""
        seen, stack = {value}, [value]
        while stack:
            current = stack.pop()
            if isinstance(current, ir.BlockArgument):
                if not self._is_parameter(current):
                    return False
                continue
            op = current.owner.opview
            if not is_pure_operator(op):
                return False
            new = [operand for operand in op.operands if operand not in seen]
            seen.update(new)
            stack += new
        return True

    def _is_parameter(self, argument: ir.BlockArgument) -> bool:
        return argument in lifted_parameters(self.function)


def _by_channel(dims: Sequence[Expr] | None, channels: Expr) -> bool:
    """Whether dims broadcast along the channels of an image alone."""
    if dims is None or len(dims) > 4:
        return False
    batch, channel, *rest = (_ONE,) * (4 - len(dims)) + tuple(dims)
    fits = channel == _ONE or dims_equal(channel, channels)
    return fits and all(dim == _ONE for dim in (batch, *rest))


def _with_scale(op: Scaling, convolution: Conv2dOp, scale: ir.Value) -> ir.Value:
    """The convolution with scaled filters, with its attributes."""
    dims = known_dims(TensorType.of(scale).dims)
    assert dims is not None
    channels = dims[-3] if len(dims) > 2 else _ONE
    shaped = ReshapeOp.build(scale, shape=(channels, _ONE, _ONE, _ONE)).result
    filters = type(op).build(convolution.weight, shaped).result
    new = convolution.operation.clone()
    new.operands[1] = retyped(filters, convolution.weight.type)
    return new.results[0]
