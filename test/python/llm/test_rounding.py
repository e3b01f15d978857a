"""Matrices rounded to blocks, against the decoder of the `gguf` package."""

import numpy as np
import pytest
from gguf import GGMLQuantizationType, dequantize

from relax_mlir.llm.formats.quantization import RawTensor
from relax_mlir.llm.rounding.error_feedback import Inputs
from relax_mlir.llm.rounding.rounding import GRIDS, round_matrix

# Of a normal distribution, as shares of its spread: what ggml's own rounding has, and a tenth more.
ERRORS = {
    **{"Q8_0": 0.0059, "Q4_0": 0.095, "Q4_1": 0.087, "Q5_0": 0.047, "Q5_1": 0.042},
    **{"Q2_K": 0.33, "Q3_K": 0.165, "Q4_K": 0.079, "Q5_K": 0.040, "Q6_K": 0.0195},
}
SUPER_BLOCKS = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")


def decoded(values, format, inputs=None):
    stored = round_matrix(values, format, inputs)
    found = dequantize(stored, GGMLQuantizationType[format]).reshape(values.shape)
    own = RawTensor.from_bytes(format, values.shape, np.ascontiguousarray(stored).reshape(-1))
    np.testing.assert_array_equal(own.to_f32(), found)
    return found


def correlated_inputs(rng, count, columns):
    """Inputs of which some are greater than others, and neighbours are alike."""
    mixed = rng.standard_normal((count, columns)) + rng.standard_normal((count, 1))
    return (mixed * rng.lognormal(0, 0.7, columns)).astype(np.float32)


def inputs_of(x, pairs=False):
    squares = np.square(x.astype(np.float64)).mean(0)
    return Inputs(squares, len(x), x.T @ x / np.float32(len(x)) if pairs else None)


@pytest.mark.parametrize("format", GRIDS)
def test_error(format):
    rng = np.random.default_rng()
    values = rng.standard_normal((7, 768)).astype(np.float32)
    values *= 2.0 ** rng.integers(-10, 10, (7, 1))
    errors = decoded(values, format) - values
    assert (errors.std(-1) < ERRORS[format] * values.std(-1)).all()


@pytest.mark.parametrize("format", GRIDS)
def test_errors_of_products(format):
    """Rounding for inputs makes errors of products smaller: of values apart, and of rows."""
    rng = np.random.default_rng()
    values = rng.standard_normal((33, 256)).astype(np.float32)
    x = correlated_inputs(rng, 700, 256)
    squares = np.square(x.astype(np.float64)).mean(0)
    weighted, products = [], []
    for inputs in (None, inputs_of(x), inputs_of(x, pairs=True)):
        errors = (decoded(values, format, inputs) - values).astype(np.float64)
        weighted.append((np.square(errors) @ squares).mean())
        products.append(np.square(errors @ x.T).mean())
    if format != "Q8_0":  # whose scales are those of the greatest values
        assert weighted[1] < 0.95 * weighted[0]
    assert products[2] < 0.7 * products[0]
    assert products[2] < 0.9 * products[1]


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("format", ["Q4_0", "Q4_1", "Q3_K"])
def test_inputs_without_values(format, pairs):
    """Inputs that are always 0 say nothing; neither do few texts of the rest."""
    rng = np.random.default_rng()
    values = rng.standard_normal((1, 256)).astype(np.float32)
    x = rng.standard_normal((3, 256)).astype(np.float32)
    x[:, 100:] = 0
    for given in (x, 0 * x):
        found = decoded(values, format, inputs_of(given, pairs))
        assert np.abs(found - values).max() < 4 * ERRORS[format] * np.abs(values).max()


@pytest.mark.parametrize("format", SUPER_BLOCKS)
def test_special_rows(format):
    rows = np.zeros((5, 256), np.float32)
    rows[1] = 3
    rows[2, 255] = -7
    rows[3] = np.tile([0.0, 15, 5, 10], 64)
    rows[4] = -1e-30
    found = decoded(rows, format)
    assert (found[0] == 0).all()
    np.testing.assert_allclose(found[1:3], rows[1:3], atol=0.25)
    np.testing.assert_allclose(found[3], rows[3], atol=2.2 if format == "Q3_K" else 0.25)
    np.testing.assert_allclose(found[4], rows[4], atol=1e-7)


@pytest.mark.parametrize("format", SUPER_BLOCKS)
def test_codes_survive(format):
    """What was decoded from a block is rounded to almost the same values."""
    rng = np.random.default_rng()
    once = decoded(rng.standard_normal((3, 256)).astype(np.float32), format)
    assert np.abs(decoded(once, format) - once).max() < 0.1 * ERRORS[format] * np.abs(once).max()


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows):
    assert round_matrix(np.ones((rows, 256), np.float32), "Q4_1").shape == (rows, 8 * 20)
    assert round_matrix(np.ones((rows, 256), np.float32), "Q3_K").shape == (rows, 110)
