"""Writes a tiny Whisper model to disk, and recordings that it is tried on."""

import json
from pathlib import Path

import numpy as np
import tokenizers
from safetensors.numpy import save_file
from tokenizers import AddedToken, decoders, models, pre_tokenizers

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
SECONDS, RATE, STEPS = 1, 16000, 50
LANGUAGES = ("en", "de", "fr")
TASKS = ("translate", "transcribe")
SPECIAL = [
    "<|endoftext|>",
    "<|startoftranscript|>",
    *(f"<|{name}|>" for name in (*LANGUAGES, *TASKS)),
    "<|notimestamps|>",
]
TIMES = [f"<|{step / STEPS:.2f}|>" for step in range(STEPS + 1)]
TOKENS = [*ALPHABET, *SPECIAL, *TIMES]
ID = {token: id for id, token in enumerate(TOKENS)}
SIZE, HEADS, INNER, LAYERS, CONTEXT, MELS = 40, 5, 72, 2, 56, 16
CONFIG = {
    "architectures": ["WhisperForConditionalGeneration"],
    "model_type": "whisper",
    "vocab_size": len(TOKENS),
    "num_mel_bins": MELS,
    "d_model": SIZE,
    "encoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "encoder_ffn_dim": INNER,
    "decoder_layers": LAYERS,
    "decoder_attention_heads": HEADS,
    "decoder_ffn_dim": INNER + 8,
    "max_source_positions": STEPS,
    "max_target_positions": CONTEXT,
    "activation_function": "gelu",
    "pad_token_id": ID["<|endoftext|>"],
    "bos_token_id": ID["<|endoftext|>"],
    "eos_token_id": ID["<|endoftext|>"],
    "decoder_start_token_id": ID["<|startoftranscript|>"],
}
GENERATION = {
    "eos_token_id": ID["<|endoftext|>"],
    "pad_token_id": ID["<|endoftext|>"],
    "decoder_start_token_id": ID["<|startoftranscript|>"],
    "no_timestamps_token_id": ID["<|notimestamps|>"],
    "lang_to_id": {f"<|{name}|>": ID[f"<|{name}|>"] for name in LANGUAGES},
    "task_to_id": {name: ID[f"<|{name}|>"] for name in TASKS},
    "is_multilingual": True,
    "suppress_tokens": [3, 7, *(ID[f"<|{name}|>"] for name in (*LANGUAGES, *TASKS)),
                        ID["<|startoftranscript|>"]],
    "begin_suppress_tokens": [ID["<|endoftext|>"], 220],
    "max_initial_timestamp_index": 20,
    "max_length": CONTEXT // 2 + 3,
    "return_timestamps": False,
}  # fmt: skip
FEATURES = {
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": MELS,
    "sampling_rate": RATE,
    "hop_length": 160,
    "chunk_length": SECONDS,
    "n_fft": 400,
    "padding_value": 0.0,
}


def weights(seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights by Hugging Face name, float32, of the spread that trained ones have."""
    rng = np.random.default_rng(seed)
    made: dict[str, np.ndarray] = {}

    def put(name: str, *shape: int, spread: float = 1.0) -> None:
        values = rng.standard_normal(shape) * spread / np.sqrt(shape[-1] if len(shape) > 1 else 25)
        made[f"model.{name}"] = values.astype(np.float32)

    def norm(name: str) -> None:
        put(f"{name}.weight", SIZE)
        made[f"model.{name}.weight"] += 1
        put(f"{name}.bias", SIZE)

    def attention(name: str) -> None:
        for part in "kvq":
            put(f"{name}.{part}_proj.weight", SIZE, SIZE, spread=2.0)
        put(f"{name}.out_proj.weight", SIZE, SIZE)
        for part in ("v", "q", "out"):
            put(f"{name}.{part}_proj.bias", SIZE)

    def network(name: str, inner: int) -> None:
        put(f"{name}.fc1.weight", inner, SIZE, spread=2.0)
        put(f"{name}.fc1.bias", inner)
        put(f"{name}.fc2.weight", SIZE, inner)
        put(f"{name}.fc2.bias", SIZE)

    put("encoder.conv1.weight", SIZE, MELS, 3)
    put("encoder.conv1.bias", SIZE)
    put("encoder.conv2.weight", SIZE, SIZE, 3)
    put("encoder.conv2.bias", SIZE)
    put("encoder.embed_positions.weight", STEPS, SIZE, spread=3.0)
    put("decoder.embed_tokens.weight", len(TOKENS), SIZE, spread=6.0)
    put("decoder.embed_positions.weight", CONTEXT, SIZE, spread=6.0)
    for i in range(LAYERS):
        for side, inner in (("encoder", INNER), ("decoder", INNER + 8)):
            layer = f"{side}.layers.{i}"
            attention(f"{layer}.self_attn")
            norm(f"{layer}.self_attn_layer_norm")
            network(layer, inner)
            norm(f"{layer}.final_layer_norm")
        attention(f"decoder.layers.{i}.encoder_attn")
        norm(f"decoder.layers.{i}.encoder_attn_layer_norm")
    for side in ("encoder", "decoder"):
        norm(f"{side}.layer_norm")
    return made


def tokenizer() -> tokenizers.Tokenizer:
    """Bytes are tokens; special ones and times follow."""
    inner = tokenizers.Tokenizer(models.BPE({token: ID[token] for token in ALPHABET}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    inner.add_tokens([AddedToken(token, special=False, normalized=False) for token in TIMES])
    return inner


def write(folder: Path, seed: int = 0) -> Path:
    """Writes all files of the model."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"config": CONFIG, "generation_config": GENERATION, "preprocessor_config": FEATURES}
    for name, values in files.items():
        (folder / f"{name}.json").write_text(json.dumps(values))
    tokenizer().save(str(folder / "tokenizer.json"))
    save_file(weights(seed), folder / "model.safetensors", {"format": "pt"})
    return folder


def sound(seconds: float, seed: int = 0) -> np.ndarray:
    """Tones that come and go, and noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * RATE)) / RATE
    parts = [
        np.sin(2 * np.pi * rng.uniform(80, 4000) * time + rng.uniform(0, 6))
        * np.maximum(0, np.sin(2 * np.pi * rng.uniform(0.5, 3) * time))
        for _ in range(6)
    ]
    return (0.1 * np.sum(parts, 0) + 0.01 * rng.standard_normal(len(time))).astype(np.float32)
