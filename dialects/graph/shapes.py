"""Annotations and shapes as values: match_cast, require, shape_of, ... (paper §3.2)."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import Fact, SymbolicError

from .annotations import Annotation, annotation_of, compatible, to_mlir
from .dialect import ShapeAttr
from .op import GraphOp, InferredOp
from .types import Dim, ShapeError, TensorType, shape_value_dims, shape_value_type

MOST_DIMS = 4096
"""Elements of a tensor that may be a shape: each is a symbol, or a check of one."""


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


class RequireOp(GraphOp, name="require"):
    """Goes on only if one of the facts holds; checked at run time.

        "graph.require"() {any_of = ["k == n", "k == 1", "n == 1"], by = "graph.add"} : () -> ()

    From there on, in its block and in what is nested in it, proofs may use a fact that stands
    alone. `by` names in the error who requires it: an operator, or a function as `@name`.

    C1  there is at least one fact, and each is a relation of two expressions

    Source: paper §4.1 (checks at run time); TVM `relax.assert_op`.
    """

    any_of: ir.ArrayAttr
    by: ir.StringAttr

    @classmethod
    def build(cls, any_of: Sequence[Fact], by: str) -> "RequireOp":
        """Creates the check at the insertion point."""
        attributes = {
            "any_of": ir.ArrayAttr.get([ir.StringAttr.get(str(fact)) for fact in any_of]),
            "by": ir.StringAttr.get(by),
        }
        return ir.Operation.create(cls.OPERATION_NAME, attributes=attributes).opview

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts of which one has to hold; raises SymbolicError on malformed text."""
        texts = [ir.StringAttr(text).value for text in ir.ArrayAttr(self.attributes["any_of"])]
        return tuple(map(Fact.parse, texts))

    def check(self) -> None:
        """Raises ShapeError if there is nothing that could hold."""
        try:
            facts = self.facts
        except (SymbolicError, ValueError) as error:
            raise ShapeError(f"has a malformed 'any_of': {error}") from None
        if not facts:  # C1
            raise ShapeError("expects at least one fact")


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


class IsPresentOp(GraphOp, name="is_present", traits=[ext.Pure]):
    """Whether a caller has passed an optional argument, which Python leaves out as None.

        func.func @main(%x: !x, %w: !w {graph.optional}) -> !x {
          %0 = "graph.is_present"(%w) : (!w) -> i1
          %1 = scf.if %0 -> !x { ... reads %w ... } else { ... }

    Only the first region of an `scf.if` of this op itself reads such an argument; symbols that no
    other argument binds are in scope there alone.

    C1  the operand is an argument of an exported function that is marked `graph.optional`
    C2  the result is an i1

    Source: ONNX `OptionalHasElement`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]

    @classmethod
    def build(cls, value: ir.Value) -> "IsPresentOp":
        """Creates the op at the insertion point."""
        return ir.Operation.create(
            cls.OPERATION_NAME, results=[ir.IntegerType.get_signless(1)], operands=[value]
        ).opview

    def check(self) -> None:
        """Raises ShapeError: of optional arguments, none is left when rules are checked."""
        raise ShapeError("expects an argument of an exported function, marked 'graph.optional'")


class TensorToShapeOp(InferredOp, name="tensor_to_shape"):
    """Returns the elements of a tensor as a shape value, whose dims a match_cast can name.

        %1 = "graph.tensor_to_shape"(%0) : (tensor<2xi64>) -> !graph.shape_value<["?", "?"]>
        %2 = "graph.match_cast"(%1) : ... -> !graph.shape_value<["k", "m"]>

    A negative element ends the call with an error.

    C1  the operand has one dim, which is constant, and 4096 at most
    C2  its elements are i64 or index

    Source: TVM `relax.tensor_to_shape`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]

    @staticmethod
    def infer_return_type(input: TensorType) -> ir.Type:
        dims = input.dims
        if dims is None or len(dims) != 1 or dims[0] is None or dims[0].value is None:  # C1
            raise ShapeError(f"expects a tensor of one constant dim, but got '{input}'")
        if dims[0].value > MOST_DIMS:  # C1
            raise ShapeError(f"expects at most {MOST_DIMS} elements, but got '{input}'")
        if str(input.element) not in ("i64", "index"):  # C2
            raise ShapeError(f"expects elements of i64 or index, but got '{input}'")
        return shape_value_type([None] * dims[0].value)


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
