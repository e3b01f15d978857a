"""The configuration of a decoder: sizes, options of its blocks, special tokens.

`architectures/` reads it from model files; `decoder.py` builds its graph. Nothing here imports
MLIR, so that a cached decoder starts quickly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

# Far above every model; they bound the allocations for a damaged file.
MAX_LAYERS = 1024
MAX_HEAD_DIM = 4096
MAX_EXPERTS = 4096
MAX_ROWS = 1 << 24
"""Of the matrices of attention."""


@dataclass(frozen=True)
class Yarn:
    """What the factors of YaRN (arXiv 2309.00071) follow from.

    The context of training is `original` tokens. Frequencies that turn `fast` times in it are
    not changed, those that turn less than `slow` times are divided by `factor`.
    """

    factor: float
    original: int
    fast: float = 32.0
    slow: float = 1.0


@dataclass(frozen=True)
class Rope:
    """Rotary positions of some layers, in the half-split layout of `graph.nn_rotary`.

    The first `dims` elements of a head are rotated. `factors`, one for each of the `dims // 2`
    frequencies, divide them; from `original_context` tokens on `long_factors` do, if there are
    any (longrope). cos and sin are multiplied by `scale`. With `yarn` the factors are those of it.
    Frequencies are in runs of these `sections`, if there are any, which are multiplied by the time,
    the row and the column of a token instead of its position (M-RoPE, arXiv 2409.12191).
    """

    theta: float
    dims: int
    factors: tuple[float, ...] | None = None
    long_factors: tuple[float, ...] | None = None
    original_context: int = 0
    scale: float = 1.0
    yarn: Yarn | None = None
    sections: tuple[int, ...] = ()

    def inverse_frequencies(self, is_long: bool = False) -> np.ndarray:
        """Angle per position of each rotated pair: float32[dims // 2], radians."""
        exponents = np.arange(0, self.dims, 2, dtype=np.float64) / self.dims
        frequencies = self.theta**-exponents
        factors = self.long_factors if is_long else self.factors
        if factors is not None:
            frequencies /= np.array(factors)
        return frequencies.astype(np.float32)


@dataclass(frozen=True)
class Experts:
    """A mixture of `count` gated networks of `size`, of which a router chooses `chosen` a token.

    Weights are the softmax of all scores, or the sigmoid of each with `scores` "sigmoid"; the
    chosen ones are divided by their sum with `normalises`, and multiplied by `scale`. With `bias`,
    one is added to the weights for the choice alone. Experts are in `groups` of equally many, of
    which the `chosen_groups` with the greatest sums of their `group_best` weights are eligible.
    `shared_size` is that of a network for all tokens, scaled by a sigmoid gate if it `is_gated`; 0
    is none. `dense_layers` have a plain network instead.
    """

    count: int
    chosen: int
    size: int
    normalises: bool = True
    shared_size: int = 0
    dense_layers: frozenset[int] = frozenset()
    scores: str = "softmax"
    bias: bool = False
    groups: int = 1
    chosen_groups: int = 1
    group_best: int = 1
    scale: float = 1.0
    is_gated: bool = True


@dataclass(frozen=True)
class Latent:
    """Attention to compressed keys and values (arXiv 2405.04434).

    A token has `rank` elements, of which keys and values of all heads are products, and `rope`
    rotated ones, which are part of all keys. Heads of keys have `plain` elements more, those of
    values `value`. Queries are compressed to `query_rank`, unless that is 0. What is compressed is
    normalised with `norm_eps`.
    """

    rank: int
    plain: int
    rope: int
    value: int
    query_rank: int = 0
    norm_eps: float = 1e-6

    @property
    def size(self) -> int:
        """Elements of a token in the cache."""
        return self.rank + self.rope


@dataclass(frozen=True)
class StateSpace:
    """Layers with states of `heads`, [head_dim, state] each (Mamba-2, arXiv 2405.21060).

    The heads of each of `groups` share inputs and outputs of the states. A convolution over time
    has `taps`. Norms are of each of `norm_groups` apart. Steps are within `step_limits`.
    """

    heads: int
    head_dim: int
    groups: int
    state: int
    taps: int
    tap_bias: bool = True
    bias: bool = False
    norm_groups: int = 1
    step_limits: tuple[float, float | None] = (0.0, None)

    @property
    def size(self) -> int:
        """Elements of all heads."""
        return self.heads * self.head_dim

    @property
    def shared(self) -> int:
        """Elements of what the groups share."""
        return self.groups * self.state

    @property
    def mixed(self) -> int:
        """Elements that the convolution mixes."""
        return self.size + 2 * self.shared

    @property
    def projected(self) -> int:
        """Elements of the first product: the gate, what is mixed, a step for each head."""
        return self.size + self.mixed + self.heads


@dataclass(frozen=True)
class Changes:
    """What `count` adapters, of which each token has one or none, add to products with matrices.

    `ranks` has the largest rank of the products that are added to a matrix, by its name.
    """

    count: int = 0
    ranks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DecoderConfig:
    """A decoder of transformer blocks; the defaults are those of Llama.

    `head_dim` elements a head; `num_heads` is a multiple of `num_kv_heads`. `max_context` counts
    tokens. With `tie_embeddings` the embedding is the output projection. Generation stops at any
    of `eos_ids`.

    Layers: `norm` is "rms" or "layer", without a bias unless `norm_bias`. With `parallel`
    attention and network read the same x (by one norm, or two with `parallel_norms` 2), else the
    network reads the sum. `pre_norm` and `post_norm` say which sides of both are normalised, and
    `sum_norm` that the sums with x are.
    `qk_norm` is "", "head" (a weight for the elements of a head) or "full" (for all heads).
    `windows` has the past that each layer attends to, itself included; 0 is all. `ropes` are the
    kinds of rotary positions, and `layer_ropes` the index of each layer's, -1 without; empty means
    the first for all. With `positions` rows, learned ones are added to the embedding.
    `rope_rows` is "interleaved" if pairs of elements 2i and 2i+1 rotate in Hugging Face's files.
    Soft caps c bound x to c * tanh(x / c); 0 is none. With `latent`, heads of queries have
    `head_dim` elements, and there is one head of keys. All layers but `attention_layers` have
    `states`, if those are not None, and with no `intermediate_size` no networks. Models that
    read images have rows of them instead of tokens `image_id`, which others do not have;
    `image_frame` are the tokens before and after an image.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    norm_eps: float
    max_context: int
    tie_embeddings: bool
    bos_id: int | None = None
    eos_ids: frozenset[int] = frozenset()
    architecture: str = "llama"
    ropes: tuple[Rope, ...] = ()
    layer_ropes: tuple[int, ...] = ()
    windows: tuple[int, ...] = ()
    positions: int = 0
    rope_rows: str = ""
    norm: str = "rms"
    norm_bias: bool = False
    pre_norm: bool = True
    post_norm: bool = False
    sum_norm: bool = False
    parallel: bool = False
    parallel_norms: int = 2
    qk_norm: str = ""
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    gated: bool = True
    activation: str = "silu"
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    attention_scale: float = 0.0
    logit_scale: float = 1.0
    attention_cap: float = 0.0
    logit_cap: float = 0.0
    experts: Experts | None = None
    latent: Latent | None = None
    states: StateSpace | None = None
    attention_layers: frozenset[int] = frozenset()
    image_id: int | None = None
    image_frame: tuple[int, ...] = ()

    def ending_at(self, ids: frozenset[int]) -> "DecoderConfig":
        """The same, with more tokens that end a text."""
        return replace(self, eos_ids=self.eos_ids | ids)

    @property
    def query_size(self) -> int:
        """Elements of all query heads."""
        return self.num_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Elements of all key heads, or of all value heads."""
        return self.num_kv_heads * self.head_dim

    def states_of(self, layer: int) -> StateSpace | None:
        """The states of a layer, if it has any."""
        return None if layer in self.attention_layers else self.states

    @property
    def has_coordinates(self) -> bool:
        """Whether tokens have a time, a row and a column."""
        return any(rope.sections for rope in self.ropes)

    @property
    def has_attention(self) -> bool:
        """Whether any layer caches tokens."""
        return any(self.states_of(i) is None for i in range(self.num_layers))

    @property
    def cache_columns(self) -> tuple[int, int]:
        """Elements of a head of keys and of values in caches; latent ones are both."""
        if self.latent is not None:
            return self.latent.size, 0
        return self.head_dim, self.head_dim

    @property
    def score_scale(self) -> float:
        """The factor of attention scores."""
        return self.attention_scale or self.head_dim**-0.5

    def rope_of(self, layer: int) -> Rope | None:
        """The rotary positions of a layer."""
        index = self.layer_ropes[layer] if self.layer_ropes else 0
        return self.ropes[index] if self.ropes and index >= 0 else None

    def window_of(self, layer: int) -> int:
        """The past that a layer attends to; 0 if that is all of any sequence."""
        window = self.windows[layer] if self.windows else 0
        return 0 if window >= self.max_context else window

    def experts_of(self, layer: int) -> Experts | None:
        """The experts of a layer, if it has any."""
        experts = self.experts
        return None if experts is None or layer in experts.dense_layers else experts

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every weight by its name in Llama; projections are (out, in)."""
        shapes: dict[str, tuple[int, ...]] = {}
        shapes["model.embed_tokens.weight"] = (self.vocab_size, self.hidden_size)
        if self.positions:
            shapes["model.embed_positions.weight"] = (self.positions, self.hidden_size)
        for i in range(self.num_layers):
            for name, shape in self._layer_shapes(i).items():
                shapes[f"model.layers.{i}.{name}"] = shape
        shapes |= self._norm_shapes("model.norm")
        if not self.tie_embeddings:
            shapes["lm_head.weight"] = (self.vocab_size, self.hidden_size)
            if self.head_bias:
                shapes["lm_head.bias"] = (self.vocab_size,)
        return shapes

    def _norm_shapes(self, name: str, size: int = 0) -> dict[str, tuple[int, ...]]:
        kinds = ("weight", "bias") if self.norm_bias else ("weight",)
        return {f"{name}.{kind}": (size or self.hidden_size,) for kind in kinds}

    def _layer_shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        shapes = self._norm_shapes("input_layernorm") if self.pre_norm else {}
        if self.states_of(layer) is not None:
            shapes |= self._state_shapes()
        else:
            shapes |= self._attention_shapes() if self.latent is None else self._latent_shapes()
        if self.post_norm:
            shapes |= self._norm_shapes("self_attn.post_norm")
        if not self.intermediate_size:
            return shapes
        if self.pre_norm and not (self.parallel and self.parallel_norms == 1):
            shapes |= self._norm_shapes("post_attention_layernorm")
        experts = self.experts_of(layer)
        if experts is None:
            shapes |= self._network_shapes("mlp", self.intermediate_size)
        else:
            shapes |= self._expert_shapes(experts)
        if self.post_norm:
            shapes |= self._norm_shapes("mlp.post_norm")
        if self.sum_norm:
            shapes |= self._norm_shapes("self_attn.sum_norm") | self._norm_shapes("mlp.sum_norm")
        return shapes

    def _attention_shapes(self) -> dict[str, tuple[int, ...]]:
        hidden = self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {}
        for name, rows in (("q", self.query_size), ("k", self.kv_size), ("v", self.kv_size)):
            shapes |= _linear(f"self_attn.{name}_proj", rows, hidden, self.qkv_bias)
        if self.qk_norm:
            is_full = self.qk_norm == "full"
            shapes["self_attn.q_norm.weight"] = (self.query_size if is_full else self.head_dim,)
            shapes["self_attn.k_norm.weight"] = (self.kv_size if is_full else self.head_dim,)
        return shapes | _linear("self_attn.o_proj", hidden, self.query_size, self.out_bias)

    def _latent_shapes(self) -> dict[str, tuple[int, ...]]:
        c, hidden = self.latent, self.hidden_size
        assert c is not None
        shapes: dict[str, tuple[int, ...]] = {}
        if c.query_rank:
            shapes |= _linear("self_attn.q_a_proj", c.query_rank, hidden, self.qkv_bias)
            shapes["self_attn.q_a_norm.weight"] = (c.query_rank,)
            shapes["self_attn.q_b_proj.weight"] = (self.query_size, c.query_rank)
        else:
            shapes["self_attn.q_proj.weight"] = (self.query_size, hidden)
        shapes |= _linear("self_attn.kv_a_proj", c.size, hidden, self.qkv_bias)
        shapes["self_attn.kv_a_norm.weight"] = (c.rank,)
        for name, rows in (("k_b", c.plain), ("v_b", c.value)):
            shapes[f"self_attn.{name}_proj.weight"] = (self.num_heads * rows, c.rank)
        return shapes | _linear("self_attn.o_proj", hidden, self.num_heads * c.value, self.out_bias)

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        c = self.states
        assert c is not None
        shapes = _linear("mamba.in_proj", c.projected, self.hidden_size, c.bias)
        shapes["mamba.conv1d.weight"] = (c.mixed, 1, c.taps)
        if c.tap_bias:
            shapes["mamba.conv1d.bias"] = (c.mixed,)
        for name in ("dt", "a_log", "d"):
            shapes[f"mamba.{name}.weight"] = (c.heads,)
        shapes["mamba.norm.weight"] = (c.size,)
        return shapes | _linear("mamba.out_proj", self.hidden_size, c.size, c.bias)

    def _network_shapes(self, name: str, inner: int) -> dict[str, tuple[int, ...]]:
        ins = ("gate_proj", "up_proj") if self.gated else ("up_proj",)
        shapes: dict[str, tuple[int, ...]] = {}
        for part in ins:
            shapes |= _linear(f"{name}.{part}", inner, self.hidden_size, self.mlp_bias)
        return shapes | _linear(f"{name}.down_proj", self.hidden_size, inner, self.mlp_bias)

    def _expert_shapes(self, experts: Experts) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        shapes["mlp.gate.weight"] = (experts.count, self.hidden_size)
        if experts.bias:
            shapes["mlp.expert_bias.bias"] = (experts.count,)
        for i in range(experts.count):
            shapes |= self._network_shapes(f"mlp.experts.{i}", experts.size)
        if experts.shared_size:
            shapes |= self._network_shapes("mlp.shared_expert", experts.shared_size)
        if experts.shared_size and experts.is_gated:
            shapes["mlp.shared_expert_gate.weight"] = (1, self.hidden_size)
        return shapes


def _linear(name: str, rows: int, columns: int, bias: bool) -> dict[str, tuple[int, ...]]:
    weight: dict[str, tuple[int, ...]] = {f"{name}.weight": (rows, columns)}
    return weight | {f"{name}.bias": (rows,)} if bias else weight
