"""Layers with a state of fixed size: Mamba-2 (arXiv 2405.21060).

A head has a state S[d, s] and a rate A < 0. Token t has inputs x[d], a step dt > 0, and B[s] and
C[s], which the heads of a group share:

    S = exp(A dt) S + dt x B'        y = S C + D x

The n tokens of a call are computed together: y of the state before them, and of each other by
scores C B', times the decay between two tokens. A single token is a step of the state.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.llm.modules.attention import NEW, Positions
from relax_mlir.llm.modules.config import DecoderConfig
from relax_mlir.llm.modules.nn import (
    Linear,
    Module,
    Parameter,
    Storage,
    add,
    arange,
    concat,
    constant,
    dims_of,
    matmul,
    multiply,
    permute,
    reshape,
    silu,
    slice_axis,
    value_of,
)


class StateSpaceMixer(Module):
    """One layer: a product, a convolution over time, the states, a gated norm, a product."""

    def __init__(self, config: DecoderConfig, prefix: str, storage: Storage) -> None:
        assert config.states is not None
        self.states = c = config.states
        hidden = config.hidden_size
        projection = {f"{prefix}.in_proj": c.projected}
        self.project = Linear(hidden, projection, storage, c.bias)
        self.taps = Parameter((c.mixed, 1, c.taps), (f"{prefix}.conv1d.weight",))
        if c.tap_bias:
            self.tap_bias = Parameter((c.mixed,), (f"{prefix}.conv1d.bias",))
        self.step_bias, self.rate, self.skip = (
            Parameter((c.heads,), (f"{prefix}.{name}.weight",)) for name in ("dt", "a_log", "d")
        )
        self.norm = Parameter((c.size,), (f"{prefix}.norm.weight",))
        self.epsilon = config.norm_eps
        self.out = Linear(c.size, {f"{prefix}.out_proj": hidden}, storage, c.bias)

    def __call__(
        self, x: ir.Value, cache: Sequence[ir.Value], positions: Positions
    ) -> tuple[ir.Value, Sequence[ir.Value]]:
        """Maps [n, hidden] to [n, hidden]; also returns the inputs to come, and the states."""
        c = self.states
        projected = self.project(x)
        gate = slice_axis(projected, 1, 0, c.size)
        step = slice_axis(projected, 1, c.size + c.mixed, c.projected)
        mixed, inputs = self._convolved(
            slice_axis(projected, 1, c.size, c.size + c.mixed), cache[0]
        )
        values = reshape(slice_axis(mixed, 1, 0, c.size), [NEW, c.heads, c.head_dim])
        keys, queries = (
            reshape(
                slice_axis(mixed, 1, c.size + i * c.shared, c.size + (i + 1) * c.shared),
                [NEW, c.groups, c.state],
            )
            for i in range(2)
        )
        y, states = self._scanned(values, keys, queries, self._steps(step), cache[1])
        skipped = multiply(values, reshape(value_of(self.skip), [c.heads, 1]))
        return self.out(self._normal(reshape(add(y, skipped), [NEW, c.size]), gate)), (
            inputs,
            states,
        )

    def _convolved(self, x: ir.Value, before: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The convolution of inputs [n, mixed] after `before`, and the last inputs."""
        c = self.states
        every = concat([before, x], 0)
        weight = permute(reshape(value_of(self.taps), [c.mixed, c.taps]), [1, 0])
        total = None
        for i in range(c.taps):
            part = multiply(
                slice_axis(every, 0, i, f"{NEW} + {i}"), slice_axis(weight, 0, i, i + 1)
            )
            total = part if total is None else add(total, part)
        assert total is not None
        if c.tap_bias:
            total = add(total, value_of(self.tap_bias))
        return silu(total), slice_axis(every, 0, NEW, f"{NEW} + {c.taps - 1}")

    def _steps(self, x: ir.Value) -> ir.Value:
        """dt of each token and head, [n, heads]: softplus within limits."""
        biased = add(x, value_of(self.step_bias))
        step = graph.LogaddexpOp.build(biased, constant(0.0)).result
        least, most = self.states.step_limits
        if least > 0:
            step = graph.MaximumOp.build(step, constant(least)).result
        return step if most is None else graph.MinimumOp.build(step, constant(most)).result

    def _scanned(
        self, x: ir.Value, keys: ir.Value, queries: ir.Value, step: ir.Value, states: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """y of all tokens, [n, heads, d], and the states [heads, d, s] after them."""
        c = self.states
        each = c.heads // c.groups
        rate = graph.NegativeOp.build(graph.ExpOp.build(value_of(self.rate)).result).result
        # Logarithms of the decay from before the first token: [heads, n].
        total = permute(_sums(multiply(step, rate)), [1, 0])
        last = slice_axis(total, 1, f"{NEW} - 1", NEW)
        inputs = permute(multiply(x, _column(step, 2)), [1, 0, 2])
        keys, queries = (permute(part, [1, 0, 2]) for part in (keys, queries))
        scores = reshape(matmul(queries, permute(keys, [0, 2, 1])), [c.groups, 1, NEW, NEW])
        weights = multiply(scores, reshape(_decays(total), [c.groups, each, NEW, NEW]))
        of_tokens = matmul(reshape(weights, [c.heads, NEW, NEW]), inputs)
        by_group = reshape(permute(states, [0, 2, 1]), [c.groups, each, c.state, c.head_dim])
        of_states = matmul(reshape(queries, [c.groups, 1, NEW, c.state]), by_group)
        of_states = reshape(of_states, [c.heads, NEW, c.head_dim])
        y = add(of_tokens, multiply(of_states, _column(_exp(total), 2)))
        rest = _exp(graph.SubtractOp.build(last, total).result)
        late = permute(multiply(inputs, _column(rest, 2)), [0, 2, 1])
        late = reshape(late, [c.groups, each, c.head_dim, NEW])
        new = matmul(late, reshape(keys, [c.groups, 1, NEW, c.state]))
        new = reshape(new, [c.heads, c.head_dim, c.state])
        states = add(multiply(states, _column(_exp(last), 2)), new)
        return permute(y, [1, 0, 2]), states

    def _normal(self, y: ir.Value, gate: ir.Value) -> ir.Value:
        c = self.states
        size = c.size // c.norm_groups
        gated = reshape(multiply(y, silu(gate)), [NEW, c.norm_groups, size])
        ones = graph.FullOp.build(constant(1.0), shape=[size]).result
        normal = graph.RmsNormOp.build(gated, ones, epsilon=self.epsilon).result
        return multiply(reshape(normal, [NEW, c.size]), value_of(self.norm))


def _decays(total: ir.Value) -> ir.Value:
    """exp(total[i] - total[j]) for j <= i, else 0: [heads, n, n]."""
    later = graph.ExpandDimsOp.build(total, axes=[2]).result
    earlier = graph.ExpandDimsOp.build(total, axes=[1]).result
    i32 = ir.IntegerType.get_signless(32)
    columns = arange("0", NEW, i32)
    is_past = graph.LessEqualOp.build(columns, _column(columns, 1)).result
    difference = graph.SubtractOp.build(later, earlier).result
    return _exp(graph.WhereOp.build(is_past, difference, constant(float("-inf"))).result)


def _sums(x: ir.Value) -> ir.Value:
    """The sums up to each token, [n, heads]."""
    return graph.CumsumOp.build(x, axis=0, exclusive=False, reverse=False).result


def _exp(x: ir.Value) -> ir.Value:
    return graph.ExpOp.build(x).result


def _column(x: ir.Value, axis: int) -> ir.Value:
    assert axis == len(dims_of(x))
    return graph.ExpandDimsOp.build(x, axes=[axis]).result
