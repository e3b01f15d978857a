"""Mixtral (arXiv 2401.04088): Mistral with experts."""

from typing import Any

from relax_mlir.llm.architectures.layout import Names
from relax_mlir.llm.architectures.mistral import Mistral
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.config import Experts


class Mixtral(Mistral):
    """Each layer has experts; GGUF files are `llama`."""

    hugging_face = ("MixtralForCausalLM", "mixtral")
    gguf = "mixtral"
    gguf_of = "llama"
    norm_eps = 1e-5
    theta = 1e6
    hf_names = Names(
        layer={
            "mlp.gate": "block_sparse_moe.gate",
            "mlp.experts.gate_proj": "block_sparse_moe.experts.E.w1",
            "mlp.experts.up_proj": "block_sparse_moe.experts.E.w3",
            "mlp.experts.down_proj": "block_sparse_moe.experts.E.w2",
        }
    )

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """The experts of all layers."""
        count = fields.integer("num_local_experts", 8)
        chosen = fields.integer("num_experts_per_tok", 2)
        experts = Experts(count, chosen, fields.integer("intermediate_size"))
        return {**super().hf_options(fields), "experts": experts}
