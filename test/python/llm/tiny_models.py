"""Writes tiny Llama models to disk, with the `gguf`, `safetensors` and `tokenizers` packages."""

import json
from pathlib import Path

import numpy as np
import tokenizers
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import quantize
from safetensors.numpy import save_file
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from relax_mlir.llm.modules.config import DecoderConfig, Rope

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "w"), ("1", "2")]
SPECIAL = ["<|begin|>", "<|im_end|>"]
TOKENS = [*SPECIAL, *ALPHABET, *(left + right for left, right in MERGES)]
TEMPLATE = "{% for m in messages %}<|begin|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"

CONFIG = DecoderConfig(
    vocab_size=len(TOKENS) + 3,  # rows without a token, as real models have them
    hidden_size=96,
    intermediate_size=160,
    num_layers=2,
    num_heads=6,
    num_kv_heads=2,
    head_dim=16,
    ropes=(Rope(5000.0, 16),),
    norm_eps=1e-5,
    max_context=64,
    tie_embeddings=False,
    bos_id=0,
    eos_ids=frozenset({1}),
)

GGUF_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def random_weights(config: DecoderConfig = CONFIG, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights by Hugging Face name, float32."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.standard_normal(shape).astype(np.float32) / np.float32(8)
        for name, shape in config.weight_shapes().items()
    }


def to_bf16(values: np.ndarray) -> np.ndarray:
    """The nearest numbers with 8 significant bits, ties to even."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.round(mantissa * 256) / 256, exponent)


def write_hf(
    folder: Path, weights: dict[str, np.ndarray], shards: int = 1, **changes: object
) -> Path:
    """Writes a Hugging Face folder; `changes` go over the entries of `config.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": CONFIG.vocab_size,
        "hidden_size": CONFIG.hidden_size,
        "intermediate_size": CONFIG.intermediate_size,
        "num_hidden_layers": CONFIG.num_layers,
        "num_attention_heads": CONFIG.num_heads,
        "num_key_value_heads": CONFIG.num_kv_heads,
        "rope_theta": CONFIG.ropes[0].theta,
        "rms_norm_eps": CONFIG.norm_eps,
        "max_position_embeddings": CONFIG.max_context,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    if shards == 1:
        save_file(weights, folder / "model.safetensors")
    else:
        weight_map = {}
        for i in range(shards):
            file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
            part = dict(list(weights.items())[i::shards])
            save_file(part, folder / file)
            weight_map.update(dict.fromkeys(part, file))
        index = json.dumps({"metadata": {}, "weight_map": weight_map})
        (folder / "model.safetensors.index.json").write_text(index)
    write_hf_tokenizer(folder)
    return folder


def hf_tokenizer() -> tokenizers.Tokenizer:
    """The tokenizer of the tiny models, built as Hugging Face builds SmolLM's."""
    inner = tokenizers.Tokenizer(models.BPE({t: i for i, t in enumerate(TOKENS)}, MERGES))
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    return inner


def write_hf_tokenizer(folder: Path) -> None:
    """Writes `tokenizer.json` and `tokenizer_config.json`."""
    hf_tokenizer().save(str(folder / "tokenizer.json"))
    config = {
        "bos_token": {"content": "<|begin|>"},
        "eos_token": "<|im_end|>",
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def write_gguf(
    path: Path,
    weights: dict[str, np.ndarray],
    kind: str | dict[str, str] = "F32",
    config: DecoderConfig = CONFIG,
    drop: tuple[str, ...] = (),
    **changes: object,
) -> Path:
    """Writes a GGUF file as llama.cpp's converter does.

    Matrices are stored in format `kind`, or `kind[name]`; `drop` names metadata keys to leave
    out; `changes` go over metadata, with `__` for the dots.
    """
    writer = GGUFWriter(path, changes.pop("architecture", "llama"))
    for key, value in {**_gguf_metadata(config), **_rename(changes)}.items():
        if key not in drop:
            add_key(writer, key, value)
    for name, values in weights.items():
        stored = _rows_as_in_gguf(name, values, config)
        matrix = kind if isinstance(kind, str) else kind[name]
        format = GGMLQuantizationType["F32" if stored.ndim == 1 else matrix]
        if format.name.endswith("_K"):
            writer.add_tensor(
                _gguf_name(name), random_super_blocks(stored.shape, format), raw_dtype=format
            )
        elif format.name in ("F32", "F16"):
            writer.add_tensor(_gguf_name(name), stored.astype(f"f{int(format.name[1:]) // 8}"))
        else:
            writer.add_tensor(_gguf_name(name), quantize(stored, format), raw_dtype=format)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def random_super_blocks(shape: tuple[int, int], format: GGMLQuantizationType) -> np.ndarray:
    """Bytes of a matrix in a format that the `gguf` package cannot write: small random numbers."""
    _, size = GGML_QUANT_SIZES[format]
    rng = np.random.default_rng(shape[0])
    stored = rng.integers(0, 256, (shape[0], shape[1] // 256, size)).astype(np.uint8)
    begin, end = {"Q2_K": (80, 84), "Q3_K": (108, 110), "Q6_K": (208, 210)}.get(format.name, (0, 4))
    factors = slice(begin, end)
    count = (factors.stop - factors.start) // 2
    numbers = rng.uniform(1e-4, 2e-4, (*stored.shape[:2], count)).astype(np.float16)
    stored[..., factors] = numbers.view(np.uint8)
    return stored.reshape(shape[0], -1)


def _gguf_metadata(config: DecoderConfig) -> dict[str, object]:
    return {
        "llama.block_count": config.num_layers,
        "llama.context_length": config.max_context,
        "llama.embedding_length": config.hidden_size,
        "llama.feed_forward_length": config.intermediate_size,
        "llama.attention.head_count": config.num_heads,
        "llama.attention.head_count_kv": config.num_kv_heads,
        "llama.rope.freq_base": config.ropes[0].theta,
        "llama.attention.layer_norm_rms_epsilon": config.norm_eps,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)),
        "tokenizer.ggml.merges": [" ".join(pair) for pair in MERGES],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.chat_template": TEMPLATE,
    }


def _rename(changes: dict[str, object]) -> dict[str, object]:
    return {key.replace("__", "."): value for key, value in changes.items()}


def add_key(writer: GGUFWriter, key: str, value: object) -> None:
    """Writes a key, of the type that its value has in Python."""
    adders = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
        list: writer.add_array,
    }
    adders[type(value)](key, value)


def _gguf_name(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem.startswith("model.layers."):
        _, _, layer, part = stem.split(".", 3)
        return f"blk.{layer}.{GGUF_LAYER[part]}.weight"
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    return names.get(stem, stem) + ".weight"


def _rows_as_in_gguf(name: str, values: np.ndarray, config: DecoderConfig) -> np.ndarray:
    """Interleaves the halves of each head: row i goes to 2i, row i + head_dim/2 to 2i + 1."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return values
    half = config.head_dim // 2
    moved = np.empty_like(values)
    for row in range(len(values)):
        head, i = divmod(row, config.head_dim)
        moved[head * config.head_dim + 2 * (i % half) + i // half] = values[row]
    return moved
