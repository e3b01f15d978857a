"""Rounding of matrices: every number within half a step, and the same as NumPy makes it."""

import numpy as np
import pytest
from harness import NUMPY, Program, spec
from test_quantized import decoded

from relax_mlir import panels
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph.quantized import ROUNDED, SCHEMES

RANDOM = np.random.default_rng(1)
ROWS = (0, 1, 15, 16, 17, 50)


def matrix(rows: int, columns: int) -> np.ndarray:
    """Normal numbers, each row of a size of its own; blocks of zero, of one value, of one sign."""
    values = RANDOM.standard_normal((rows, columns)) * 10 ** RANDOM.uniform(-3, 3, (rows, 1))
    values[rows // 2 :: 3, :32] = 0
    values[1::4, -32:] = -2.5
    values[2::5, : columns // 3] = np.abs(values[2::5, : columns // 3])
    return values.astype(np.float32)


def check(scheme: str, found: tuple[np.ndarray, ...], values: np.ndarray) -> None:
    """Compares what a program found with float64 and with NumPy's account."""
    parts = dict(zip(SCHEMES[scheme].parts(0, 1), found, strict=True))
    for name, expected in panels.quantize(values, scheme).items():
        np.testing.assert_array_equal(parts[name], expected)
    rows, columns = values.shape
    exact = decoded(scheme, parts)
    group, factors = SCHEMES[scheme].group, np.abs(parts["scale"].astype(np.float64))
    steps = factors.transpose(0, 2, 1).reshape(-1, columns // group)
    steps = np.repeat(steps, group, axis=1)[:rows]
    # One number of q4_0 has no opposite; factors in f16 move the ends by 1/2048 of 127 steps.
    limit = 1.02 if SCHEMES[scheme].zero else 0.57
    assert (np.abs(exact[:rows] - values) <= limit * steps).all()
    for part in found:
        axis = -2 if part.dtype == np.int8 else -1
        assert not np.moveaxis(part, axis, 1)[rows // 16 :, rows % 16 or 16 :].any()


@pytest.mark.parametrize("scheme", ROUNDED)
@pytest.mark.parametrize("axis", [0, 1])
def test_numbers_of_rows(scheme: str, axis: int, route: str) -> None:
    k = 3 * SCHEMES[scheme].group
    dims = ("n", k) if axis else (k, "n")
    program = Program(graph.QuantizeOp, spec("f32", *dims), scheme=scheme, axis=axis, route=route)
    for rows in ROWS:
        values = matrix(rows, k)
        check(scheme, program(np.ascontiguousarray(values if axis else values.T)), values)


@pytest.mark.parametrize("scheme", ROUNDED)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_other_floats(scheme: str, dtype: str, route: str) -> None:
    program = Program(graph.QuantizeOp, spec(dtype, 21, 128), scheme=scheme, axis=1, route=route)
    values = matrix(21, 128).astype(NUMPY[dtype])
    check(scheme, program(values), values.astype(np.float32))


@pytest.mark.parametrize("scheme", ROUNDED)
def test_ends_and_ties(scheme: str, route: str) -> None:
    k = SCHEMES[scheme].group
    program = Program(graph.QuantizeOp, spec("f32", 16, k), scheme=scheme, axis=1, route=route)
    values = np.zeros((16, k), np.float32)
    values[0, :4] = 127, 2.5, 3.5, -0.5
    values[1, :4] = 8, -8, 0.5, 1.5
    values[2, -1] = -1e-12  # the scale is 0 in f16
    values[3, :2] = 1e-5, -3e-6  # the scale is subnormal in f16
    values[4, 7] = 3e38
    values[5, 0] = np.nan
    data, scale, *_ = program(values)
    expected = panels.quantize(values, scheme)
    np.testing.assert_array_equal(scale, expected["scale"])
    finite = np.isfinite(scale[0, 0])
    assert not finite[5], "what is no number shows"
    assert np.delete(finite, 5).all()
    assert abs(scale[0, 0, 4]) == 65504, "as far as f16 goes"
    np.testing.assert_array_equal(data, expected["data"])


@pytest.mark.parametrize("scheme", ROUNDED)
def test_numbers_beyond_the_scales_become_the_furthest(scheme: str, route: str) -> None:
    """Infinite scales made all of a block no numbers: 0 times infinity."""
    k, kind = SCHEMES[scheme].group, SCHEMES[scheme]
    program = Program(graph.QuantizeOp, spec("f32", 16, k), scheme=scheme, axis=1, route=route)
    values = np.zeros((16, k), np.float32)
    far = 127 if kind.bits == 8 else 15 if kind.has_minimum else 8
    for row, size in enumerate((1e5, 6e5, 9e6, 1e20, 3.4e38)):
        values[row, 1] = size
        values[row + 5, 1] = -size
        values[row + 10, 1:3] = size, -size  # the distance may be beyond f32
    values[15, 1] = np.inf
    parts = dict(zip(kind.parts(0, 1), program(values), strict=True))
    for name, expected in panels.quantize(values, scheme).items():
        np.testing.assert_array_equal(parts[name], expected)
    with np.errstate(invalid="ignore"):  # 0 times infinity
        found = decoded(scheme, parts)
    assert not np.isfinite(found[15, 1])
    least = -65504 if kind.has_minimum else -65504 * (127 if kind.bits == 8 else 8)
    reached = np.clip(values[:15], least, 65504 * far)
    steps = np.abs(parts["scale"].astype(np.float64))[0, 0, :15, None]
    assert (np.abs(found[:15] - reached) <= 1.02 * steps).all()
