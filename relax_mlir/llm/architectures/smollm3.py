"""SmolLM 3 (Hugging Face 2025): Llama without positions in every fourth layer."""

from dataclasses import replace
from typing import Any

from relax_mlir.llm.architectures.llama import Llama
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.config import DecoderConfig

PERIOD = 4


class SmolLm3(Llama):
    """`no_rope_layers` has a 1 for each layer that is rotated."""

    hugging_face = ("SmolLM3ForCausalLM", "smollm3")
    gguf = "smollm3"
    fixed = (("use_sliding_window", False),)
    tied = True
    theta = 2e6

    def hf_options(self, fields: Fields) -> dict[str, Any]:
        """The layers that are rotated."""
        options = super().hf_options(fields)
        if fields.values.get("no_rope_layers") is not None:
            layers = fields.ids("no_rope_layers")
            if len(layers) != fields.integer("num_hidden_layers"):
                raise fields.refuse("'no_rope_layers' has another length than there are layers")
            options["layer_ropes"] = tuple(0 if rotated else -1 for rotated in layers)
        return options

    def finish(self, config: DecoderConfig, fields: Fields) -> DecoderConfig:
        """The layers that are rotated, where the files do not say."""
        if config.layer_ropes:
            return config
        layers = range(config.num_layers)
        return replace(config, layer_ropes=tuple(0 if (i + 1) % PERIOD else -1 for i in layers))
