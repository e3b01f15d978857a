"""The configuration of a Llama model: sizes, constants and special tokens.

Read from the metadata of a GGUF file or from `config.json` of a Hugging Face folder. A model that
differs from the Llama decoder of `LlamaConfig` is refused, with the name of the difference.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import CONTROL_TOKEN, GgufFile
from relax_mlir.llm.formats.model_files import quoted

# Texts of tokens that end a turn or a document, whatever the file says.
END_TOKENS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>")
# Far above every model; they bound the allocations for a damaged file.
MAX_LAYERS = 1024
MAX_HEAD_DIM = 4096
GGUF_FIXED = {"llama.attention.causal": True, "llama.rope.scaling.attn_factor": 1.0}
"""Entries of GGUF files that change the computation of every architecture."""


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
        layer: dict[str, tuple[int, ...]] = {
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
        shapes: dict[str, tuple[int, ...]] = {}
        shapes["model.embed_tokens.weight"] = (self.vocab_size, hidden)
        for i in range(self.num_layers):
            for name, shape in layer.items():
                shapes[f"model.layers.{i}.{name}.weight"] = shape
        shapes["model.norm.weight"] = (hidden,)
        if not self.tie_embeddings:
            shapes["lm_head.weight"] = (self.vocab_size, hidden)
        return shapes

    @staticmethod
    def from_gguf(file: GgufFile) -> "LlamaConfig":
        """Reads the metadata of `file`; raises ModelError if it is not a Llama model."""
        fields = Fields(str(file.path), file.metadata)
        _refuse_foreign_gguf(file, fields)
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
            bos_id=fields.id("tokenizer.ggml.bos_token_id"),
            eos_ids=_gguf_end_tokens(fields),
        )
        _check(config, fields)
        return replace(config, rope_factors=_gguf_rope_factors(file, fields, head_dim))

    @staticmethod
    def from_hugging_face(folder: Path) -> "LlamaConfig":
        """Reads `config.json` (and `generation_config.json`, where there is one) of `folder`.

        Raises ModelError if a file is missing or damaged, or if this is not a Llama model.
        """
        fields = Fields.read_json(folder / "config.json")
        generation = Fields.read_json(folder / "generation_config.json", optional=True)
        _refuse_foreign_hf(fields)
        num_heads = fields.integer("num_attention_heads")
        hidden = fields.integer("hidden_size")
        rope = fields.table("rope_parameters")
        end_tokens = fields.ids("eos_token_id") + generation.ids("eos_token_id")
        config = LlamaConfig(
            vocab_size=fields.integer("vocab_size"),
            hidden_size=hidden,
            intermediate_size=fields.integer("intermediate_size"),
            num_layers=fields.integer("num_hidden_layers"),
            num_heads=num_heads,
            num_kv_heads=fields.integer("num_key_value_heads", num_heads),
            head_dim=fields.integer("head_dim", hidden // num_heads),
            rope_theta=fields.number("rope_theta", rope.number("rope_theta", 10000.0)),
            rms_norm_eps=fields.number("rms_norm_eps", 1e-6),
            max_context=fields.integer("max_position_embeddings", 2048),
            tie_embeddings=fields.flag("tie_word_embeddings", False),
            bos_id=fields.id("bos_token_id"),
            eos_ids=frozenset(end_tokens),
        )
        _check(config, fields)
        scaling = fields.table("rope_scaling")
        factors = _hf_rope_factors(scaling if scaling.values else rope, config)
        return replace(config, rope_factors=factors)


def _check(config: LlamaConfig, fields: Fields) -> None:
    if config.num_heads % config.num_kv_heads:
        raise fields.refuse(
            f"has {config.num_heads} heads and {config.num_kv_heads} key-value heads; "
            f"expects a multiple"
        )
    if config.head_dim % 2 or config.head_dim > MAX_HEAD_DIM:
        raise fields.refuse(
            f"has heads of {config.head_dim} elements; expects an even number up to {MAX_HEAD_DIM}"
        )
    if config.num_layers > MAX_LAYERS:
        raise fields.refuse(f"has {config.num_layers} layers; expects at most {MAX_LAYERS}")


def _refuse_foreign_gguf(file: GgufFile, fields: Fields) -> None:
    architecture = fields.text("general.architecture")
    if architecture != "llama":
        raise fields.refuse(f"has architecture {quoted(architecture)}; 'llama' is supported")
    if file.metadata.get("split.count", 1) != 1:
        raise fields.refuse("is one part of a split model; merge the parts into one file")
    if file.metadata.get("llama.expert_count", 0):
        raise fields.refuse("is a mixture of experts; dense 'llama' models are supported")
    for key, value in GGUF_FIXED.items():
        if file.metadata.get(key, value) != value:
            raise fields.refuse(f"'{key}' is {quoted(file.metadata[key])}; {value!r} is supported")
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise fields.refuse("has no matrix 'token_embd.weight'")


def _refuse_foreign_hf(fields: Fields) -> None:
    """Refuses other architectures, and settings of `LlamaForCausalLM` that change the model."""
    names = fields.texts("architectures") if fields.values.get("architectures") else []
    names = names or [fields.text("model_type")]
    if not set(names) <= {"LlamaForCausalLM", "llama"}:
        listed = ", ".join(map(quoted, names[:3]))
        raise fields.refuse(f"has architecture {listed}; 'LlamaForCausalLM' is supported")
    accepted = {
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "quantization_config": None,
        "partial_rotary_factor": 1.0,
        "is_causal": True,
    }
    for key, allowed in accepted.items():
        value = fields.values.get(key)
        if value is not None and value != allowed:
            raise fields.refuse(f"'{key}' is {quoted(value)}; {allowed!r} is supported")


def _gguf_end_tokens(fields: Fields) -> frozenset[int]:
    ids: set[int] = set()
    for key in ("eos_token_id", "eot_token_id", "eom_token_id"):
        ids.update(fields.ids(f"tokenizer.ggml.{key}"))
    tokens = fields.texts("tokenizer.ggml.tokens")
    kinds = fields.ids("tokenizer.ggml.token_type")
    for i, (token, kind) in enumerate(zip(tokens, kinds, strict=False)):
        if kind == CONTROL_TOKEN and token in END_TOKENS:
            ids.add(i)
    return frozenset(ids)


def _gguf_rope_factors(file: GgufFile, fields: Fields, head_dim: int) -> tuple[float, ...] | None:
    """The factor of each frequency, if the file has them, times the common factor."""
    scale, half = _gguf_rope_scale(fields), head_dim // 2
    if "rope_freqs.weight" not in file.tensors:
        return None if scale == 1 else (scale,) * half
    # Checks the shape first: decoding allocates as many elements as the file claims.
    fits = file.tensors["rope_freqs.weight"].shape == (half,)
    factors = file.raw("rope_freqs.weight").to_f32() if fits else None
    if factors is None or not (factors > 0).all():
        raise fields.refuse(f"'rope_freqs.weight' holds no {half} positive numbers")
    return tuple((scale * factors.astype(np.float64)).tolist())


def _gguf_rope_scale(fields: Fields) -> float:
    """The divisor of all frequencies. Source: llama.cpp `llama_model::load_hparams`."""
    kind = fields.text("llama.rope.scaling.type", "linear")
    if kind not in ("none", "linear"):
        raise fields.refuse(f"has rope scaling {quoted(kind)}; 'none' and 'linear' are supported")
    key = "llama.rope.scaling.factor"
    if fields.values.get(key) is None:
        key = "llama.rope.scale_linear"  # its name in older files
    if kind == "none" or fields.values.get(key) == 0:
        return 1.0
    return fields.number(key, 1.0)


def _hf_rope_factors(scaling: Fields, config: LlamaConfig) -> tuple[float, ...] | None:
    kind = scaling.text("rope_type", scaling.text("type", "default"))
    half = config.head_dim // 2
    if kind == "default":
        return None
    if kind == "linear":
        return (scaling.number("factor"),) * half
    if kind != "llama3":
        accepted = "'default', 'linear' and 'llama3'"
        raise scaling.refuse(f"has rope scaling {quoted(kind)}; {accepted} are supported")
    return tuple(_llama3_factor(scaling, config.rope_theta ** (i / half)) for i in range(half))


def _llama3_factor(scaling: Fields, period: float) -> float:
    """The divisor of the frequency with this `period` (positions per radian) in Llama 3.1.

    Wavelengths much shorter than the context of pre-training keep their frequency, long ones are
    divided by `factor`, those between are interpolated. Source: Llama 3.1 model code.
    """
    low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
    if low >= high:
        raise scaling.refuse(f"'low_freq_factor' is {low}; expects less than {high}")
    turns = scaling.integer("original_max_position_embeddings") / (2 * math.pi * period)
    share = min(max((turns - low) / (high - low), 0.0), 1.0)
    return 1 / (share + (1 - share) / scaling.number("factor"))
