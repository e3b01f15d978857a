"""Phi 3 and 4 (arXiv 2404.14219, 2412.08905): Llama with fused projections, and longrope."""

from dataclasses import replace
from typing import Any

from relax_mlir.llm.architectures.architecture import FUSED_QKV, GGUF_NAMES, Architecture
from relax_mlir.llm.architectures.layout import Names
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import DecoderConfig

GATES = ("mlp.gate_proj", "mlp.up_proj")


class Phi3(Architecture):
    """All layers have a window, if `sliding_window` is set."""

    hugging_face = ("Phi3ForCausalLM", "phi3")
    gguf = "phi3"
    states_windows = True
    norm_eps = 1e-5
    hf_names = Names(fused={"self_attn.qkv_proj": FUSED_QKV, "mlp.gate_up_proj": GATES})
    gguf_names = replace(GGUF_NAMES, fused={"attn_qkv": FUSED_QKV, "ffn_up": GATES})
    unused = ("rotary_emb.inv_freq", "rope_factors_long.weight", "rope_factors_short.weight")

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Windows."""
        if fields.values.get("sliding_window") is None:
            return {}
        window = fields.integer("sliding_window")
        return {"windows": (window,) * fields.integer("num_hidden_layers")}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Windows."""
        if not fields.values.get("attention.sliding_window", 0):
            return {}
        window = fields.integer("attention.sliding_window")
        return {"windows": (window,) * fields.integer("block_count")}

    def gguf_metadata(self, config: DecoderConfig) -> dict[str, Any]:
        """Windows."""
        return {"attention.sliding_window": max(config.windows, default=0)}
