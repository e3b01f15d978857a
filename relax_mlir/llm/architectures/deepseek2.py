"""DeepSeek-V2 (arXiv 2405.04434): latent attention, shared and routed experts in groups.

GGUF files are of the same architecture for V3. Source: llama.cpp `llama_model_deepseek2`.
"""

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from relax_mlir.llm.architectures.architecture import GGUF_NAMES, Architecture
from relax_mlir.llm.architectures.layout import Names, Stored, half_split_order
from relax_mlir.llm.architectures.rope_scaling import scale_gguf_rope, scale_rope, yarn_scale
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.modules.config import MAX_LAYERS, DecoderConfig, Experts, Latent, Rope

SHARED = {
    f"mlp.shared_expert.{m}_proj": f"mlp.shared_experts.{m}_proj" for m in "gate up down".split()
}
METHODS = ("greedy", "group_limited_greedy")
SCORES = {1: "softmax", 2: "sigmoid"}
"""Of experts, by `expert_gating_func` of GGUF files."""
DIMS, KEYS, VALUES = "rope.dimension_count", "attention.key_length", "attention.value_length"
LOG_MULTIPLIER = "rope.scaling.yarn_log_multiplier"
GGUF_LAYER = {
    "self_attn.q_a_proj": "attn_q_a",
    "self_attn.q_a_norm": "attn_q_a_norm",
    "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj": "attn_kv_a_mqa",
    "self_attn.kv_a_norm": "attn_kv_a_norm",
    "self_attn.k_b_proj": "attn_k_b",
    "self_attn.v_b_proj": "attn_v_b",
    "mlp.expert_bias": "exp_probs_b",
}
BOTH = ("self_attn.k_b_proj", "self_attn.v_b_proj")


class DeepSeek2(Architecture):
    """Rotated elements are the last ones of a head, in pairs 2i and 2i+1."""

    hugging_face = ("DeepseekV2ForCausalLM", "deepseek_v2")
    gguf = "deepseek2"
    fixed: ClassVar[tuple[tuple[str, Any], ...]] = (
        ("moe_layer_freq", 1),
        ("norm_topk_prob", False),
        ("ep_size", 1),
    )
    hf_names = Names(
        layer={
            **SHARED,
            "self_attn.q_a_norm": "self_attn.q_a_layernorm",
            "self_attn.kv_a_proj": "self_attn.kv_a_proj_with_mqa",
            "self_attn.kv_a_norm": "self_attn.kv_a_layernorm",
        },
        fused={"self_attn.kv_b_proj": BOTH},
    )
    gguf_names = replace(GGUF_NAMES, layer={**(GGUF_NAMES.layer or {}), **GGUF_LAYER})

    def sizes(self, fields: Fields) -> dict[str, Any]:
        """The sizes; there is one head of latent elements."""
        latent = self._latent(fields)
        head_dim = latent.plain + latent.rope
        own = {"head_dim": head_dim, "num_kv_heads": 1, "latent": latent}
        whole = Fields(fields.where, {**fields.values, "head_dim": head_dim})
        return {**super().sizes(whole), **own}

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Experts, biases, and the scale of scores, which YaRN changes."""
        bias = fields.flag("attention_bias", False)
        latent = self._latent(fields)
        scale = (latent.plain + latent.rope) ** -0.5
        scaling = _scaling(fields)
        weight = scaling.values.get("mscale_all_dim")
        if scaling.text("rope_type", scaling.text("type", "default")) != "default" and weight:
            scale *= yarn_scale(scaling.real("factor"), scaling.real("mscale_all_dim")) ** 2
        options = {"qkv_bias": bias, "out_bias": bias, "attention_scale": scale}
        mlp_bias = fields.flag("mlp_bias", False)
        return {**options, "mlp_bias": mlp_bias, "experts": self.experts(fields)}

    def _latent(self, fields: Fields) -> Latent:
        rope = fields.integer("qk_rope_head_dim", 64)
        if rope % 2:
            raise fields.refuse(f"'qk_rope_head_dim' is {rope}; expects an even number")
        is_whole = fields.values.get("q_lora_rank", 0) is None  # stated as null
        return Latent(
            fields.integer("kv_lora_rank", 512),
            fields.integer("qk_nope_head_dim", 128),
            rope,
            fields.integer("v_head_dim", 128),
            0 if is_whole else fields.integer("q_lora_rank", 1536),
        )

    def experts(self, fields: Fields) -> Experts | None:
        """The experts of all but the first layers."""
        method = fields.text("topk_method", "greedy")
        if method not in METHODS:
            known = ", ".join(map(repr, METHODS))
            raise fields.refuse(f"'topk_method' is {quoted(method)}; supported are {known}")
        routed = self.routed(fields)
        return routed if method != "greedy" else replace(routed, groups=1, chosen_groups=1)

    def routed(self, fields: Fields) -> Experts:
        """The experts, with groups if they are stated."""
        size, count = fields.integer("moe_intermediate_size"), fields.integer("n_routed_experts")
        groups, chosen = (
            1 if fields.values.get(key) is None else fields.integer(key)
            for key in ("n_group", "topk_group")
        )
        picked = fields.integer("num_experts_per_tok")
        experts = Experts(
            count,
            picked,
            size,
            normalises=False,
            shared_size=size * fields.count("n_shared_experts", 2),
            dense_layers=first_layers(fields.count("first_k_dense_replace", 0)),
            groups=groups,
            chosen_groups=chosen,
            scale=fields.real("routed_scaling_factor", 1.0),
            is_gated=False,
        )
        _check_groups(experts, fields)
        return experts

    def hf_ropes(self, config: DecoderConfig, fields: Fields) -> tuple[Rope, ...]:
        """One kind, of some elements of a head."""
        assert config.latent is not None
        theta = fields.real("rope_theta", _scaling(fields).real("rope_theta", self.theta))
        plain = Rope(theta, config.latent.rope)
        return (scale_rope(plain, _scaling(fields), fields, config.max_context),)

    def hf_tensors(self, config: DecoderConfig) -> list[Stored]:
        """Rows of rotated elements, and of the keys and values of a head, are apart here."""
        return _ordered(self.hf_names.tensors(config), config, self.is_interleaved(config))

    def is_interleaved(self, config: DecoderConfig) -> bool:
        """Whether pairs 2i and 2i+1 rotate together in Hugging Face's files."""
        return True

    # GGUF.

    def gguf_sizes(self, fields: Fields) -> dict[str, Any]:
        """The sizes; those of heads are of queries before keys are multiplied with them."""
        rank, rope = fields.integer("attention.kv_lora_rank"), fields.integer(DIMS)
        # Without them, a file has the keys and values of heads in one matrix.
        ends = [fields.integer(f"{key}_mla", fields.integer(key)) for key in (KEYS, VALUES)]
        head_dim, value = ends
        if rope % 2 or rope >= head_dim:
            raise fields.refuse(f"'{DIMS}' is {rope}; expects an even integer below {head_dim}")
        latent = Latent(
            rank,
            head_dim - rope,
            rope,
            value,
            fields.count("attention.q_lora_rank", 0),
            fields.real(self.gguf_norm_key),
        )
        return {
            "hidden_size": fields.integer("embedding_length"),
            "intermediate_size": fields.integer("feed_forward_length"),
            "num_layers": fields.integer("block_count"),
            "num_heads": fields.integer("attention.head_count"),
            "num_kv_heads": 1,
            "head_dim": head_dim,
            "max_context": fields.integer("context_length"),
            "latent": latent,
        }

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Experts, and the scale of scores, which YaRN changes."""
        options: dict[str, Any] = {"experts": self._gguf_experts(file, fields)}
        if fields.text("rope.scaling.type", "none") == "yarn":
            weight = 10 * fields.real(LOG_MULTIPLIER)
            head_dim = self.gguf_sizes(fields)["head_dim"]
            factor = yarn_scale(fields.real("rope.scaling.factor"), weight)
            options["attention_scale"] = factor**2 * head_dim**-0.5
        return options

    def _gguf_experts(self, file: GgufFile, fields: Fields) -> Experts:
        gate = fields.integer("expert_gating_func", 1)
        if gate not in SCORES:
            known = ", ".join(f"{key} ({name!r})" for key, name in SCORES.items())
            raise fields.refuse(f"'expert_gating_func' is {gate}; supported are {known}")
        first = fields.count("leading_dense_block_count", 0)
        size = fields.integer("expert_feed_forward_length")
        experts = Experts(
            fields.integer("expert_count"),
            fields.integer("expert_used_count"),
            size,
            fields.flag("expert_weights_norm", False),
            shared_size=size * fields.count("expert_shared_count", 0),
            dense_layers=first_layers(first),
            scores=SCORES[gate],
            bias=f"blk.{first}.exp_probs_b.bias" in file.tensors,
            groups=fields.integer("expert_group_count", 1),
            chosen_groups=fields.integer("expert_group_used_count", 1),
            scale=fields.real("expert_weights_scale", 1.0),
            is_gated=False,
        )
        _check_groups(experts, fields)
        return experts if gate == 1 else by_two_best(experts, fields)

    def gguf_ropes(self, config: DecoderConfig, file: GgufFile, fields: Fields) -> tuple[Rope, ...]:
        """One kind: plain, or YaRN, which scales scores and not cos and sin."""
        assert config.latent is not None
        plain = Rope(fields.real("rope.freq_base", self.theta), config.latent.rope)
        known = {k: v for k, v in fields.values.items() if k != LOG_MULTIPLIER}
        rope = scale_gguf_rope(plain, file, replace(fields, values=known))
        if rope.yarn is None and rope != plain:
            raise fields.refuse("scales rotary positions; supported is 'yarn'")
        scale = 1.0 if rope.yarn is None else yarn_scale(rope.yarn.factor)
        if rope.scale != scale:
            raise fields.refuse("has 'rope.scaling.attn_factor'; expects none")
        return (replace(rope, scale=1.0),)

    def gguf_metadata(self, config: DecoderConfig) -> dict[str, Any]:
        """Sizes of latent elements, experts, YaRN's weight."""
        c, experts = config.latent, config.experts
        assert c is not None
        assert experts is not None
        metadata: dict[str, Any] = {
            "attention.head_count_kv": 1,
            KEYS: c.size,
            VALUES: c.rank,
            f"{KEYS}_mla": config.head_dim,
            f"{VALUES}_mla": c.value,
            "attention.kv_lora_rank": c.rank,
            "attention.q_lora_rank": c.query_rank,
            "leading_dense_block_count": len(experts.dense_layers),
            "expert_shared_count": experts.shared_size // experts.size,
            "expert_weights_scale": experts.scale,
            "expert_weights_norm": experts.normalises,
            "expert_gating_func": {name: key for key, name in SCORES.items()}[experts.scores],
            "expert_group_count": experts.groups,
            "expert_group_used_count": experts.chosen_groups,
        }
        yarn = config.ropes[0].yarn
        if yarn is not None:
            greater = math.sqrt(config.score_scale * math.sqrt(config.head_dim)) - 1
            # Factors of 1 or less do not change scores, whatever the weight.
            metadata[LOG_MULTIPLIER] = greater / math.log(yarn.factor) if yarn.factor > 1 else 0.1
            # cos and sin are not scaled.
            metadata["rope.scaling.attn_factor"] = 1.0
        return metadata

    def gguf_names_of(self, config: DecoderConfig, stored: Collection[str]) -> Names:
        """Older files have the keys and values of heads in one matrix."""
        is_fused = "blk.0.attn_kv_b.weight" in stored
        return replace(self.gguf_names, fused={"attn_kv_b": BOTH} if is_fused else None)

    def gguf_tensors(self, config: DecoderConfig, stored: Collection[str] = ()) -> list[Stored]:
        """The matrices of heads are apart, those of keys transposed."""
        tensors = _ordered(super().gguf_tensors(config, stored), config, True)
        apart = tuple(f"{name}.weight" for name in BOTH)
        return [
            replace(t, matrices=config.num_heads, transposed="k_b" in t.name)
            if t.parts[0].endswith(apart) and len(t.parts) == 1
            else t
            for t in tensors
        ]


def _ordered(tensors: list[Stored], config: DecoderConfig, interleaved: bool) -> list[Stored]:
    """The tensors, with the rows of heads and of rotated elements in the order of files."""
    latent = config.latent
    assert latent is not None
    orders: dict[str, np.ndarray] = {}
    if interleaved:
        starts = np.arange(config.num_heads)[:, None] * config.head_dim
        query = "q_b_proj" if latent.query_rank else "q_proj"
        rows = starts + _rotated_last(latent.plain, latent.rope)
        orders[f"self_attn.{query}.weight"] = rows.reshape(-1)
        for kind in ("weight", "bias"):
            orders[f"self_attn.kv_a_proj.{kind}"] = _rotated_last(latent.rank, latent.rope)
    both = _by_head(config.num_heads, latent)

    def order_of(tensor: Stored) -> np.ndarray | None:
        first = tensor.parts[0]
        if first.endswith(f"{BOTH[0]}.weight"):
            return both if len(tensor.parts) == 2 else None
        return next((order for end, order in orders.items() if first.endswith(end)), None)

    return [replace(tensor, order=order_of(tensor)) for tensor in tensors]


def first_layers(count: int) -> frozenset[int]:
    """The first layers, of those that there can be."""
    return frozenset(range(min(count, MAX_LAYERS)))


def _check_groups(experts: Experts, fields: Fields) -> None:
    groups, chosen, count = experts.groups, experts.chosen_groups, experts.count
    if count % groups or chosen > groups or experts.chosen > chosen * (count // groups):
        raise fields.refuse(
            f"chooses {experts.chosen} of {count} experts, in {chosen} of {groups} groups; expects "
            "equal groups, and as many experts in those that are chosen"
        )


def by_two_best(experts: Experts, fields: Fields) -> Experts:
    """The experts, whose groups are ranked by their two best ones; raises ModelError."""
    if experts.groups > 1 and experts.count < 2 * experts.groups:
        raise fields.refuse(
            f"has {experts.groups} groups of {experts.count} experts; expects two in a group"
        )
    return replace(experts, group_best=2)


def _scaling(fields: Fields) -> Fields:
    scaling = fields.table("rope_scaling")
    return scaling if scaling.values else fields.table("rope_parameters")


def _rotated_last(plain: int, rope: int) -> np.ndarray:
    """The index of each row of a head, whose last `rope` ones are in pairs."""
    return np.concatenate([np.arange(plain), plain + half_split_order(1, rope)])


def _by_head(heads: int, latent: Latent) -> np.ndarray:
    """The index of each row of all keys, then all values; those of a head are together."""
    rows = np.arange(heads * (latent.plain + latent.value)).reshape(heads, -1)
    parts = (rows[:, : latent.plain], rows[:, latent.plain :])
    return np.concatenate([part.reshape(-1) for part in parts])
