"""Qwen 1.5 and 2 with experts (arXiv 2407.10671): one network for all tokens, and chosen ones."""

from typing import Any

from relax_mlir.llm.architectures.qwen2 import Qwen2
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import Experts


class Qwen2Moe(Qwen2):
    """Weights of chosen experts are not divided by their sum, unless `norm_topk_prob`."""

    hugging_face = ("Qwen2MoeForCausalLM", "qwen2_moe")
    gguf = "qwen2moe"

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Experts, in every `decoder_sparse_step`-th layer."""
        experts = Experts(
            fields.integer("num_experts", 60),
            fields.integer("num_experts_per_tok", 4),
            fields.integer("moe_intermediate_size"),
            fields.flag("norm_topk_prob", False),
            fields.integer("shared_expert_intermediate_size"),
            dense_layers(fields),
        )
        return {**super().hf_options(fields), "experts": experts}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Experts of all layers."""
        size = fields.integer("expert_feed_forward_length")
        shared = fields.integer("expert_shared_feed_forward_length")
        chosen = fields.integer("expert_used_count")
        experts = Experts(fields.integer("expert_count"), chosen, size, False, shared)
        return {**super().gguf_options(file, fields), "experts": experts}


def dense_layers(fields: Fields) -> frozenset[int]:
    """The layers of Qwen's `config.json` that have a plain network."""
    step, count = fields.integer("decoder_sparse_step", 1), fields.integer("num_hidden_layers")
    plain = fields.ids("mlp_only_layers")
    return frozenset(i for i in range(count) if i in plain or (i + 1) % step)
