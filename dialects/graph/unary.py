"""Element-wise operators of one tensor (array API 2023.12 names; TVM `unary`)."""

from relax_mlir.bindings import ir

from .elementwise import (
    FloatUnaryOp,
    UnaryOp,
    is_integer,
    require_bool,
    require_float,
    require_integer_or_bool,
)
from .types import ShapeError, TensorType


class AbsOp(UnaryOp, name="abs"):
    """Each element becomes the absolute value; the least integer stays.

    C1  the element type is a number (integer or float)
    """


class NegativeOp(UnaryOp, name="negative"):
    """Each element becomes the value with its sign changed; integers wrap.

    C1  the element type is a number (integer or float)
    """


class SignOp(UnaryOp, name="sign"):
    """Each element becomes -1 or 1 by the sign; zeros and NaN stay.

    C1  the element type is a number (integer or float)
    """


class SquareOp(UnaryOp, name="square"):
    """Each element becomes the square; integers wrap.

    C1  the element type is a number (integer or float)
    """


class AcosOp(FloatUnaryOp, name="acos"):
    """Each element becomes the inverse cosine, in radians.

    C1  the element type is a float
    """


class AcoshOp(FloatUnaryOp, name="acosh"):
    """Each element becomes the inverse hyperbolic cosine.

    C1  the element type is a float
    """


class AsinOp(FloatUnaryOp, name="asin"):
    """Each element becomes the inverse sine, in radians.

    C1  the element type is a float
    """


class AsinhOp(FloatUnaryOp, name="asinh"):
    """Each element becomes the inverse hyperbolic sine.

    C1  the element type is a float
    """


class AtanOp(FloatUnaryOp, name="atan"):
    """Each element becomes the inverse tangent, in radians.

    C1  the element type is a float
    """


class AtanhOp(FloatUnaryOp, name="atanh"):
    """Each element becomes the inverse hyperbolic tangent.

    C1  the element type is a float
    """


class CeilOp(FloatUnaryOp, name="ceil"):
    """Each element becomes the least integer not below.

    C1  the element type is a float
    """


class CosOp(FloatUnaryOp, name="cos"):
    """Each element becomes the cosine of radians.

    C1  the element type is a float
    """


class CoshOp(FloatUnaryOp, name="cosh"):
    """Each element becomes the hyperbolic cosine.

    C1  the element type is a float
    """


class ErfOp(FloatUnaryOp, name="erf"):
    """Each element becomes the error function.

    C1  the element type is a float
    """


class ExpOp(FloatUnaryOp, name="exp"):
    """Each element becomes e to the power.

    C1  the element type is a float
    """


class Expm1Op(FloatUnaryOp, name="expm1"):
    """Each element becomes e to the power, less 1, exact near 0.

    C1  the element type is a float
    """


class FloorOp(FloatUnaryOp, name="floor"):
    """Each element becomes the greatest integer not above.

    C1  the element type is a float
    """


class LogOp(FloatUnaryOp, name="log"):
    """Each element becomes the natural logarithm.

    C1  the element type is a float
    """


class Log10Op(FloatUnaryOp, name="log10"):
    """Each element becomes the decimal logarithm.

    C1  the element type is a float
    """


class Log1pOp(FloatUnaryOp, name="log1p"):
    """Each element becomes the natural logarithm of 1 plus, exact near 0.

    C1  the element type is a float
    """


class Log2Op(FloatUnaryOp, name="log2"):
    """Each element becomes the binary logarithm.

    C1  the element type is a float
    """


class ReciprocalOp(FloatUnaryOp, name="reciprocal"):
    """Each element becomes 1 divided by the element.

    C1  the element type is a float
    """


class RoundOp(FloatUnaryOp, name="round"):
    """Each element becomes the nearest integer, ties to even.

    C1  the element type is a float
    """


class RsqrtOp(FloatUnaryOp, name="rsqrt"):
    """Each element becomes 1 divided by the square root.

    C1  the element type is a float
    """


class SigmoidOp(FloatUnaryOp, name="sigmoid"):
    """Each element becomes 1 / (1 + exp(-x)).

    C1  the element type is a float
    """


class SinOp(FloatUnaryOp, name="sin"):
    """Each element becomes the sine of radians.

    C1  the element type is a float
    """


class SinhOp(FloatUnaryOp, name="sinh"):
    """Each element becomes the hyperbolic sine.

    C1  the element type is a float
    """


class SqrtOp(FloatUnaryOp, name="sqrt"):
    """Each element becomes the square root.

    C1  the element type is a float
    """


class TanOp(FloatUnaryOp, name="tan"):
    """Each element becomes the tangent of radians.

    C1  the element type is a float
    """


class TanhOp(FloatUnaryOp, name="tanh"):
    """Each element becomes the hyperbolic tangent.

    C1  the element type is a float
    """


class TruncOp(FloatUnaryOp, name="trunc"):
    """Each element becomes the integer part.

    C1  the element type is a float
    """


class _PredicateOp(FloatUnaryOp):
    """Asks each element a question; the result is of `i1`."""

    @staticmethod
    def infer_return_type(input: TensorType) -> TensorType:
        """C1: the element type is a float."""
        require_float(input)
        return TensorType(input.dims, ir.IntegerType.get_signless(1))


class IsfiniteOp(_PredicateOp, name="isfinite"):
    """True where an element is neither infinite nor NaN.

    C1  the element type is a float
    """


class IsinfOp(_PredicateOp, name="isinf"):
    """True where an element is infinite.

    C1  the element type is a float
    """


class IsnanOp(_PredicateOp, name="isnan"):
    """True where an element is NaN.

    C1  the element type is a float
    """


class SignbitOp(_PredicateOp, name="signbit"):
    """True where an element is of negative sign, -0.0 included.

    C1  the element type is a float
    """


class BitwiseNotOp(UnaryOp, name="bitwise_not"):
    """Each bit of an element is inverted.

    C1  the element type is an integer or `i1`
    """

    @staticmethod
    def infer_return_type(input: TensorType) -> TensorType:
        require_integer_or_bool(input)  # C1
        return input


class PopcountOp(UnaryOp, name="popcount"):
    """The count of bits of an element that are 1, those of two's complement where it is negative.

    C1  the element type is an integer

    Source: StableHLO `popcnt`.
    """

    @staticmethod
    def infer_return_type(input: TensorType) -> TensorType:
        if not is_integer(input.element):  # C1
            raise ShapeError(f"expects an integer element type, but got {input.element}")
        return input


class LogicalNotOp(UnaryOp, name="logical_not"):
    """Each truth value is inverted.

    C1  the element type is `i1`
    """

    @staticmethod
    def infer_return_type(input: TensorType) -> TensorType:
        require_bool(input)  # C1
        return input
