"""What the element-wise families share: their base classes, one rule each."""

from typing import Any

from relax_mlir.bindings import ext, ir

from .broadcasting import broadcast
from .op import InferredOp
from .types import ShapeError, TensorType, is_small_float

FLOATS = (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type)


def is_float(element: ir.Type) -> bool:
    """True for f16, bf16, f32 and f64."""
    return isinstance(element, FLOATS)


def is_bool(element: ir.Type) -> bool:
    """True for i1."""
    return isinstance(element, ir.IntegerType) and element.is_signless and element.width == 1


def is_integer(element: ir.Type) -> bool:
    """True for integers wider than a bit: signless ones, which count as signed, and unsigned."""
    return isinstance(element, ir.IntegerType) and not element.is_signed and element.width > 1


def require_float(annotation: TensorType) -> None:
    """Raises ShapeError unless the element type is a float."""
    if not is_float(annotation.element):
        raise ShapeError(f"expects a float element type, but got {annotation.element}")


def require_number(annotation: TensorType) -> None:
    """Raises ShapeError unless the element type is a float or an integer."""
    if not is_float(annotation.element) and not is_integer(annotation.element):
        raise ShapeError(f"expects a number element type, but got {annotation.element}")


def require_integer_or_bool(annotation: TensorType) -> None:
    """Raises ShapeError unless the element type is an integer or `i1`."""
    if not is_integer(annotation.element) and not is_bool(annotation.element):
        raise ShapeError(f"expects an integer or i1 element type, but got {annotation.element}")


def require_bool(annotation: TensorType) -> None:
    """Raises ShapeError unless the element type is `i1`."""
    if not is_bool(annotation.element):
        raise ShapeError(f"expects element type i1, but got {annotation.element}")


def require_one_element_type(*annotations: TensorType) -> None:
    """Raises ShapeError unless all element types are the same."""
    first = annotations[0].element
    for other in annotations[1:]:
        if other.element != first:
            raise ShapeError(f"expects one element type, but got {first} and {other.element}")


def broadcast_types(*annotations: TensorType) -> TensorType:
    """Broadcasts the dims; the element type is the first one's."""
    shapes = [annotation.dims for annotation in annotations if annotation.dims is not None]
    known = len(shapes) == len(annotations)
    return TensorType(broadcast(*shapes) if known else None, annotations[0].element)


class UnaryOp(InferredOp, traits=[ext.Pure]):
    """Applies a function to every element; the result has the operand's annotation."""

    result: ext.Result[Any]
    input: ext.Operand[Any]

    @staticmethod
    def infer_return_type(input: TensorType) -> TensorType:
        """C1: the element type is a number."""
        require_number(input)
        return input


class FloatUnaryOp(UnaryOp):
    """Applies a function that is defined for floats only."""

    @staticmethod
    def infer_return_type(input: TensorType) -> TensorType:
        """C1: the element type is a float."""
        require_float(input)
        return input


class BinaryOp(InferredOp, traits=[ext.Pure]):
    """Combines two tensors element by element, broadcasting as NumPy does."""

    result: ext.Result[Any]
    lhs: ext.Operand[Any]
    rhs: ext.Operand[Any]

    @staticmethod
    def infer_return_type(lhs: TensorType, rhs: TensorType) -> TensorType:
        """C1: one element type; C2: it is a number; C3: the dims broadcast."""
        require_one_element_type(lhs, rhs)
        require_number(lhs)
        return broadcast_types(lhs, rhs)


class FloatBinaryOp(BinaryOp):
    """Combines two float tensors."""

    @staticmethod
    def infer_return_type(lhs: TensorType, rhs: TensorType) -> TensorType:
        """C1: one element type; C2: it is a float; C3: the dims broadcast."""
        require_one_element_type(lhs, rhs)
        require_float(lhs)
        return broadcast_types(lhs, rhs)


class BitwiseBinaryOp(BinaryOp):
    """Combines two tensors of integers or booleans bit by bit."""

    @staticmethod
    def infer_return_type(lhs: TensorType, rhs: TensorType) -> TensorType:
        """C1: one element type; C2: it is an integer or `i1`; C3: the dims broadcast."""
        require_one_element_type(lhs, rhs)
        require_integer_or_bool(lhs)
        return broadcast_types(lhs, rhs)


class LogicalBinaryOp(BinaryOp):
    """Combines two boolean tensors."""

    @staticmethod
    def infer_return_type(lhs: TensorType, rhs: TensorType) -> TensorType:
        """C1: one element type; C2: it is `i1`; C3: the dims broadcast."""
        require_one_element_type(lhs, rhs)
        require_bool(lhs)
        return broadcast_types(lhs, rhs)


class CompareOp(BinaryOp):
    """Compares two tensors element by element; the result is of `i1`."""

    @staticmethod
    def infer_return_type(lhs: TensorType, rhs: TensorType) -> TensorType:
        """C1: one element type, no float of 8 bits; C2: the dims broadcast."""
        require_one_element_type(lhs, rhs)
        if is_small_float(lhs.element):
            raise ShapeError(f"compares no elements of {lhs.element}: convert them to f32")
        return TensorType(broadcast_types(lhs, rhs).dims, ir.IntegerType.get_signless(1))
