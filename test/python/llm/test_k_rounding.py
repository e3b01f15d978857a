"""Matrices rounded to super-blocks, against the decoder of the `gguf` package."""

import numpy as np
import pytest
from gguf import GGMLQuantizationType, dequantize

from relax_mlir.llm.formats.k_rounding import round_to_super_blocks

# Of a normal distribution, as shares of its spread: what ggml's own rounding has, and a tenth more.
ERRORS = {"Q4_K": 0.079, "Q5_K": 0.040, "Q6_K": 0.0195}


def decoded(values, format):
    stored = round_to_super_blocks(values, format)
    return dequantize(stored, GGMLQuantizationType[format]).reshape(values.shape)


@pytest.mark.parametrize("format", ERRORS)
def test_error(format):
    rng = np.random.default_rng()
    values = rng.standard_normal((7, 768)).astype(np.float32)
    values *= 2.0 ** rng.integers(-10, 10, (7, 1))
    errors = decoded(values, format) - values
    assert (errors.std(-1) < ERRORS[format] * values.std(-1)).all()


@pytest.mark.parametrize("format", ERRORS)
def test_special_rows(format):
    rows = np.zeros((5, 256), np.float32)
    rows[1] = 3
    rows[2, 255] = -7
    rows[3] = np.tile([0.0, 15, 5, 10], 64)
    rows[4] = -1e-30
    found = decoded(rows, format)
    assert (found[0] == 0).all()
    np.testing.assert_allclose(found[1:4], rows[1:4], atol=0.25)
    np.testing.assert_allclose(found[4], rows[4], atol=1e-7)


@pytest.mark.parametrize("format", ERRORS)
def test_codes_survive(format):
    """What was decoded from a block is rounded to almost the same values."""
    rng = np.random.default_rng()
    once = decoded(rng.standard_normal((3, 256)).astype(np.float32), format)
    assert np.abs(decoded(once, format) - once).max() < 0.1 * ERRORS[format] * np.abs(once).max()
