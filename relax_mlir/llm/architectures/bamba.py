"""Bamba (IBM 2024): Mamba-2's layers, or attention in some of them, and networks.

Source of GGUF files: llama.cpp `llama_model_granite_hybrid`.
"""

from collections.abc import Collection
from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.layout import Names, Stored
from relax_mlir.llm.architectures.mamba2 import (
    BARE,
    GGUF_STATES,
    check_states,
    gguf_state_metadata,
    gguf_states,
    step_limits,
    with_bare_names,
    with_gguf_states,
)
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.modules.config import DecoderConfig, Rope, StateSpace

OF_GRANITE = ("embedding_scale", "residual_scale", "attention.scale", "logit_scale", "expert_count")
"""Keys of files of other models, which have scales or experts."""
KV_HEADS = "attention.head_count_kv"


class Bamba(Architecture):
    """Half of a head is rotated."""

    hugging_face = ("BambaForCausalLM", "bamba")
    gguf = "granitehybrid"
    norm_eps = 1e-5
    rotary = 0.5
    gguf_interleaved = True
    gguf_names = GGUF_STATES
    hf_names = Names(
        outer={"model.norm": "model.final_layernorm"},
        layer={
            "post_attention_layernorm": "pre_ff_layernorm",
            **{f"mlp.{n}_proj": f"feed_forward.{n}_proj" for n in ("gate", "up", "down")},
        },
    )

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """States, and the layers that have attention instead."""
        count = fields.integer("num_hidden_layers")
        attention = frozenset(fields.ids("attn_layer_indices"))
        if not attention <= frozenset(range(count)):
            raise fields.refuse(
                f"'attn_layer_indices' has {max(attention)}; expects 0 to {count - 1}"
            )
        bias = fields.flag("attention_bias", False)
        return {
            "qkv_bias": bias,
            "out_bias": bias,
            "mlp_bias": fields.flag("mlp_bias", False),
            "attention_layers": attention,
            "states": self.states(fields),
        }

    def states(self, fields: Fields) -> StateSpace:
        """The states of layers without attention."""
        size = fields.integer("mamba_expand", 2) * fields.integer("hidden_size")
        heads = fields.integer("mamba_n_heads", 128)
        head_dim = fields.values.get("mamba_d_head", "auto")
        head_dim = size // heads if head_dim == "auto" else fields.integer("mamba_d_head")
        if heads * head_dim != size:
            raise fields.refuse(
                f"has {heads} heads of states of {head_dim} elements; expects {size} in all"
            )
        groups = fields.integer("mamba_n_groups", 1)
        states = StateSpace(
            heads,
            head_dim,
            groups,
            fields.integer("mamba_d_state", 256),
            fields.integer("mamba_d_conv", 4),
            fields.flag("mamba_conv_bias", True),
            fields.flag("mamba_proj_bias", False),
            norm_groups=groups,
            step_limits=step_limits(fields),
        )
        check_states(states, fields)
        return states

    def hf_tensors(self, config: DecoderConfig) -> list[Stored]:
        """Some vectors have bare names."""
        return with_bare_names(super().hf_tensors(config), BARE)

    # GGUF.

    def gguf_sizes(self, fields: Fields) -> dict[str, Any]:
        """The sizes; there are as many heads of keys in each layer with attention."""
        for key in OF_GRANITE:
            if fields.values.get(key):
                raise fields.refuse(f"has '{fields.prefix}{key}', which is not supported")
        counts = fields.ids(KV_HEADS)
        layers = fields.integer("block_count")
        attention = frozenset(i for i, count in enumerate(counts) if count)
        kv_heads = {counts[i] for i in attention} or {fields.integer("attention.head_count")}
        if len(counts) != layers or len(kv_heads) > 1 or len(attention) == layers:
            raise fields.refuse(
                f"'{fields.prefix}{KV_HEADS}' is {quoted(counts)}; expects one count for each of "
                f"{layers} layers, equal ones or 0, which some layers have"
            )
        return {
            **super().gguf_sizes(Fields(fields.where, {**fields.values, KV_HEADS: kv_heads.pop()})),
            "attention_layers": attention,
            "states": gguf_states(fields),
        }

    def gguf_ropes(self, config: DecoderConfig, file: GgufFile, fields: Fields) -> tuple[Rope, ...]:
        """The kind of positions; other models with this architecture have none."""
        if not fields.flag("rope.scaling.finetuned", True):
            raise fields.refuse("has no rotary positions; expects 'rope.scaling.finetuned'")
        return super().gguf_ropes(config, file, fields)

    def gguf_metadata(self, config: DecoderConfig) -> dict[str, Any]:
        """The sizes of states, and the layers with attention."""
        layers = range(config.num_layers)
        counts = [config.num_kv_heads if i in config.attention_layers else 0 for i in layers]
        rotates = {"rope.scaling.finetuned": True}
        return {**gguf_state_metadata(config), KV_HEADS: counts, **rotates}

    def gguf_tensors(self, config: DecoderConfig, stored: Collection[str] = ()) -> list[Stored]:
        """Rates of states, and other shapes of small weights."""
        return with_gguf_states(super().gguf_tensors(config, stored), config)
