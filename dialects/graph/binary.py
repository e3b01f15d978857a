"""Element-wise operators of two tensors (array API 2023.12 names; TVM `binary`).

Dims broadcast as in NumPy; element types are never promoted: frontends cast.
"""

from .elementwise import (
    BinaryOp,
    BitwiseBinaryOp,
    CompareOp,
    FloatBinaryOp,
    LogicalBinaryOp,
    broadcast_types,
    is_integer,
    require_one_element_type,
)
from .types import ShapeError, TensorType


class AddOp(BinaryOp, name="add"):
    """The sum; integers wrap.

    C1  both operands have one element type
    C2  the element type is a number (integer or float)
    C3  the dims broadcast
    """


class FloorDivideOp(BinaryOp, name="floor_divide"):
    """The greatest integer not above the exact quotient, rounded to the type.

    An integer divided by 0 gives 0, the least one by -1 itself. A float divided by 0 is infinite or
    NaN, a divided infinity NaN.

    C1  both operands have one element type
    C2  the element type is a number (integer or float)
    C3  the dims broadcast
    """


class MaximumOp(BinaryOp, name="maximum"):
    """The greater element; NaN if either is, 0 of 0 and -0.

    C1  both operands have one element type
    C2  the element type is a number (integer or float)
    C3  the dims broadcast
    """


class MinimumOp(BinaryOp, name="minimum"):
    """The smaller element; NaN if either is, -0 of 0 and -0.

    C1  both operands have one element type
    C2  the element type is a number (integer or float)
    C3  the dims broadcast
    """


class MultiplyOp(BinaryOp, name="multiply"):
    """The product; integers wrap.

    C1  both operands have one element type
    C2  the element type is a number (integer or float)
    C3  the dims broadcast
    """


class PowerOp(BinaryOp, name="power"):
    """The first operand to the power of the second, with the special values of C's pow.

    Integers wrap, and a negative exponent rounds the quotient towards 0; 0 has none and gives 0.

    C1  both operands have one element type
    C2  the element type is a number (integer or float)
    C3  the dims broadcast
    """


class RemainderOp(BinaryOp, name="remainder"):
    """What `floor_divide` leaves of lhs, with the sign of the divisor; an integer modulo 0 gives 0.

    C1  both operands have one element type
    C2  the element type is a number (integer or float)
    C3  the dims broadcast
    """


class SubtractOp(BinaryOp, name="subtract"):
    """The difference; integers wrap.

    C1  both operands have one element type
    C2  the element type is a number (integer or float)
    C3  the dims broadcast
    """


class Atan2Op(FloatBinaryOp, name="atan2"):
    """The angle of the point (rhs, lhs), in radians.

    C1  both operands have one element type
    C2  the element type is a float
    C3  the dims broadcast
    """


class CopysignOp(FloatBinaryOp, name="copysign"):
    """The magnitude of lhs with the sign of rhs.

    C1  both operands have one element type
    C2  the element type is a float
    C3  the dims broadcast
    """


class DivideOp(FloatBinaryOp, name="divide"):
    """The quotient.

    C1  both operands have one element type
    C2  the element type is a float
    C3  the dims broadcast
    """


class HypotOp(FloatBinaryOp, name="hypot"):
    """The length of the hypotenuse; infinite if an operand is, even beside NaN.

    C1  both operands have one element type
    C2  the element type is a float
    C3  the dims broadcast
    """


class LogaddexpOp(FloatBinaryOp, name="logaddexp"):
    """log(exp(lhs) + exp(rhs)), without overflow or cancellation.

    C1  both operands have one element type
    C2  the element type is a float
    C3  the dims broadcast
    """


class BitwiseAndOp(BitwiseBinaryOp, name="bitwise_and"):
    """Bits set in both.

    C1  both operands have one element type
    C2  the element type is an integer or `i1`
    C3  the dims broadcast
    """


class BitwiseOrOp(BitwiseBinaryOp, name="bitwise_or"):
    """Bits set in either.

    C1  both operands have one element type
    C2  the element type is an integer or `i1`
    C3  the dims broadcast
    """


class BitwiseXorOp(BitwiseBinaryOp, name="bitwise_xor"):
    """Bits set in exactly one.

    C1  both operands have one element type
    C2  the element type is an integer or `i1`
    C3  the dims broadcast
    """


class LogicalAndOp(LogicalBinaryOp, name="logical_and"):
    """True where both are.

    C1  both operands have one element type
    C2  the element type is `i1`
    C3  the dims broadcast
    """


class LogicalOrOp(LogicalBinaryOp, name="logical_or"):
    """True where either is.

    C1  both operands have one element type
    C2  the element type is `i1`
    C3  the dims broadcast
    """


class LogicalXorOp(LogicalBinaryOp, name="logical_xor"):
    """True where exactly one is.

    C1  both operands have one element type
    C2  the element type is `i1`
    C3  the dims broadcast
    """


class EqualOp(CompareOp, name="equal"):
    """True where lhs == rhs.

    C1  both operands have one element type
    C2  the dims broadcast
    """


class GreaterOp(CompareOp, name="greater"):
    """True where lhs > rhs.

    C1  both operands have one element type
    C2  the dims broadcast
    """


class GreaterEqualOp(CompareOp, name="greater_equal"):
    """True where lhs >= rhs.

    C1  both operands have one element type
    C2  the dims broadcast
    """


class LessOp(CompareOp, name="less"):
    """True where lhs < rhs.

    C1  both operands have one element type
    C2  the dims broadcast
    """


class LessEqualOp(CompareOp, name="less_equal"):
    """True where lhs <= rhs.

    C1  both operands have one element type
    C2  the dims broadcast
    """


class NotEqualOp(CompareOp, name="not_equal"):
    """True where lhs != rhs.

    C1  both operands have one element type
    C2  the dims broadcast
    """


class _ShiftOp(BitwiseBinaryOp):
    """Moves the bits of integers."""

    @staticmethod
    def infer_return_type(lhs: TensorType, rhs: TensorType) -> TensorType:
        """C1: one element type; C2: it is an integer; C3: the dims broadcast."""
        require_one_element_type(lhs, rhs)
        if not is_integer(lhs.element):
            raise ShapeError(f"expects an integer element type, but got {lhs.element}")
        return broadcast_types(lhs, rhs)


class LeftShiftOp(_ShiftOp, name="left_shift"):
    """Bits of lhs moved up by rhs places; zeros come in, nothing else by the width or more.

    C1  both operands have one element type
    C2  the element type is an integer
    C3  the dims broadcast
    """


class LogicalRightShiftOp(_ShiftOp, name="logical_right_shift"):
    """Bits moved down, zeros coming in; a shift by the width or more gives 0.

    C1  both operands have one element type
    C2  the element type is an integer
    C3  the dims broadcast

    Source: StableHLO `shift_right_logical`; ONNX `BitShift`.
    """


class RightShiftOp(_ShiftOp, name="right_shift"):
    """Bits of lhs moved down by rhs places; the sign comes in, nothing else by the width or more.

    C1  both operands have one element type
    C2  the element type is an integer
    C3  the dims broadcast
    """
