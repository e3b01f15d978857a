"""Blocks of a GGUF file, as the benchmarks find them again in decoded weights."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants

MODULE = Path(__file__).resolve().parents[3] / "benchmarks/peers/weight_blocks.py"


@pytest.fixture
def weight_blocks():
    """The module, which lies beside the programs that are measured."""
    spec = importlib.util.spec_from_file_location("weight_blocks", MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def decoded(kind, shape, seed):
    """Random weights, and blocks of zeros and of equal numbers, rounded and decoded."""
    weights = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    weights[0, :32], weights[-1, -32:] = 0.0, -1.5
    return quants.dequantize(quants.quantize(weights, kind), kind)


@pytest.mark.parametrize("shape", [(3, 32), (7, 96), (130, 1536)])
def test_numbers_of_4_bits(weight_blocks, shape):
    weights = decoded(GGMLQuantizationType.Q4_1, shape, 1)
    found = weight_blocks.blocks_of(weights, "w")
    blocks = (shape[0], shape[1] // 32)
    assert (found.bits, found.packed.shape, found.scales.shape) == (4, (*blocks, 16), blocks)
    numbers = np.stack([found.packed & 15, found.packed >> 4], -1).reshape(*blocks, 32)
    restored = numbers * found.scales[..., None] + found.offsets[..., None]
    np.testing.assert_allclose(restored.reshape(shape), weights, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 32), (7, 96), (130, 1536)])
def test_numbers_of_8_bits(weight_blocks, shape):
    weights = decoded(GGMLQuantizationType.Q8_0, shape, 2)
    found = weight_blocks.blocks_of(weights, "w")
    assert (found.bits, found.offsets) == (8, None)
    restored = (found.packed.astype(np.float32) - 128) * found.scales[..., None]
    np.testing.assert_allclose(restored.reshape(shape), weights, atol=1e-6)


def test_other_weights_are_refused(weight_blocks):
    weights = np.random.default_rng(3).standard_normal((4, 64), dtype=np.float32)
    with pytest.raises(ValueError, match="gate has blocks of 32 elements that are neither"):
        weight_blocks.blocks_of(weights, "gate")
