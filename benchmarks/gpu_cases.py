"""What is measured on devices: sizes, arguments, results in float64, and bytes that have to move.

A case is a dict that goes to every program as JSON: `kernel`, `dims` by name, `dtype`, `target`.
Elements of bf16 are their bits in uint16.
"""

from collections.abc import Callable, Mapping
from functools import cache
from math import prod

import numpy as np

TOLERANCE = {"f32": 1e-6, "bf16": 2e-2}
EPSILON, BASE = 1e-5, 500000.0
"""Of the normalisations and the rotary positions of Llama 3."""
COLUMNS = 64
"""Of products, these are compared."""
LLAMA = {"hidden": 4096, "intermediate": 14336, "heads": 32, "kv_heads": 8, "head_dim": 128,
         "vocab": 128256}  # fmt: skip
SMALL_LLAMA = {"hidden": 64, "intermediate": 176, "heads": 4, "kv_heads": 2, "head_dim": 16,
               "vocab": 500}  # fmt: skip


def cases(target: str, small: bool = False) -> list[dict]:
    """All cases for a target; with `small`, sizes for a driver that runs on a CPU."""
    llama = SMALL_LLAMA if small else LLAMA
    heads = {name: llama[name] for name in ("heads", "kv_heads", "head_dim")}
    size, length, layers = (100, 70, 2) if small else (4096, 2048, 32)
    kinds: list[tuple[str, str, dict[str, int]]] = [
        ("copy", "f32", {"n": 1 << (16 if small else 28)}),
        ("matmul", "bf16", {"m": size, "k": size, "n": size}),
        ("matmul", "bf16", {"m": 1, "k": size, "n": size}),
        ("matmul", "bf16", {"m": 16, "k": size, "n": size}),
        ("attention", "bf16", {"b": 1, "n": length, "m": length, **heads}),
        ("attention", "bf16", {"b": 16, "n": 1, "m": 2 * length, **heads}),
        ("decode", "bf16", {"layers": layers, "context": length // 4, **llama}),
    ]
    return [{"kernel": kernel, "dims": dims, "dtype": dtype, "target": target}
            for kernel, dtype, dims in kinds]  # fmt: skip


def label(case: dict) -> str:
    """The case as a table shows it."""
    dims = case["dims"]
    shown = {name: dims[name] for name in dims if name not in LLAMA} or dims
    return " ".join([case["kernel"], *(f"{name}={size}" for name, size in shown.items())])


def rounded(x: np.ndarray) -> np.ndarray:
    """Values rounded to the nearest of bf16, as their bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def widened(bits: np.ndarray) -> np.ndarray:
    """The values of bits of bf16, in f32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def arguments(case: dict) -> dict[str, np.ndarray]:
    """Random arguments by their names; decoders have `parameters` of their own."""
    chance, dims = np.random.default_rng(prod(case["dims"].values()) % 1000), case["dims"]

    def normal(*shape: int) -> np.ndarray:
        x = chance.standard_normal(shape, np.float32)
        return x if case["dtype"] == "f32" else rounded(x)

    if case["kernel"] == "copy":
        return {"x": normal(dims["n"])}
    if case["kernel"] == "matmul":
        return {"x": normal(dims["m"], dims["k"]), "w": normal(dims["k"], dims["n"])}
    cached = (dims["b"], dims["m"], dims["kv_heads"], dims["head_dim"])
    query = normal(dims["b"], dims["n"], dims["heads"], dims["head_dim"])
    return {"query": query, "key": normal(*cached), "value": normal(*cached)}


def is_causal(case: dict) -> bool:
    """Whether a query sees the keys up to its own alone, as those of a prompt do."""
    return case["dims"]["n"] == case["dims"]["m"]


def parameter(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """A parameter of the decoder: the same for all layers, norms in f32 and matrices in bf16.

    Columns add up to outputs of the size of inputs.
    """
    return _parameter("".join(part for part in name.split(".") if not part.isdigit()), shape)


@cache
def _parameter(name: str, shape: tuple[int, ...]) -> np.ndarray:
    chance = np.random.default_rng(sum(map(ord, name)))
    if len(shape) == 1:
        return 1 + chance.standard_normal(shape, np.float32) / 8
    return rounded(chance.standard_normal(shape, np.float32) * np.float32(shape[1] ** -0.5))


def traffic(case: dict) -> int | None:
    """Bytes that are read and written at least; None if the time is that of multiplying."""
    dims = case["dims"]
    if case["kernel"] == "copy":
        return 8 * dims["n"]
    if case["kernel"] == "matmul":
        m, k, n = dims["m"], dims["k"], dims["n"]
        return 2 * (m * k + k * n + m * n) if m <= COLUMNS else None
    rows = dims["kv_heads"] * dims["head_dim"]
    if case["kernel"] == "attention":
        queries = dims["n"] * dims["heads"] * dims["head_dim"]
        return None if is_causal(case) else 4 * dims["b"] * (dims["m"] * rows + queries)
    hidden, attended = dims["hidden"], dims["heads"] * dims["head_dim"]
    layer = hidden * (2 * attended + 2 * rows + 3 * dims["intermediate"])
    caches = 2 * dims["context"] * rows
    return 2 * (dims["layers"] * (layer + caches) + dims["vocab"] * hidden)


def reference(case: dict) -> np.ndarray:
    """The result in float64; of products, the first columns."""
    return _REFERENCES[case["kernel"]](case)


def _copy(case: dict) -> np.ndarray:
    return -arguments(case)["x"].astype(np.float64)


def _matmul(case: dict) -> np.ndarray:
    given = arguments(case)
    x, w = widened(given["x"]), widened(given["w"][:, :COLUMNS])
    return x.astype(np.float64) @ w.astype(np.float64)


def _attention(case: dict) -> np.ndarray:
    given, dims = arguments(case), case["dims"]
    query, key, value = (widened(given[name]) for name in ("query", "key", "value"))
    result = np.empty(query.shape)
    shared, later = dims["heads"] // dims["kv_heads"], np.triu(np.ones((dims["n"],) * 2, bool), 1)
    for b in range(dims["b"]):
        for h in range(dims["heads"]):
            scores = query[b, :, h].astype(np.float64) @ key[b, :, h // shared].T
            scores *= dims["head_dim"] ** -0.5
            if is_causal(case):
                scores[later] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            result[b, :, h] = weights @ value[b, :, h // shared]
    return result


def _decode(case: dict) -> np.ndarray:
    """Logits of token 1 after caches of zeros, whose keys all have the score 0."""
    dims, hidden = case["dims"], case["dims"]["hidden"]
    rows, attended = (dims[name] * dims["head_dim"] for name in ("kv_heads", "heads"))

    def matrix(name: str, *shape: int) -> np.ndarray:
        return widened(parameter(name, shape)).astype(np.float64)

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        weight = parameter(f"model.{name}.weight", (hidden,)).astype(np.float64)
        return x / np.sqrt((x * x).mean() + EPSILON) * weight

    layer = "model.layers."
    names = "+".join(f"{layer}self_attn.{part}_proj.weight" for part in "qkv")
    qkv = matrix(names, attended + 2 * rows, hidden)
    out = matrix(f"{layer}self_attn.o_proj.weight", hidden, attended)
    names = "+".join(f"{layer}mlp.{part}_proj.weight" for part in ("gate", "up"))
    gate_up = matrix(names, 2 * dims["intermediate"], hidden)
    down = matrix(f"{layer}mlp.down_proj.weight", hidden, dims["intermediate"])
    x = matrix("model.embed_tokens.weight", dims["vocab"], hidden)[1]
    for _ in range(dims["layers"]):
        q, k, v = np.split(qkv @ norm(x, "layers.input_layernorm"), [attended, attended + rows])
        # Both are rotated by the same angle, which their product does not depend on.
        q, k, v = (part.reshape(-1, dims["head_dim"]) for part in (q, k, v))
        k, v = (np.repeat(part, len(q) // len(part), 0) for part in (k, v))
        own = np.exp((q * k).sum(-1, keepdims=True) * dims["head_dim"] ** -0.5)
        x = x + out @ (own / (own + dims["context"]) * v).ravel()
        gate, up = np.split(gate_up @ norm(x, "layers.post_attention_layernorm"), 2)
        x = x + down @ (gate / (1 + np.exp(-gate)) * up)
    head = matrix("lm_head.weight", dims["vocab"], hidden)
    return (head @ norm(x, "norm"))[None]


_REFERENCES: Mapping[str, Callable[[dict], np.ndarray]] = {
    "copy": _copy,
    "matmul": _matmul,
    "attention": _attention,
    "decode": _decode,
}
