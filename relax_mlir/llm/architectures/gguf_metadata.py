"""What a GGUF file states of a `DecoderConfig`: keys, rotary factors, and what it cannot state.

Source: GGUF specification; llama.cpp `llama_model::load_hparams`.
"""

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from relax_mlir.errors import ModelError
from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.rope_scaling import yarn_scale
from relax_mlir.llm.modules.config import DecoderConfig, Rope, Yarn

Metadata = dict[str, Any]
UNSTATED = frozenset({"architecture", "bos_id", "eos_ids", "rope_rows"})
"""Fields that the tokenizer states, or that are of Hugging Face's files alone."""
NAMES_OF_FREQUENCIES = ("llama", "granite")
"""Architectures whose files may have factors of frequencies as a tensor."""


def stated_config(architecture: Architecture, config: DecoderConfig) -> DecoderConfig:
    """The configuration that a file of `architecture` has.

    Where it cannot state windows, the context ends with the shortest: up to there all is the same.
    """
    windows = [window for window in map(config.window_of, range(config.num_layers)) if window]
    if not windows or architecture.states_windows:
        return config
    return replace(config, windows=(), max_context=min(windows))


def metadata_of(architecture: Architecture, config: DecoderConfig) -> Metadata:
    """The keys of a file, without the prefix of the architecture."""
    sizes: Metadata = {
        "block_count": config.num_layers,
        "context_length": config.max_context,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_heads,
        "attention.head_count_kv": config.num_kv_heads,
        "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim,
        "vocab_size": config.vocab_size,
        architecture.gguf_norm_key: config.norm_eps,
    }
    return {
        **sizes,
        **_experts(config),
        **(_rope(architecture, config.ropes[0]) if config.ropes else {}),
        **architecture.gguf_metadata(config),
    }


def _experts(config: DecoderConfig) -> Metadata:
    experts = config.experts
    if experts is None:
        return {}
    metadata: Metadata = {
        "expert_count": experts.count,
        "expert_used_count": experts.chosen,
        "expert_feed_forward_length": experts.size,
    }
    if experts.shared_size:
        metadata["expert_shared_feed_forward_length"] = experts.shared_size
    return metadata


def _rope(architecture: Architecture, rope: Rope) -> Metadata:
    metadata: Metadata = {"rope.dimension_count": rope.dims, "rope.freq_base": rope.theta}
    # Others have the factors as a tensor.
    yarn, scale = None if architecture.gguf in NAMES_OF_FREQUENCIES else rope.yarn, rope.scale
    if yarn is not None:
        metadata |= _yarn(yarn)
        scale /= yarn_scale(yarn.factor)
    elif rope.long_factors is not None:
        metadata["rope.scaling.type"] = "longrope"
        metadata["rope.scaling.original_context_length"] = rope.original_context
    elif _is_linear(rope):
        metadata["rope.scaling.type"] = "linear"
        metadata["rope.scaling.factor"] = (rope.factors or (1.0,))[0]
    if scale != 1:
        metadata["rope.scaling.attn_factor"] = scale
    return metadata


def _yarn(yarn: Yarn) -> Metadata:
    key = "rope.scaling"
    return {
        f"{key}.type": "yarn",
        f"{key}.factor": yarn.factor,
        f"{key}.original_context_length": yarn.original,
        f"{key}.yarn_beta_fast": yarn.fast,
        f"{key}.yarn_beta_slow": yarn.slow,
    }


def _is_linear(rope: Rope) -> bool:
    return rope.factors is not None and rope.scale == 1 and len(set(rope.factors)) == 1


def rope_tensors(architecture: Architecture, config: DecoderConfig) -> dict[str, np.ndarray]:
    """The tensors of rotary factors."""
    rope = config.ropes[0] if config.ropes else None
    if rope is None or rope.factors is None:
        return {}
    if rope.long_factors is not None:
        both = {"short": rope.factors, "long": rope.long_factors}
        return {f"rope_factors_{k}.weight": np.array(v, np.float32) for k, v in both.items()}
    if _is_linear(rope) or architecture.gguf not in NAMES_OF_FREQUENCIES:
        return {}
    return {"rope_freqs.weight": np.array(rope.factors, np.float32)}


def check_same(where: str, kind: str, wanted: DecoderConfig, stated: DecoderConfig) -> None:
    """Raises ModelError unless a file `stated` what is `wanted`, up to rounding to float32."""
    for name, value, other in _differences(wanted, stated):
        raise ModelError(
            f"{where}: has {name} {value}, which GGUF files of architecture '{kind}' cannot "
            f"state: they mean {other}"
        )


def _differences(a: DecoderConfig, b: DecoderConfig) -> Iterator[tuple[str, Any, Any]]:
    for field in fields(DecoderConfig):
        if field.name in UNSTATED:
            continue
        x, y = (_plain(config, field.name) for config in (a, b))
        if not _is_close(x, y):
            yield field.name, x, y


def _plain(config: DecoderConfig, name: str) -> Any:
    """A field without the freedom that defaults have."""
    if name == "attention_scale":
        return config.score_scale
    if name == "ropes":
        ropes = [config.rope_of(i) for i in range(config.num_layers)]
        return [None if rope is None else replace(rope, yarn=None) for rope in ropes]
    if name == "windows":
        return [config.window_of(i) for i in range(config.num_layers)]
    return () if name == "layer_ropes" else getattr(config, name)


def _is_close(x: Any, y: Any) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        return math.isclose(x, y, rel_tol=1e-6)
    if is_dataclass(x) and is_dataclass(y):
        return all(_is_close(getattr(x, f.name), getattr(y, f.name)) for f in fields(x))
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return len(x) == len(y) and all(map(_is_close, x, y))
    return bool(x == y)
