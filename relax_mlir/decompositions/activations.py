"""Activations that element-wise operators make; half precision is computed in f32.

Where a factor goes to 0 faster than the element goes to infinity, the result is the limit, 0.
"""

from collections.abc import Callable
from functools import wraps

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, normalize_axis

from .emit import (
    Operand,
    add,
    arange,
    astype,
    binary,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greater,
    less,
    maximum,
    minimum,
    multiply,
    rank_of,
    subtract,
    where,
    widen,
)

Activation = Callable[..., ir.Value]
_LOWEST = -1000.0
"""Sigmoids and exponentials of less are 0 in each type."""


def _rounded_once(activation: Activation) -> Activation:
    """Widens the element-wise operands, and rounds the result to the type of the first one."""

    @wraps(activation)
    def rounded(x: ir.Value, *operands: Operand, **settings: Operand) -> ir.Value:
        others = [widen(y) if isinstance(y, ir.Value) else y for y in operands]
        return astype(activation(widen(x), *others, **settings), element_of(x))

    return rounded


def clip(x: ir.Value, low: Operand | None = None, high: Operand | None = None) -> ir.Value:
    """The element, `low` if it is less, then `high` if it is greater. Source: ONNX `Clip`."""
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


def relu6(x: ir.Value) -> ir.Value:
    """The element, from 0 to 6. Source: ATen `relu6`."""
    return clip(x, 0, 6)


def hardtanh(x: ir.Value, low: float = -1, high: float = 1) -> ir.Value:
    """The element, from `low` to `high`. Source: ATen `hardtanh`."""
    return clip(x, low, high)


@_rounded_once
def hardsigmoid(x: ir.Value, alpha: float = 1 / 6, beta: float = 0.5) -> ir.Value:
    """alpha * x + beta, from 0 to 1. Source: ATen `hardsigmoid`; ONNX, where alpha is 0.2."""
    return clip(add(multiply(x, alpha), beta), 0, 1)


@_rounded_once
def hardswish(x: ir.Value) -> ir.Value:
    """x * hardsigmoid(x), exact near -3. Source: arXiv 1905.02244; ONNX `HardSwish`."""
    share = divide(clip(add(x, 3), 0, 6), 6)
    return multiply(maximum(x, _LOWEST), share)


@_rounded_once
def leaky_relu(x: ir.Value, slope: float = 0.01) -> ir.Value:
    """x, or slope * x below 0. Source: ONNX `LeakyRelu`."""
    return where(less(x, 0), multiply(x, slope), x)


@_rounded_once
def prelu(x: ir.Value, slope: ir.Value) -> ir.Value:
    """x, or slope * x below 0, of a slope that broadcasts. Source: ONNX `PRelu`."""
    return where(less(x, 0), multiply(x, slope), x)


@_rounded_once
def thresholded_relu(x: ir.Value, alpha: float = 1) -> ir.Value:
    """x above alpha, else 0. Source: ONNX `ThresholdedRelu`; ATen `threshold`."""
    return where(greater(x, alpha), x, 0)


@_rounded_once
def elu(x: ir.Value, alpha: float = 1) -> ir.Value:
    """x, or alpha * (exp(x) - 1) up to 0. Source: arXiv 1511.07289; ONNX `Elu`."""
    return where(greater(x, 0), x, multiply(emit(graph.Expm1Op, x), alpha))


@_rounded_once
def selu(
    x: ir.Value, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805
) -> ir.Value:
    """gamma times the elu. Source: arXiv 1706.02515; ONNX `Selu`."""
    below = multiply(emit(graph.Expm1Op, x), alpha * gamma)
    return where(greater(x, 0), multiply(x, gamma), below)


@_rounded_once
def celu(x: ir.Value, alpha: float = 1) -> ir.Value:
    """x, or alpha * (exp(x / alpha) - 1) up to 0. Source: arXiv 1704.07483; ONNX `Celu`."""
    if alpha <= 0:
        raise ShapeError(f"expects a positive alpha, but got {alpha}")
    below = multiply(emit(graph.Expm1Op, divide(x, alpha)), alpha)
    return where(greater(x, 0), x, below)


@_rounded_once
def softplus(x: ir.Value, beta: float = 1) -> ir.Value:
    """log(1 + exp(beta * x)) / beta. Source: ONNX `Softplus`; ATen `softplus`."""
    if beta <= 0:
        raise ShapeError(f"expects a positive beta, but got {beta}")
    return _softplus(x) if beta == 1 else divide(_softplus(multiply(x, beta)), beta)


def _softplus(x: ir.Value) -> ir.Value:
    return binary(graph.LogaddexpOp, x, 0)


@_rounded_once
def log_sigmoid(x: ir.Value) -> ir.Value:
    """log(sigmoid(x)), without underflow. Source: ATen `log_sigmoid`."""
    return emit(graph.NegativeOp, _softplus(emit(graph.NegativeOp, x)))


@_rounded_once
def mish(x: ir.Value) -> ir.Value:
    """x * tanh(softplus(x)). Source: arXiv 1908.08681; ONNX `Mish`."""
    return multiply(maximum(x, _LOWEST), emit(graph.TanhOp, _softplus(x)))


@_rounded_once
def softsign(x: ir.Value) -> ir.Value:
    """x / (1 + |x|), which goes to 1 and -1. Source: ONNX `Softsign`."""
    most = 1e308 if isinstance(element_of(x), ir.F64Type) else 3e38
    finite = clip(x, -most, most)
    return divide(finite, add(emit(graph.AbsOp, finite), 1))


@_rounded_once
def swish(x: ir.Value, beta: float = 1) -> ir.Value:
    """x * sigmoid(beta * x). Source: arXiv 1710.05941; ONNX `Swish`."""
    if beta == 0:
        return multiply(x, 0.5)
    if beta == 1:
        return emit(graph.SiluOp, x)
    return divide(emit(graph.SiluOp, multiply(x, beta)), beta)


def quick_gelu(x: ir.Value) -> ir.Value:
    """x * sigmoid(1.702 * x). Source: arXiv 1606.08415, section 2."""
    return swish(x, beta=1.702)


@_rounded_once
def shrink(x: ir.Value, threshold: float = 0.5, bias: float = 0) -> ir.Value:
    """`bias` nearer to 0, where |x| is above the threshold, else 0. Source: ONNX `Shrink`."""
    above, below = greater(x, threshold), less(x, -threshold)
    nearer = where(above, subtract(x, bias), 0)
    return where(below, add(x, bias), nearer)


def hardmax(x: ir.Value, axis: int = -1) -> ir.Value:
    """1 at the first greatest element of an axis, else 0. Source: ONNX `Hardmax`."""
    position = normalize_axis(axis, rank_of(x))
    first = emit(graph.ArgmaxOp, x, axis=position, keepdims=True)
    i64 = ir.IntegerType.get_signless(64)
    indices = arange(0, dims_of(x)[position], 1, i64)
    aligned = expand_dims(indices, range(1, rank_of(x) - position))
    return astype(emit(graph.EqualOp, first, aligned), element_of(x))


def glu(x: ir.Value, axis: int = -1) -> ir.Value:
    """The first half of an axis times the sigmoid of the second. Source: ATen `glu`."""
    return _rounded_once(_gated)(*_halves(x, axis))


def swiglu(x: ir.Value, axis: int = -1) -> ir.Value:
    """The silu of the first half of an axis times the second. Source: arXiv 2002.05202."""
    gate, value = _halves(x, axis)
    return _rounded_once(lambda g, v: multiply(emit(graph.SiluOp, g), v))(gate, value)


def _gated(value: ir.Value, gate: ir.Value) -> ir.Value:
    return multiply(value, emit(graph.SigmoidOp, gate))


def _halves(x: ir.Value, axis: int) -> tuple[ir.Value, ir.Value]:
    position = normalize_axis(axis, rank_of(x))
    dim = dims_of(x)[position]
    if dim.value is not None and dim.value % 2:
        raise ShapeError(f"halves dim {position} of {dim}")
    sizes = [dim // 2, dim // 2]
    first, second = graph.SplitOp.build(x, sizes=sizes, axis=position).operation.results
    return first, second
