"""Qwen 2 and 2.5 (arXiv 2407.10671, 2412.15115): Llama with biases of queries, keys and values."""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile


class Qwen2(Architecture):
    """Layers from `max_window_layers` on attend to a window, if `use_sliding_window`."""

    hugging_face = ("Qwen2ForCausalLM", "qwen2")
    gguf = "qwen2"

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Biases and windows."""
        return {"qkv_bias": True, "windows": late_windows(fields)}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Biases."""
        return {"qkv_bias": True}


def late_windows(fields: Fields) -> tuple[int, ...]:
    """The windows of layers in Qwen's `config.json`."""
    if not fields.flag("use_sliding_window", False):
        return ()
    count, window = fields.integer("num_hidden_layers"), fields.integer("sliding_window")
    if fields.values.get("layer_types") is not None:
        kinds = fields.texts("layer_types")
        return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)
    first = fields.count("max_window_layers", count)
    return tuple(window if i >= first else 0 for i in range(count))
