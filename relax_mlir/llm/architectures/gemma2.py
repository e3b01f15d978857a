"""Gemma 2 (arXiv 2408.00118): soft caps, norms on both sides, every other layer with a window."""

from dataclasses import replace
from typing import Any, ClassVar

from relax_mlir.llm.architectures.architecture import GGUF_NAMES
from relax_mlir.llm.architectures.gemma import Gemma
from relax_mlir.llm.architectures.layout import Names
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import DecoderConfig

POST_NORMS = Names(
    layer={
        "self_attn.post_norm": "post_attention_layernorm",
        "post_attention_layernorm": "pre_feedforward_layernorm",
        "mlp.post_norm": "post_feedforward_layernorm",
    }
)
"""Names in Hugging Face's files."""


class Gemma2(Gemma):
    """Scores are scaled by `query_pre_attn_scalar`; the first layer has a window."""

    hugging_face: ClassVar[tuple[str, ...]] = ("Gemma2ForCausalLM", "gemma2")
    gguf = "gemma2"
    states_windows = True
    hf_names = POST_NORMS
    gguf_names = GGUF_NAMES

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Caps, scale, windows."""
        return {
            "post_norm": True,
            "attention_cap": cap_of(fields, "attn_logit_softcapping", 50.0),
            "logit_cap": cap_of(fields, "final_logit_softcapping", 30.0),
            "attention_scale": fields.real("query_pre_attn_scalar", 256.0) ** -0.5,
            "windows": self.windows_of(fields),
        }

    def windows_of(self, fields: Fields) -> tuple[int, ...]:
        """The windows, by `layer_types` if it is there."""
        window, count = fields.integer("sliding_window", 4096), fields.integer("num_hidden_layers")
        if fields.values.get("layer_types") is None:
            return tuple(0 if i % 2 else window for i in range(count))
        return tuple(
            window if kind == "sliding_attention" else 0 for kind in fields.texts("layer_types")
        )

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Caps and windows; the scale is that of 1 / sqrt(head_dim) but for the 27B model."""
        window, count = (
            fields.integer("attention.sliding_window", 4096),
            fields.integer("block_count"),
        )
        return {
            "post_norm": True,
            "attention_cap": fields.real("attn_logit_softcapping", 50.0),
            "logit_cap": fields.real("final_logit_softcapping", 30.0),
            "windows": tuple(0 if i % 2 else window for i in range(count)),
        }

    def gguf_metadata(self, config: DecoderConfig) -> dict[str, Any]:
        """Caps and windows."""
        return {
            "attn_logit_softcapping": config.attention_cap,
            "final_logit_softcapping": config.logit_cap,
            "attention.sliding_window": max(config.windows, default=0) or config.max_context,
        }

    def finish(self, config: DecoderConfig, fields: Fields) -> DecoderConfig:
        """GGUF files do not state the scale: llama.cpp knows it by the count of layers."""
        if not config.attention_scale and config.num_layers == 46:
            scale = (config.hidden_size / config.num_heads) ** -0.5
            config = replace(config, attention_scale=scale)
        return super().finish(config, fields)


def cap_of(fields: Fields, key: str, default: float) -> float:
    """A soft cap; `null` is none."""
    if key in fields.values and fields.values[key] is None:
        return 0.0
    return fields.real(key, default)
