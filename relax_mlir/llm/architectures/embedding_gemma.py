"""EmbeddingGemma (arXiv 2509.20354): Gemma 3 whose tokens attend to both sides."""

from dataclasses import replace
from typing import ClassVar

from relax_mlir.llm.architectures.gemma2 import POST_NORMS
from relax_mlir.llm.architectures.gemma3 import Gemma3
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.encoder_config import EncoderConfig


class EmbeddingGemma(Gemma3):
    """The window counts the tokens on both sides."""

    hugging_face: ClassVar[tuple[str, ...]] = ("Gemma3TextModel",)  # not "gemma3_text"
    gguf = "gemma-embedding"
    hf_names = replace(
        POST_NORMS,
        layers="layers",
        outer={"model.embed_tokens": "embed_tokens", "model.norm": "norm"},
    )

    def from_hugging_face(self, fields: Fields, generation: Fields) -> EncoderConfig:
        """See `Architecture`."""
        if fields.values.get("use_bidirectional_attention") is not True:
            value = fields.values.get("use_bidirectional_attention")
            raise fields.refuse(f"'use_bidirectional_attention' is {value!r}; True is supported")
        config = super().from_hugging_face(fields, generation)
        return EncoderConfig.of(config, final_norm=True)

    def windows_of(self, fields: Fields) -> tuple[int, ...]:
        """Half of what is stated, and the token itself."""
        return tuple(window // 2 + 1 if window else 0 for window in super().windows_of(fields))
