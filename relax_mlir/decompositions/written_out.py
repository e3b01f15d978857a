"""Activations that a model writes out, as the operators that they are.

    x * (1 + erf(x / sqrt(2))) / 2                                  ->  nn_gelu(x)
    x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2         ->  nn_gelu_tanh(x)

Models differ in the order of factors and in where constants are. So an expression of a few such ops
of one value is evaluated at some points, and is the activation if all results agree. At -infinity
operators give their limit, 0, where a product of 0 and infinity is NaN.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects import graph

from .emit import element_of, maker

_erf = np.vectorize(math.erf, otypes=[np.float64])
_EVALUATED: dict[type[graph.GraphOp], Callable[..., np.ndarray]] = {
    graph.ErfOp: _erf,
    graph.TanhOp: np.tanh,
    graph.AddOp: np.add,
    graph.SubtractOp: np.subtract,
    graph.MultiplyOp: np.multiply,
    graph.DivideOp: np.divide,
    graph.PowerOp: np.power,
    graph.SquareOp: np.square,
}
_OPERATORS = tuple(_EVALUATED)
_PASSED_ON = (graph.BroadcastToOp, graph.ExpandDimsOp, graph.FullOp, graph.ReshapeOp)
"""What gives a tensor the value of a scalar."""
_MOST = 16
"""Ops that are looked at; the activations have 5 to 9."""
_POINTS = np.array([-9.0, -4.1, -2.3, -1.2, -0.6, -0.1, 0.0, 0.01, 0.4, 0.9, 1.7, 3.1, 5.2, 8.3])
_ACCURACY = {"f64": 1e-7, "f32": 1e-6, "f16": 4e-3, "bf16": 3e-2}
"""By which results may differ, relative to the point: models round constants to f32, or less."""


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + _erf(x / math.sqrt(2))) / 2


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


_ACTIVATIONS = {graph.ErfOp: (graph.GeluOp, _gelu), graph.TanhOp: (graph.GeluTanhOp, _gelu_tanh)}
"""The operator and its meaning, by the function in it."""


def written_out(value: ir.Value) -> ir.Value | None:
    """The activation that a value is, built as an operator; None if it is none."""
    accuracy = _ACCURACY.get(str(element_of(value)))
    ops = [] if accuracy is None else _expression(value)
    known = {_ACTIVATIONS[type(op)] for op in ops if isinstance(op, graph.ErfOp | graph.TanhOp)}
    uses = Counter(operand for op in ops for operand in op.operands if known)
    for x, count in uses.items():
        results = _results(value, {x: _POINTS}) if count > 1 and x.type == value.type else None
        for operator, activation in known if results is not None else ():
            if np.all(np.abs(results - activation(_POINTS)) <= accuracy * np.abs(_POINTS)):
                return operator.build(x).result
    return None


def _expression(value: ir.Value) -> Sequence[ir.OpView]:
    """The ops that compute a value, those next to it first, as many as an activation may have."""
    expression: dict[ir.Value, ir.OpView] = {}
    waiting = [value]
    for each in waiting:
        op = maker(each)
        if each not in expression and isinstance(op, _OPERATORS) and len(expression) < _MOST:
            expression[each] = op
            waiting += op.operands
    return list(expression.values())


def _results(value: ir.Value, known: dict[ir.Value, np.ndarray]) -> np.ndarray | None:
    """The results of an expression of known values; None if it has others."""
    if value in known:
        return known[value]
    op = maker(value)
    if not isinstance(op, _OPERATORS):
        return _constant(value)
    operands = [_results(operand, known) for operand in op.operands]
    if any(each is None for each in operands):
        return None
    with np.errstate(all="ignore"):
        known[value] = _EVALUATED[type(op)](*operands)
    return known[value]


def _constant(value: ir.Value) -> np.ndarray | None:
    """The value that all elements of a constant are."""
    op = maker(value)
    while isinstance(op, _PASSED_ON):
        op = maker(op.operands[0])
    elements = op.attributes["value"] if isinstance(op, arith.ConstantOp) else None
    if not isinstance(elements, ir.DenseElementsAttr) or not elements.is_splat:
        return None
    element = elements.get_splat_value()
    return np.array(element.value) if isinstance(element, ir.FloatAttr) else None
