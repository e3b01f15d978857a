"""Mistral (arXiv 2310.06825): Llama with a sliding window in the first version."""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.formats.fields import Fields


class Mistral(Architecture):
    """Attends to a window of the past, if `sliding_window` is set; GGUF files are `llama`."""

    hugging_face = ("MistralForCausalLM", "mistral")
    gguf = "mistral"
    gguf_of = "llama"

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """The window of all layers."""
        if fields.values.get("sliding_window") is None:
            return {}
        window = fields.integer("sliding_window")
        return {"windows": (window,) * fields.integer("num_hidden_layers")}
