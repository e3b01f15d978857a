"""Mamba-2 (arXiv 2405.21060): layers with states alone."""

import math
from dataclasses import replace
from typing import Any

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.layout import Names, Stored
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.modules.config import DecoderConfig, StateSpace

LONGEST = 1 << 20
"""The context of models that state none: states take no memory for tokens."""
BARE = {".dt.weight": ".dt_bias", ".a_log.weight": ".A_log", ".d.weight": ".D"}
"""Ends of names that have no kind in files."""


class Mamba2(Architecture):
    """Neither positions nor networks."""

    hugging_face = ("Mamba2ForCausalLM", "mamba2")
    gguf = "mamba2"
    in_gguf = False
    fixed = (("hidden_act", "silu"),)
    norm_key = "layer_norm_epsilon"
    norm_eps = 1e-5
    hf_names = Names(
        "backbone.layers",
        {"model.embed_tokens": "backbone.embeddings", "model.norm": "backbone.norm_f"},
        {
            "input_layernorm": "norm",
            **{
                f"mamba.{n}": f"mixer.{n}"
                for n in "in_proj conv1d dt a_log d norm out_proj".split()
            },
        },
    )

    def sizes(self, fields: Fields) -> dict[str, Any]:
        """The sizes; those of attention are not used."""
        hidden, states = fields.integer("hidden_size", 4096), self.states(fields)
        if fields.integer("expand", 2) * hidden != states.size:
            raise fields.refuse(
                f"has {states.heads} heads of {states.head_dim} elements; expects 'expand' times "
                f"{hidden} in all"
            )
        return {
            "vocab_size": fields.integer("vocab_size"),
            "hidden_size": hidden,
            "intermediate_size": 0,
            "num_layers": fields.integer("num_hidden_layers", 64),
            **{"num_heads": 1, "num_kv_heads": 1, "head_dim": 2},
            "max_context": LONGEST,
            "states": states,
        }

    def states(self, fields: Fields) -> StateSpace:
        """The layers' states."""
        groups = fields.integer("n_groups", 8)
        states = StateSpace(
            fields.integer("num_heads", 128),
            fields.integer("head_dim", 64),
            groups,
            fields.integer("state_size", 128),
            fields.integer("conv_kernel", 4),
            fields.flag("use_conv_bias", True),
            fields.flag("use_bias", False),
            norm_groups=groups,
            step_limits=step_limits(fields),
        )
        check_states(states, fields)
        return states

    def hf_ropes(self, config: DecoderConfig, fields: Fields) -> tuple[()]:
        """None."""
        return ()

    def hf_tensors(self, config: DecoderConfig) -> list[Stored]:
        """Some vectors have bare names."""
        return with_bare_names(super().hf_tensors(config))


def with_bare_names(tensors: list[Stored]) -> list[Stored]:
    """The tensors by their names in files."""
    return [
        replace(t, name=t.name.removesuffix(end) + bare)
        if (end := next((end for end in BARE if t.name.endswith(end)), "")) and (bare := BARE[end])
        else t
        for t in tensors
    ]


def check_states(states: StateSpace, fields: Fields) -> None:
    """Raises ModelError unless groups divide heads, and there is something to convolve."""
    if states.heads % states.groups or states.size % states.norm_groups:
        raise fields.refuse(
            f"has {states.heads} heads of states in {states.groups} groups; expects a multiple"
        )
    if states.taps < 2:
        raise fields.refuse(f"convolves {states.taps} token; expects two or more")


def step_limits(fields: Fields) -> tuple[float, float | None]:
    """The least and the greatest step; None is no bound."""
    limits = fields.values.get("time_step_limit")
    if limits is None:
        return 0.0, None
    bounds = [
        math.inf if isinstance(x, dict) and x.get("__float__") == "Infinity" else x
        for x in (limits if isinstance(limits, list) else [])
    ]
    if len(bounds) != 2 or not all(type(x) in (int, float) and x >= 0 for x in bounds):
        raise fields.refuse(f"'time_step_limit' is {quoted(limits)}; expects two values, not < 0")
    least, most = map(float, bounds)
    return least, None if math.isinf(most) else most
