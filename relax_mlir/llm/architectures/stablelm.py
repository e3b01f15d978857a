"""StableLM 2 (arXiv 2402.17834): layer norms, partial rotation, SwiGLU."""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile


class StableLm(Architecture):
    """One norm for attention and network, if the residual is parallel."""

    hugging_face = ("StableLmForCausalLM", "stablelm")
    gguf = "stablelm"
    fixed = (("qk_layernorm", False),)
    norm_key = "layer_norm_eps"
    norm_eps = 1e-5
    gguf_norm_key = "attention.layer_norm_epsilon"
    rotary = 0.25

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms, biases, the residual."""
        parallel = fields.flag("use_parallel_residual", False)
        return {**self._options(parallel), "qkv_bias": fields.flag("use_qkv_bias", False)}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Norms, biases and the residual, by the tensors that there are."""
        parallel = "blk.0.ffn_norm.weight" not in file.tensors
        return {**self._options(parallel), "qkv_bias": "blk.0.attn_q.bias" in file.tensors}

    def _options(self, parallel: bool) -> dict[str, Any]:
        return {"norm": "layer", "norm_bias": True, "parallel": parallel, "parallel_norms": 1}
