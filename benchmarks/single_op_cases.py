"""Operators to measure: their arguments, weights, and results in float64.

A case is a dict that goes to every program as JSON: `kernel`, `dims`, `settings` and `seed`.
"""

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

EPSILON = 1e-5
TOLERANCE = {"f32": 1e-4}
LINE = 1 << 20
WEIGHTS = ("scale", "bias", "mean", "variance", "w", "r")
"""The names of those arguments that are constants of a model."""


def _case(kernel: str, *dims: int, **settings: int | str | bool) -> dict:
    return {"kernel": kernel, "dims": list(dims), "dtype": "f32", "settings": settings,
            "seed": prod(dims) % 1000}  # fmt: skip


IMAGE = (8, 64, 28, 28)
SUITES: Mapping[str, tuple[dict, ...]] = {
    "sorting": (
        *(_case(kernel, *dims, axis=-1) for kernel in ("sort", "argsort")
          for dims in ((LINE,), (1000, 1000), (4096, 100))),
        _case("sort", 1000, 1000, axis=0),
        _case("sort", LINE, axis=-1, descending=True),
        _case("topk", LINE, k=10),
        _case("topk", LINE, k=100),
        _case("topk", 256, 32000, k=50),
        _case("topk", 1000, 1000, k=10),
        _case("unique", LINE, values=1000),
        _case("unique", LINE, values=1 << 30),
    ),
    "scans": tuple(
        _case(kernel, *dims, axis=axis)
        for kernel in ("cumsum", "cumprod")
        for dims, axis in (((1000, 1000), 1), ((1000, 1000), 0), ((LINE,), 0))
    ),
    "indexing": (
        _case("scatter_elements", 1000, 1000, axis=0),
        _case("scatter_elements", 1000, 1000, axis=1),
        _case("scatter_nd", 10000, 64, count=20000),
        _case("scatter_nd", LINE, 1, count=100000),
        _case("gather_elements", 1000, 1000, axis=0),
        _case("gather_elements", 1000, 1000, axis=1),
        _case("gather_nd", 100, 100, 64, count=20000),
        _case("take", 50000, 256, count=4096),
        _case("take", LINE, 1, count=100000),
    ),
    "images": (
        *(_case("resize", 1, 16, 128, 128, mode=mode) for mode in ("nearest", "linear", "cubic")),
        _case("conv_transpose", 1, 64, 32, 32, out=32, window=4, stride=2),
        _case("conv_transpose", 4, 16, 64, 64, out=8, window=2, stride=2),
        _case("depthwise", 1, 96, 56, 56, window=3, stride=1),
        _case("depthwise", 1, 96, 56, 56, window=3, stride=2),
        _case("depthwise", 1, 192, 28, 28, window=5, stride=1),
    ),
    "norms": (
        _case("batch_norm", *IMAGE),
        _case("group_norm", *IMAGE, groups=8),
        _case("instance_norm", *IMAGE),
        _case("layer_norm", 512, 768),
    ),
    "recurrent": tuple(
        _case(kernel, *dims, hidden=hidden)
        for kernel in ("lstm", "gru")
        for *dims, hidden in ((50, 1, 128, 256), (50, 16, 128, 256), (30, 7, 40, 64))
    ),
}  # fmt: skip


def label(case: dict) -> str:
    """The case as a table shows it."""
    settings = " ".join(f"{name}={value}" for name, value in case["settings"].items())
    return f"{case['kernel']} {'x'.join(map(str, case['dims']))} {settings}".strip()


def arguments(case: dict) -> dict[str, np.ndarray]:
    """The arguments by name; x is the first one."""
    generator = np.random.default_rng(case["seed"])
    dims, settings = case["dims"], case["settings"]
    if case["kernel"] == "unique":
        return {"x": generator.integers(0, settings["values"], dims).astype(np.float32)}
    if case["kernel"] == "cumprod":
        return {"x": generator.uniform(0.99, 1.01, dims).astype(np.float32)}
    x = {"x": generator.standard_normal(dims, dtype=np.float32)}
    return x | _OTHERS.get(case["kernel"], lambda *_, **__: {})(generator, dims, **settings)


def _floats(generator: np.random.Generator, *dims: int) -> np.ndarray:
    return generator.standard_normal(dims, dtype=np.float32)


def _elements(generator, dims, axis, *, updates=True) -> dict[str, np.ndarray]:
    arrays = {"indices": generator.integers(0, dims[axis], dims)}
    return arrays | ({"updates": _floats(generator, *dims)} if updates else {})


def _rows(generator, dims, count) -> dict[str, np.ndarray]:
    indices = generator.integers(0, dims[:-1], (count, len(dims) - 1))
    return {"indices": indices, "updates": _floats(generator, count, dims[-1])}


def _by_channel(generator, dims, **_) -> dict[str, np.ndarray]:
    parameters = {name: _floats(generator, dims[1]) for name in ("scale", "bias", "mean")}
    return parameters | {"variance": generator.uniform(0.5, 2, dims[1]).astype(np.float32)}


def _affine(generator, dims, **_) -> dict[str, np.ndarray]:
    return {name: _floats(generator, dims[1]) for name in ("scale", "bias")}


def _gates(count: int) -> Callable[..., dict[str, np.ndarray]]:
    def build(generator, dims, hidden) -> dict[str, np.ndarray]:
        shapes = {"w": (1, count * hidden, dims[2]), "r": (1, count * hidden, hidden),
                  "bias": (1, 2 * count * hidden)}  # fmt: skip
        return {name: _floats(generator, *shape) / 16 for name, shape in shapes.items()}

    return build


_OTHERS: Mapping[str, Callable[..., dict[str, np.ndarray]]] = {
    "scatter_elements": _elements,
    "gather_elements": lambda g, dims, axis: _elements(g, dims, axis, updates=False),
    "scatter_nd": _rows,
    "gather_nd": lambda *a, **kw: {"indices": _rows(*a, **kw)["indices"]},
    "take": lambda g, dims, count: {"indices": g.integers(0, dims[0], count)},
    "conv_transpose": lambda g, dims, out, window, stride: {
        "w": _floats(g, dims[1], out, window, window)
    },
    "depthwise": lambda g, dims, window, stride: {"w": _floats(g, dims[1], 1, window, window)},
    "batch_norm": _by_channel,
    "group_norm": _affine,
    "instance_norm": _affine,
    "layer_norm": _affine,
    "lstm": _gates(4),
    "gru": _gates(3),
}


def traffic(case: dict) -> float:
    """Bytes of arguments and result, at the least."""
    return float(sum(x.nbytes for x in arguments(case).values()) + arguments(case)["x"].nbytes)


def reference(case: dict) -> np.ndarray:
    """The first result, in float64."""
    given = arguments(case)
    given = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in given.items()}
    return _REFERENCES[case["kernel"]](**given, **case["settings"])


def _sort(x, axis, descending=False):
    return -np.sort(-x, axis) if descending else np.sort(x, axis)


def _topk(x, k):
    return -np.sort(-x, -1)[..., :k]


def _scatter_elements(x, indices, updates, axis):
    at = np.indices(x.shape)
    at[axis] = indices
    np.add.at(x, tuple(at), updates)
    return x


def _scatter_nd(x, indices, updates, count):
    np.add.at(x, tuple(indices.T), updates)
    return x


def _resize(x, mode):
    n = x.shape[-1]
    at = np.maximum((np.arange(2 * n) + 0.5) / 2 - 0.5, 0 if mode == "linear" else -1)
    first = np.floor(at).astype(int)
    t = at - first
    if mode == "nearest":
        taps = [(0, 1 - (t > 0.5)), (1, t > 0.5)]
    elif mode == "linear":
        taps = [(0, 1 - t), (1, t)]
    else:
        taps = [(i, _cubic(np.abs(t - i))) for i in range(-1, 3)]
    matrix = np.zeros((2 * n, n))
    for offset, weight in taps:
        np.add.at(matrix, (np.arange(2 * n), np.clip(first + offset, 0, n - 1)), weight)
    return matrix @ x @ matrix.T


def _cubic(d, a=-0.75):
    outer = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, ((a + 2) * d - a - 3) * d * d + 1, outer)


def _conv_transpose(x, w, out, window, stride):
    n, _, height, width = x.shape
    y = np.zeros((n, out, (height - 1) * stride + window, (width - 1) * stride + window))
    for i in range(window):
        for j in range(window):
            part = np.einsum("nchw,co->nohw", x, w[:, :, i, j])
            y[:, :, i : i + height * stride : stride, j : j + width * stride : stride] += part
    return y


def _depthwise(x, w, window, stride):
    pad = window // 2
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    return sum(
        padded[:, :, i : i + height : stride, j : j + width : stride] * w[:, 0, i, j, None, None]
        for i in range(window)
        for j in range(window)
    )


def _normalized(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + EPSILON)


def _channels(x, scale, bias):
    return x * scale[:, None, None] + bias[:, None, None]


def _batch_norm(x, scale, bias, mean, variance):
    factor = scale / np.sqrt(variance + EPSILON)
    return _channels(x, factor, bias - mean * factor)


def _group_norm(x, scale, bias, groups):
    split = _normalized(x.reshape(len(x), groups, -1), 2)
    return _channels(split.reshape(x.shape), scale, bias)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _lstm(x, w, r, bias, hidden):
    h = c = np.zeros((x.shape[1], hidden))
    states = []
    for row in x @ w[0].T + bias[0, : 4 * hidden] + bias[0, 4 * hidden :]:
        i, o, f, g = np.split(row + h @ r[0].T, 4, 1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.stack(states)[:, None]


def _gru(x, w, r, bias, hidden):
    h = np.zeros((x.shape[1], hidden))
    states = []
    for row in x @ w[0].T + bias[0, : 3 * hidden]:
        xz, xr, xh = np.split(row, 3, 1)
        hz, hr, hh = np.split(h @ r[0].T + bias[0, 3 * hidden :], 3, 1)
        z = _sigmoid(xz + hz)
        h = (1 - z) * np.tanh(xh + _sigmoid(xr + hr) * hh) + z * h
        states.append(h)
    return np.stack(states)[:, None]


_REFERENCES: Mapping[str, Callable[..., np.ndarray]] = {
    "sort": _sort,
    "argsort": lambda x, axis: np.argsort(x, axis, stable=True),
    "topk": _topk,
    "unique": lambda x, values: np.unique(x),
    "cumsum": lambda x, axis: np.cumsum(x, axis),
    "cumprod": lambda x, axis: np.cumprod(x, axis),
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "gather_elements": lambda x, indices, axis: np.take_along_axis(x, indices, axis),
    "gather_nd": lambda x, indices, count: x[tuple(indices.T)],
    "take": lambda x, indices, count: x[indices],
    "resize": _resize,
    "conv_transpose": _conv_transpose,
    "depthwise": _depthwise,
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "instance_norm": lambda x, scale, bias: _channels(_normalized(x, (2, 3)), scale, bias),
    "layer_norm": lambda x, scale, bias: _normalized(x, 1) * scale + bias,
    "lstm": _lstm,
    "gru": _gru,
}
