"""OLMoE (arXiv 2409.02060): experts, and norms of queries and keys over all heads."""

from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import Experts


class Olmoe(Architecture):
    """Weights of chosen experts are not divided by their sum, unless `norm_topk_prob`."""

    hugging_face = ("OlmoeForCausalLM", "olmoe")
    gguf = "olmoe"
    norm_eps = 1e-5
    fixed = (
        ("attention_bias", False),
        ("clip_qkv", None),
    )

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms and experts."""
        count = fields.integer("num_experts", 64)
        chosen = fields.integer("num_experts_per_tok", 8)
        divides = fields.flag("norm_topk_prob", False)
        experts = Experts(count, chosen, fields.integer("intermediate_size"), divides)
        return {"qk_norm": "full", "experts": experts}

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Norms and experts."""
        count, chosen = fields.integer("expert_count"), fields.integer("expert_used_count")
        experts = Experts(count, chosen, fields.integer("feed_forward_length"), False)
        return {"qk_norm": "full", "experts": experts}
