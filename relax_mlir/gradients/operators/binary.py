"""Gradients of element-wise operators of two tensors, and of `where`.

What broadcasting repeats is summed by `Reverse.add`. Of two equal elements, each is half of the
greater one.
"""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    binary,
    divide,
    element_of,
    emit,
    less,
    multiply,
    scalar,
    subtract,
    where,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions


def _negative(x: ir.Value) -> ir.Value:
    return emit(graph.NegativeOp, x)


def _equal(a: ir.Value, b: ir.Value | float) -> ir.Value:
    return binary(graph.EqualOp, a, b)


def add_(op: graph.AddOp, adjoint: Adjoint) -> Contributions:
    """Both get all of it."""
    yield op.lhs, adjoint.seed
    yield op.rhs, adjoint.seed


def subtract_(op: graph.SubtractOp, adjoint: Adjoint) -> Contributions:
    """The second gets it with the sign changed."""
    yield op.lhs, adjoint.seed
    if adjoint.wants(op.rhs):
        yield op.rhs, _negative(adjoint.seed)


def multiply_(op: graph.MultiplyOp, adjoint: Adjoint) -> Contributions:
    """Each gets it times the other."""
    seed = widen(adjoint.seed)
    if adjoint.wants(op.lhs):
        yield op.lhs, multiply(seed, widen(op.rhs))
    if adjoint.wants(op.rhs):
        yield op.rhs, multiply(seed, widen(op.lhs))


def divide_(op: graph.DivideOp, adjoint: Adjoint) -> Contributions:
    """g / b, and -g * (a / b) / b."""
    a, b = widen(op.lhs), widen(op.rhs)
    share = divide(widen(adjoint.seed), b)
    yield op.lhs, share
    if adjoint.wants(op.rhs):
        yield op.rhs, _negative(multiply(share, divide(a, b)))


def power(op: graph.PowerOp, adjoint: Adjoint) -> Contributions:
    """g * b * a^(b - 1), 0 for b = 0; g * a^b * log(a), 0 for a = 0 and b >= 0."""
    a, b, seed = widen(op.lhs), widen(op.rhs), widen(adjoint.seed)
    if adjoint.wants(op.lhs):
        slope = multiply(b, binary(graph.PowerOp, a, subtract(b, 1)))
        yield op.lhs, multiply(seed, where(_equal(b, 0), 0, slope))
    if adjoint.wants(op.rhs):
        flat = emit(graph.LogicalAndOp, _equal(a, 0), binary(graph.GreaterEqualOp, b, 0))
        slope = multiply(emit(graph.PowerOp, a, b), emit(graph.LogOp, a))
        yield op.rhs, multiply(seed, where(flat, 0, slope))


def remainder(op: graph.RemainderOp, adjoint: Adjoint) -> Contributions:
    """A - b * floor(a / b), of which the floor is constant."""
    yield op.lhs, adjoint.seed
    if adjoint.wants(op.rhs):
        quotient = emit(graph.FloorDivideOp, widen(op.lhs), widen(op.rhs))
        yield op.rhs, _negative(multiply(widen(adjoint.seed), quotient))


def floor_divide(op: graph.FloorDivideOp, adjoint: Adjoint) -> Contributions:
    """Zero: between its steps a step function is constant."""
    yield from ()


def extremum(op: graph.MaximumOp | graph.MinimumOp, adjoint: Adjoint) -> Contributions:
    """The element that is the result gets it; of equal ones each gets half, as in ATen."""
    half = where(_equal(op.lhs, op.rhs), multiply(adjoint.seed, 0.5), adjoint.seed)
    for own, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if adjoint.wants(own):
            pair = (own, other) if isinstance(op, graph.MaximumOp) else (other, own)
            yield own, where(less(*pair), 0, half)


def atan2(op: graph.Atan2Op, adjoint: Adjoint) -> Contributions:
    """For y and x: g * x / (x^2 + y^2), and -g * y / (x^2 + y^2)."""
    y, x = widen(op.lhs), widen(op.rhs)
    radius = emit(graph.HypotOp, y, x)
    share = divide(widen(adjoint.seed), radius)
    if adjoint.wants(op.lhs):
        yield op.lhs, multiply(share, divide(x, radius))
    if adjoint.wants(op.rhs):
        yield op.rhs, _negative(multiply(share, divide(y, radius)))


def hypot(op: graph.HypotOp, adjoint: Adjoint) -> Contributions:
    """Each cathetus by the hypotenuse; 0 where that is 0."""
    a, b, seed = widen(op.lhs), widen(op.rhs), widen(adjoint.seed)
    length = emit(graph.HypotOp, a, b)
    share = where(_equal(length, 0), 0, divide(seed, length))
    if adjoint.wants(op.lhs):
        yield op.lhs, multiply(share, a)
    if adjoint.wants(op.rhs):
        yield op.rhs, multiply(share, b)


def copysign(op: graph.CopysignOp, adjoint: Adjoint) -> Contributions:
    """1 where the sign stays, -1 where it changes, 0 at 0."""
    sign = emit(graph.CopysignOp, scalar(1, element_of(op.rhs)), op.rhs)
    yield op.lhs, multiply(adjoint.seed, multiply(emit(graph.SignOp, op.lhs), sign))


def logaddexp(op: graph.LogaddexpOp, adjoint: Adjoint) -> Contributions:
    """The share of each in the sum of exponentials; of equal ones, infinite ones too, a half."""
    a, b, seed = widen(op.lhs), widen(op.rhs), widen(adjoint.seed)
    equal = _equal(a, b)
    for operand, own, other in ((op.lhs, a, b), (op.rhs, b, a)):
        if adjoint.wants(operand):
            share = emit(graph.SigmoidOp, subtract(own, other))
            yield operand, multiply(seed, where(equal, 0.5, share))


def where_(op: graph.WhereOp, adjoint: Adjoint) -> Contributions:
    """The operand that the condition selects gets it."""
    if adjoint.wants(op.x):
        yield op.x, where(op.condition, adjoint.seed, 0)
    if adjoint.wants(op.y):
        yield op.y, where(op.condition, 0, adjoint.seed)


def astype_(op: graph.AstypeOp, adjoint: Adjoint) -> Contributions:
    """The gradient in the type of the operand."""
    yield op.input, astype(adjoint.seed, element_of(op.input))
