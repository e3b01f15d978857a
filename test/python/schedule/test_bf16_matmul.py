"""Products with bfloat16 weights in panels, against float64 on the same rounded values."""

from functools import cache

import numpy as np
import pytest
from scheduled import NATIVE, runnable

from relax_mlir.compiler import compile
from relax_mlir.executable import Executable

TARGETS = [*NATIVE, *runnable("x86-64-v4", "x86-64-v3")]
SIZES = [
    (1, 2), (31, 7), (33, 100), (64, 576), (64, 1), (31, 2), (33, 1602), (2048, 24), (65, 1603),
]  # fmt: skip
ROWS = (1, 2, 3, 7, 8, 13, 14, 15, 16, 33, 300)


def program(n: int, k: int, rounds: bool) -> str:
    """x[m, k] times the transpose of bf16 weights [n, k], plus r[m, n]; `rounds` rounds x."""
    left, out = (f'tensor<?x{d}xf32, #graph.shape<["m", {d}]>>' for d in (k, n))
    half = left.replace("xf32", "xbf16")
    narrow, widened, transposed = (
        f"tensor<{dims}>" for dims in (f"{n}x{k}xbf16", f"{n}x{k}xf32", f"{k}x{n}xf32")
    )
    rounding = f"""
      %half = "graph.astype"(%x) {{dtype = bf16}} : ({left}) -> {half}
      %left = "graph.astype"(%half) {{dtype = f32}} : ({half}) -> {left}"""
    return f"""
    func.func @main(%x: {left}, %r: {out}, %w: {narrow}) -> {out}
        attributes {{graph.num_inputs = 2 : i64}} {{{rounding if rounds else ""}
      %widened = "graph.astype"(%w) {{dtype = f32}} : ({narrow}) -> {widened}
      %t = "graph.permute_dims"(%widened) {{axes = array<i64: 1, 0>}} : ({widened}) -> {transposed}
      %y = "graph.matmul"(%{"left" if rounds else "x"}, %t) : ({left}, {transposed}) -> {out}
      %z = "graph.add"(%y, %r) : ({out}, {out}) -> {out}
      return %z : {out}
    }}"""


@cache
def compiled(n: int, k: int, rounds: bool, target: str) -> Executable:
    """The compiled program, with weights in panels."""
    return compile(program(n, k, rounds), target, opt_level=3)


def random_bf16(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random float32 values that are exact in bfloat16."""
    bits = rng.standard_normal(shape).astype(np.float32).view(np.uint32)
    return (bits & 0xFFFF0000).view(np.float32)


def bits_of(values: np.ndarray) -> np.ndarray:
    """The bits of float32 values that are exact in bfloat16."""
    return (np.ascontiguousarray(values).view(np.uint32) >> 16).astype(np.uint16)


def rounded(values: np.ndarray) -> np.ndarray:
    """The nearest values with 8 significant bits, ties to even."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.round(mantissa * 256) / 256, exponent)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("rounds", [True, False])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("n", "k"), SIZES)
def test_products(n, k, target, rounds):
    executable = compiled(n, k, rounds, target)
    rng = np.random.default_rng(n * k)
    weights = random_bf16(rng, n, k)
    packed = executable["main_params"](bits_of(weights))
    for m in ROWS:
        x = rng.standard_normal((m, k)).astype(np.float32)
        residual = rng.standard_normal((m, n)).astype(np.float32)
        left = rounded(x) if rounds else x.astype(np.float64)
        expected = left @ weights.astype(np.float64).T + residual
        bound = np.abs(left) @ np.abs(weights).T.astype(np.float64) + np.abs(residual)
        actual = executable["main"](x, residual, packed)
        assert (np.abs(actual - expected) <= 2.0**-20 * bound).all()


@cache
def unpacked(n: int, k: int, layout: str, target: str) -> Executable:
    """x[m, k] times weights [n, k] or [k, n], which are not packed."""
    left, out = (f'tensor<?x{d}xf32, #graph.shape<["m", {d}]>>' for d in (k, n))
    half = left.replace("xf32", "xbf16")
    shape = f"{n}x{k}" if layout == "nk" else f"{k}x{n}"
    narrow, widened, right = f"tensor<{shape}xbf16>", f"tensor<{shape}xf32>", f"tensor<{k}x{n}xf32>"
    transpose = (
        f'%r = "graph.permute_dims"(%v) {{axes = array<i64: 1, 0>}} : ({widened}) -> {right}'
    )
    text = f"""
    func.func @main(%x: {left}, %w: {narrow}) -> {out} {{
      %half = "graph.astype"(%x) {{dtype = bf16}} : ({left}) -> {half}
      %left = "graph.astype"(%half) {{dtype = f32}} : ({half}) -> {left}
      %v = "graph.astype"(%w) {{dtype = f32}} : ({narrow}) -> {widened}
      {transpose if layout == "nk" else ""}
      %y = "graph.matmul"(%left, %{"r" if layout == "nk" else "v"}) : ({left}, {right}) -> {out}
      return %y : {out}
    }}"""
    return compile(text, target)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("layout", ["nk", "kn"])
@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
@pytest.mark.parametrize(("n", "k"), [(7, 101), (33, 64), (40, 1), (5, 31)])
def test_products_of_unpacked_weights(n, k, target, layout):
    executable = unpacked(n, k, layout, target)
    rng = np.random.default_rng(n * k)
    weights = random_bf16(rng, n, k)
    stored = bits_of(weights if layout == "nk" else weights.T)
    for m in (0, 1, 2, 5, 6, 7, 12, 13, 17, 63, 64, 65, 130):
        x = rng.standard_normal((m, k)).astype(np.float32)
        left = rounded(x)
        actual = executable["main"](x, stored)
        bound = np.abs(left) @ np.abs(weights).T.astype(np.float64)
        expected = left @ weights.astype(np.float64).T
        assert (np.abs(actual - expected) <= 2.0**-20 * bound).all()


def of_bf16_operands(n: int, k: int) -> Executable:
    """x[m, k] times weights [n, k], both of bf16, summed in single precision."""
    shapes = {"x": ("m", k), "w": (n, k), "t": (k, n), "y": ("m", n)}

    def kind(name: str, element: str) -> str:
        rows, columns = shapes[name]
        known = isinstance(rows, int)
        shape = "" if known else f', #graph.shape<["m", {columns}]>'
        return f"tensor<{rows if known else '?'}x{columns}x{element}{shape}>"

    half, narrow, out = kind("x", "bf16"), kind("w", "bf16"), kind("y", "f32")
    left, widened, right = (kind(name, "f32") for name in "xwt")
    text = f"""
    func.func @main(%x: {half}, %w: {narrow}) -> {out} attributes {{graph.num_inputs = 1 : i64}} {{
      %left = "graph.astype"(%x) {{dtype = f32}} : ({half}) -> {left}
      %widened = "graph.astype"(%w) {{dtype = f32}} : ({narrow}) -> {widened}
      %t = "graph.permute_dims"(%widened) {{axes = array<i64: 1, 0>}} : ({widened}) -> {right}
      %y = "graph.matmul"(%left, %t) : ({left}, {right}) -> {out}
      return %y : {out}
    }}"""
    return compile(text, "native", opt_level=3)


@pytest.mark.parametrize(("n", "k"), [(33, 31), (40, 96), (33, 2048)])
def test_rows_of_bf16_operands(n, k):
    """Pairs are read in place, unless k is odd or rows conflict in cache sets."""
    executable = of_bf16_operands(n, k)
    rng = np.random.default_rng(n * k)
    weights = random_bf16(rng, n, k)
    packed = executable["main_params"](bits_of(weights))
    for m in (0, 1, 3, 13, 14, 15, 29, 130):
        x = random_bf16(rng, m, k)
        bound = np.abs(x).astype(np.float64) @ np.abs(weights).T.astype(np.float64)
        actual = executable["main"](bits_of(x), packed)
        expected = x.astype(np.float64) @ weights.T.astype(np.float64)
        assert (np.abs(actual - expected) <= 2.0**-20 * bound).all()


@pytest.mark.parametrize("k", [576, 64])
def test_rows_that_begin_within_cache_lines(k):
    """Tile registers multiply a copy, which ends with the last row."""
    n = 48
    executable = of_bf16_operands(n, k)
    rng = np.random.default_rng(k)
    weights = random_bf16(rng, n, k)
    packed = executable["main_params"](bits_of(weights))
    for m in (0, 1, 5, 17, 33, 100):
        x = random_bf16(rng, m, k)
        room = np.full(m * k + 64, 0x7FC0, np.uint16)  # NaN around the rows
        bound = np.abs(x).astype(np.float64) @ np.abs(weights).T.astype(np.float64)
        expected = x.astype(np.float64) @ weights.T.astype(np.float64)
        for begin in (0, 1, 8, 31):
            shifted = (-room.ctypes.data // 2 + begin) % 32
            rows = room[shifted : shifted + m * k].reshape(m, k)
            rows[:] = bits_of(x)
            actual = executable["main"](rows, packed)
            assert (np.abs(actual - expected) <= 2.0**-20 * bound).all()
            rows[:] = 0x7FC0


@cache
def two_products(k: int, inner: int, n: int, target: str) -> Executable:
    """x[m, k] times v[inner, k], times g[m, inner], rounded to bf16, times w[n, inner]."""
    x, middle, out = (f'tensor<?x{d}xf32, #graph.shape<["m", {d}]>>' for d in (k, inner, n))
    half, f32 = middle.replace("xf32", "xbf16"), "{dtype = f32}"
    text = f"""
    func.func @main(%x: {x}, %g: {middle}, %v: tensor<{inner}x{k}xbf16>,
                    %w: tensor<{n}x{inner}xbf16>) -> {out}
        attributes {{graph.num_inputs = 2 : i64}} {{
      %q = "graph.astype"(%v) {f32} : (tensor<{inner}x{k}xbf16>) -> tensor<{inner}x{k}xf32>
      %s = "graph.permute_dims"(%q) {{axes = array<i64: 1, 0>}}
        : (tensor<{inner}x{k}xf32>) -> tensor<{k}x{inner}xf32>
      %0 = "graph.matmul"(%x, %s) : ({x}, tensor<{k}x{inner}xf32>) -> {middle}
      %1 = "graph.multiply"(%0, %g) : ({middle}, {middle}) -> {middle}
      %2 = "graph.astype"(%1) {{dtype = bf16}} : ({middle}) -> {half}
      %3 = "graph.astype"(%2) {f32} : ({half}) -> {middle}
      %r = "graph.astype"(%w) {f32} : (tensor<{n}x{inner}xbf16>) -> tensor<{n}x{inner}xf32>
      %t = "graph.permute_dims"(%r) {{axes = array<i64: 1, 0>}}
        : (tensor<{n}x{inner}xf32>) -> tensor<{inner}x{n}xf32>
      %4 = "graph.matmul"(%3, %t) : ({middle}, tensor<{inner}x{n}xf32>) -> {out}
      return %4 : {out}
    }}"""
    return compile(text, target, opt_level=3)


@pytest.mark.parametrize(
    ("k", "inner", "n", "target"),
    [
        (17, 1, 1, "native"),
        (40, 33, 5, "native"),
        (7, 130, 33, "native"),
        (64, 96, 40, NATIVE[-1]),
        (64, 96, 40, "x86-64-v3"),
    ],
)
def test_a_product_rounded_for_the_next_one(k, inner, n, target):
    """Sums of small integers are exact, so that only the rounding is tested."""
    executable = two_products(k, inner, n, target)
    rng = np.random.default_rng(inner)
    v, w = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((inner, k), (n, inner)))
    packed = executable["main_params"](bits_of(v), bits_of(w))
    for m in (0, 1, 2, 7, 13, 15, 65):
        x = rng.integers(-8, 9, (m, k)).astype(np.float32)
        g = rng.integers(-3, 4, (m, inner)).astype(np.float32)
        middle = rounded(x.astype(np.float64) @ v.T * g)
        np.testing.assert_array_equal(executable["main"](x, g, *packed), middle @ w.T)


@pytest.mark.parametrize("layout", ["nk", "kn"])
@pytest.mark.parametrize("m", [3, 80])
def test_the_zero_of_a_last_pair(layout, m):
    """An odd k leaves half of a pair, which must not make infinity times zero."""
    executable = unpacked(7, 101, layout, "native")
    x = np.full((m, 101), np.inf, np.float32)
    ones = np.ones((7, 101) if layout == "nk" else (101, 7), np.float32)
    assert (executable["main"](x, bits_of(ones)) == np.inf).all()
    assert (executable["main"](np.ones_like(x), bits_of(ones * np.inf)) == np.inf).all()


def test_special_values():
    executable = compiled(33, 100, True, "native")
    weights = np.ones((33, 100), np.float32)
    x = np.zeros((5, 100), np.float32)
    x[1, 99], x[2, 0], x[3, 50] = np.inf, np.nan, 3e38
    x[3, 51] = -3e38
    x[4] = 1 + 2.0**-8  # a tie: rounds to 1
    residual = np.zeros((5, 33), np.float32)
    actual = executable["main"](x, residual, executable["main_params"](bits_of(weights)))
    assert (actual[0] == 0).all()
    assert (actual[1] == np.inf).all()
    assert np.isnan(actual[2]).all()
    assert (actual[3] == 0).all()
    assert (actual[4] == 100).all()


@pytest.mark.rotate(2)
@pytest.mark.parametrize("target", TARGETS)
def test_products_of_unknown_sizes(target):
    """The last block of k may be missing, or shorter than a tile or vector."""
    left, right, out = (
        f'tensor<?x?xbf16, #graph.shape<["{a}", "{b}"]>>' for a, b in ("mk", "kn", "mn")
    )
    widened_left, widened_right, sums = (
        kind.replace("xbf16", "xf32") for kind in (left, right, out)
    )
    text = f"""
    func.func @main(%x: {left}, %w: {right}) -> {sums} {{
      %l = "graph.astype"(%x) {{dtype = f32}} : ({left}) -> {widened_left}
      %r = "graph.astype"(%w) {{dtype = f32}} : ({right}) -> {widened_right}
      %y = "graph.matmul"(%l, %r) : ({widened_left}, {widened_right}) -> {sums}
      return %y : {sums}
    }}"""
    executable = compile(text, target)
    rng = np.random.default_rng(8)
    for m, n, k in [(3, 5, 7), (40, 45, 131), (37, 33, 64), (70, 33, 7000)]:
        x, w = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        np.testing.assert_array_equal(executable["main"](bits_of(x), bits_of(w)), x @ w)


def test_results_that_are_rounded_from_double_precision():
    """The instruction that rounds to bf16 is for single precision."""
    x, y = (
        'tensor<?x32xELEMENT, #graph.shape<["m", 32]>>'.replace("ELEMENT", e)
        for e in ("bf16", "f64")
    )
    executable = compile(f"""
    func.func @main(%x: {x}, %w: tensor<32x32xbf16>) -> {x} {{
      %0 = "graph.matmul"(%x, %w) : ({x}, tensor<32x32xbf16>) -> {x}
      %1 = "graph.astype"(%0) {{dtype = f64}} : ({x}) -> {y}
      %2 = "graph.multiply"(%1, %1) : ({y}, {y}) -> {y}
      %3 = "graph.astype"(%2) {{dtype = bf16}} : ({y}) -> {x}
      return %3 : {x}
    }}""")
    ones = bits_of(np.ones((32, 32), np.float32))
    for m in (1, 5, 20):
        actual = np.asarray(executable["main"](ones[:m], ones)).astype(np.float32)
        assert (actual == 1024).all()
