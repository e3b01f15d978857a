"""Llama 1 to 3 (arXiv 2302.13971, 2307.09288, 2407.21783), and models of its form.

GGUF files of this architecture may also be Mistral's and Mixtral's.
"""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import Experts


class Llama(Architecture):
    """RMS norm, rotary positions, grouped-query attention, SwiGLU."""

    hugging_face = ("LlamaForCausalLM", "llama")
    gguf = "llama"
    fixed = (("pretraining_tp", 1),)
    gguf_interleaved = True

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Biases."""
        bias = fields.flag("attention_bias", False)
        return {
            "qkv_bias": bias,
            "out_bias": bias,
            "mlp_bias": fields.flag("mlp_bias", False),
        }

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Biases, by the tensors that there are, and Mixtral's experts."""
        options: dict[str, Any] = {
            "qkv_bias": "blk.0.attn_q.bias" in file.tensors,
            "out_bias": "blk.0.attn_output.bias" in file.tensors,
            "mlp_bias": "blk.0.ffn_up.bias" in file.tensors,
        }
        if fields.values.get("expert_count", 0):
            count, size = fields.integer("expert_count"), fields.integer("feed_forward_length")
            options["experts"] = Experts(count, fields.integer("expert_used_count"), size)
        return options
