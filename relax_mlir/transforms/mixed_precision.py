"""Computes products in half precision, and what only passes their results on.

    %0 = "graph.matmul"(%x, %w) : tensor<n x k x f32>, tensor<k x m x f32> -> tensor<n x m x f32>
    %1 = "graph.nn_relu"(%0)
      ->
    %a, %b = astype of %x and %w to bf16
    %0 = "graph.matmul"(%a, %b)   : ... -> tensor<n x m x bf16>     added up in f32, rounded once
    %1 = "graph.nn_relu"(%0)      : ... -> tensor<n x m x bf16>
    %2 = "graph.astype"(%1)       : tensor<n x m x f32>

    always   matmul, nn_conv2d, nn_batched_attention
    follow   add, subtract, multiply, maximum, minimum, negative, abs, nn_relu, nn_max_pool2d,
             where, tril, triu, and what moves elements: if all operands of f32 are such results,
             parameters or constants, and one is such a result
    never    all others: exponentials, sums, normalisations, quotients stay in f32

Signatures stay as they are. A value is converted once where several ops take it. Nothing follows
with a constant of one repeated element that is not 0 and would be 0, subnormal or infinite.

Each result is rounded to 8 (bf16) or 11 (f16) bits, and what is beyond 65504 is infinite in f16: so
it runs by name only, where a model is known to bear it.

Needs: a verified module. Leaves: no product of f32 operands.
Source: TVM `ToMixedPrecision`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.functions import NUM_INPUTS, graph_functions
from relax_mlir.bindings import arith, func, ir
from relax_mlir.dialects.graph import (
    AbsOp,
    AddOp,
    AstypeOp,
    BatchedAttentionOp,
    BroadcastToOp,
    ConcatOp,
    Conv2dOp,
    ExpandDimsOp,
    GraphOp,
    MatmulOp,
    MaximumOp,
    MaxPool2dOp,
    MinimumOp,
    MultiplyOp,
    NegativeOp,
    PermuteDimsOp,
    ReluOp,
    ReshapeOp,
    SplitOp,
    SqueezeOp,
    StridedSliceOp,
    SubtractOp,
    TakeOp,
    TensorType,
    TrilOp,
    TriuOp,
    WhereOp,
    annotation_of,
)
from relax_mlir.passes import Pass
from relax_mlir.rewriting import is_unused, safe_erase

ALWAYS = (MatmulOp, Conv2dOp, BatchedAttentionOp)
FOLLOW = (
    *(AddOp, SubtractOp, MultiplyOp, MaximumOp, MinimumOp, NegativeOp, AbsOp, ReluOp),
    *(MaxPool2dOp, WhereOp, TrilOp, TriuOp, BroadcastToOp, ConcatOp, ExpandDimsOp),
    *(PermuteDimsOp, ReshapeOp, SplitOp, SqueezeOp, StridedSliceOp, TakeOp),
)
RANGE = {"bf16": (2.0**-126, 3.3895e38), "f16": (2.0**-14, 65504.0)}
"""The least and the greatest normal value of each type."""


@dataclass(frozen=True)
class MixedPrecision(Pass):
    """Computes products in half precision, and what only passes their results on."""

    needs_verified: ClassVar[bool] = True

    dtype: str = "bf16"
    """`bf16` or `f16`."""

    def __post_init__(self) -> None:
        if self.dtype not in RANGE:
            raise ValueError(f"'{self.dtype}' is none of {' and '.join(RANGE)}")

    def run(self, op: ir.Operation) -> None:
        """Converts every graph function of the module."""
        for function in graph_functions(op):
            _Conversion(function, ir.Type.parse(self.dtype), RANGE[self.dtype]).run()


@dataclass
class _Conversion:
    """One function; `made` are the conversions that were added, in program order."""

    function: func.FuncOp
    element: ir.Type
    range: tuple[float, float]
    made: list[AstypeOp] = field(default_factory=list)

    def run(self) -> None:
        """Converts the ops, and drops the conversions back that nothing uses."""
        self._block(self.function.entry_block, {})
        for conversion in reversed(self.made):
            if is_unused(conversion):
                safe_erase(conversion)

    def _block(self, block: ir.Block, low: dict[ir.Value, ir.Value]) -> None:
        """Converts a block, `low` being the values of f32 that are there in half precision."""
        for op in list(block.operations):
            for region in op.operation.regions:
                for inner in region.blocks:
                    self._block(inner, dict(low))
            if isinstance(op, ALWAYS) or (isinstance(op, FOLLOW) and self._follows(op, low)):
                self._convert(op, low)

    def _follows(self, op: GraphOp, low: dict[ir.Value, ir.Value]) -> bool:
        floats = [value for value in op.operands if _is_f32(value)]
        rest = [value for value in floats if value not in low]
        return len(rest) < len(floats) and all(map(self._is_weight, rest))

    def _is_weight(self, value: ir.Value) -> bool:
        """Whether it is a parameter, or a constant that survives the conversion."""
        if isinstance(value, ir.BlockArgument):
            first = self.function.attributes.get(NUM_INPUTS)
            is_argument = value.owner == self.function.entry_block
            return is_argument and first is not None and value.arg_number >= first.value
        if not isinstance(value.owner.opview, arith.ConstantOp):
            return False
        elements = value.owner.attributes["value"]
        if not isinstance(elements, ir.DenseElementsAttr) or not elements.is_splat:
            return True
        size = abs(ir.FloatAttr(elements.get_splat_value()).value)
        return not size or not math.isfinite(size) or self.range[0] <= size <= self.range[1]

    def _convert(self, op: GraphOp, low: dict[ir.Value, ir.Value]) -> None:
        """Replaces an op by one of half precision, whose results are converted back."""
        if not any(map(_is_f32, op.operands)):
            return
        with ir.InsertionPoint(op), op.location:
            operands = [self._low(value, low) for value in op.operands]
            new = ir.Operation.create(
                op.operation.name,
                results=self._types(op.operation.results),
                operands=operands,
                attributes={name: op.attributes[name] for name in op.attributes},
            )
            for old, result in zip(list(op.operation.results), new.results, strict=True):
                if _is_f32(old):
                    widened = self._cast(result, TensorType.of(old).element)
                    low[widened] = result
                    result = widened
                old.replace_all_uses_with(result)
        safe_erase(op)

    def _low(self, value: ir.Value, low: dict[ir.Value, ir.Value]) -> ir.Value:
        if not _is_f32(value):
            return value
        if value not in low:
            low[value] = self._cast(value, self.element)
        return low[value]

    def _cast(self, value: ir.Value, element: ir.Type) -> ir.Value:
        self.made.append(AstypeOp.build(value, dtype=element))
        return self.made[-1].result

    def _types(self, results: Sequence[ir.Value]) -> list[ir.Type]:
        annotations = [annotation_of(result) for result in results]
        return [
            TensorType(a.dims, self.element).to_mlir()
            if isinstance(a, TensorType) and _is_f32(result)
            else result.type
            for a, result in zip(annotations, results, strict=True)
        ]


def _is_f32(value: ir.Value) -> bool:
    """Whether it is a tensor of f32."""
    annotation = annotation_of(value)
    return isinstance(annotation, TensorType) and isinstance(annotation.element, ir.F32Type)
