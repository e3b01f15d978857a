"""Optimizers: what a step makes of a parameter, its gradient and the state that is carried.

Half precision is computed in f32, and so is its state. Source: `torch.optim`; TVM
`training.optimizer`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    binary,
    divide,
    element_of,
    emit,
    multiply,
    scalar,
    subtract,
)
from relax_mlir.dialects import graph

State = Sequence[ir.Value]


@dataclass(frozen=True)
class Step:
    """What the parameters of a step share: the learning rate and the count of steps, of rank 0."""

    rate: ir.Value
    count: ir.Value | None

    def rate_in(self, element: ir.Type) -> ir.Value:
        """The learning rate in an element type."""
        return astype(self.rate, element)


class Optimizer(ABC):
    """Updates parameters of floats; `slots` are the names of the tensors of state of each."""

    slots: tuple[str, ...] = ()
    counts: bool = False
    """Whether it needs the count of steps."""

    @abstractmethod
    def update(
        self, parameter: ir.Value, gradient: ir.Value, state: State, step: Step
    ) -> tuple[ir.Value, list[ir.Value]]:
        """The new parameter and the new state, all of one element type."""


@dataclass(frozen=True)
class Sgd(Optimizer):
    """Steps of `rate` against the gradient, or its running sum with `momentum`."""

    momentum: float = 0
    nesterov: bool = False
    weight_decay: float = 0

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]  # depends on the settings
        """The running sum, if there is one."""
        return ("momentum",) if self.momentum else ()

    def update(
        self, parameter: ir.Value, gradient: ir.Value, state: State, step: Step
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Against the gradient."""
        if self.weight_decay:
            gradient = add(gradient, multiply(parameter, self.weight_decay))
        new = []
        if self.momentum:
            new = [add(multiply(state[0], self.momentum), gradient)]
            next_sum = add(gradient, multiply(new[0], self.momentum))
            gradient = next_sum if self.nesterov else new[0]
        rate = step.rate_in(element_of(parameter))
        return subtract(parameter, multiply(gradient, rate)), new


@dataclass(frozen=True)
class Adam(Optimizer):
    """Steps by running means of the gradient and of its square, which begin unbiased.

    With `decoupled`, weight decay is a step of its own: AdamW. Source: arXiv 1412.6980, 1711.05101.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0
    decoupled: bool = False

    slots = ("mean", "square")
    counts = True

    def update(
        self, parameter: ir.Value, gradient: ir.Value, state: State, step: Step
    ) -> tuple[ir.Value, list[ir.Value]]:
        """By the ratio of the means."""
        element = element_of(parameter)
        rate = step.rate_in(element)
        if self.weight_decay and self.decoupled:
            decay = subtract(1, multiply(rate, self.weight_decay))
            parameter = multiply(parameter, decay)
        elif self.weight_decay:
            gradient = add(gradient, multiply(parameter, self.weight_decay))
        square = emit(graph.SquareOp, gradient)
        mean = _mean(state[0], gradient, self.beta1)
        second = _mean(state[1], square, self.beta2)
        first_part, second_part = (
            astype(_weight(beta, step), element) for beta in (self.beta1, self.beta2)
        )
        deviation = emit(graph.SqrtOp, divide(second, second_part))
        change = divide(divide(mean, first_part), add(deviation, self.epsilon))
        return subtract(parameter, multiply(change, rate)), [mean, second]


def _mean(so_far: ir.Value, value: ir.Value, beta: float) -> ir.Value:
    return add(multiply(so_far, beta), multiply(value, 1 - beta))


def _weight(beta: float, step: Step) -> ir.Value:
    """1 - beta^count: the sum of the weights of a running mean, in f64."""
    assert step.count is not None
    f64 = ir.F64Type.get()
    power = binary(graph.PowerOp, scalar(beta, f64), astype(step.count, f64))
    return subtract(1, power)
