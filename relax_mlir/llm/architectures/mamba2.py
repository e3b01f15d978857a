"""Mamba-2 (arXiv 2405.21060): layers with states alone.

Source of GGUF files: llama.cpp `llama_model_mamba2`.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from relax_mlir.llm.architectures.architecture import GGUF_NAMES, Architecture
from relax_mlir.llm.architectures.layout import Names, Stored
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.modules.config import DecoderConfig, StateSpace

LONGEST = 1 << 20
"""The context of models that state none: states take no memory for tokens."""
BARE = {".dt.weight": ".dt_bias", ".a_log.weight": ".A_log", ".d.weight": ".D"}
"""Ends of names that have no kind in files."""
GGUF_BARE = {".ssm_dt.weight": ".ssm_dt.bias", ".ssm_a.weight": ".ssm_a", ".ssm_d.weight": ".ssm_d"}
GGUF_LAYER = {
    "mamba.in_proj": "ssm_in",
    "mamba.conv1d": "ssm_conv1d",
    "mamba.dt": "ssm_dt",
    "mamba.a_log": "ssm_a",
    "mamba.d": "ssm_d",
    "mamba.norm": "ssm_norm",
    "mamba.out_proj": "ssm_out",
}
GGUF_STATES = replace(GGUF_NAMES, layer={**(GGUF_NAMES.layer or {}), **GGUF_LAYER})
"""The names of GGUF files with states."""


NO_ATTENTION = {"intermediate_size": 0, "num_heads": 1, "num_kv_heads": 1, "head_dim": 2}
"""Sizes that models of states alone do not use."""


class Mamba2(Architecture):
    """Neither positions nor networks."""

    hugging_face = ("Mamba2ForCausalLM", "mamba2")
    gguf = "mamba2"
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
    gguf_names = GGUF_STATES

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
            "num_layers": fields.integer("num_hidden_layers", 64),
            "max_context": LONGEST,
            "states": states,
            **NO_ATTENTION,
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
        return with_bare_names(super().hf_tensors(config), BARE)

    # GGUF.

    def gguf_sizes(self, fields: Fields) -> dict[str, Any]:
        """The sizes; there is no attention."""
        return {
            "hidden_size": fields.integer("embedding_length"),
            "num_layers": fields.integer("block_count"),
            "max_context": fields.integer("context_length"),
            "states": gguf_states(fields),
            **NO_ATTENTION,
        }

    def gguf_ropes(self, config: DecoderConfig, file: GgufFile, fields: Fields) -> tuple[()]:
        """None."""
        return ()

    def gguf_metadata(self, config: DecoderConfig) -> dict[str, Any]:
        """The sizes of states; readers expect those of attention too."""
        zeros = dict.fromkeys(("attention.head_count", "attention.head_count_kv"), 0)
        return {**gguf_state_metadata(config), **zeros}

    def gguf_tensors(self, config: DecoderConfig, stored: Collection[str] = ()) -> list[Stored]:
        """Rates of states, and other shapes of small weights."""
        return with_gguf_states(super().gguf_tensors(config, stored), config)


def with_bare_names(tensors: list[Stored], ends: Mapping[str, str]) -> list[Stored]:
    """The tensors by their names in files, of which some have other `ends`."""
    return [
        replace(t, name=t.name.removesuffix(end) + ends[end])
        if (end := next((end for end in ends if t.name.endswith(end)), ""))
        else t
        for t in tensors
    ]


def gguf_states(fields: Fields) -> StateSpace:
    """The states in the metadata of a GGUF file, whose keys have no prefix."""
    heads, size = fields.integer("ssm.time_step_rank"), fields.integer("ssm.inner_size")
    if size % heads:
        raise fields.refuse(f"has {heads} heads of states of {size} elements; expects a multiple")
    groups = fields.integer("ssm.group_count", 1)
    states = StateSpace(
        heads,
        size // heads,
        groups,
        fields.integer("ssm.state_size"),
        fields.integer("ssm.conv_kernel"),
        norm_groups=groups,
    )
    check_states(states, fields)
    return states


def gguf_state_metadata(config: DecoderConfig) -> dict[str, Any]:
    """The keys that `gguf_states` reads."""
    c = config.states
    assert c is not None
    return {
        "ssm.conv_kernel": c.taps,
        "ssm.inner_size": c.size,
        "ssm.state_size": c.state,
        "ssm.time_step_rank": c.heads,
        "ssm.group_count": c.groups,
    }


def with_gguf_states(tensors: list[Stored], config: DecoderConfig) -> list[Stored]:
    """The tensors of a GGUF file: it has -exp of `a_log`, and matrices for some vectors."""
    c = config.states
    assert c is not None
    dims = {
        ".ssm_conv1d.weight": (c.mixed, c.taps),
        ".ssm_norm.weight": (c.norm_groups, c.size // c.norm_groups),
        ".ssm_a": (c.heads, 1),
        ".ssm_d": (c.heads, 1),
    }
    return [
        replace(t, rates=end == ".ssm_a", dims=dims[end])
        if (end := next((end for end in dims if t.name.endswith(end)), ""))
        else t
        for t in with_bare_names(tensors, GGUF_BARE)
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
