"""Rounding to blocks: within half a step of every value, and what is stored so stays so."""

import numpy as np
import pytest

from relax_mlir.llm.formats.encoding import to_blocks
from relax_mlir.llm.formats.quantization import BLOCKS, RawTensor

RANDOM = np.random.default_rng(0)


def f32(values: np.ndarray) -> RawTensor:
    """A float32 matrix."""
    return RawTensor("F32", values.shape, np.ascontiguousarray(values, np.float32))


def steps(blocks: RawTensor) -> np.ndarray:
    """Each element's scale."""
    return np.repeat(np.abs(blocks.data["scale"].astype(np.float64)), 32, axis=-1)


@pytest.mark.parametrize("format", BLOCKS)
@pytest.mark.parametrize("shape", [(1, 32), (3, 96), (17, 64), (0, 32)])
def test_errors_are_at_most_half_a_step(format: str, shape: tuple[int, int]) -> None:
    values = RANDOM.standard_normal(shape) * 10 ** RANDOM.uniform(-3, 3, (shape[0], 1))
    blocks = to_blocks(f32(values), format)
    assert blocks.format == format
    assert blocks.data.dtype == BLOCKS[format]
    errors = np.abs(blocks.to_f32() - values)
    # One number of 4_0 has no opposite; factors in float16 move the ends by 1/2048 of 127 steps.
    limit = 1.02 if format == "Q4_0" else 0.57
    assert (errors <= limit * steps(blocks)).all()


@pytest.mark.parametrize("format", BLOCKS)
def test_blocks_of_one_value_and_of_zero(format: str) -> None:
    values = np.zeros((3, 64))
    values[1], values[2, :32] = 0.75, -2
    decoded = to_blocks(f32(values), format).to_f32()
    np.testing.assert_allclose(decoded, values, rtol=1e-3)
    assert (decoded[0] == 0).all()


@pytest.mark.parametrize("format", BLOCKS)
def test_values_on_the_grid_stay(format: str) -> None:
    """Encoding what was decoded changes nothing that can be seen."""
    once = to_blocks(f32(RANDOM.standard_normal((8, 64))), format)
    again = to_blocks(f32(once.to_f32()), format)
    np.testing.assert_allclose(again.to_f32(), once.to_f32(), rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("format", BLOCKS)
def test_stored_blocks_are_kept(format: str) -> None:
    blocks = to_blocks(f32(RANDOM.standard_normal((4, 32))), format)
    assert to_blocks(blocks, format) is blocks
