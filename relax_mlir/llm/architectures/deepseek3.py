"""DeepSeek-V3 and R1 (arXiv 2412.19437): V2 with sigmoid scores and a bias for their choice."""

from dataclasses import replace
from typing import Any

from relax_mlir.llm.architectures.deepseek2 import DeepSeek2, by_two_best, first_layers
from relax_mlir.llm.architectures.layout import Stored
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.config import DecoderConfig, Experts

BIAS = ("mlp.expert_bias.bias", "mlp.gate.e_score_correction_bias")


class DeepSeek3(DeepSeek2):
    """The layers after the last, which predict further tokens, are not used."""

    hugging_face = ("DeepseekV3ForCausalLM", "deepseek_v3")
    gguf = "deepseek3"
    gguf_of = "deepseek2"
    fixed = (
        ("moe_layer_freq", 1),
        ("ep_size", 1),
        ("scoring_func", "sigmoid"),
        ("topk_method", "noaux_tc"),
    )

    def experts(self, fields: Fields) -> Experts | None:
        """Groups are ranked by their two best experts."""
        stated = {"n_group": 8, "topk_group": 4, "num_experts_per_tok": 8, **fields.values}
        stated = {"n_routed_experts": 256, "moe_intermediate_size": 2048, **stated}
        routed = self.routed(Fields(fields.where, stated))
        return replace(
            by_two_best(routed, fields),
            normalises=fields.flag("norm_topk_prob", True),
            scores="sigmoid",
            bias=True,
            shared_size=routed.size * fields.count("n_shared_experts", 1),
            dense_layers=first_layers(fields.count("first_k_dense_replace", 3)),
            scale=fields.real("routed_scaling_factor", 2.5),
        )

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """As V2; rotated elements may be in halves."""
        rows = "interleaved" if fields.flag("rope_interleave", True) else ""
        return {**super().hf_options(fields), "rope_rows": rows}

    def is_interleaved(self, config: DecoderConfig) -> bool:
        """Unless `rope_interleave` is false."""
        return config.rope_rows == "interleaved"

    def hf_tensors(self, config: DecoderConfig) -> list[Stored]:
        """The bias of the choice has a name of its own."""
        return [replace(t, name=t.name.replace(*BIAS)) for t in super().hf_tensors(config)]

    def is_unused(self, name: str, config: DecoderConfig) -> bool:
        """Also the layers after the last."""
        is_later = name.startswith(f"model.layers.{config.num_layers}.")
        return is_later or super().is_unused(name, config)
