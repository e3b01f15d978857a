"""Tiny encoders of every architecture, in folders as `sentence-transformers` writes them."""

import json
import zlib
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tiny_models import write_hf_tokenizer

from relax_mlir.llm.architectures.registry import ENCODERS, of_folder

INPUTS = Path(__file__).parent / "Inputs"
VOCABULARY = 271
LENGTHS = (1, 2, 7, 16, 17, 31)
_RANDOM = np.random.default_rng(5)
SEQUENCES = [_RANDOM.integers(0, VOCABULARY, length).tolist() for length in LENGTHS]
TEXTS = ("hello world", "The quick brown fox jumps over the lazy dog.", "", "naïve café 東京 🦊")
"""For the weights of MiniLM."""

SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 42,
    "intermediate_size": 76,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 37,
    "pad_token_id": 0,
}
BERT = {**SIZES, "architectures": ["BertModel"], "model_type": "bert", "type_vocab_size": 2}
GEMMA = {
    **SIZES,
    "hidden_size": 44,
    "architectures": ["Gemma3TextModel"],
    "model_type": "gemma3_text",
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "query_pre_attn_scalar": 11,
    "use_bidirectional_attention": True,
    "sliding_window": 9,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "rope_theta": 100000.0,
    "rope_local_base_freq": 1000.0,
}
NOMIC = {
    **SIZES,
    "architectures": ["NomicBertModel"],
    "model_type": "nomic_bert",
    "rope_theta": 1000.0,
}
CASES: dict[str, tuple[dict, str, list[tuple[int, bool, str]], bool]] = {
    "bert": (BERT, "mean", [], True),
    "bert-relu": ({**BERT, "hidden_act": "relu"}, "cls", [(9, True, "Tanh")], False),
    "nomic-bert": (NOMIC, "mean", [], True),
    "nomic-bert-max": ({**NOMIC, "num_attention_heads": 7}, "max", [], False),
    "embedding-gemma": (GEMMA, "mean", [(64, False, "Identity"), (33, False, "Identity")], True),
    "embedding-gemma-last": (GEMMA, "lasttoken", [], False),
}
"""The configuration, the pooling, dense layers as (outputs, bias, activation), unit length."""


def write(folder: Path, name: str) -> Path:
    """Writes a case, with weights that depend on its name alone."""
    values, pooling, dense, is_unit = CASES[name]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(values))
    architecture, config = of_folder(folder, ENCODERS)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    shapes = config.weight_shapes()
    weights = {}
    for tensor in architecture.hf_tensors(config):
        shape = tensor.shape(shapes)
        spread = 0.3 if len(shape) == 1 else 0.4
        weights[tensor.name] = (spread * rng.standard_normal(shape)).astype(np.float32)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    _json(folder / "1_Pooling" / "config.json", {f"pooling_mode_{_MODES[pooling]}": True})
    size = values["hidden_size"]
    for i, (outputs, bias, activation) in enumerate(dense):
        own = folder / f"{i + 2}_Dense"
        modules.append((own.name, "Dense"))
        entry = {"in_features": size, "out_features": outputs, "bias": bias}
        _json(own / "config.json", {**entry, "activation_function": f"torch.nn.x.{activation}"})
        made = {"linear.weight": 0.2 * rng.standard_normal((outputs, size))}
        if bias:
            made["linear.bias"] = rng.standard_normal(outputs)
        save_file({k: v.astype(np.float32) for k, v in made.items()}, own / "model.safetensors")
        size = outputs
    modules += [("9_Normalize", "Normalize")] if is_unit else []
    entries = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in modules
    ]
    _json(folder / "modules.json", entries)
    write_hf_tokenizer(folder)
    return folder


_MODES = {
    "mean": "mean_tokens",
    "cls": "cls_token",
    "max": "max_tokens",
    "lasttoken": "lasttoken",
}


def _json(path: Path, values: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(values))


def finished(folder: Path, name: str, hidden: np.ndarray) -> np.ndarray:
    """The vector of a sequence, in float64, from its results [n, hidden] of the layers."""
    from safetensors.numpy import load_file

    _, pooling, dense, is_unit = CASES[name]
    x = hidden.astype(np.float64)
    x = {"mean": x.mean(0), "cls": x[0], "max": x.max(0), "lasttoken": x[-1]}[pooling]
    for i, (_, bias, activation) in enumerate(dense):
        weights = load_file(folder / f"{i + 2}_Dense" / "model.safetensors")
        x = weights["linear.weight"].astype(np.float64) @ x + (
            weights["linear.bias"] if bias else 0
        )
        x = np.tanh(x) if activation == "Tanh" else x
    return x / np.linalg.norm(x) if is_unit else x


def expected() -> dict[str, np.ndarray]:
    """The vectors of `SEQUENCES` by case, and of `TEXTS` by "minilm", from `transformers`."""
    with np.load(INPUTS / "encoder_vectors.npz") as file:
        return dict(file)
