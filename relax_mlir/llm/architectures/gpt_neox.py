"""GPT-NeoX and Pythia (arXiv 2204.06745, 2304.01373): parallel layers, partial rotation."""

from dataclasses import replace
from typing import Any

from relax_mlir.llm.architectures.architecture import FUSED_QKV, GGUF_NAMES, Architecture
from relax_mlir.llm.architectures.layout import Names, Stored, with_grouped_heads
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import DecoderConfig


class GptNeoX(Architecture):
    """Query, key and value of a head are stored together in Hugging Face's files."""

    hugging_face = ("GPTNeoXForCausalLM", "gpt_neox")
    gguf = "gptneox"
    fixed = (("attention_bias", True),)
    norm_key = "layer_norm_eps"
    norm_eps = 1e-5
    gguf_norm_key = "attention.layer_norm_epsilon"
    activation = "gelu"
    rotary = 0.25
    unused = ("rotary_emb.inv_freq", ".attention.bias", ".attention.masked_bias")
    hf_names = Names(
        "gpt_neox.layers",
        {
            "model.embed_tokens": "gpt_neox.embed_in",
            "model.norm": "gpt_neox.final_layer_norm",
            "lm_head": "embed_out",
        },
        {
            "self_attn.o_proj": "attention.dense",
            "mlp.up_proj": "mlp.dense_h_to_4h",
            "mlp.down_proj": "mlp.dense_4h_to_h",
        },
        {"attention.query_key_value": FUSED_QKV},
    )
    gguf_names = replace(GGUF_NAMES, fused={"attn_qkv": FUSED_QKV})

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms, biases, the residual."""
        parallel = fields.flag("use_parallel_residual", True)
        return {**self._options(), "parallel": parallel}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Norms, biases, the residual."""
        return {**self._options(), "parallel": fields.flag("use_parallel_residual", True)}

    def gguf_metadata(self, config: DecoderConfig) -> dict[str, Any]:
        """The residual."""
        return {"use_parallel_residual": config.parallel}

    def _options(self) -> dict[str, Any]:
        biases = dict.fromkeys(("norm_bias", "qkv_bias", "out_bias", "mlp_bias"), True)
        return {"norm": "layer", "gated": False, **biases}

    def hf_ropes(self, config: DecoderConfig, fields: Fields) -> Any:
        """The names of older files are their own."""
        older = {"rotary_pct": "partial_rotary_factor", "rotary_emb_base": "rope_theta"}
        return super().hf_ropes(config, fields.renamed(older))

    def hf_tensors(self, config: DecoderConfig) -> list[Stored]:
        """Heads are split to queries, keys and values."""
        return with_grouped_heads(super().hf_tensors(config), config)
