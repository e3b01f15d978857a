"""Kernels to measure: what they compute, their inputs, and the memory traffic that they need.

A case is a dict that goes to every program as JSON: `kernel`, the extents, `dtype` and `seed`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import DTypeLike

EPSILON = 1e-5
CACHE_LINE = 64
TOLERANCE = {
    "f32": 1e-4,
    "bf16": 1e-2,
    "int8": 1e-6,
    "q8_0": 3e-2,
    "q4_0": 1e-4,
    "q4_by_hand": 1e-4,
}
"""Greatest error, as a share of the result's greatest magnitude, of an answer that is right."""
WEIGHT_BYTES = {
    "f32": 4.0, "bf16": 2.0, "int8": 1.0, "q8_0": 34 / 32, "q4_0": 18 / 32, "q4_by_hand": 20 / 32,
}  # fmt: skip

# Columns and contracted extent of the products of one layer: queries with keys and values, the
# attention's output, gate with up, down.
LAYERS = {
    "llama-3-8b": ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)),
    "qwen2-7b": ((4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944)),
    "gemma-7b": ((12288, 3072), (3072, 4096), (49152, 3072), (3072, 24576)),
}
CURVE = (*range(1, 65), 100, 127, 128, 129, 512, 2048)


@dataclass(frozen=True)
class Work:
    """The least work of a case: operations of multiply-adds, or bytes."""

    amount: float
    unit: str

    @property
    def is_compute(self) -> bool:
        """Whether it is bound by arithmetic."""
        return self.unit != "GB/s"


def matmul(m: int, n: int, k: int, dtype: str = "f32") -> dict:
    """x[m, k] times the transpose of weights [n, k]."""
    return {"kernel": "matmul", "m": m, "n": n, "k": k, "dtype": dtype, "seed": m * n * k % 1000}


def rows(kernel: str, m: int, n: int) -> dict:
    """softmax, rms_norm, layer_norm or eltwise of m rows of n, and kernels along other axes."""
    return {"kernel": kernel, "m": m, "n": n, "dtype": "f32", "seed": m * n % 1000}


GEMM = (
    *(matmul(*s) for s in ((512, 576, 576), (512, 1536, 576), (512, 576, 1536))),
    *(matmul(s, s, s) for s in (768, 1024, 2048)),
    *(matmul(*s) for s in ((3, 7, 100), (127, 129, 131), (1000, 1000, 1000), (64, 192, 576))),
    *(matmul(s, s, s, dtype) for dtype in ("bf16", "int8", "q8_0") for s in (768, 1024)),
)
GEMV = (
    *(matmul(1, n, k) for n, k in ((1536, 576), (576, 1536), (49152, 576), (4096, 4096))),
    *(matmul(1, n, k) for n, k in ((7, 100), (129, 131), (1000, 1000))),
    *(matmul(1, n, k, "bf16") for n, k in ((1536, 576), (49152, 576), (4096, 4096))),
)
ROWS = (
    *(rows("softmax", *s) for s in ((512, 2048), (513, 2047), (1, 49152), (4096, 64))),
    *(rows("rms_norm", *s) for s in ((512, 4096), (1, 576), (129, 577))),
    *(rows("layer_norm", *s) for s in ((512, 4096), (1, 576), (129, 577))),
    *(rows("eltwise", *s) for s in ((512, 4096), (1, 7), (997, 1009))),
)
AXES = (
    *(rows("sum_of_columns", *s) for s in ((512, 4096), (4096, 64), (129, 577))),
    *(rows("sum_of_rows", *s) for s in ((512, 4096), (4096, 64), (1, 49152))),
    *(rows("softmax_of_columns", *s) for s in ((512, 2048), (129, 577))),
    *(rows("argmax", *s) for s in ((512, 4096), (1, 49152), (4096, 64))),
    *(rows("gelu", *s) for s in ((512, 4096), (997, 1009))),
    *(rows("transpose", *s) for s in ((512, 4096), (129, 577))),
)
# Rows that some vectors hold, and transposes that are no multiples of a square.
ODD = (
    *(rows("softmax", 4096, n) for n in (16, 80, 96, 128)),
    *(rows("sum_of_rows", 4096, n) for n in (16, 80, 128)),
    *(rows("argmax", *s) for s in ((4096, 16), (4096, 80), (4096, 128), (1024, 200))),
    *(rows("softmax", *s) for s in ((8, 49152), (127, 1000))),
    *(rows("transpose", *s) for s in ((1000, 1000), (128, 576), (64, 64), (31, 1000), (17, 577))),
    *(rows("transpose", *s) for s in ((3, 1000), (577, 17), (500, 8))),
)
LAYER = tuple(
    matmul(m, n, k) for shapes in LAYERS.values() for n, k in shapes for m in (1, 16, 128)
)
# Weights of 4 bits: the built-in format, and a decoder that is written by hand (paper Figure 9).
DECODERS = tuple(matmul(m, 2048, 2048, dtype) for m in (1, 64) for dtype in ("q4_0", "q4_by_hand"))
SUITES: Mapping[str, Iterable[dict]] = {
    "gemm": GEMM, "gemv": GEMV, "rows": ROWS, "axes": AXES, "odd": ODD, "layers": LAYER,
    "decoders": DECODERS,
}  # fmt: skip


# Sizes of the suite of random ones: powers of two, their neighbours, and others.
SIZES = (
    *range(1, 9), 10, 12, 15, 16, 17, 20, 24, 31, 32, 33, 48, 50, 63, 64, 65, 80, 96, 100, 127,
    128, 129, 150, 192, 200, 255, 256, 257, 300, 384, 500, 511, 512, 513, 577, 768, 1000, 1023,
    1024, 1500, 2000, 2048, 3000, 4096,
)  # fmt: skip
DRAWN = 60
MOST_ROWS, MOST_WEIGHTS, MOST_PRODUCTS, MOST_ELEMENTS = 600, 3e6, 1.5e8, 1e6
KERNELS = ("softmax", "rms_norm", "layer_norm", "eltwise", "sum_of_columns", "sum_of_rows",
           "softmax_of_columns", "argmax", "gelu", "transpose")  # fmt: skip


def drawn(seed: int) -> list[dict]:
    """As many products as other kernels, of random sizes, to detect slow ones."""
    generator = np.random.default_rng(seed)
    suite: list[dict] = []
    while len(suite) < DRAWN:
        m, n, k = (int(size) for size in generator.choice(SIZES, 3))
        if len(suite) % 2:
            if m * n <= MOST_ELEMENTS:
                suite.append(rows(str(generator.choice(KERNELS)), m, n))
        elif m <= MOST_ROWS and n * k <= MOST_WEIGHTS and m * n * k <= MOST_PRODUCTS:
            suite.append(matmul(m, n, k, str(generator.choice(("f32", "bf16", "int8")))))
    return suite


def suites(seed: int) -> Mapping[str, Iterable[dict]]:
    """All suites by name; `random` depends on the seed."""
    return {**SUITES, "random": drawn(seed)}


def label(case: dict) -> str:
    """The case as a table shows it."""
    extents = "x".join(str(case[key]) for key in "mnk" if key in case)
    return f"{case['kernel']} {extents}" + ("" if case["dtype"] == "f32" else f" {case['dtype']}")


def work(case: dict) -> Work:
    """Multiply-adds count as two operations; a product with one row counts its weights' bytes."""
    m, n = case["m"], case["n"]
    if case["kernel"] == "matmul":
        if m == 1:
            return Work(n * case["k"] * WEIGHT_BYTES[case["dtype"]], "GB/s")
        is_integer = case["dtype"] in ("int8", "q8_0")
        return Work(2.0 * m * n * case["k"], "GOP/s" if is_integer else "GFLOP/s")
    traffic = {
        "eltwise": 3 * m * n,
        "sum_of_columns": m * n + n,
        "sum_of_rows": m * n + m,
        "argmax": m * n + m,
        "rms_norm": 2 * m * n + n,
        "layer_norm": 2 * m * n + 2 * n,
    }
    return Work(4.0 * traffic.get(case["kernel"], 2 * m * n), "GB/s")


def empty(shape: Sequence[int], dtype: DTypeLike = np.float32) -> np.ndarray:
    """An array that begins with a cache line; where NumPy's begin differs from run to run."""
    count = prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(count + CACHE_LINE, np.uint8)
    begin = -memory.ctypes.data % CACHE_LINE
    return memory[begin : begin + count].view(dtype).reshape(shape)


def _aligned(x: np.ndarray) -> np.ndarray:
    copy = empty(x.shape, x.dtype)
    copy[...] = x
    return copy


def inputs(case: dict) -> list[np.ndarray]:
    """The arguments: float32 arrays that the case's dtype holds exactly, int8 ones for integers.

    Weights of 4 bits are codes from 0 to 15, less 8. They and those of q8_0 have a scale for each
    32 elements: a third array [n, k / 32]. All begin with a cache line.
    """
    return [*map(_aligned, _inputs(case))]


def _inputs(case: dict) -> list[np.ndarray]:
    generator = np.random.default_rng(case["seed"])
    m, n = case["m"], case["n"]
    if case["kernel"] == "matmul":
        return _factors(generator, case)
    x = generator.standard_normal((m, n), dtype=np.float32)
    if case["kernel"] == "eltwise":
        return [x, generator.standard_normal((m, n), dtype=np.float32)]
    vectors = {"rms_norm": 1, "layer_norm": 2}.get(case["kernel"], 0)
    return [x, *generator.standard_normal((vectors, n), dtype=np.float32)]


def _factors(generator: np.random.Generator, case: dict) -> list[np.ndarray]:
    left, right = (case["m"], case["k"]), (case["n"], case["k"])
    if case["dtype"] in ("f32", "bf16"):
        pair = [generator.standard_normal(shape, dtype=np.float32) for shape in (left, right)]
        return pair if case["dtype"] == "f32" else [_as_bf16(x) for x in pair]
    codes = (0, 16) if case["dtype"].startswith("q4") else (-127, 128)
    w = generator.integers(*codes, right, dtype=np.int8)
    if case["dtype"] == "int8":
        return [generator.integers(-127, 128, left, dtype=np.int8), w]
    scales = generator.uniform(0.5, 2, (case["n"], case["k"] // 32)).astype(np.float16)
    return [generator.standard_normal(left, dtype=np.float32), w, scales]


def _as_bf16(x: np.ndarray) -> np.ndarray:
    return (x.view(np.uint32) & 0xFFFF0000).view(np.float32)


def bf16_bits(x: np.ndarray) -> np.ndarray:
    """The bits of float32 values that are exact in bfloat16."""
    return _aligned((np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16))


def from_bf16_bits(bits: np.ndarray) -> np.ndarray:
    """The values of bfloat16 bits, as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def reference(case: dict) -> np.ndarray:
    """The result in float64; of a large product the first rows and columns, see `sample`."""
    x, *others = inputs(case)
    x = x.astype(np.float64)
    if case["kernel"] == "matmul":
        w = others[0][: sample(case)].astype(np.float64)
        w -= 8 if case["dtype"].startswith("q4") else 0
        if case["dtype"].startswith("q"):
            w *= np.repeat(others[1][: sample(case)].astype(np.float64), 32, 1)
        return x @ w.T
    return _REFERENCES[case["kernel"]](x, *(other.astype(np.float64) for other in others))


def sample(case: dict) -> int:
    """The count of columns of a product that are checked: float64 is slow for all."""
    return min(case["n"], max(512, (1 << 30) // (case["m"] * case["k"])))


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def _rms_norm(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(1, keepdims=True) + EPSILON) * w


def _layer_norm(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + EPSILON) * w + b


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


_REFERENCES: dict[str, Callable[..., np.ndarray]] = {
    "softmax": lambda x: _softmax(x, 1),
    "softmax_of_columns": lambda x: _softmax(x, 0),
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "eltwise": lambda x, u: x / (1 + np.exp(-x)) * u + 0.5 * x,
    "gelu": _gelu,
    "sum_of_columns": lambda x: x.sum(0),
    "sum_of_rows": lambda x: x.sum(1),
    "argmax": lambda x: x.argmax(1),
    "transpose": lambda x: x.T,
}
