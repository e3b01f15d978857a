"""Arg reductions of rows: block borders, ties, NaN, infinities, every type."""

import re

import ml_dtypes
import numpy as np
import pytest
from assembly import assembly
from scheduled import HERE, TARGETS, assert_guarded, built_from_graph, guarded

from relax_mlir.target import Target

TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
FLOATS = [name for name in TYPES if "f" in name]
# Around vectors, groups of four vectors, and blocks of 256 elements.
LENGTHS = (
    1,
    2,
    15,
    16,
    17,
    31,
    32,
    33,
    48,
    49,
    63,
    64,
    65,
    127,
    128,
    129,
    192,
    193,
    255,
    256,
    257,
    511,
    513,
    1031,
)


def graph(operator: str, kind: str) -> str:
    """A module with an arg reduction of the rows of a tensor type."""
    result = 'tensor<?xi64, #graph.shape<["m"]>>'
    return f"""
    func.func @main(%x: {kind}) -> {result} {{
      %y = "graph.{operator}"(%x) {{axis = 1 : i64, keepdims = false}} : ({kind}) -> {result}
      return %y : {result}
    }}"""


def positions(operator: str, dtype: str, x: np.ndarray, target: str = "native") -> np.ndarray:
    kind = f'tensor<?x?x{dtype}, #graph.shape<["m", "n"]>>'
    kernel = built_from_graph(graph(operator, kind), target=target)
    # Positions are determined once the extrema are known, not carried.
    assert "math.cttz" in kernel.text
    out, memory = guarded(x.shape[:1], np.dtype(np.int64))
    kernel(x.view(np.uint16) if x.itemsize == 2 else x, out)
    assert_guarded(memory)
    return out


def expected(operator: str, x: np.ndarray) -> np.ndarray:
    widened = x.astype(np.float32) if x.dtype == ml_dtypes.bfloat16 else x
    return getattr(widened, operator)(1)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("operator", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", TYPES)
def test_first_of_equals(operator, dtype):
    generator = np.random.default_rng(len(dtype))
    for length in LENGTHS:
        for few in (3, 1000):
            x = generator.integers(-min(few, 100), min(few, 100), (5, length)).astype(TYPES[dtype])
            np.testing.assert_array_equal(positions(operator, dtype, x), expected(operator, x))


@pytest.mark.rotate(4)
@pytest.mark.parametrize("operator", ["argmax", "argmin"])
@pytest.mark.parametrize("target", TARGETS)
def test_any_position_in_any_block(operator, target):
    x = np.zeros((1031, 1031), np.float32)
    np.fill_diagonal(x, 1 if operator == "argmax" else -1)
    x[:, 1030] = x[1030, 1030]
    np.testing.assert_array_equal(positions(operator, "f32", x, target), np.arange(1031))


@pytest.mark.parametrize("operator", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_first_nan(operator, dtype):
    generator = np.random.default_rng(3)
    rows = [(0,), (700,), (255, 256), (3, 35), (64, 20), (500, 501, 2), (1029, 1030), ()]
    x = generator.standard_normal((len(rows), 1031)).astype(TYPES[dtype])
    for row, nans in zip(x, rows, strict=True):
        row[list(nans)] = np.nan
        row[100] = np.inf if operator == "argmax" else -np.inf
    np.testing.assert_array_equal(positions(operator, dtype, x), expected(operator, x))


@pytest.mark.parametrize("operator", ["argmax", "argmin"])
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_infinities_and_zeros(operator, length):
    x = np.empty((4, length), np.float32)
    x[0], x[1], x[2], x[3] = -np.inf, np.inf, 0.0, -0.0
    x[2, 1::2], x[3, 1::2] = -0.0, 0.0
    np.testing.assert_array_equal(positions(operator, "f32", x), np.zeros(4))
    x[0, -1], x[1, -1] = -3e38, 3e38
    np.testing.assert_array_equal(positions(operator, "f32", x), expected(operator, x))


@pytest.mark.parametrize("operator", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
def test_ends_of_integers(operator, dtype):
    limits = np.iinfo(TYPES[dtype])
    x = np.full((3, 300), limits.min, TYPES[dtype])
    x[1], x[2] = limits.max, 0
    np.testing.assert_array_equal(positions(operator, dtype, x), np.zeros(3))
    x[0, 299], x[1, 299] = limits.max, limits.min
    np.testing.assert_array_equal(positions(operator, dtype, x), expected(operator, x))


def test_no_rows():
    assert positions("argmax", "f32", np.zeros((0, 7), np.float32)).shape == (0,)


@pytest.mark.parametrize("length", [1, 8, 15, 16, 17, 32, 33, 48, 64, 65, 129, 257, 600])
def test_known_lengths(length):
    x = np.random.default_rng(length).integers(-3, 3, (7, length)).astype(np.float32)
    x[3, length // 2] = np.nan
    kind = f"tensor<7x{length}xf32>"
    kernel = built_from_graph(f"""
    func.func @main(%x: {kind}) -> tensor<7xi64> {{
      %y = "graph.argmax"(%x) {{axis = 1 : i64, keepdims = false}} : ({kind}) -> tensor<7xi64>
      return %y : tensor<7xi64>
    }}""")
    # Rows of up to four vectors have no loop along them, of up to sixteen one that finds the
    # position.
    vectors = length / HERE.host.f32_lanes
    assert ("scf.while" in kernel.text) == (vectors > 4)
    assert ("iter_args" in kernel.text) == (vectors > 16)
    out, memory = guarded((7,), np.dtype(np.int64))
    kernel(x, out)
    assert_guarded(memory)
    np.testing.assert_array_equal(out, x.argmax(1))


def test_rows_do_not_wait_for_one_another():
    kind = 'tensor<?x16xf32, #graph.shape<["m", 16]>>'
    text = assembly(graph("argmax", kind), Target.parse("x86-64-v4"))
    assert "tzcnt" in text
    # Writing a byte register depends on its upper bits, the position of the row before.
    assert not re.search(r"\n\s+set\w+\s", text)
