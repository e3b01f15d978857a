"""DeepSeek-V2 (arXiv 2405.04434): latent attention, shared and routed experts in groups."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.layout import Names, Stored, half_split_order
from relax_mlir.llm.architectures.rope_scaling import scale_rope, yarn_scale
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.modules.config import DecoderConfig, Experts, Latent, Rope

SHARED = {
    f"mlp.shared_expert.{m}_proj": f"mlp.shared_experts.{m}_proj" for m in "gate up down".split()
}
METHODS = ("greedy", "group_limited_greedy")


class DeepSeek2(Architecture):
    """Rotated elements are the last ones of a head, in pairs 2i and 2i+1."""

    hugging_face = ("DeepseekV2ForCausalLM", "deepseek_v2")
    gguf = "deepseek2"
    in_gguf = False
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
        fused={"self_attn.kv_b_proj": ("self_attn.k_b_proj", "self_attn.v_b_proj")},
    )

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
        if count % groups or chosen > groups or picked > chosen * (count // groups):
            raise fields.refuse(
                f"chooses {picked} of {count} experts, in {chosen} of {groups} groups; expects "
                "equal groups, and as many experts in those that are chosen"
            )
        return Experts(
            count,
            picked,
            size,
            normalises=False,
            shared_size=size * fields.count("n_shared_experts", 2),
            dense_layers=frozenset(range(fields.count("first_k_dense_replace", 0))),
            groups=groups,
            chosen_groups=chosen,
            scale=fields.real("routed_scaling_factor", 1.0),
            is_gated=False,
        )

    def hf_ropes(self, config: DecoderConfig, fields: Fields) -> tuple[Rope, ...]:
        """One kind, of some elements of a head."""
        assert config.latent is not None
        theta = fields.real("rope_theta", _scaling(fields).real("rope_theta", self.theta))
        plain = Rope(theta, config.latent.rope)
        return (scale_rope(plain, _scaling(fields), fields, config.max_context),)

    def hf_tensors(self, config: DecoderConfig) -> list[Stored]:
        """Rows of rotated elements, and of the keys and values of a head, are apart here."""
        latent = config.latent
        assert latent is not None
        ends = {"self_attn.kv_b_proj.weight": _by_head(config.num_heads, latent)}
        if self.is_interleaved(config):
            head = _rotated_last(latent.plain, latent.rope)
            starts = np.arange(config.num_heads)[:, None] * config.head_dim
            name = "q_b_proj" if latent.query_rank else "q_proj"
            ends[f"self_attn.{name}.weight"] = (starts + head).reshape(-1)
            for kind in ("weight", "bias"):
                ends[f"kv_a_proj_with_mqa.{kind}"] = _rotated_last(latent.rank, latent.rope)
        return [
            replace(t, order=next((o for end, o in ends.items() if t.name.endswith(end)), None))
            for t in self.hf_names.tensors(config)
        ]

    def is_interleaved(self, config: DecoderConfig) -> bool:
        """Whether pairs 2i and 2i+1 rotate together in files."""
        return True


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
