"""Falcon (arXiv 2311.16867): parallel layers, one key head or few, no biases."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from relax_mlir.llm.architectures.architecture import FUSED_QKV, GGUF_NAMES, Architecture
from relax_mlir.llm.architectures.layout import Names, Stored, with_grouped_heads
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import DecoderConfig

TWO_NORMS = {"input_layernorm": "ln_attn", "post_attention_layernorm": "ln_mlp"}
GGUF_TWO_NORMS = {"input_layernorm": "attn_norm_2", "post_attention_layernorm": "attn_norm"}


class Falcon(Architecture):
    """Queries, key and value of a group of heads are stored together."""

    hugging_face = ("FalconForCausalLM", "falcon")
    gguf = "falcon"
    fixed = (
        ("alibi", False),
        ("parallel_attn", True),
    )
    norm_key = "layer_norm_epsilon"
    norm_eps = 1e-5
    gguf_norm_key = "attention.layer_norm_epsilon"
    activation_key = "activation"
    activation = "gelu"
    tied = True
    hf_names = Names(
        "transformer.h",
        {"model.embed_tokens": "transformer.word_embeddings", "model.norm": "transformer.ln_f"},
        {
            "self_attn.o_proj": "self_attention.dense",
            "mlp.up_proj": "mlp.dense_h_to_4h",
            "mlp.down_proj": "mlp.dense_4h_to_h",
        },
        {"self_attention.query_key_value": FUSED_QKV},
    )
    gguf_names = replace(GGUF_NAMES, fused={"attn_qkv": FUSED_QKV})

    def sizes(self, fields: Fields) -> dict[str, Any]:
        """The sizes; few heads of keys only in the new decoder."""
        heads, hidden = fields.integer("num_attention_heads"), fields.integer("hidden_size")
        kv_heads = 1 if fields.flag("multi_query", True) else heads
        if fields.flag("new_decoder_architecture", False):
            kv_heads = fields.integer("num_kv_heads", heads)
        return {
            "vocab_size": fields.integer("vocab_size"),
            "hidden_size": hidden,
            "intermediate_size": fields.integer("ffn_hidden_size", 4 * hidden),
            "num_layers": fields.integer("num_hidden_layers"),
            "num_heads": heads,
            "num_kv_heads": kv_heads,
            "head_dim": hidden // heads,
            "max_context": fields.integer("max_position_embeddings", 2048),
        }

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms and biases."""
        new = fields.flag("new_decoder_architecture", False)
        norms = fields.integer("num_ln_in_parallel_attn", 2) if new else 1
        bias = fields.flag("bias", False)
        biases = dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias"), bias)
        return {**self._options(norms), **biases}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Norms, by the tensors that there are."""
        return self._options(2 if "blk.0.attn_norm_2.weight" in file.tensors else 1)

    def _options(self, norms: int) -> dict[str, Any]:
        plain: dict[str, Any] = {"norm": "layer", "norm_bias": True, "gated": False}
        return {**plain, "parallel": True, "parallel_norms": norms}

    def hf_tensors(self, config: DecoderConfig) -> list[Stored]:
        """Groups of heads are split to queries, keys and values."""
        names = self.hf_names
        if config.parallel_norms == 2:
            names = replace(names, layer={**(names.layer or {}), **TWO_NORMS})
        return with_grouped_heads(names.tensors(config), config)

    def gguf_names_of(self, config: DecoderConfig, stored: Collection[str]) -> Names:
        """With two norms, `attn_norm` is the network's."""
        names = super().gguf_names_of(config, stored)
        if config.parallel_norms == 2:
            names = replace(names, layer={**(names.layer or {}), **GGUF_TWO_NORMS})
        return names
