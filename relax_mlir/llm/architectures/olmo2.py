"""OLMo 2 (arXiv 2501.00656): norms after attention and network only, and of queries and keys."""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.layout import Names
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile

OPTIONS = {"pre_norm": False, "post_norm": True, "qk_norm": "full"}


class Olmo2(Architecture):
    """The norm of queries is over all heads."""

    hugging_face = ("Olmo2ForCausalLM", "olmo2")
    gguf = "olmo2"
    norm_eps = 1e-5
    hf_names = Names(
        layer={
            "self_attn.post_norm": "post_attention_layernorm",
            "mlp.post_norm": "post_feedforward_layernorm",
        }
    )

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms and biases."""
        bias = fields.flag("attention_bias", False)
        return {**OPTIONS, "qkv_bias": bias, "out_bias": bias}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Norms."""
        return dict(OPTIONS)
