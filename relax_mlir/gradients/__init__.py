"""Gradients in reverse mode: one rule per operator, one file per family in `operators/`.

    def sin(op: SinOp, adjoint: Adjoint) -> Contributions:
        yield op.input, multiply(adjoint.seed, emit(CosOp, op.input))

A rule is given the gradients of the op's results, and yields operands with what the op contributes
to their gradients: built at the insertion point, from operators of the dialect. It may leave the
dims broadcast and half precision widened, as `Reverse.add` undoes both. The annotation of its first
parameter registers it. For an operator from outside this package it is defined in, or imported to,
the module of the operator's class.
"""

from .backward import (
    avg_pool_backward,
    gradient_of,
    max_pool_backward,
    nll_loss_backward,
    take_backward,
)
from .reverse import Adjoint, Contributions, Reverse, Rule, rule_of
from .shapes import spread, sum_to, zeros_like

__all__ = [
    "Adjoint",
    "Contributions",
    "Reverse",
    "Rule",
    "avg_pool_backward",
    "gradient_of",
    "max_pool_backward",
    "nll_loss_backward",
    "rule_of",
    "spread",
    "sum_to",
    "take_backward",
    "zeros_like",
]
