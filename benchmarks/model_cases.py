"""The models that `models.py` measures, written once over operators that each program has.

    minilm    an encoder of MiniLM's shape: 6 layers of 384, 12 heads, 1536, vocabulary 30522
    resnet    the stem of a ResNet, or one of its blocks: [n, c, h, w]
    llama     one decoder layer of half Llama-3-8B's width: 2048, 16 heads, 4 for keys, 7168

Weights are random, the same for every program. `model(case)` is a function of a program's
operators (`Numpy` has the reference's), the arguments and the weights, all by name.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

EPSILON = 1e-5
TOLERANCE = {"f32": 2e-4, "bf16": 4e-2}
MASKED = -1e4
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Model:
    """`arguments` and `weights` by name: their dims, symbols for those that vary, and the dtype.

    `run(ops, arguments, weights)` gives the result; `flops(sizes)` counts its products.
    """

    arguments: Mapping[str, tuple[tuple[int | str, ...], str]]
    weights: Mapping[str, tuple[int, ...]]
    run: Callable[[Any, Values, Values], Any]
    flops: Callable[[Mapping[str, int]], float]


def model(case: Mapping[str, Any]) -> Model:
    """The model of a case; cases that differ in `sizes` only have one model."""
    return _MODELS[case["model"]](case)


def key(case: Mapping[str, Any]) -> str:
    """A name for the model of a case, the same for all sizes."""
    return "-".join(str(value) for name, value in case.items() if name != "sizes")


def label(case: Mapping[str, Any]) -> str:
    """A case as text for a table."""
    parts = [str(v) for name, v in case.items() if name not in ("sizes", "dtype")]
    sizes = "x".join(map(str, case["sizes"].values()))
    return f"{' '.join(parts)} {sizes} {case['dtype']}"


def weights(case: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The weights: matrices that preserve magnitudes near 1, norms near 1, the rest near 0.

    For bf16 they are exact in bfloat16, as float32.
    """
    generator = np.random.default_rng(7)
    arrays = {}
    for name, dims in model(case).weights.items():
        x: np.ndarray = generator.standard_normal(dims, dtype=np.float32)
        if name.endswith(("gain", "variance")):
            x = 1 + 0.1 * np.abs(x)
        elif len(dims) == 1:
            x *= 0.1
        elif name != "table":
            x /= math.sqrt(math.prod(dims[1:]))
        arrays[name] = rounded(x) if case["dtype"] == "bf16" else x
    return arrays


def arguments(case: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What the model is called with."""
    generator = np.random.default_rng(11)
    sizes = case["sizes"]
    arrays = {}
    for name, (dims, dtype) in model(case).arguments.items():
        shape = [sizes[dim] if isinstance(dim, str) else dim for dim in dims]
        if name == "ids":
            arrays[name] = generator.integers(0, 30522, shape)
        elif name == "mask":
            lengths = generator.integers(shape[1] // 2 + 1, shape[1] + 1, shape[0])
            lengths[0] = shape[1]
            arrays[name] = (np.arange(shape[1]) < lengths[:, None]).astype(np.float32)
        elif name in ("cos", "sin"):
            frequencies = 500000.0 ** (-np.arange(0, shape[1] // 2) * 2 / shape[1])
            angles = np.tile(np.arange(shape[0])[:, None] * frequencies, 2)
            arrays[name] = getattr(np, name)(angles).astype(np.float32)
        else:
            arrays[name] = generator.standard_normal(shape).astype(np.float32)
        assert dtype in ("f32", "i64")
    return arrays


def rounded(x: np.ndarray) -> np.ndarray:
    """Float32 values rounded to bfloat16, nearest even, as float32."""
    bits: np.ndarray = x.view(np.uint32)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32)


def reference(case: Mapping[str, Any]) -> np.ndarray:
    """The result in float64."""
    values = [
        {name: x.astype(np.float64) if x.dtype.kind == "f" else x for name, x in group.items()}
        for group in (arguments(case), weights(case))
    ]
    return model(case).run(Numpy(), *values)


def _minilm(case: Mapping[str, Any]) -> Model:
    layers, width, heads, inner = 6, 384, 12, 1536
    named: dict[str, tuple[int, ...]] = {"table": (30522, width), "positions": (512, width)}
    named |= {"norm_gain": (width,), "norm_bias": (width,)}
    for i in range(layers):
        for name in ("q", "k", "v", "o"):
            named |= {f"{name}{i}": (width, width), f"{name}{i}_bias": (width,)}
        named |= {f"up{i}": (inner, width), f"up{i}_bias": (inner,)}
        named |= {f"down{i}": (width, inner), f"down{i}_bias": (width,)}
        for name in ("a", "b"):
            named |= {f"{name}{i}_gain": (width,), f"{name}{i}_bias": (width,)}

    def run(ops: Any, args: Values, w: Values) -> Any:
        x = ops.add(ops.take(w["table"], args["ids"]), ops.first_rows(w["positions"], args["ids"]))
        x = ops.layer_norm(x, w["norm_gain"], w["norm_bias"])
        mask = ops.mask(args["mask"], MASKED)
        for i in range(layers):
            q, k, v = (ops.linear(x, w[f"{n}{i}"], w[f"{n}{i}_bias"]) for n in "qkv")
            mixed = ops.attention(q, k, v, heads, heads, width // heads, mask)
            mixed = ops.linear(mixed, w[f"o{i}"], w[f"o{i}_bias"])
            x = ops.layer_norm(ops.add(x, mixed), w[f"a{i}_gain"], w[f"a{i}_bias"])
            up = ops.gelu(ops.linear(x, w[f"up{i}"], w[f"up{i}_bias"]))
            down = ops.linear(up, w[f"down{i}"], w[f"down{i}_bias"])
            x = ops.layer_norm(ops.add(x, down), w[f"b{i}_gain"], w[f"b{i}_bias"])
        return x

    def flops(sizes: Mapping[str, int]) -> float:
        tokens = sizes["b"] * sizes["n"]
        each = 2 * (4 * width * width + 2 * width * inner) + 4 * sizes["n"] * width
        return float(layers * tokens * each)

    inputs = {"ids": (("b", "n"), "i64"), "mask": (("b", "n"), "f32")}
    return Model(inputs, named, run, flops)


def _llama(case: Mapping[str, Any]) -> Model:
    width, heads, kv_heads, inner = 2048, 16, 4, 7168
    d = width // heads
    named = {
        "q": (width, width), "k": (kv_heads * d, width), "v": (kv_heads * d, width),
        "o": (width, width), "gate": (inner, width), "up": (inner, width), "down": (width, inner),
        "a_gain": (width,), "b_gain": (width,),
    }  # fmt: skip

    def run(ops: Any, args: Values, w: Values) -> Any:
        x = args["x"]
        y = ops.rms_norm(x, w["a_gain"])
        q, k, v = (ops.linear(y, w[name]) for name in "qkv")
        q = ops.rotary(q, heads, args["cos"], args["sin"])
        k = ops.rotary(k, kv_heads, args["cos"], args["sin"])
        x = ops.add(x, ops.linear(ops.attention(q, k, v, heads, kv_heads, d, "causal"), w["o"]))
        y = ops.rms_norm(x, w["b_gain"])
        gated = ops.multiply(ops.silu(ops.linear(y, w["gate"])), ops.linear(y, w["up"]))
        return ops.add(x, ops.linear(gated, w["down"]))

    def flops(sizes: Mapping[str, int]) -> float:
        each = 2 * (2 * width * width + 2 * kv_heads * d * width + 3 * width * inner)
        return float(sizes["b"] * sizes["n"] * (each + 2 * sizes["n"] * width))

    inputs = {"x": (("b", "n", width), "f32"), "cos": (("n", d), "f32"), "sin": (("n", d), "f32")}
    return Model(inputs, named, run, flops)


@dataclass(frozen=True)
class _Conv:
    name: str
    inputs: int
    outputs: int
    size: int
    stride: int = 1


def _resnet(case: Mapping[str, Any]) -> Model:
    kind, norm = case["kind"], case["norm"]
    width = case["width"]
    convs = {
        "stem": [_Conv("a", 3, width, 7, 2)],
        "basic": [_Conv("a", width, width, 3), _Conv("b", width, width, 3)],
        "down": [
            _Conv("a", width, 2 * width, 3, 2), _Conv("b", 2 * width, 2 * width, 3),
            _Conv("skip", width, 2 * width, 1, 2),
        ],
        "bottleneck": [
            _Conv("a", 4 * width, width, 1), _Conv("b", width, width, 3),
            _Conv("c", width, 4 * width, 1),
        ],
    }[kind]  # fmt: skip
    named: dict[str, tuple[int, ...]] = {}
    for conv in convs:
        named[conv.name] = (conv.outputs, conv.inputs, conv.size, conv.size)
        parts = ("gain", "bias", "mean", "variance") if norm == "norm" else ("bias",)
        named |= {f"{conv.name}_{part}": (conv.outputs,) for part in parts}

    def run(ops: Any, args: Values, w: Values) -> Any:
        def apply(conv: _Conv, x: Any) -> Any:
            name, pad = conv.name, conv.size // 2
            if norm != "norm":
                return ops.conv(x, w[name], w[f"{name}_bias"], conv.stride, pad)
            y = ops.conv(x, w[name], None, conv.stride, pad)
            return ops.batch_norm(
                y, *(w[f"{name}_{part}"] for part in ("gain", "bias", "mean", "variance"))
            )

        x = y = args["x"]
        main = [conv for conv in convs if conv.name != "skip"]
        for conv in main[:-1]:
            y = ops.relu(apply(conv, y))
        y = apply(main[-1], y)
        if kind == "stem":
            return ops.max_pool(ops.relu(y))
        skip = apply(convs[-1], x) if kind == "down" else x
        return ops.relu(ops.add(y, skip))

    def flops(sizes: Mapping[str, int]) -> float:
        total, shrunk = 0.0, 1
        for conv in convs:
            shrunk = conv.stride if conv.name == "skip" else shrunk * conv.stride
            pixels = math.prod(-(-sizes[s] // shrunk) for s in "hw")
            total += 2 * pixels * conv.inputs * conv.outputs * conv.size**2
        return sizes["n"] * total

    channels = {"stem": 3, "bottleneck": 4 * width}.get(kind, width)
    return Model({"x": (("n", channels, "h", "w"), "f32")}, named, run, flops)


_MODELS = {"minilm": _minilm, "llama": _llama, "resnet": _resnet}


def _cases() -> dict[str, list[dict]]:
    minilm = [
        {"model": "minilm", "dtype": "f32", "sizes": {"b": b, "n": n}}
        for b, n in ((1, 16), (1, 128), (8, 64), (1, 512))
    ]
    llama = [
        {"model": "llama", "dtype": dtype, "sizes": {"b": b, "n": n}}
        for dtype in ("f32", "bf16")
        for b, n in ((1, 1), (1, 16), (1, 128), (4, 100), (1, 512))
    ]
    resnet = []
    for kind, width, norm, size in (
        ("stem", 64, "folded", 224),
        ("basic", 64, "folded", 56), ("basic", 64, "norm", 56),
        ("basic", 128, "folded", 28), ("basic", 256, "folded", 14),
        ("down", 64, "folded", 56), ("down", 128, "norm", 28),
        ("bottleneck", 64, "folded", 56), ("bottleneck", 128, "norm", 28),
    ):  # fmt: skip
        for n in (1, 8):
            sizes = {"n": n, "h": size, "w": size}
            case = {"model": "resnet", "kind": kind, "width": width, "norm": norm, "dtype": "f32"}
            resnet.append({**case, "sizes": sizes})
    return {"minilm": minilm, "resnet": resnet, "llama": llama}


class Numpy:
    """The operators, in the precision of their operands."""

    def add(self, a, b):
        """a + b."""
        return a + b

    def multiply(self, a, b):
        """a * b."""
        return a * b

    def take(self, table, ids):
        """Rows of a table."""
        return table[ids]

    def first_rows(self, table, ids):
        """As many rows as `ids` has columns."""
        return table[: ids.shape[1]]

    def linear(self, x, w, bias=None):
        """x times the transpose of w[out, in], plus the bias."""
        y = x @ w.T
        return y if bias is None else y + bias

    def layer_norm(self, x, gain, bias):
        """Over the last dim."""
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        return centred / np.sqrt(variance + EPSILON) * gain + bias

    def rms_norm(self, x, gain):
        """Over the last dim."""
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * gain

    def gelu(self, x):
        """With the error function."""
        erf = np.frompyfunc(math.erf, 1, 1)
        return x * (1 + erf(x * math.sqrt(0.5)).astype(np.float64)) / 2

    def silu(self, x):
        """x * sigmoid(x)."""
        return x / (1 + np.exp(-x))

    def relu(self, x):
        """max(x, 0)."""
        return np.maximum(x, 0)

    def mask(self, mask, masked):
        """[b, n] of 1 and 0 as what is added to scores: 0, or `masked`."""
        return ((1 - mask) * masked)[:, None, None, :]

    def rotary(self, x, heads, cos, sin):
        """Rotates the halves of each head of x[b, n, heads * d]."""
        b, n, width = x.shape
        x = x.reshape(b, n, heads, width // heads)
        first, second = np.split(x, 2, -1)
        rotated = np.concatenate([-second, first], -1)
        return (x * cos[:, None] + rotated * sin[:, None]).reshape(b, n, width)

    def attention(self, q, k, v, heads, kv_heads, d, mask):
        """q[b, n, heads * d]; what `mask` adds to the scores may be "causal"."""
        b, n, width = q.shape
        q = q.reshape(b, n, kv_heads, heads // kv_heads, d).transpose(0, 2, 3, 1, 4)
        k = k.reshape(b, n, kv_heads, 1, d).transpose(0, 2, 3, 4, 1)
        v = v.reshape(b, n, kv_heads, 1, d).transpose(0, 2, 3, 1, 4)
        scores = q @ k / math.sqrt(d)
        later = np.triu(np.full((n, n), -np.inf), 1)
        scores = scores + (later if isinstance(mask, str) else mask[:, None])
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = powers / powers.sum(-1, keepdims=True) @ v
        return mixed.transpose(0, 3, 1, 2, 4).reshape(b, n, width)

    def conv(self, x, w, bias, stride, pad):
        """2-D, with zeros around the image."""
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        view = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
        y = np.tensordot(view[:, :, ::stride, ::stride], w, ([1, 4, 5], [1, 2, 3]))
        y = y.transpose(0, 3, 1, 2)
        return y if bias is None else y + bias[:, None, None]

    def batch_norm(self, x, gain, bias, mean, variance):
        """Each channel by its own mean and variance."""
        scale = gain / np.sqrt(variance + EPSILON)
        return x * scale[:, None, None] + (bias - mean * scale)[:, None, None]

    def max_pool(self, x):
        """Windows of 3 by 3, two apart, one beyond the border."""
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        view = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
        return view[:, :, ::2, ::2].max((4, 5))


CASES = _cases()
"""The cases by model."""
