"""Feed-forward networks: plain, gated, and mixtures of experts."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.llm.modules.config import DecoderConfig, Experts
from relax_mlir.llm.modules.nn import (
    Block,
    Linear,
    Storage,
    Weight,
    add,
    dims_of,
    multiply,
    slice_axis,
)
from relax_mlir.llm.modules.routing import Router

ACTIVATIONS = {
    "silu": graph.SiluOp,
    "gelu": graph.GeluOp,
    "gelu_tanh": graph.GeluTanhOp,
    "relu": graph.ReluOp,
}
"""Operators of activations by the names of `DecoderConfig`."""


class Network(Block):
    """down(act(gate(x)) * up(x)), or without a gate down(act(up(x)))."""

    def __init__(self, config: DecoderConfig, prefix: str, inner: int, storage: Storage) -> None:
        self.inner = inner
        self.gated = config.gated
        self.activation = config.activation
        names = ("gate", "up") if config.gated else ("up",)
        ins = {f"{prefix}.{name}_proj": inner for name in names}
        self.up = Linear(config.hidden_size, ins, storage, config.mlp_bias)
        down = {f"{prefix}.down_proj": config.hidden_size}
        self.down = Linear(inner, down, storage, config.mlp_bias)

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [n, hidden] to [n, hidden]."""
        return self.down(activated(self.up(x), self.activation, self.inner, self.gated))


def activated(up: ir.Value, activation: str, inner: int, gated: bool) -> ir.Value:
    """The hidden elements of a network, [..., inner], from its first product."""
    act = ACTIVATIONS[activation]
    if not gated:
        return act.build(up).result
    last = len(dims_of(up)) - 1
    gate = act.build(slice_axis(up, last, 0, inner)).result
    return multiply(gate, slice_axis(up, last, inner, 2 * inner))


class Mixture(Block):
    """A router, experts of which each token reads the chosen ones, and one for all tokens.

    Source: Mixtral (arXiv 2401.04088), Qwen2-MoE (arXiv 2407.10671).
    """

    def __init__(
        self, config: DecoderConfig, experts: Experts, prefix: str, storage: Storage
    ) -> None:
        self.config = config
        self.experts = experts
        self.router = Router(config, experts, prefix, storage)
        ins = [
            f"{prefix}.experts.{i}.{name}_proj.weight"
            for i in range(experts.count)
            for name in ("gate", "up")
        ]
        outs = [f"{prefix}.experts.{i}.down_proj.weight" for i in range(experts.count)]
        rows = 2 * experts.count * experts.size
        self.up = Weight(rows, config.hidden_size, ins, storage.for_matrices(experts.size))
        rows = experts.count * config.hidden_size
        self.down = Weight(rows, experts.size, outs, storage.for_matrices(config.hidden_size))
        if experts.shared_size:
            name = f"{prefix}.shared_expert"
            self.shared = Network(config, name, experts.shared_size, storage)
            if experts.is_gated:
                self.shared_gate = Linear(config.hidden_size, {f"{name}_gate": 1}, storage)

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [n, hidden] to [n, hidden]."""
        e = self.experts
        weights, ids = self.router(x)
        self.up.note(x, ids, e.count)
        # One row for each pair of a token and one of its experts.
        up = self._product(self.up, ids, graph.ExpandDimsOp.build(x, axes=[1, 2]).result)
        inner = activated(up, self.config.activation, e.size, True)
        inner = graph.ExpandDimsOp.build(inner, axes=[2]).result
        self.down.note(inner, ids, e.count)
        outs = self._product(self.down, ids, inner)
        mixed = multiply(outs, graph.ExpandDimsOp.build(weights, axes=[2]).result)
        total = graph.SumOp.build(mixed, axes=[1], keepdims=False).result
        if not e.shared_size:
            return total
        if not e.is_gated:
            return add(total, self.shared(x))
        gate = graph.SigmoidOp.build(self.shared_gate(x)).result
        return add(total, multiply(gate, self.shared(x)))

    def _product(self, weight: Weight, ids: ir.Value, x: ir.Value) -> ir.Value:
        """The matrices of the chosen experts times x [n, 1 or chosen, 1, in]: [n, chosen, out].

        As a sum of products of elements, it reads them where they are; a product of matrices would
        read copies, one for each token and choice.
        """
        taken = graph.TakeOp.build(weight.matrices(self.experts.count), ids, axis=0).result
        return graph.SumOp.build(multiply(taken, x), axes=[3], keepdims=False).result
