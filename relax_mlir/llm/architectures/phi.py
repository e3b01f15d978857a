"""Phi 1 to 2 (arXiv 2306.11644, 2309.05463): parallel layers with one norm, biases throughout."""

from dataclasses import replace
from typing import Any

from relax_mlir.llm.architectures.architecture import FUSED_QKV, GGUF_NAMES, Architecture
from relax_mlir.llm.architectures.layout import Names
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile

BIASES = ("norm_bias", "qkv_bias", "out_bias", "mlp_bias", "head_bias")
OPTIONS: dict[str, Any] = {
    "norm": "layer",
    "parallel": True,
    "parallel_norms": 1,
    "gated": False,
    **dict.fromkeys(BIASES, True),
}


class Phi(Architecture):
    """Half of each head, or less, is rotated."""

    hugging_face = ("PhiForCausalLM", "phi")
    gguf = "phi2"
    fixed = (("qk_layernorm", False),)
    norm_key = "layer_norm_eps"
    norm_eps = 1e-5
    gguf_norm_key = "attention.layer_norm_epsilon"
    activation = "gelu_new"
    rotary = 0.5
    hf_names = Names(
        outer={"model.norm": "model.final_layernorm"},
        layer={
            "self_attn.o_proj": "self_attn.dense",
            "mlp.up_proj": "mlp.fc1",
            "mlp.down_proj": "mlp.fc2",
        },
    )
    gguf_names = replace(GGUF_NAMES, fused={"attn_qkv": FUSED_QKV})

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms and biases."""
        return dict(OPTIONS)

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Norms and biases."""
        return dict(OPTIONS)
