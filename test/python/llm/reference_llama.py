"""A Llama forward pass in plain NumPy: the independent reference of the tests.

It shares no code with the model under test, runs all positions at once without a cache, and is
written after the Hugging Face definition of the model.
"""

from collections.abc import Callable

import numpy as np


def logits(
    config: object, weight: Callable[[str], np.ndarray], tokens: np.ndarray, dtype=np.float32
) -> np.ndarray:
    """The logits after each of `tokens`: dtype[len(tokens), vocab].

    `config` has the fields of `DecoderConfig`; `weight(name)` returns an array by its Hugging Face
    name, projections as (out, in).
    """

    def project(values, name):
        return values @ weight(f"{name}.weight").astype(dtype, copy=False).T

    def norm(values, name):
        mean_square = np.mean(values * values, axis=-1, keepdims=True)
        scale = 1 / np.sqrt(mean_square + dtype(config.norm_eps))
        return values * scale * weight(f"{name}.weight").astype(dtype, copy=False)

    cos, sin = _rotary_table(config, len(tokens), dtype)
    embedding = weight("model.embed_tokens.weight").astype(dtype, copy=False)
    x = embedding[tokens]
    for i in range(config.num_layers):
        layer = f"model.layers.{i}"
        h = norm(x, f"{layer}.input_layernorm")
        q = _heads(project(h, f"{layer}.self_attn.q_proj"), config.num_heads)
        k = _heads(project(h, f"{layer}.self_attn.k_proj"), config.num_kv_heads)
        v = _heads(project(h, f"{layer}.self_attn.v_proj"), config.num_kv_heads)
        attended = _attend(_rotate(q, cos, sin), _rotate(k, cos, sin), v)
        x = x + project(attended, f"{layer}.self_attn.o_proj")
        h = norm(x, f"{layer}.post_attention_layernorm")
        gate = project(h, f"{layer}.mlp.gate_proj")
        gated = gate / (1 + np.exp(-gate)) * project(h, f"{layer}.mlp.up_proj")
        x = x + project(gated, f"{layer}.mlp.down_proj")
    x = norm(x, "model.norm")
    return x @ embedding.T if config.tie_embeddings else project(x, "lm_head")


def _rotary_table(config, length, dtype):
    half = config.head_dim // 2
    frequencies = config.ropes[0].theta ** (-np.arange(half) / half)
    if config.ropes[0].factors is not None:
        frequencies = frequencies / np.asarray(config.ropes[0].factors)
    angles = np.arange(length)[:, None] * frequencies
    return np.cos(angles).astype(dtype, copy=False), np.sin(angles).astype(dtype, copy=False)


def _heads(values, count):
    """(length, count * head_dim) -> (count, length, head_dim)."""
    return values.reshape(len(values), count, -1).transpose(1, 0, 2)


def _rotate(values, cos, sin):
    first, second = np.split(values, 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _attend(q, k, v):
    """Causal attention; (heads, length, dim) -> (length, heads * dim)."""
    length = q.shape[1]
    future = np.triu(np.full((length, length), -np.inf, q.dtype), 1)
    outputs = []
    group = len(q) // len(k)
    for head, query in enumerate(q):
        scores = query @ k[head // group].T / q.dtype.type(np.sqrt(q.shape[-1])) + future
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        outputs.append(weights / weights.sum(-1, keepdims=True) @ v[head // group])
    return np.concatenate(outputs, axis=-1)
