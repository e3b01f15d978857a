"""A Llama decoder in plain PyTorch: what the programs that take PyTorch's models are given.

The caches are inputs and outputs; new keys and values are appended.
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn


def repeat(x: Tensor, group: int) -> Tensor:
    """Each head `group` times."""
    b, heads, n, dim = x.shape
    return x[:, :, None].expand(b, heads, group, n, dim).reshape(b, heads * group, n, dim)


class Layer(nn.Module):
    """One decoder layer."""

    def __init__(self, config: dict) -> None:
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.dim, self.eps = config["head_dim"], config["rms_norm_eps"]
        q_size, kv_size = self.heads * self.dim, self.kv_heads * self.dim
        self.input_norm = nn.Parameter(torch.empty(hidden))
        self.post_norm = nn.Parameter(torch.empty(hidden))
        self.q = nn.Linear(hidden, q_size, bias=False)
        self.k = nn.Linear(hidden, kv_size, bias=False)
        self.v = nn.Linear(hidden, kv_size, bias=False)
        self.o = nn.Linear(q_size, hidden, bias=False)
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries and keys, and values, of x[b, n, hidden]: each [b, heads, n, dim]."""
        x = norm(x, self.input_norm, self.eps)
        b, n, _ = x.shape
        q = self.q(x).view(b, n, self.heads, self.dim).transpose(1, 2)
        k = self.k(x).view(b, n, self.kv_heads, self.dim).transpose(1, 2)
        v = self.v(x).view(b, n, self.kv_heads, self.dim).transpose(1, 2)
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def finish(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """The layer's output, given all keys and values."""
        group = self.heads // self.kv_heads
        b, n, _ = x.shape
        attended = F.scaled_dot_product_attention(
            q, repeat(k, group), repeat(v, group), attn_mask=mask
        )
        x = x + self.o(attended.transpose(1, 2).reshape(b, n, self.heads * self.dim))
        h = norm(x, self.post_norm, self.eps)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, past: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Output, keys and values; x is [b, n, hidden], `past` are [b, kv_heads, m, dim]."""
        q, k, v = self.project(x, cos, sin)
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        return self.finish(x, q, k, v, mask), k, v


class Plain(nn.Module):
    """The whole decoder; logits of the last token."""

    def __init__(self, config: dict) -> None:
        super().__init__()
        self.config, half = config, config["head_dim"] // 2
        self.embedding = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = nn.Parameter(torch.empty(config["hidden_size"]))
        frequencies = config["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
        self.register_buffer("frequencies", torch.cat([frequencies] * 2).float())

    def begin(self, tokens: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Embedded tokens, and the rotary table at their positions."""
        x = self.embedding(tokens)
        angles = positions[None, None, :, None].float() * self.frequencies.float()
        return x, angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    def end(self, x: Tensor) -> Tensor:
        """Logits of the last token: [b, vocabulary]."""
        x = norm(x[:, -1], self.norm, self.config["rms_norm_eps"])
        return F.linear(x, self.embedding.weight)

    def forward(self, tokens: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        """Logits [b, vocabulary], then keys and values of each layer; tokens are [b, n]."""
        n, m = tokens.shape[1], past[0].shape[2]
        columns = torch.arange(m + n)
        rows = columns[m:]
        x, cos, sin = self.begin(tokens, rows)
        mask = torch.zeros((), dtype=x.dtype).masked_fill(columns > rows[:, None], -torch.inf)[
            None, None
        ]
        caches: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            x, k, v = layer(x, cos, sin, mask, (past[2 * index], past[2 * index + 1]))
            caches += [k, v]
        return self.end(x), *caches


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMS norm over the last dim."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions, as `rotate_half` defines them."""
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def load_plain(folder: Path, model: Plain | None = None) -> Plain:
    """The decoder with the weights of a Hugging Face folder, in float32."""
    config = json.loads((folder / "config.json").read_text())
    model = model or Plain(config)
    weights = load_file(folder / "model.safetensors")
    state = {
        "embedding.weight": weights["model.embed_tokens.weight"],
        "norm": weights["model.norm.weight"],
        "frequencies": model.frequencies,
    }
    for i in range(config["num_hidden_layers"]):
        attention, mlp = f"model.layers.{i}.self_attn", f"model.layers.{i}.mlp"
        parts = {kind: f"{attention}.{kind}_proj" for kind in "qkvo"}
        parts |= {kind: f"{mlp}.{kind}_proj" for kind in ("gate", "up", "down")}
        for name, part in parts.items():
            state[f"layers.{i}.{name}.weight"] = weights[f"{part}.weight"]
        for name, part in (("input_norm", "input"), ("post_norm", "post_attention")):
            state[f"layers.{i}.{name}"] = weights[f"model.layers.{i}.{part}_layernorm.weight"]
    model.load_state_dict(state)
    return model.eval().requires_grad_(False)


def empty_caches(model: Plain, length: int = 0) -> list[Tensor]:
    """Keys and values of each layer, `length` tokens of zeros."""
    config = model.config
    dims = (1, config["num_key_value_heads"], length, config["head_dim"])
    return [torch.zeros(dims) for _ in range(2 * config["num_hidden_layers"])]
