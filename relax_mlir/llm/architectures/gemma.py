"""Gemma (arXiv 2403.08295): scaled embeddings, norms that multiply by 1 + weight, gated GELU."""

from dataclasses import replace
from typing import ClassVar

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.config import DecoderConfig


class Gemma(Architecture):
    """GGUF files have 1 + weight already."""

    hugging_face: ClassVar[tuple[str, ...]] = ("GemmaForCausalLM", "gemma")
    gguf = "gemma"
    fixed = (("attention_bias", False),)
    activation_key = "hidden_activation"
    activation = "gelu_pytorch_tanh"
    tied = True
    norm_plus = 1.0

    def finish(self, config: DecoderConfig, fields: Fields) -> DecoderConfig:
        """The scale of embeddings."""
        return replace(config, embedding_scale=config.hidden_size**0.5)
