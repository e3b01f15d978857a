"""One step of the recurrent layers of ONNX, in one direction, and the activations that they name.

x      : the products of an element of the sequence with W, gate by gate, biases added
states : tensor<n, hidden> each: h, of an LSTM also c
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import Expr

from ..activations import clip, elu, hardsigmoid, leaky_relu, softplus, softsign, thresholded_relu
from ..emit import add, emit, multiply, subtract

Activation: TypeAlias = Callable[[ir.Value], ir.Value]
Product: TypeAlias = Callable[[ir.Value, ir.Value], ir.Value]


def plain_product(x: ir.Value, weights: ir.Value) -> ir.Value:
    """The product of floats."""
    return emit(graph.MatmulOp, x, weights)


def _affine(x: ir.Value, alpha: float, beta: float) -> ir.Value:
    return add(multiply(x, alpha), beta)


def _scaled_tanh(x: ir.Value, alpha: float, beta: float) -> ir.Value:
    return multiply(emit(graph.TanhOp, multiply(x, beta)), alpha)


_ACTIVATIONS: Mapping[str, tuple[Callable[..., ir.Value], Sequence[float]]] = {
    "Affine": (_affine, [1, 0]),
    "Elu": (elu, [1]),
    "HardSigmoid": (hardsigmoid, [0.2, 0.5]),
    "LeakyRelu": (leaky_relu, [0.01]),
    "Relu": (partial(emit, graph.ReluOp), []),
    "ScaledTanh": (_scaled_tanh, [1, 1]),
    "Sigmoid": (partial(emit, graph.SigmoidOp), []),
    "Softplus": (softplus, []),
    "Softsign": (softsign, []),
    "Tanh": (partial(emit, graph.TanhOp), []),
    "ThresholdedRelu": (thresholded_relu, [1]),
}


def activation_of(name: str, *factors: float) -> Activation:
    """An activation by its name in ONNX; factors are alpha and beta, where they differ from usual.

    Raises ShapeError for another name, and for factors that the activation does not have.
    """
    if name not in _ACTIVATIONS:
        raise ShapeError(f"expects one of {', '.join(_ACTIVATIONS)}, but got '{name}'")
    function, usual = _ACTIVATIONS[name]
    if len(factors) > len(usual):
        raise ShapeError(f"{name} has {len(usual)} factors, but got {len(factors)}")
    chosen = [*factors, *usual[len(factors) :]]
    return lambda x: function(x, *chosen)


@dataclass(frozen=True)
class Direction:
    """What one direction computes with, besides W.

    `weights` are parts of R, transposed, each for one product; `bias` is what is added to such a
    product; `peepholes` are those of the gates i, o and f.
    """

    hidden: Expr
    weights: Sequence[ir.Value]
    activations: Sequence[Activation]
    limit: float | None
    bias: ir.Value | None = None
    peepholes: Sequence[ir.Value] = ()
    multiply: Product = plain_product

    def activate(self, index: int, x: ir.Value) -> ir.Value:
        """An activation; its operand is between the limits, if there are any."""
        limited = x if self.limit is None else clip(x, -self.limit, self.limit)
        return self.activations[index](limited)

    def recur(self, index: int, state: ir.Value) -> ir.Value:
        """The product of a state with a part of R."""
        return self.multiply(state, self.weights[index])

    def gates(self, x: ir.Value, count: int) -> list[ir.Value]:
        """The parts of the gates."""
        split = graph.SplitOp.build(x, sizes=[self.hidden] * count, axis=1)
        return list(split.operation.results)


def rnn_step(own: Direction, x: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
    """h = f(x + h R)."""
    return [own.activate(0, add(x, own.recur(0, states[0])))]


def gru_step(own: Direction, x: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
    """h = (1 - z) g(x + (r h) R) + z h, with gates z, r and h of x."""
    (h,) = states
    update_reset, candidate = graph.SplitOp.build(
        x, sizes=[own.hidden * 2, own.hidden], axis=1
    ).operation.results
    z, r = own.gates(own.activate(0, add(update_reset, own.recur(0, h))), 2)
    new = own.activate(1, add(candidate, own.recur(1, multiply(r, h))))
    return [_mixed(z, h, new)]


def linear_gru_step(own: Direction, x: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
    """h = (1 - z) g(x + r (h R + bias)) + z h: the reset gate acts on the product."""
    (h,) = states
    product = own.recur(0, h)
    if own.bias is not None:
        product = add(product, own.bias)
    (xz, xr, xh), (hz, hr, hh) = own.gates(x, 3), own.gates(product, 3)
    z, r = own.activate(0, add(xz, hz)), own.activate(0, add(xr, hr))
    return [_mixed(z, h, own.activate(1, add(xh, multiply(r, hh))))]


def _mixed(z: ir.Value, old: ir.Value, new: ir.Value) -> ir.Value:
    return add(multiply(subtract(1, z), new), multiply(z, old))


def lstm_step(
    own: Direction, x: ir.Value, states: Sequence[ir.Value], input_forget: bool = False
) -> list[ir.Value]:
    """c = f c + i g(x + h R), h = o h(c), with gates i, o, f and c of x.

    Limits are for what enters gates, as ONNX Runtime has it: c stays as it is.
    """
    h, c = states
    i, o, f, g = own.gates(add(x, own.recur(0, h)), 4)
    if own.peepholes:
        i = add(i, multiply(own.peepholes[0], c))
        f = add(f, multiply(own.peepholes[2], c))
    i = own.activate(0, i)
    f = subtract(1, i) if input_forget else own.activate(0, f)
    c = add(multiply(f, c), multiply(i, own.activate(1, g)))
    if own.peepholes:
        o = add(o, multiply(own.peepholes[1], c))
    return [multiply(own.activate(0, o), own.activations[2](c)), c]
