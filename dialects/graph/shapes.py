"""Annotations and shapes as values: match_cast, shape_of, make_shape (paper §3.2)."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir

from .dialect import ShapeAttr
from .op import Annotation, GraphOp, InferredOp, annotation_of, compatible, to_mlir
from .types import Dim, ShapeError, TensorType, shape_value_dims, shape_value_type


class MatchCastOp(GraphOp, name="match_cast"):
    """Asserts a finer annotation, which may bind new symbols; checked at run time.

        %1 = "graph.match_cast"(%0) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>

    C1  the two annotations are not provably different

    Source: paper §3.2.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]

    @classmethod
    def build(cls, value: ir.Value, annotation: Annotation) -> "MatchCastOp":
        """Creates the cast at the insertion point."""
        return ir.Operation.create(
            cls.OPERATION_NAME, results=[to_mlir(annotation)], operands=[value]
        ).opview

    def check(self) -> None:
        """Raises ShapeError if the assertion can never hold."""
        if not compatible(annotation_of(self.input), annotation_of(self.result)):  # C1
            raise ShapeError(
                f"asserts '{self.result.type}', which '{self.input.type}' can never be"
            )


class ShapeOfOp(InferredOp, name="shape_of", traits=[ext.Pure]):
    """Returns the dims of a tensor as a shape value.

    C1  the operand is a tensor of known rank
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]

    @staticmethod
    def infer_return_type(input: TensorType) -> ir.Type:
        if input.dims is None:  # C1
            raise ShapeError(f"expects a tensor of known rank, but got '{input}'")
        return shape_value_type(input.dims)


class MakeShapeOp(InferredOp, name="make_shape", traits=[ext.Pure]):
    """Builds a shape value from expressions over the function's symbols.

    C1  every dim is a known expression
    """

    result: ext.Result[Any]
    dims: ShapeAttr

    @staticmethod
    def infer_return_type(dims: Sequence[Dim]) -> ir.Type:
        type_ = shape_value_type(dims)
        if any(dim is None for dim in shape_value_dims(type_)):  # C1
            raise ShapeError(f"expects known dims, but got '{type_}'")
        return type_
