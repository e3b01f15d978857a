"""What every program of `llm.py` gets: the same weights, and the answers that are right.

Weights are those of the packaged model, decoded exactly to float32 and written as a Hugging Face
folder. Right answers are those of the NumPy forward pass that the tests use too.
"""

import importlib.util
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from safetensors.numpy import save_file

from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.checkpoints.weights import WeightSource
from relax_mlir.llm.generation.model import cache_type

REFERENCE = Path(__file__).resolve().parents[1] / "test/python/llm/reference_llama.py"
TEXT = """The river had been rising since Monday, and by Thursday nobody in the village talked of \
anything else. Old Marta, who had seen the flood of her childhood carry a whole barn down to the \
bridge, said that it would stop at the third step of the church. The schoolmaster disagreed: he \
had measured it every hour with a stick, and according to his notebook the water would reach the \
fifth step before Saturday evening. Children ran between the two of them with the latest news. In \
the end both were wrong, because the dam upstream, which the government had promised to repair \
for eleven years, held after all, and the water fell again."""
"""What programs have to go on with, as their answers are checked."""
CHECKED = 128
"""How many tokens of it."""
CACHE_ITEM_BYTES = {"f32": 4, "bf16": 2}
EMBEDDING = "model.embed_tokens.weight"
PROMPTS = (37, 16, 128)
"""Lengths of prompts after which logits are checked; after the first come single tokens."""
STEPS = CHECKED - PROMPTS[0]
# Share of equal likeliest tokens at least, and Kullback-Leibler divergence at most.
RIGHT = {"f32": (0.98, 1e-4), "bf16": (0.93, 0.01), "q8_0": (0.9, 0.02), "native": (0.85, 0.02)}


@dataclass(frozen=True)
class Agreement:
    """How a program's logits compare with the reference, after prompts and after steps."""

    equal: tuple[int, int]
    of: tuple[int, int]
    divergence: tuple[float, float]

    def is_right(self, weights: str) -> bool:
        """Whether they are those of the model, for weights of this type."""
        least, most = RIGHT[weights]
        return sum(self.equal) >= least * sum(self.of) and max(self.divergence) <= most

    def __str__(self) -> str:
        prompts, steps = (f"{equal} of {of}" for equal, of in zip(self.equal, self.of, strict=True))
        divergences = " and ".join(f"{value:.1e}" for value in self.divergence)
        return f"likeliest token equal after {prompts} prompts, {steps} steps, KL {divergences}"


def agreement(actual: np.ndarray, reference: np.ndarray) -> Agreement:
    """Compares what the case "check" returns with the reference's logits at all positions."""
    first = PROMPTS[0]
    rows = [length - 1 for length in PROMPTS] + list(range(first, first + STEPS))
    expected = reference[rows]
    equal = actual.argmax(-1) == expected.argmax(-1)
    lost = divergence(expected, actual)
    parts = (slice(len(PROMPTS)), slice(len(PROMPTS), None))
    counts = [
        (int(equal[part].sum()), equal[part].size, float(lost[part].mean())) for part in parts
    ]
    (a, b, c), (x, y, z) = counts
    return Agreement((a, x), (b, y), (c, z))


def divergence(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Kullback-Leibler divergence of two rows of logits: float64[...], in nats."""
    p, q = (_log_softmax(logits.astype(np.float64)) for logits in (expected, actual))
    return (np.exp(p) * (p - q)).sum(-1)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def export_hugging_face(checkpoint: Checkpoint, folder: Path) -> None:
    """Writes a model as `config.json`, `model.safetensors` in float32, and its tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = checkpoint.weights
    checkpoint.tokenizer.inner.save(str(folder / "tokenizer.json"))
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": checkpoint.tokenizer.bos_token,
        "eos_token": checkpoint.tokenizer.eos_token,
    }
    _write_json(folder / "tokenizer_config.json", tokenizer)
    arrays = {name: weights.load_f32(name) for name in weights.names}
    save_file(arrays, folder / "model.safetensors", metadata={"format": "pt"})
    _write_json(folder / "config.json", _hugging_face_config(checkpoint))  # last: it is complete


def _hugging_face_config(checkpoint: Checkpoint) -> dict:
    config = checkpoint.config
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float32",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "rope_theta": config.ropes[0].theta,
        "rms_norm_eps": config.norm_eps,
        "max_position_embeddings": config.max_context,
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": config.bos_id,
        "eos_token_id": min(config.eos_ids),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
    }


def _write_json(path: Path, values: dict) -> None:
    path.write_text(json.dumps(values, indent=2), encoding="utf-8")


def step_bytes(checkpoint: Checkpoint, weights: str, case: dict) -> float:
    """Bytes of weights, as stored, and of caches that a step reads: the case's average."""
    config = checkpoint.config
    total = 0.0
    for name, shape in config.weight_shapes().items():
        if name == EMBEDDING and not config.tie_embeddings:
            continue  # a step reads a row of it
        own = checkpoint.weights.raw(name).format if weights == "native" else weights.upper()
        kind = GGMLQuantizationType["F32" if len(shape) == 1 else own]
        block, block_bytes = GGML_QUANT_SIZES[kind]
        total += math.prod(shape) / block * block_bytes
    item_bytes = CACHE_ITEM_BYTES[cache_type(None, weights, "int8", checkpoint)]
    cached = 2 * config.num_layers * config.num_kv_heads * config.head_dim * item_bytes
    return total + cached * (case["context"] + case["generated"] / 2)


def reference_logits(weights: WeightSource, tokens: np.ndarray) -> np.ndarray:
    """The logits after each of `tokens`, by NumPy in float32: float32[len(tokens), vocabulary]."""
    spec = importlib.util.spec_from_file_location("reference_llama", REFERENCE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loaded: dict[str, np.ndarray] = {}

    def weight(name: str) -> np.ndarray:
        if name not in loaded:
            loaded[name] = weights.load_f32(name)
        return loaded[name]

    return module.logits(weights.config, weight, tokens)


def checked_tokens(checkpoint: Checkpoint) -> np.ndarray:
    """The tokens at which answers are checked: int64[CHECKED]."""
    tokens = checkpoint.tokenizer.encode(TEXT)
    if len(tokens) < CHECKED:
        raise ValueError(f"the text has {len(tokens)} tokens; expects {CHECKED} or more")
    return np.array(tokens[:CHECKED])
