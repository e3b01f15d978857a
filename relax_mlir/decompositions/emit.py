"""What decompositions are written in: operators as functions, and constants of rank 0.

An operand may be a Python value, which becomes a constant of the other operand's element type.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError, TensorType
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import Expr

Operand: TypeAlias = ir.Value | float
MAX_CONSTANT = 4096
"""Elements of a constant that is written into a module rather than computed."""


def emit(op: type[graph.InferredOp], *operands: ir.Value | None, **attributes: Any) -> ir.Value:
    """The first result of an operator that is built at the insertion point."""
    return op.build(*operands, **attributes).operation.results[0]


def dims_of(value: ir.Value) -> tuple[Expr, ...]:
    """The dims of a tensor; raises ShapeError where one is unknown."""
    dims = graph.known_dims(TensorType.of(value).dims)
    if dims is None:
        raise ShapeError(f"expects known dims, but got '{TensorType.of(value)}'")
    return dims


def dims_text(dims: Sequence[Dim]) -> str:
    """Dims as messages have them: [n, 2]."""
    return f"[{', '.join(map(str, dims))}]"


def rank_of(value: ir.Value) -> int:
    """The count of dims of a tensor; raises ShapeError where it is unknown."""
    dims = TensorType.of(value).dims
    if dims is None:
        raise ShapeError(f"expects a known rank, but got '{TensorType.of(value)}'")
    return len(dims)


def element_of(value: ir.Value) -> ir.Type:
    """The element type of a tensor."""
    return TensorType.of(value).element


def is_integer(element: ir.Type) -> bool:
    """True for integers and `i1`."""
    return isinstance(element, ir.IntegerType)


def bounds_of(element: ir.IntegerType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if element.is_unsigned:
        return 0, (1 << element.width) - 1
    return -(1 << (element.width - 1)), (1 << (element.width - 1)) - 1


def least(element: ir.Type) -> float:
    """The least value of a type."""
    if isinstance(element, ir.IntegerType):
        return bounds_of(element)[0]
    return float("-inf")


def greatest(element: ir.Type) -> float:
    """The greatest value of a type."""
    if isinstance(element, ir.IntegerType):
        return bounds_of(element)[1]
    return float("inf")


def maker(value: ir.Value) -> ir.OpView | None:
    """The op that makes a value; None for an argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.opview


def scalar(value: float, element: ir.Type) -> ir.Value:
    """A constant of rank 0."""
    kind = ir.RankedTensorType.get([], graph.storage_element(element))
    return graph.constant(ir.DenseElementsAttr.get_splat(kind, _stored(value, element)), element)


def binary(op: type[graph.InferredOp], a: Operand, b: Operand) -> ir.Value:
    """An operator of two operands, of which one may be a Python value."""
    if not isinstance(a, ir.Value):
        assert isinstance(b, ir.Value)
        return emit(op, scalar(a, element_of(b)), b)
    return emit(op, a, b if isinstance(b, ir.Value) else scalar(b, element_of(a)))


def add(a: Operand, b: Operand) -> ir.Value:
    """The sum."""
    return binary(graph.AddOp, a, b)


def subtract(a: Operand, b: Operand) -> ir.Value:
    """The difference."""
    return binary(graph.SubtractOp, a, b)


def multiply(a: Operand, b: Operand) -> ir.Value:
    """The product."""
    return binary(graph.MultiplyOp, a, b)


def divide(a: Operand, b: Operand) -> ir.Value:
    """The quotient of floats."""
    return binary(graph.DivideOp, a, b)


def maximum(a: Operand, b: Operand) -> ir.Value:
    """The greater element."""
    return binary(graph.MaximumOp, a, b)


def minimum(a: Operand, b: Operand) -> ir.Value:
    """The smaller element."""
    return binary(graph.MinimumOp, a, b)


def greater(a: Operand, b: Operand) -> ir.Value:
    """Whether the first is greater."""
    return binary(graph.GreaterOp, a, b)


def less(a: Operand, b: Operand) -> ir.Value:
    """Whether the first is smaller."""
    return binary(graph.LessOp, a, b)


def where(condition: ir.Value, a: Operand, b: Operand) -> ir.Value:
    """The first where the condition holds, else the second."""
    if not isinstance(a, ir.Value):
        assert isinstance(b, ir.Value)
        a = scalar(a, element_of(b))
    return emit(
        graph.WhereOp, condition, a, b if isinstance(b, ir.Value) else scalar(b, element_of(a))
    )


def astype(value: ir.Value, element: ir.Type) -> ir.Value:
    """The elements in another type; the tensor itself if it has it."""
    return value if element_of(value) == element else emit(graph.AstypeOp, value, dtype=element)


def widen(value: ir.Value) -> ir.Value:
    """Half precision as f32, in which it is computed; other elements as they are."""
    half = isinstance(element_of(value), ir.F16Type | ir.BF16Type)
    return astype(value, ir.F32Type.get()) if half else value


def permute(value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The dims in another order; the tensor itself if they are in it."""
    if list(axes) == list(range(len(axes))):
        return value
    return emit(graph.PermuteDimsOp, value, axes=list(axes))


def reshape(value: ir.Value, dims: Sequence[Dim | int | str]) -> ir.Value:
    """The elements under other dims; the tensor itself if it has them."""
    if TensorType.of(value).dims == as_dims(dims):
        return value
    return emit(graph.ReshapeOp, value, shape=list(dims))


def concat(parts: Sequence[ir.Value], axis: int) -> ir.Value:
    """Tensors in a row along an axis; the tensor itself if there is one."""
    if len(parts) == 1:
        return parts[0]
    return graph.ConcatOp.build(*parts, axis=axis).operation.results[0]


def expand_dims(value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Dims of extent 1 at positions in the result; the tensor itself if there are none."""
    return emit(graph.ExpandDimsOp, value, axes=list(axes)) if axes else value


def with_dims(value: ir.Value, dims: Sequence[Expr]) -> ir.Value:
    """A tensor of these dims, which are asserted where its own are written otherwise."""
    annotation = TensorType.of(value).with_dims(list(dims))
    if annotation == TensorType.of(value):
        return value
    return graph.MatchCastOp.build(value, annotation).result


def broadcast_to(value: ir.Value, dims: Sequence[Dim | int | str]) -> ir.Value:
    """The elements repeated to reach the dims."""
    return emit(graph.BroadcastToOp, value, shape=list(dims))


def reduce(
    op: type[graph.InferredOp], value: ir.Value, axes: Sequence[int], keepdims: bool = False
) -> ir.Value:
    """A reduction over some axes; the tensor itself if there are none."""
    return emit(op, value, axes=list(axes), keepdims=keepdims) if axes else value


def per_channel(parameter: ir.Value, rank: int, axis: int = 1) -> ir.Value:
    """A tensor of rank 1 so that it broadcasts along an axis of tensors of that rank."""
    return expand_dims(parameter, [i for i in range(rank) if i != axis])


def vector(values: Sequence[float], element: ir.Type) -> ir.Value:
    """A constant of rank 1."""
    kind = ir.RankedTensorType.get([len(values)], graph.storage_element(element))
    stored = [_stored(value, element) for value in values]
    return graph.constant(ir.DenseElementsAttr.get(stored, kind), element)


def _stored(value: float, element: ir.Type) -> ir.Attribute:
    if isinstance(element, ir.IntegerType):
        return graph.stored_integer(element, int(value))
    return ir.FloatAttr.get(element, float(value))


def arange(start: Dim | int, count: Dim | int, step: int, element: ir.Type) -> ir.Value:
    """So many values from `start` by `step`; a constant where all are known."""
    first, length = graph.exact_dims(as_dims([start, count]))
    if first.value is not None and length.value and length.value <= MAX_CONSTANT:
        return vector([first.value + i * step for i in range(length.value)], element)
    return emit(graph.ArangeOp, bounds=[first, first + length * step, step], dtype=element)


def symbol(value: Dim | int, element: ir.Type) -> ir.Value:
    """The value of an expression, in a tensor that broadcasts."""
    (known,) = graph.exact_dims(as_dims([value]))
    if known.value is not None:
        return scalar(known.value, element)
    return emit(graph.ArangeOp, bounds=[known, known + 1, 1], dtype=element)


def floor_divide(a: Operand, b: Operand) -> ir.Value:
    """The greatest integer not above the quotient."""
    return binary(graph.FloorDivideOp, a, b)
