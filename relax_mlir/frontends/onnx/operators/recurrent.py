"""Recurrent layers."""

from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.decompositions.recurrent import Quantized
from relax_mlir.errors import ModelError

from ..node import Node
from ..registry import MICROSOFT, Value, operator


def _settings(node: Node) -> dict[str, Any]:
    names = node.attribute("activations") or []
    names = [each.decode() if isinstance(each, bytes) else each for each in names]
    alphas = iter(node.attribute("activation_alpha") or [])
    betas = iter(node.attribute("activation_beta") or [])
    activations = [activation(name, alphas, betas) for name in names]
    return {
        "bias": node.optional(3),
        "sequence_lens": node.optional(4),
        "initial_h": node.optional(5),
        "direction": node.attribute("direction", "forward"),
        "activations": activations,
        "clip": node.attribute("clip"),
        "batch_first": node.flag("layout"),
    }


def activation(name: str, alphas: Any, betas: Any) -> Any:
    """A function by name, with its constants, where it has some."""
    usual = {
        "Affine": (1.0, 0.0),
        "Elu": (1.0, None),
        "HardSigmoid": (0.2, 0.5),
        "LeakyRelu": (0.01, None),
        "ScaledTanh": (1.0, 1.0),
        "ThresholdedRelu": (1.0, None),
    }
    if name not in usual:
        return name
    given = [
        next(values, default)
        for values, default in zip((alphas, betas), usual[name])
        if default is not None
    ]
    return (name, *given)


def _operands(node: Node) -> tuple[Any, Any, Any]:
    return node.tensor(0), node.tensor(1), node.tensor(2)


@operator("RNN", since=7)
def rnn(node: Node) -> tuple[Value, ...]:
    """A layer with one state."""
    return d.rnn(*_operands(node), **_settings(node))


@operator("GRU", since=7)
def gru(node: Node) -> tuple[Value, ...]:
    """A layer with gates."""
    reset = node.flag("linear_before_reset")
    return d.gru(*_operands(node), linear_before_reset=reset, **_settings(node))


@operator("LSTM", since=7)
def lstm(node: Node) -> tuple[Value, ...]:
    """A layer with gates and two states."""
    return d.lstm(
        *_operands(node),
        initial_c=node.optional(6),
        peepholes=node.optional(7),
        input_forget=node.flag("input_forget"),
        **_settings(node),
    )


@operator("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(node: Node) -> tuple[Value, ...]:
    """A layer with gates and two states, and weights of 8 bits."""
    settings = _settings(node)
    if settings.pop("batch_first"):
        raise ModelError("has layout 1, which is not supported")
    weights = [
        Quantized(node.tensor(index), node.tensor(scale), node.optional(scale + 1))
        for index, scale in ((1, 8), (2, 10))
    ]
    return d.dynamic_quantize_lstm(
        node.tensor(0),
        *weights,
        initial_c=node.optional(6),
        peepholes=node.optional(7),
        input_forget=node.flag("input_forget"),
        **settings,
    )
