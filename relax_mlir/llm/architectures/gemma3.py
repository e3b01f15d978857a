"""Gemma 3 (arXiv 2503.19786): normalised heads, five layers with a window for each without."""

from dataclasses import replace
from typing import Any, ClassVar

from relax_mlir.llm.architectures.gemma2 import Gemma2, cap_of
from relax_mlir.llm.architectures.rope_scaling import scale_gguf_rope, scale_rope
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import DecoderConfig, Rope

LOCAL_THETA = 10000.0
PERIOD = 6
PATTERN, CAP = "attention.sliding_window_pattern", "final_logit_softcapping"


class Gemma3(Gemma2):
    """Layers with a window have rotary positions of their own, without scaling."""

    hugging_face: ClassVar[tuple[str, ...]] = ("Gemma3ForCausalLM", "gemma3_text")
    gguf = "gemma3"
    theta = 1e6

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """Norms of heads; no caps."""
        return {
            **super().hf_options(fields),
            "qk_norm": "head",
            "attention_cap": cap_of(fields, "attn_logit_softcapping", 0.0)
            if fields.values.get("attn_logit_softcapping")
            else 0.0,
            "logit_cap": fields.real("final_logit_softcapping")
            if fields.values.get("final_logit_softcapping")
            else 0.0,
        }

    def windows_of(self, fields: Fields) -> tuple[int, ...]:
        """All but every sixth layer."""
        if fields.values.get("layer_types") is not None:
            return super().windows_of(fields)
        period = fields.integer("sliding_window_pattern", PERIOD)
        return late_global(
            fields.integer("num_hidden_layers"), fields.integer("sliding_window"), period
        )

    def hf_ropes(self, config: DecoderConfig, fields: Fields) -> tuple[Rope, ...]:
        """Those of global layers, and of others."""
        both = fields.table("rope_parameters")
        if "full_attention" not in both.values:
            [rope] = super().hf_ropes(config, fields)
            local = fields.real("rope_local_base_freq", LOCAL_THETA)
            return rope, Rope(local, rope.dims)
        ropes = []
        for kind, theta in (("full_attention", self.theta), ("sliding_attention", LOCAL_THETA)):
            table = both.table(kind)
            plain = Rope(table.real("rope_theta", theta), config.head_dim)
            ropes.append(scale_rope(plain, table, fields, config.max_context))
        return tuple(ropes)

    def gguf_options(self, file: GgufFile, fields: Fields) -> dict[str, Any]:
        """Windows and the cap of logits."""
        window, count = fields.integer("attention.sliding_window"), fields.integer("block_count")
        period = fields.integer(PATTERN, PERIOD)
        return {
            "post_norm": True,
            "qk_norm": "head",
            "windows": late_global(count, window, period),
            "logit_cap": fields.real(CAP) if fields.values.get(CAP) else 0.0,
        }

    def gguf_metadata(self, config: DecoderConfig) -> dict[str, Any]:
        """Windows, the cap of logits, positions of layers with a window."""
        full = next((i for i, window in enumerate(config.windows) if not window), PERIOD - 1)
        keys = {
            "attention.sliding_window": max(config.windows, default=0) or config.max_context,
            "rope.freq_base_swa": config.ropes[1].theta,
        }
        keys |= {CAP: config.logit_cap} if config.logit_cap else {}
        return keys | ({} if full == PERIOD - 1 else {PATTERN: full + 1})

    def gguf_ropes(self, config: DecoderConfig, file: GgufFile, fields: Fields) -> tuple[Rope, ...]:
        """Those of global layers, and of others."""
        plain = Rope(fields.real("rope.freq_base", self.theta), config.head_dim)
        local = fields.real("rope.freq_base_swa", LOCAL_THETA)
        return scale_gguf_rope(plain, file, fields), Rope(local, config.head_dim)

    def finish(self, config: DecoderConfig, fields: Fields) -> DecoderConfig:
        """Which layers have which positions; the scale of the 27B model in GGUF files."""
        layer_ropes = tuple(1 if window else 0 for window in config.windows)
        config = replace(config, layer_ropes=layer_ropes)
        if not config.attention_scale and config.num_layers == 62:
            scale = (config.hidden_size / config.num_heads) ** -0.5
            config = replace(config, attention_scale=scale)
        return super().finish(config, fields)


def late_global(count: int, window: int, period: int) -> tuple[int, ...]:
    """Windows of all layers but each `period`-th."""
    return tuple(window if (i + 1) % period else 0 for i in range(count))
