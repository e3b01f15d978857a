"""The runtime's own numbers for WebAssembly: arithmetic without instructions, digits of floats."""

import ctypes
import math
import struct
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import wasmtime
from cpu_modules import tensor

import relax_mlir
from relax_mlir.codegen.llvm import Source, compile_sources
from relax_mlir.codegen.wasm import link_module
from relax_mlir.runtime import bitcode_path
from relax_mlir.target import Target

EDGES = (0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1.0, -1.0, 1 + 2.0**-52, 0.5, 2.5, 1e300, -1e308)
SPECIAL = (math.inf, -math.inf, math.nan)
NAMES = (
    "fma",
    "fmod",
    "round",
    "fmax",
    "fmin",
    "__multi3",
    "__muloti4",
    "__ashrti3",
    "rx_allocate",
)


@cache
def runtime() -> "tuple[wasmtime.Store, dict]":
    """An instance of the runtime alone."""
    source = Source("", bitcode_path("wasm32", "").read_bytes())
    (data,) = compile_sources([source], Target.parse("wasm32"))
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    module = wasmtime.Module(engine, b"".join(link_module([data], NAMES, {})))
    exports = wasmtime.Instance(store, module, []).exports(store)
    return store, {name: exports[name] for name in (*NAMES, "memory")}


def call(name: str, *values: float) -> float:
    store, functions = runtime()
    return functions[name](store, *values)


def floats(count: int, seed: int) -> "list[float]":
    """Floats of any exponent, and some of like exponents."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 1 << 64, count, dtype=np.uint64, endpoint=False)
    near = np.ldexp(generator.uniform(-1, 1, count), generator.integers(-60, 60, count))
    return [*bits.view(np.float64).tolist(), *near.tolist()]


def nearest(exact: Fraction) -> float:
    """The float next to an exact number."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def test_fused_multiply_adds_round_once() -> None:
    a, b, c = (floats(1500, seed) for seed in range(3))
    cases = [*zip(a, b, c, strict=True)]
    cases += [(x, y, -x * y) for x, y in zip(a[1500:], b[1500:], strict=True)]  # what is lost
    cases += [(x, y, z) for x in EDGES for y in EDGES for z in EDGES]
    for x, y, z in cases:
        actual = call("fma", x, y, z)
        if not all(map(math.isfinite, (x, y, z))):
            continue
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        expected = nearest(exact)
        if exact or (x and y and z):
            assert actual == expected, (x, y, z)
        else:
            assert struct.pack("d", actual) == struct.pack("d", x * y + z), (x, y, z)


@pytest.mark.parametrize("special", SPECIAL)
def test_fused_multiply_adds_of_no_numbers(special: float) -> None:
    for values in (
        (special, 2.0, 1.0),
        (2.0, special, 1.0),
        (2.0, 1.0, special),
        (0.0, special, 1.0),
    ):
        with np.errstate(invalid="ignore"):
            expected = float(np.float64(values[0]) * values[1] + values[2])
        np.testing.assert_equal(call("fma", *values), expected)


def test_rests_of_divisions_are_exact() -> None:
    cases = [*zip(floats(1000, 3), floats(1000, 4), strict=True)]
    cases += [(x, y) for x in (*EDGES, *SPECIAL) for y in (*EDGES, *SPECIAL)]
    for x, y in cases:
        with np.errstate(invalid="ignore"):
            expected = np.fmod(np.float64(x), np.float64(y))
        actual = call("fmod", x, y)
        np.testing.assert_equal(actual, float(expected), err_msg=f"{x!r} {y!r}")
        if expected == 0:
            assert math.copysign(1, actual) == math.copysign(1, x)


def test_halves_round_away_from_zero() -> None:
    for x in (*EDGES, *SPECIAL, *floats(300, 5), 0.49999999999999994, -1.5, 2.0**52 + 1, 3.5):
        expected = math.copysign(math.floor(abs(x) + 0.5), x) if abs(x) < 2**51 else x
        if x == 0.49999999999999994:
            expected = 0.0
        np.testing.assert_equal(call("round", x), expected)


def test_integers_of_128_bits() -> None:
    store, functions = runtime()
    generator, room = np.random.default_rng(6), functions["rx_allocate"](store, 64)
    base = ctypes.addressof(functions["memory"].data_ptr(store).contents)

    def words(x: int) -> "tuple[int, int]":
        return tuple(w - (w >> 63 << 64) for w in (x & (1 << 64) - 1, x >> 64 & (1 << 64) - 1))

    def stored() -> int:
        return int.from_bytes(ctypes.string_at(base + room, 16), "little", signed=True)

    for _ in range(400):
        x, y = (int.from_bytes(generator.bytes(16), "little") for _ in range(2))
        x, y = ((v - (1 << 127)) >> int(generator.integers(0, 127)) for v in (x, y))
        product = x * y
        wrapped = (product + (1 << 127)) % (1 << 128) - (1 << 127)
        functions["__multi3"](store, room, *words(x), *words(y))
        assert stored() == wrapped
        functions["__muloti4"](store, room, *words(x), *words(y), room + 32)
        flag = int.from_bytes(ctypes.string_at(base + room + 32, 4), "little")
        assert (stored(), flag) == (wrapped, int(product != wrapped)), (x, y)
        by = int(generator.integers(0, 128))
        functions["__ashrti3"](store, room, *words(x), by)
        assert stored() == x >> by


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16"])
def test_digits_of_floats_are_those_of_other_cpus(element: str, capfd) -> None:
    text = printing(element)
    dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16}[element]
    generator = np.random.default_rng(7)
    shape = 240 * np.dtype(dtype).itemsize
    values = np.frombuffer(generator.bytes(shape), dtype).copy()
    values[:8] = np.array([0, 1, 2, 3, 5, 7, 100, 1000]).astype(dtype)
    if element in ("f32", "f64"):
        values[8:12] = [1e-4, 123456.5, 1e6, -0.1]
    lines = []
    for target in ("native", "wasm32"):
        exe = relax_mlir.compile(text, target=target)
        capfd.readouterr()
        exe["main"](values)
        lines.append(capfd.readouterr().out)
    assert lines[0].count(",") == 239
    assert lines[0] == lines[1]


def printing(element: str) -> str:
    """A function that prints its argument."""
    x = tensor(element, "n")
    ins = ", ".join(["1", *["0"] * 31])
    return f"""func.func @main(%x: {x}) -> {x} {{
      "graph.print"(%x) {{format = "{{}}", operandSegmentSizes = array<i32: {ins}>,
        resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>}} : ({x}) -> ()
      return %x : {x}
    }}"""
