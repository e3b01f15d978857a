"""Sums and means of many floats: as exact as adding pairs, along any axis, on any threads."""

import math

import numpy as np
import pytest
from ulps import FORMATS

import relax_mlir

# Half units in the last place, of the sum of magnitudes: adding pairs is within log2(n) of these,
# one by one within n. Rows are divided into shorter blocks than other axes.
UNITS, OTHER_UNITS = 8, 24
BLOCK = 16 * 4 * 32
"""Elements that one block of a row has at most."""
KINDS = {
    "row": ('["n"]', "0", ""),
    "rows": ('["m", "n"]', "1", '["m"]'),
    "columns": ('["n", "m"]', "0", '["m"]'),
    "matrix": ('["n", "m"]', "0, 1", ""),
    "middle": ('["k", "n", "m"]', "1", '["k", "m"]'),
    "ends": ('["n", "k", "m"]', "0, 2", '["k"]'),
}


def _function(name: str, op: str, dtype: str, shape: str, axes: str, out: str) -> str:
    def tensor(dims: str) -> str:
        if not dims:
            return f"tensor<{dtype}>"
        return f"tensor<{'?x' * (dims.count(',') + 1)}{dtype}, #graph.shape<{dims}>>"

    return f"""
    func.func @{name}(%x: {tensor(shape)}) -> {tensor(out)} {{
      %y = "graph.{op}"(%x) {{axes = array<i64: {axes}>, keepdims = false}}
        : ({tensor(shape)}) -> {tensor(out)}
      return %y : {tensor(out)}
    }}"""


@pytest.fixture(scope="module", params=[0, 2])
def module(request: pytest.FixtureRequest) -> relax_mlir.Executable:
    """Sums along all kinds of axes, and means of rows, at a level."""
    functions = [_function(f"{kind}_f32", "sum", "f32", *form) for kind, form in KINDS.items()]
    functions += [
        _function(f"row_{dtype}", "sum", dtype, *KINDS["row"]) for dtype in ("f64", "f16")
    ]
    functions += [
        _function(f"mean_{dtype}", "mean", dtype, *KINDS["row"]) for dtype in ("f32", "bf16")
    ]
    return relax_mlir.compile("\n".join(functions), opt_level=request.param)


def _assert_near(
    got: np.ndarray, x: np.ndarray, axes: tuple[int, ...], units: float = UNITS
) -> None:
    wide = x.astype(np.longdouble)
    unit = float(np.finfo(x.dtype).eps) / 2
    error = np.abs(got - wide.sum(axes)).astype(np.float64)
    assert np.all(error <= units * unit * np.abs(wide).sum(axes).astype(np.float64)), error.max()


def _arrays(shape: tuple[int, ...], dtype: type) -> list[np.ndarray]:
    """Equal numbers, whose rounding is all one way, and random ones of several scales."""
    generator = np.random.default_rng(math.prod(shape))
    spread = generator.normal(size=shape) * 10 ** generator.uniform(-3, 3, shape)
    return [np.full(shape, 0.1, dtype), generator.uniform(0, 1, shape).astype(dtype),
            spread.astype(dtype)]  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 31, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 77, 10**6])
def test_rows(n: int, module: relax_mlir.Executable) -> None:
    for x in _arrays((n,), np.float32):
        _assert_near(module["row_f32"](x), x, (0,))
    for x in _arrays((n,), np.float64):
        _assert_near(module["row_f64"](x), x, (0,))
    for x in _arrays((2, n), np.float32):
        _assert_near(module["rows_f32"](x), x, (1,))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000, 30011])
@pytest.mark.parametrize("m", [1, 7, 33])
def test_other_axes(n: int, m: int, module: relax_mlir.Executable) -> None:
    for x in _arrays((n, m), np.float32):
        _assert_near(module["columns_f32"](x), x, (0,), OTHER_UNITS)
        _assert_near(module["matrix_f32"](x), x, (0, 1), OTHER_UNITS)
    for x in _arrays((2, n, m), np.float32):
        _assert_near(module["middle_f32"](x), x, (1,), OTHER_UNITS)
    for x in _arrays((n, 2, m), np.float32):
        _assert_near(module["ends_f32"](x), x, (0, 2), OTHER_UNITS)


def test_ten_million_numbers(module: relax_mlir.Executable) -> None:
    x = np.full(10**7, 0.1, np.float32)
    one, two = (module["row_f32"](x, threads=threads) for threads in (1, 2))
    assert one == two
    assert abs(float(one) / (float(x[0]) * x.size) - 1) < UNITS * 2.0**-24
    assert abs(float(module["mean_f32"](x)) / float(x[0]) - 1) < UNITS * 2.0**-24


def test_half_precision_adds_in_single(module: relax_mlir.Executable) -> None:
    x = np.full(1 << 20, 0.1, FORMATS["bf16"].dtype)
    assert module["mean_bf16"](x) == x[0]
    # Adding ones in the type itself would stop at 2048.
    assert module["row_f16"](np.ones(60000, np.float16)) == 60000


@pytest.mark.parametrize("at", [0, 5, BLOCK, 3 * BLOCK + 70])
def test_infinities_and_nan(at: int, module: relax_mlir.Executable) -> None:
    x = np.ones(3 * BLOCK + 77, np.float32)
    for value in (np.inf, -np.inf, np.nan):
        x[at] = value
        np.testing.assert_equal(module["row_f32"](x), np.float32(value))
    x[at], x[-1] = np.inf, -np.inf
    assert np.isnan(module["row_f32"](x))
    x[:] = 3e38
    assert module["row_f32"](x) == np.inf
    x[:], x[-1] = -0.0, 0.0
    assert module["row_f32"](x) == 0
