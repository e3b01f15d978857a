"""Attention, convolution, rows and single elements on emulated CPUs, against float64."""

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from cpu_modules import CPUS, WASM, emulated, operator, tensor

pytestmark = pytest.mark.rotate(3)  # each test on three or four CPUs a day
SIZES = (0, 1, 2, 7, 16, 33)
BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(params=(*CPUS, *WASM))
def target(request: pytest.FixtureRequest) -> str:
    return request.param


def normal(*shape: int) -> np.ndarray:
    """Normal numbers that depend on the shape only."""
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def close(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Compares with absolute tolerance for values of magnitude 1 or less, relative above."""
    assert actual.shape == expected.shape
    error = np.abs(actual.astype(np.float64) - expected)
    assert (error <= tolerance * np.maximum(1, np.abs(expected))).all()


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


ELEMENTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "tanh": np.tanh,
    "sin": np.sin,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "nn_silu": lambda x: x / (1 + np.exp(-x)),
    "log1p": lambda x: np.log1p(np.abs(x)),
    "floor": np.floor,
}


def test_elements(target: str) -> None:
    x = tensor("f32", "n")
    functions = [operator(f"f_{name}", name, [x], x) for name in ELEMENTS]
    exe = emulated("".join(functions), target)
    for n in (*SIZES, 1009):
        given = 3 * normal(n)
        for name, reference in ELEMENTS.items():
            x = np.abs(given) if name == "log1p" else given
            close(exe[f"f_{name}"](x), reference(x.astype(np.float64)), 3e-7)


def test_rows(target: str) -> None:
    x = tensor("f32", "n", 37)
    vector = tensor("f32", 37)
    functions = [
        operator("softmax", "nn_softmax", [x], x, "axis = 1 : i64"),
        operator("layers", "nn_layer_norm", [x, vector, vector], x, "epsilon = 1.0e-05 : f64"),
        operator("rms", "nn_rms_norm", [x, vector], x, "epsilon = 1.0e-05 : f64"),
        operator("total", "sum", [x], vector, "axes = array<i64: 0>, keepdims = false"),
        operator("greatest", "argmax", [x], tensor("i64", "n"), "axis = 1 : i64, keepdims = false"),
    ]
    exe = emulated("".join(functions), target)
    scale, shift = normal(37), normal(1, 37)[0]
    for n in SIZES:
        x = normal(n, 37)
        wide = x.astype(np.float64)
        close(exe["softmax"](x), softmax(wide), 1e-6)
        centred = wide - wide.mean(axis=1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        close(exe["layers"](x, scale, shift), centred / deviation * scale + shift, 2e-6)
        root = np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5)
        close(exe["rms"](x, scale), wide / root * scale, 2e-6)
        close(exe["total"](x), wide.sum(axis=0), 2e-6)
        np.testing.assert_array_equal(exe["greatest"](x), x.argmax(axis=1))


def test_narrow_floats(target: str) -> None:
    """Every bf16 and f16 number there and back, which rounds to nearest even."""
    conversions = [("bf16", "f32"), ("f32", "bf16"), ("f16", "f32"), ("f32", "f16")]
    functions = [
        operator(f"{a}_{b}", "astype", [tensor(a, "n")], tensor(b, "n"), f"dtype = {b}")
        for a, b in conversions
    ]
    exe = emulated("".join(functions), target)
    bits = np.arange(1 << 16, dtype=np.uint16)
    for element, dtype in (("bf16", BF16), ("f16", np.dtype(np.float16))):
        x = bits.view(dtype)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float32)
            between = wide[:-1] + (wide[1:] - wide[:-1]) * np.float32(0.5)
            rounded = between.astype(dtype)
        np.testing.assert_array_equal(exe[f"{element}_f32"](x), wide)
        np.testing.assert_array_equal(
            exe[f"f32_{element}"](between).astype(np.float32), rounded.astype(np.float32)
        )


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_attention(element: str, target: str) -> None:
    """One query, few and many, behind keys that end within blocks, with grouped heads."""
    width = 32 if element == "bf16" else 16  # of which pairs are multiplied where they can be
    q, cache = tensor(element, "n", 6, width), tensor(element, 2, "c", width)
    text = f"""func.func @main(%q: {q}, %k: {cache}, %v: {cache},
        %p: !graph.shape_value<["m"]>) -> {q} {{
      %0 = "graph.nn_attention"(%q, %k, %v) {{position = #graph.shape<["m"]>, scale = 0.25 : f64,
        causal = true}} : ({q}, {cache}, {cache}) -> {q}
      return %0 : {q}
    }}"""
    exe = emulated(text, target)
    dtype, tolerance = (BF16, 2e-2) if element == "bf16" else (np.dtype(np.float32), 2e-6)
    for n, m, capacity in (
        (0, 0, 1),
        (1, 0, 1),
        (1, 62, 70),
        (1, 511, 512),
        (7, 0, 9),
        (40, 29, 70),
    ):
        q, k, v = (
            factor * normal(*dims, width)
            for factor, dims in ((1, (n, 6)), (1, (2, capacity)), (2, (2, capacity)))
        )
        k[:, m + n :], v[:, m + n :] = np.nan, np.nan  # behind the tokens, not to be read
        q, k, v = (x.astype(dtype) for x in (q, k, v))
        actual = exe["main"](q, k, v, np.array([m]))
        expected = np.empty(q.shape)
        for i, head in np.ndindex(n, 6):
            seen = slice(0, m + i + 1)
            keys, values = (x[head // 3, seen].astype(np.float64) for x in (k, v))
            expected[i, head] = softmax(0.25 * keys @ q[i, head].astype(np.float64)) @ values
        close(actual, expected, tolerance)


def test_windows(target: str) -> None:
    """Convolutions with padding, of groups with gaps, of one place, and by tiles of products."""
    cases = [
        ((3, 11, 13), (5, 3, 3, 3), 1, 1, 1),
        ((4, 9, 9), (6, 2, 3, 3), 2, 2, 0),
        ((16, 7, 7), (17, 16, 1, 1), 1, 1, 0),
        ((16, 9, 14), (17, 16, 3, 3), 1, 1, 1),
    ]
    functions = []
    for i, (image, window, groups, step, pad) in enumerate(cases):
        extents = [
            (d + 2 * pad - w) // step + 1 for d, w in zip(image[1:], window[2:], strict=True)
        ]
        pads, steps = ", ".join([str(pad)] * 4), f"{step}, {step}"
        attributes = (
            f"strides = array<i64: {steps}>, padding = array<i64: {pads}>, "
            f"dilation = array<i64: 1, 1>, groups = {groups} : i64, "
            "graph.fastmath = #arith.fastmath<fast>"
        )
        operands = [tensor("f32", "n", *image), tensor("f32", *window)]
        result = tensor("f32", "n", window[0], *extents)
        functions.append(operator(f"f{i}", "nn_conv2d", operands, result, attributes))
    exe = emulated("".join(functions), target)
    for i, (image, window, groups, step, pad) in enumerate(cases):
        for n in (0, 1, 3):
            x, weight = normal(n, *image), normal(*window)
            expected = convolved(x, weight, groups, step, pad)
            terms = convolved(np.abs(x), np.abs(weight), groups, step, pad)
            actual = exe[f"f{i}"](x, weight)
            assert actual.shape == expected.shape
            assert (np.abs(actual - expected) <= 1e-6 * terms).all()


def convolved(x: np.ndarray, weight: np.ndarray, groups: int, step: int, pad: int) -> np.ndarray:
    """The convolution, place by place of the window."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    rows, columns = ((x.shape[a] - weight.shape[a]) // step + 1 for a in (2, 3))
    apart = x.reshape(len(x), groups, weight.shape[1], *x.shape[2:])
    filters = weight.astype(np.float64).reshape(groups, -1, *weight.shape[1:])
    out = np.zeros((len(x), groups, filters.shape[1], rows, columns))
    for i, j in np.ndindex(weight.shape[2:]):
        seen = apart[..., i : i + step * rows : step, j : j + step * columns : step]
        out += np.einsum("ngchw,gfc->ngfhw", seen, filters[..., i, j])
    return out.reshape(len(x), len(weight), rows, columns)


@pytest.mark.parametrize("target", ["armv7", "riscv64"])
def test_integers_of_64_bits(target: str) -> None:
    """Divisions, and conversions from and to floats, which Armv7 has no instructions for."""
    x, bits = tensor("i64", "n"), tensor("f64", "n")
    functions = [
        operator("quotient", "floor_divide", [x, x], x),
        operator("rest", "remainder", [x, x], x),
        operator("single", "astype", [x], tensor("f32", "n"), "dtype = f32"),
        operator("double", "astype", [x], bits, "dtype = f64"),
        operator("whole", "astype", [bits], x, "dtype = i64"),
        operator("short", "astype", [tensor("f32", "n")], x, "dtype = i64"),
    ]
    exe = emulated("".join(functions), target)
    edges = [1 << 24, (1 << 24) + 1, 1 << 32, (1 << 53) + 1, (1 << 62) + (1 << 38) + 1, 3, 10]
    near = [sign * (edge + step) for edge in edges for step in (-1, 0, 1) for sign in (1, -1)]
    random = np.random.default_rng(5)
    spread = random.integers(-(1 << 63), 1 << 63, 500) >> random.integers(0, 63, 500)
    values = np.array([*near, *spread, np.iinfo(np.int64).max, np.iinfo(np.int64).min])
    divisors = np.roll(values, 7)
    divisors[divisors == 0] = 5
    np.testing.assert_array_equal(exe["quotient"](values, divisors), values // divisors)
    np.testing.assert_array_equal(exe["rest"](values, divisors), values % divisors)
    np.testing.assert_array_equal(exe["single"](values), values.astype(np.float32))
    np.testing.assert_array_equal(exe["double"](values), values.astype(np.float64))
    fitting = values[np.abs(values.astype(np.float64)) < 2.0**62] * 1.0 + 0.75
    np.testing.assert_array_equal(exe["whole"](fitting), fitting.astype(np.int64))
    halves = fitting.astype(np.float32) / 2
    np.testing.assert_array_equal(exe["short"](halves), halves.astype(np.int64))


def test_extrema_of_doubles_on_armv7() -> None:
    """LLVM has no maximum of f64 there: see `codegen/arm.py`."""
    x = tensor("f64", "n")
    functions = [operator(name, name, [x, x], x) for name in ("maximum", "minimum")]
    functions += [
        operator(name, name, [x], tensor("f64"), "axes = array<i64: 0>, keepdims = false")
        for name in ("max", "min")
    ]
    exe = emulated("".join(functions), "armv7")
    edges = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e308])
    left, right = (side.ravel() for side in np.meshgrid(edges, edges))
    for name, better in (("maximum", np.maximum), ("minimum", np.minimum)):
        actual, expected = exe[name](left, right), better(left, right)
        np.testing.assert_array_equal(actual, expected)
        zeros = (left == 0) & (right == 0)
        signs = (np.signbit(left) & np.signbit(right), np.signbit(left) | np.signbit(right))
        sign = signs[name == "minimum"]
        np.testing.assert_array_equal(np.signbit(actual)[zeros], sign[zeros])
    for count in (1, 2, 7, 33):
        values = np.random.default_rng(count).standard_normal(count)
        assert exe["max"](values) == values.max()
        assert exe["min"](values) == values.min()
        values[count // 2] = np.nan
        assert np.isnan(exe["max"](values))
