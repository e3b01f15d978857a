"""Command R (Cohere 2024): parallel layers with one norm without bias, scaled logits."""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import DecoderConfig

OPTIONS = {"norm": "layer", "parallel": True, "parallel_norms": 1}


class Cohere(Architecture):
    """Elements 2i and 2i+1 of a head rotate together, in both kinds of files."""

    hugging_face = ("CohereForCausalLM", "cohere")
    gguf = "command-r"
    fixed = (("use_qk_norm", False),)
    norm_key = "layer_norm_eps"
    norm_eps = 1e-5
    theta = 500000.0
    gguf_norm_key = "attention.layer_norm_epsilon"
    tied = True
    hf_interleaved = True
    gguf_interleaved = True

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms, biases, the scale of logits."""
        bias = fields.flag("attention_bias", False)
        scale = fields.real("logit_scale", 0.0625)
        return {**OPTIONS, "logit_scale": scale, "qkv_bias": bias, "out_bias": bias}

    def gguf_metadata(self, config: DecoderConfig) -> dict[str, Any]:
        """The scale of logits."""
        return {"logit_scale": config.logit_scale}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Norms, the scale of logits."""
        return {**OPTIONS, "logit_scale": fields.real("logit_scale")}
