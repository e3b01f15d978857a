"""GPT-2 (Radford et al. 2019): learned positions, layer norms, biases, a plain network."""

from dataclasses import replace
from typing import Any

from relax_mlir.llm.architectures.architecture import FUSED_QKV, GGUF_NAMES, Architecture
from relax_mlir.llm.architectures.layout import Names, Stored
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import DecoderConfig, Rope

OPTIONS = {
    "norm": "layer",
    "norm_bias": True,
    "qkv_bias": True,
    "out_bias": True,
    "mlp_bias": True,
    "gated": False,
}


class Gpt2(Architecture):
    """Projections are (in, out) in Hugging Face's files."""

    hugging_face = ("GPT2LMHeadModel", "gpt2")
    gguf = "gpt2"
    fixed = (
        ("scale_attn_weights", True),
        ("scale_attn_by_inverse_layer_idx", False),
        ("add_cross_attention", False),
    )
    norm_key = "layer_norm_epsilon"
    norm_eps = 1e-5
    gguf_norm_key = "attention.layer_norm_epsilon"
    activation_key = "activation_function"
    activation = "gelu_new"
    tied = True
    unused = (".attn.bias", ".attn.masked_bias")
    hf_names = Names(
        "transformer.h",
        {
            "model.embed_tokens": "transformer.wte",
            "model.embed_positions": "transformer.wpe",
            "model.norm": "transformer.ln_f",
        },
        {
            "input_layernorm": "ln_1",
            "self_attn.o_proj": "attn.c_proj",
            "post_attention_layernorm": "ln_2",
            "mlp.up_proj": "mlp.c_fc",
            "mlp.down_proj": "mlp.c_proj",
        },
        {"attn.c_attn": FUSED_QKV},
    )
    gguf_names = replace(GGUF_NAMES, fused={"attn_qkv": FUSED_QKV})

    def sizes(self, fields: Fields) -> dict[str, Any]:
        """The sizes, under names of their own."""
        heads, hidden = fields.integer("n_head"), fields.integer("n_embd")
        return {
            "vocab_size": fields.integer("vocab_size"),
            "hidden_size": hidden,
            "intermediate_size": fields.integer("n_inner", 4 * hidden),
            "num_layers": fields.integer("n_layer"),
            "num_heads": heads,
            "num_kv_heads": heads,
            "head_dim": hidden // heads,
            "max_context": fields.integer("n_positions", 1024),
        }

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Positions, norms, biases."""
        return {**OPTIONS, "positions": fields.integer("n_positions", 1024)}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Positions, norms, biases."""
        return {**OPTIONS, "positions": fields.integer("context_length")}

    def hf_ropes(self, config: DecoderConfig, fields: Fields) -> tuple[Rope, ...]:
        """None."""
        return ()

    def gguf_ropes(self, config: DecoderConfig, file: GgufFile, fields: Fields) -> tuple[Rope, ...]:
        """None."""
        return ()

    def hf_tensors(self, config: DecoderConfig) -> list[Stored]:
        """Those of layers are transposed."""
        return [
            replace(
                t, transposed=".h." in t.name and "_proj." in t.parts[0] and "bias" not in t.name
            )
            for t in super().hf_tensors(config)
        ]
