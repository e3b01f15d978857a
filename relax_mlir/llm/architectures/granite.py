"""Granite 3 (IBM 2024): Llama with scaled embeddings, residuals, scores and logits."""

from typing import Any

from relax_mlir.llm.architectures.llama import Llama
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import DecoderConfig


class Granite(Llama):
    """Logits are divided by `logits_scaling`."""

    hugging_face = ("GraniteForCausalLM", "granite")
    gguf = "granite"

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Scales."""
        return {
            **super().hf_options(fields),
            "embedding_scale": fields.real("embedding_multiplier", 1.0),
            "residual_scale": fields.real("residual_multiplier", 1.0),
            "attention_scale": fields.real("attention_multiplier", 1.0),
            "logit_scale": 1 / fields.real("logits_scaling", 1.0),
        }

    def gguf_metadata(self, config: DecoderConfig) -> dict[str, Any]:
        """Scales."""
        return {
            "embedding_scale": config.embedding_scale,
            "residual_scale": config.residual_scale,
            "attention.scale": config.score_scale,
            "logit_scale": 1 / config.logit_scale,
        }

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Scales."""
        options = {
            **super().gguf_options(file, fields),
            "embedding_scale": fields.real("embedding_scale", 1.0),
            "residual_scale": fields.real("residual_scale", 1.0),
            "logit_scale": 1 / fields.real("logit_scale", 1.0),
        }
        if fields.values.get("attention.scale"):
            options["attention_scale"] = fields.real("attention.scale")
        return options
