"""Tensor programs of element-wise operators of one tensor."""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir, math
from relax_mlir.dialects import graph

from ..kernel import KernelBuilder, elementwise, scalar
from ..scalars import (
    divide,
    from_compute,
    is_unsigned,
    maximum,
    minimum,
    multiply,
    negate,
    subtract,
    to_compute,
)
from ..scalars import (
    sigmoid as scalar_sigmoid,
)


def _map(kernel: KernelBuilder, body: Callable[[ir.Value], ir.Value]) -> None:
    """Applies `body` to each element, half precision widened to f32."""
    out = kernel.outs[0]
    element = ir.ShapedType(out.type).element_type

    def widened(x: ir.Value) -> ir.Value:
        result = body(to_compute(x))
        return from_compute(result, element) if isinstance(result.type, ir.F32Type) else result

    kernel.finish(elementwise(kernel.ins, out, widened))


def acos(op: graph.AcosOp, kernel: KernelBuilder) -> None:
    """`math.acos` of each element."""
    _map(kernel, lambda x: math.AcosOp(x).result)


def acosh(op: graph.AcoshOp, kernel: KernelBuilder) -> None:
    """`math.acosh` of each element."""
    _map(kernel, lambda x: math.AcoshOp(x).result)


def asin(op: graph.AsinOp, kernel: KernelBuilder) -> None:
    """`math.asin` of each element."""
    _map(kernel, lambda x: math.AsinOp(x).result)


def asinh(op: graph.AsinhOp, kernel: KernelBuilder) -> None:
    """`math.asinh` of each element."""
    _map(kernel, lambda x: math.AsinhOp(x).result)


def atan(op: graph.AtanOp, kernel: KernelBuilder) -> None:
    """`math.atan` of each element."""
    _map(kernel, lambda x: math.AtanOp(x).result)


def atanh(op: graph.AtanhOp, kernel: KernelBuilder) -> None:
    """`math.atanh` of each element."""
    _map(kernel, lambda x: math.AtanhOp(x).result)


def ceil(op: graph.CeilOp, kernel: KernelBuilder) -> None:
    """`math.ceil` of each element."""
    _map(kernel, lambda x: math.CeilOp(x).result)


def cos(op: graph.CosOp, kernel: KernelBuilder) -> None:
    """`math.cos` of each element."""
    _map(kernel, lambda x: math.CosOp(x).result)


def cosh(op: graph.CoshOp, kernel: KernelBuilder) -> None:
    """`math.cosh` of each element."""
    _map(kernel, lambda x: math.CoshOp(x).result)


def erf(op: graph.ErfOp, kernel: KernelBuilder) -> None:
    """`math.erf` of each element."""
    _map(kernel, lambda x: math.ErfOp(x).result)


def exp(op: graph.ExpOp, kernel: KernelBuilder) -> None:
    """`math.exp` of each element."""
    _map(kernel, lambda x: math.ExpOp(x).result)


def expm1(op: graph.Expm1Op, kernel: KernelBuilder) -> None:
    """`math.expm1` of each element."""
    _map(kernel, lambda x: math.ExpM1Op(x).result)


def floor(op: graph.FloorOp, kernel: KernelBuilder) -> None:
    """`math.floor` of each element."""
    _map(kernel, lambda x: math.FloorOp(x).result)


def log(op: graph.LogOp, kernel: KernelBuilder) -> None:
    """`math.log` of each element."""
    _map(kernel, lambda x: math.LogOp(x).result)


def log10(op: graph.Log10Op, kernel: KernelBuilder) -> None:
    """`math.log10` of each element."""
    _map(kernel, lambda x: math.Log10Op(x).result)


def log1p(op: graph.Log1pOp, kernel: KernelBuilder) -> None:
    """`math.log1p` of each element."""
    _map(kernel, lambda x: math.Log1pOp(x).result)


def log2(op: graph.Log2Op, kernel: KernelBuilder) -> None:
    """`math.log2` of each element."""
    _map(kernel, lambda x: math.Log2Op(x).result)


def round(op: graph.RoundOp, kernel: KernelBuilder) -> None:
    """`math.roundeven` of each element."""
    _map(kernel, lambda x: math.RoundEvenOp(x).result)


def rsqrt(op: graph.RsqrtOp, kernel: KernelBuilder) -> None:
    """`math.rsqrt` of each element."""
    _map(kernel, lambda x: math.RsqrtOp(x).result)


def sin(op: graph.SinOp, kernel: KernelBuilder) -> None:
    """`math.sin` of each element."""
    _map(kernel, lambda x: math.SinOp(x).result)


def sinh(op: graph.SinhOp, kernel: KernelBuilder) -> None:
    """`math.sinh` of each element."""
    _map(kernel, lambda x: math.SinhOp(x).result)


def sqrt(op: graph.SqrtOp, kernel: KernelBuilder) -> None:
    """`math.sqrt` of each element."""
    _map(kernel, lambda x: math.SqrtOp(x).result)


def tan(op: graph.TanOp, kernel: KernelBuilder) -> None:
    """`math.tan` of each element."""
    _map(kernel, lambda x: math.TanOp(x).result)


def tanh(op: graph.TanhOp, kernel: KernelBuilder) -> None:
    """`math.tanh` of each element."""
    _map(kernel, lambda x: math.TanhOp(x).result)


def trunc(op: graph.TruncOp, kernel: KernelBuilder) -> None:
    """`math.trunc` of each element."""
    _map(kernel, lambda x: math.TruncOp(x).result)


def abs(op: graph.AbsOp, kernel: KernelBuilder) -> None:
    """The magnitude of each element; the least integer stays."""

    def body(x: ir.Value) -> ir.Value:
        if is_unsigned(x):
            return x
        if isinstance(x.type, ir.IntegerType):
            return maximum(x, subtract(scalar(x.type, 0), x))
        return math.AbsFOp(x).result

    _map(kernel, body)


def negative(op: graph.NegativeOp, kernel: KernelBuilder) -> None:
    """The negated element; integers wrap."""

    def body(x: ir.Value) -> ir.Value:
        return subtract(scalar(x.type, 0), x) if isinstance(x.type, ir.IntegerType) else negate(x)

    _map(kernel, body)


def sign(op: graph.SignOp, kernel: KernelBuilder) -> None:
    """-1, 0 or 1; NaN stays."""

    def body(x: ir.Value) -> ir.Value:
        if is_unsigned(x):
            return minimum(x, scalar(x.type, 1))
        zero, one, minus_one = (scalar(x.type, value) for value in (0, 1, -1))
        if isinstance(x.type, ir.IntegerType):
            above = arith.CmpIOp(arith.CmpIPredicate.sgt, x, zero).result
            below = arith.CmpIOp(arith.CmpIPredicate.slt, x, zero).result
        else:
            above = arith.CmpFOp(arith.CmpFPredicate.OGT, x, zero).result
            below = arith.CmpFOp(arith.CmpFPredicate.OLT, x, zero).result
        other = x if isinstance(x.type, ir.FloatType) else zero
        negative = arith.SelectOp(below, minus_one, other).result
        return arith.SelectOp(above, one, negative).result

    _map(kernel, body)


def square(op: graph.SquareOp, kernel: KernelBuilder) -> None:
    """x * x."""
    _map(kernel, lambda x: multiply(x, x))


def reciprocal(op: graph.ReciprocalOp, kernel: KernelBuilder) -> None:
    """1 / x."""
    _map(kernel, lambda x: divide(scalar(x.type, 1), x))


def sigmoid(op: graph.SigmoidOp, kernel: KernelBuilder) -> None:
    """1 / (1 + exp(-x))."""
    _map(kernel, scalar_sigmoid)


def isnan(op: graph.IsnanOp, kernel: KernelBuilder) -> None:
    """x != x."""
    _map(kernel, lambda x: arith.CmpFOp(arith.CmpFPredicate.UNO, x, x).result)


def isinf(op: graph.IsinfOp, kernel: KernelBuilder) -> None:
    """abs(x) == infinity."""
    _map(kernel, lambda x: _compare_to_infinity(arith.CmpFPredicate.OEQ, x))


def isfinite(op: graph.IsfiniteOp, kernel: KernelBuilder) -> None:
    """abs(x) < infinity."""
    _map(kernel, lambda x: _compare_to_infinity(arith.CmpFPredicate.OLT, x))


def _compare_to_infinity(predicate: arith.CmpFPredicate, x: ir.Value) -> ir.Value:
    return arith.CmpFOp(predicate, math.AbsFOp(x).result, scalar(x.type, float("inf"))).result


def signbit(op: graph.SignbitOp, kernel: KernelBuilder) -> None:
    """True if the sign bit is set."""

    def body(x: ir.Value) -> ir.Value:
        integer = ir.IntegerType.get_signless(ir.FloatType(x.type).width)
        bits = arith.BitcastOp(integer, x).result
        return arith.CmpIOp(arith.CmpIPredicate.slt, bits, scalar(integer, 0)).result

    _map(kernel, body)


def bitwise_not(op: graph.BitwiseNotOp, kernel: KernelBuilder) -> None:
    """All bits inverted."""
    _map(kernel, lambda x: arith.XOrIOp(x, scalar(x.type, -1)).result)


def popcount(op: graph.PopcountOp, kernel: KernelBuilder) -> None:
    """`math.ctpop` of each element."""
    _map(kernel, lambda x: math.CtPopOp(x).result)


def logical_not(op: graph.LogicalNotOp, kernel: KernelBuilder) -> None:
    """The truth value inverted."""
    _map(kernel, lambda x: arith.XOrIOp(x, scalar(x.type, 1)).result)
