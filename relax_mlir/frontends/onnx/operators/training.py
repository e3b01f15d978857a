"""Steps of optimizers."""

from collections.abc import Callable, Sequence
from functools import partial

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.errors import ModelError

from ..node import Node
from ..registry import Value, operator

DOMAIN = "ai.onnx.preview.training"


def _each(node: Node, states: int, update: Callable[..., Sequence[ir.Value]]) -> tuple[Value, ...]:
    """The updates of tensors, of which there are as many as gradients, and as states of each."""
    count, rest = divmod(len(node.inputs) - 2, 2 + states)
    if rest or not count:
        raise ModelError(f"has {len(node.inputs)} inputs, which are not of whole tensors")
    rate, step, *tensors = node.tensors()
    rows = [update(rate, step, *tensors[i::count]) for i in range(count)]
    return tuple(value for column in zip(*rows, strict=True) for value in column)


@operator("Adagrad", domain=DOMAIN)
def adagrad(node: Node) -> tuple[Value, ...]:
    """Steps by the sums of squares."""
    return _each(
        node,
        1,
        partial(
            d.adagrad,
            decay=node.attribute("decay_factor", 0.0),
            epsilon=node.attribute("epsilon", 1e-6),
            norm=node.attribute("norm_coefficient", 0.0),
        ),
    )


@operator("Adam", domain=DOMAIN)
def adam(node: Node) -> tuple[Value, ...]:
    """Steps by running means of gradients and of their squares."""
    return _each(
        node,
        2,
        partial(
            d.adam,
            alpha=node.attribute("alpha", 0.9),
            beta=node.attribute("beta", 0.999),
            epsilon=node.attribute("epsilon", 1e-6),
            norm=node.attribute("norm_coefficient", 0.0),
            norm_after=node.attribute("norm_coefficient_post", 0.0),
        ),
    )


@operator("Momentum", domain=DOMAIN)
def momentum(node: Node) -> tuple[Value, ...]:
    """Steps by running sums of gradients."""
    return _each(
        node,
        1,
        partial(
            d.momentum,
            alpha=node.required("alpha"),
            beta=node.required("beta"),
            norm=node.attribute("norm_coefficient", 0.0),
            nesterov=node.attribute("mode", "standard") == "nesterov",
        ),
    )
