"""The decoder of Qwen2-VL and Qwen2.5-VL (arXiv 2409.12191, 2502.13923): Qwen 2 with M-RoPE."""

from dataclasses import replace

from relax_mlir.llm.architectures.qwen2 import Qwen2
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.config import DecoderConfig, Rope


class Qwen2Vl(Qwen2):
    """Each section of the frequencies rotates by another coordinate of a token."""

    hugging_face = ("qwen2_vl_text", "qwen2_5_vl_text")
    gguf = "qwen2vl"
    theta = 1e6
    norm_eps = 1e-5

    def hf_ropes(self, config: DecoderConfig, fields: Fields) -> tuple[Rope, ...]:
        """Those of Qwen 2, with sections."""
        key = "rope_scaling" if fields.table("rope_scaling").values else "rope_parameters"
        scaling = dict(fields.table(key).values)
        for name in ("type", "rope_type"):
            if scaling.get(name) == "mrope":
                scaling[name] = "default"
        plain = Fields(fields.where, {**fields.values, key: scaling}, fields.prefix)
        sections = plain.table(key).counts("mrope_section")
        half = config.head_dim // 2
        if len(sections) != 3 or sum(sections) != half:
            raise fields.refuse(
                f"'mrope_section' is {list(sections)}; expects 3 counts whose sum is {half}"
            )
        return tuple(replace(rope, sections=sections) for rope in super().hf_ropes(config, plain))
