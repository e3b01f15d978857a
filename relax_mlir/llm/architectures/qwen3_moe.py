"""Qwen 3 with experts (arXiv 2505.09388)."""

from typing import Any

from relax_mlir.llm.architectures.qwen2_moe import dense_layers
from relax_mlir.llm.architectures.qwen3 import Qwen3
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import Experts


class Qwen3Moe(Qwen3):
    """Experts without one for all tokens."""

    hugging_face = ("Qwen3MoeForCausalLM", "qwen3_moe")
    gguf = "qwen3moe"

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Experts, in every `decoder_sparse_step`-th layer."""
        experts = Experts(
            fields.integer("num_experts", 128),
            fields.integer("num_experts_per_tok", 8),
            fields.integer("moe_intermediate_size"),
            fields.flag("norm_topk_prob", False),
            dense_layers=dense_layers(fields),
        )
        return {**super().hf_options(fields), "experts": experts}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Experts of all layers, whose weights are normalised."""
        count, chosen = fields.integer("expert_count"), fields.integer("expert_used_count")
        experts = Experts(count, chosen, fields.integer("expert_feed_forward_length"))
        return {**super().gguf_options(file, fields), "experts": experts}
