"""Bamba (IBM 2024): Mamba-2's layers, or attention in some of them, and networks."""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.layout import Names, Stored
from relax_mlir.llm.architectures.mamba2 import check_states, step_limits, with_bare_names
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.config import DecoderConfig, StateSpace


class Bamba(Architecture):
    """Half of a head is rotated."""

    hugging_face = ("BambaForCausalLM", "bamba")
    gguf = "bamba"
    in_gguf = False
    norm_eps = 1e-5
    rotary = 0.5
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
        return with_bare_names(super().hf_tensors(config))
