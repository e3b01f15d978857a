"""Qwen 3 (arXiv 2505.09388): Llama with normalised heads of queries and keys."""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.qwen2 import late_windows
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile


class Qwen3(Architecture):
    """RMS norms of the elements of each head, before the rotation."""

    hugging_face = ("Qwen3ForCausalLM", "qwen3")
    gguf = "qwen3"

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms, biases and windows."""
        bias = fields.flag("attention_bias", False)
        windows = late_windows(fields)
        return {"qk_norm": "head", "qkv_bias": bias, "out_bias": bias, "windows": windows}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Norms."""
        return {"qk_norm": "head"}
