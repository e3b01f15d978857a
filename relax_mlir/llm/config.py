"""What a Llama model computes: sizes, constants and special tokens.

Read from the metadata of a GGUF file or from `config.json` of a Hugging Face folder. A model that
computes anything else than the Llama decoder described by `LlamaConfig` is refused by name.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relax_mlir.errors import ModelError
from relax_mlir.llm.gguf_file import GgufFile

# Texts by which tokens that end a turn or a document are known, whatever the file says.
END_TOKENS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>")
CONTROL_TOKEN = 3


@dataclass(frozen=True)
class LlamaConfig:
    """A Llama decoder: RMS norm, rotary positions (`rotate_half`), grouped-query attention, SwiGLU.

    `head_dim` elements a head; `num_heads` is a multiple of `num_kv_heads`. `max_context` counts
    tokens. With `tie_embeddings` the embedding is the output projection. Generation stops at any
    of `eos_ids`. `rope_factors`, one for each of the `head_dim // 2` frequencies, divide them
    (Llama 3 and linear scaling).
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope_theta: float
    rms_norm_eps: float
    max_context: int
    tie_embeddings: bool
    bos_id: int | None
    eos_ids: frozenset[int]
    rope_factors: tuple[float, ...] | None = None

    def inverse_frequencies(self) -> np.ndarray:
        """Angle per position of each rotated pair: float32[head_dim // 2], radians."""
        exponents = np.arange(0, self.head_dim, 2, dtype=np.float64) / self.head_dim
        frequencies = self.rope_theta**-exponents
        if self.rope_factors is not None:
            frequencies /= np.array(self.rope_factors)
        return frequencies.astype(np.float32)

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every weight by its Hugging Face name; projections are (out, in)."""
        hidden, inner = self.hidden_size, self.intermediate_size
        q_size, kv_size = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        layer = {
            "input_layernorm": (hidden,),
            "self_attn.q_proj": (q_size, hidden),
            "self_attn.k_proj": (kv_size, hidden),
            "self_attn.v_proj": (kv_size, hidden),
            "self_attn.o_proj": (hidden, q_size),
            "post_attention_layernorm": (hidden,),
            "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner),
        }
        shapes = {"model.embed_tokens.weight": (self.vocab_size, hidden)}
        for i in range(self.num_layers):
            for name, shape in layer.items():
                shapes[f"model.layers.{i}.{name}.weight"] = shape
        shapes["model.norm.weight"] = (hidden,)
        if not self.tie_embeddings:
            shapes["lm_head.weight"] = (self.vocab_size, hidden)
        return shapes

    @staticmethod
    def from_gguf(file: GgufFile) -> "LlamaConfig":
        """Reads the metadata of `file`; raises ModelError if it is no Llama model."""
        fields = _Fields(str(file.path), file.metadata)
        architecture = file.metadata.get("general.architecture")
        if architecture != "llama":
            raise fields.refuse(f"has architecture {architecture!r}; 'llama' is supported")
        if file.metadata.get("split.count", 1) != 1:
            raise fields.refuse("is one part of a split model; merge the parts into one file")
        if file.metadata.get("llama.expert_count", 0):
            raise fields.refuse("is a mixture of experts; dense 'llama' models are supported")
        if "token_embd.weight" not in file.tensors:
            raise fields.refuse("has no tensor 'token_embd.weight'")
        num_heads = fields.integer("llama.attention.head_count")
        hidden = fields.integer("llama.embedding_length")
        head_dim = fields.integer("llama.attention.key_length", hidden // num_heads)
        for key in ("llama.attention.value_length", "llama.rope.dimension_count"):
            if fields.integer(key, head_dim) != head_dim:
                raise fields.refuse(f"'{key}' is {file.metadata[key]}; expects {head_dim}")
        config = LlamaConfig(
            vocab_size=file.tensors["token_embd.weight"].shape[0],
            hidden_size=hidden,
            intermediate_size=fields.integer("llama.feed_forward_length"),
            num_layers=fields.integer("llama.block_count"),
            num_heads=num_heads,
            num_kv_heads=fields.integer("llama.attention.head_count_kv", num_heads),
            head_dim=head_dim,
            rope_theta=fields.number("llama.rope.freq_base", 10000.0),
            rms_norm_eps=fields.number("llama.attention.layer_norm_rms_epsilon"),
            max_context=fields.integer("llama.context_length"),
            tie_embeddings="output.weight" not in file.tensors,
            bos_id=file.metadata.get("tokenizer.ggml.bos_token_id"),
            eos_ids=_gguf_end_tokens(file.metadata),
            rope_factors=_gguf_rope_factors(file, fields, head_dim),
        )
        return _checked(config, fields)

    @staticmethod
    def from_hugging_face(folder: Path) -> "LlamaConfig":
        """Reads `config.json` (and `generation_config.json`, where there is one) of `folder`.

        Raises ModelError if a file is missing or damaged, or if this is no Llama model.
        """
        path = folder / "config.json"
        values = read_json(path)
        fields = _Fields(str(path), values)
        architectures = values.get("architectures") or [values.get("model_type")]
        if not set(architectures) <= {"LlamaForCausalLM", "llama"}:
            names = ", ".join(map(repr, architectures))
            raise fields.refuse(f"has architecture {names}; 'LlamaForCausalLM' is supported")
        _refuse_variants(values, fields)
        num_heads = fields.integer("num_attention_heads")
        hidden = fields.integer("hidden_size")
        head_dim = fields.integer("head_dim", hidden // num_heads)
        rope = values.get("rope_parameters") or {}
        generation_path = folder / "generation_config.json"
        generation = read_json(generation_path) if generation_path.exists() else {}
        theta = fields.number("rope_theta", rope.get("rope_theta", 10000.0))
        config = LlamaConfig(
            vocab_size=fields.integer("vocab_size"),
            hidden_size=hidden,
            intermediate_size=fields.integer("intermediate_size"),
            num_layers=fields.integer("num_hidden_layers"),
            num_heads=num_heads,
            num_kv_heads=fields.integer("num_key_value_heads", num_heads),
            head_dim=head_dim,
            rope_theta=theta,
            rms_norm_eps=fields.number("rms_norm_eps", 1e-6),
            max_context=fields.integer("max_position_embeddings", 2048),
            tie_embeddings=bool(values.get("tie_word_embeddings", False)),
            bos_id=values.get("bos_token_id"),
            eos_ids=_ids(values.get("eos_token_id")) | _ids(generation.get("eos_token_id")),
            rope_factors=_hf_rope_factors(
                values.get("rope_scaling") or rope, theta, head_dim, fields
            ),
        )
        return _checked(config, fields)


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object; raises ModelError if the file is missing or holds anything else."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # ValueError: bad UTF-8 or bad JSON
        raise ModelError(f"{path}: cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: holds a {type(values).__name__}; expects a JSON object")
    return values


@dataclass(frozen=True)
class _Fields:
    """Typed access to `values`, with errors that name `where` they come from."""

    where: str
    values: Mapping[str, Any]

    def refuse(self, message: str) -> ModelError:
        return ModelError(f"{self.where}: {message}")

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.refuse(f"'{key}' is {value!r}; expects a positive integer")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise self.refuse(f"'{key}' is {value!r}; expects a positive number")
        return float(value)

    def _get(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        if value is None:
            value = default
        if value is None:
            raise self.refuse(f"'{key}' is missing")
        return value


def _checked(config: LlamaConfig, fields: _Fields) -> LlamaConfig:
    if config.num_heads % config.num_kv_heads:
        raise fields.refuse(
            f"has {config.num_heads} heads and {config.num_kv_heads} key-value heads; "
            f"expects a multiple"
        )
    if config.head_dim % 2:
        raise fields.refuse(f"has heads of {config.head_dim} elements; expects an even number")
    if config.rope_factors is not None and len(config.rope_factors) != config.head_dim // 2:
        raise fields.refuse(
            f"has {len(config.rope_factors)} rope factors; expects {config.head_dim // 2}"
        )
    return config


def _ids(value: int | list[int] | None) -> frozenset[int]:
    if value is None:
        return frozenset()
    return frozenset([value] if isinstance(value, int) else value)


def _gguf_end_tokens(metadata: Mapping[str, Any]) -> frozenset[int]:
    keys = ("eos_token_id", "eot_token_id", "eom_token_id")
    ids = {metadata[f"tokenizer.ggml.{key}"] for key in keys if f"tokenizer.ggml.{key}" in metadata}
    tokens = metadata.get("tokenizer.ggml.tokens", [])
    kinds = metadata.get("tokenizer.ggml.token_type", [])
    ids |= {
        i
        for i, (token, kind) in enumerate(zip(tokens, kinds, strict=False))
        if kind == CONTROL_TOKEN and token in END_TOKENS
    }
    return frozenset(ids)


def _gguf_rope_factors(file: GgufFile, fields: _Fields, head_dim: int) -> tuple[float, ...] | None:
    if "rope_freqs.weight" in file.tensors:
        return tuple(file.raw("rope_freqs.weight").to_f32().tolist())
    kind = file.metadata.get("llama.rope.scaling.type", "none")
    if kind == "none":
        return None
    if kind != "linear":
        raise fields.refuse(f"has rope scaling {kind!r}; 'none' and 'linear' are supported")
    return (fields.number("llama.rope.scaling.factor"),) * (head_dim // 2)


def _refuse_variants(values: Mapping[str, Any], fields: _Fields) -> None:
    """Refuses settings of `LlamaForCausalLM` that change what the model computes."""
    accepted = {
        "hidden_act": ("silu",),
        "attention_bias": (False,),
        "mlp_bias": (False,),
        "quantization_config": (None,),
        "partial_rotary_factor": (1, None),
    }
    for key, allowed in accepted.items():
        value = values.get(key, allowed[0])
        if value not in allowed:
            raise fields.refuse(f"'{key}' is {value!r}; {allowed[0]!r} is supported")


def _hf_rope_factors(
    scaling: Mapping[str, Any], theta: float, head_dim: int, fields: _Fields
) -> tuple[float, ...] | None:
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    values = _Fields(fields.where, scaling)
    if kind == "default":
        return None
    if kind == "linear":
        return (values.number("factor"),) * (head_dim // 2)
    if kind != "llama3":
        accepted = "'default', 'linear' and 'llama3'"
        raise fields.refuse(f"has rope scaling {kind!r}; {accepted} are supported")
    return tuple(_llama3_factor(values, theta ** (2 * i / head_dim)) for i in range(head_dim // 2))


def _llama3_factor(scaling: _Fields, period: float) -> float:
    """By how much Llama 3.1 slows the frequency with this `period` (positions per radian).

    Waves that fit often into the context of pre-training keep their frequency, long ones are
    slowed by `factor`, those between by a blend. Source: Llama 3.1 model code.
    """
    low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
    turns = scaling.integer("original_max_position_embeddings") / (2 * math.pi * period)
    share = min(max((turns - low) / (high - low), 0.0), 1.0)
    return 1 / (share + (1 - share) / scaling.number("factor"))
