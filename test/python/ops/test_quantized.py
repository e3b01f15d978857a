"""Operators on block-quantised tensors, against NumPy."""

import numpy as np
import pytest
from harness import NUMPY, Program, spec

from relax_mlir.dialects import graph
from relax_mlir.dialects.graph.quantized import SCHEMES

RANDOM = np.random.default_rng(0)
LEADS = [(), ("n",), ("m", "n"), (3, "n")]
SIZES = [{"m": 2, "n": 7}, {"m": 1, "n": 1}, {"m": 3, "n": 0}, {"m": 2, "n": 33}]


def panels(scheme: str, panel: int | str, blocks: int) -> list:
    """Specs of the operands that hold a matrix."""
    data = spec("i8", panel, blocks, *SCHEMES[scheme].inner)
    return [data, *[spec("f16", panel, blocks, 16)] * (1 + SCHEMES[scheme].has_minimum)]


def random_panels(scheme: str, panel: int, blocks: int) -> list[np.ndarray]:
    """Any bytes, and factors of any sign."""
    shape = (panel, blocks, *SCHEMES[scheme].inner)
    data = RANDOM.integers(-128, 128, shape).astype(np.int8)
    count = 1 + SCHEMES[scheme].has_minimum
    return [data, *RANDOM.standard_normal((count, panel, blocks, 16)).astype(np.float16)]


def decoded(scheme: str, data: np.ndarray, *factors: np.ndarray) -> np.ndarray:
    """The matrix in float64: dims p, b, half, group, r, place to p, r, b, half, group, place."""
    if SCHEMES[scheme].bits == 4:
        byte = data.view(np.uint8)
        data = np.stack([byte & 15, byte >> 4], axis=2)
    numbers = data.astype(np.float64).transpose(0, 4, 1, 2, 3, 5)
    rows, blocks = data.shape[0] * 16, data.shape[1]
    numbers = numbers.reshape(rows, blocks, 32) - SCHEMES[scheme].zero
    scale, *minimum = (
        factor.astype(np.float64).transpose(0, 2, 1).reshape(rows, blocks, 1) for factor in factors
    )
    values = numbers * scale + (minimum[0] if minimum else 0)
    return values.reshape(rows, 32 * blocks)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_dequantize(scheme: str, any_route: str) -> None:
    program = Program(graph.DequantizeOp, *panels(scheme, "p", 3), scheme=scheme, route=any_route)
    for panel in (0, 1, 5):
        operands = random_panels(scheme, panel, 3)
        expected = decoded(scheme, *operands).astype(np.float32)
        np.testing.assert_allclose(program(*operands), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_numbers_without_minimum_decode_exactly(scheme: str, route: str) -> None:
    program = Program(graph.DequantizeOp, *panels(scheme, 2, 1), scheme=scheme, route=route)
    data, scale, *minimum = random_panels(scheme, 2, 1)
    operands = [data, scale, *map(np.zeros_like, minimum)]
    expected = decoded(scheme, *operands).astype(np.float32)
    np.testing.assert_array_equal(program(*operands), expected)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("index", ["i32", "i64"])
def test_dequantize_rows(scheme: str, index: str, any_route: str) -> None:
    specs = [spec(index, "n"), *panels(scheme, "p", 2)]
    program = Program(graph.DequantizeRowsOp, *specs, scheme=scheme, route=any_route)
    for panel, count in ((1, 1), (3, 17), (2, 0)):
        operands = random_panels(scheme, panel, 2)
        rows = RANDOM.integers(0, 16 * panel, count).astype(NUMPY[index])
        expected = decoded(scheme, *operands)[rows].astype(np.float32)
        np.testing.assert_allclose(program(rows, *operands), expected, rtol=1e-6, atol=1e-6)


def test_dequantize_rows_clamps(route: str) -> None:
    specs = [spec("i32", "n"), *panels("q8_0", "p", 1)]
    program = Program(graph.DequantizeRowsOp, *specs, scheme="q8_0", route=route)
    operands = random_panels("q8_0", 2, 1)
    limits = np.iinfo(np.int32)
    rows = np.array([limits.min, -1, 0, 31, 32, limits.max], np.int32)
    expected = decoded("q8_0", *operands)[np.clip(rows, 0, 31)].astype(np.float32)
    np.testing.assert_allclose(program(rows, *operands), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lead", LEADS)
def test_quantize_blocks(lead: tuple, any_route: str) -> None:
    program = Program(graph.QuantizeBlocksOp, spec("f32", *lead, 96), route=any_route)
    for sizes in SIZES:
        shape = [sizes.get(dim, dim) for dim in lead]
        x = RANDOM.standard_normal((*shape, 96)).astype(np.float32)
        x[..., 32:64] *= np.float32(1e-20)  # each block has a scale of its own
        values, scale = program(x)
        blocks = x.reshape(*shape, 3, 32)
        greatest = np.abs(blocks).max(-1)
        np.testing.assert_array_equal(scale, greatest / np.float32(127))
        factor = np.float32(127) / greatest
        expected = np.rint(blocks * factor[..., None]).reshape(x.shape)
        np.testing.assert_array_equal(values, expected.astype(np.int8))


def test_quantize_blocks_of_zero_and_ties(route: str) -> None:
    program = Program(graph.QuantizeBlocksOp, spec("f32", "n", 32), route=route)
    x = np.zeros((4, 32), np.float32)
    x[1, :4] = 127, 2.5, 3.5, -0.5  # scale 1: halves go to the even neighbour
    x[2] = -1
    x[3, 5] = np.float32(1e-38)  # 127 over that is infinite
    values, scale = program(x)
    assert (values[0] == 0).all()
    assert values[1, :4].tolist() == [127, 2, 4, 0]
    assert (values[2] == -127).all()
    assert (values[3] == 0).all()
    np.testing.assert_array_equal(scale[:3, 0], np.array([0, 1, 1 / 127], np.float32))


@pytest.mark.parametrize("lead", LEADS)
def test_dequantize_blocks(lead: tuple, any_route: str) -> None:
    specs = [spec("i8", *lead, 64), spec("f32", *lead, 2)]
    program = Program(graph.DequantizeBlocksOp, *specs, route=any_route)
    for sizes in SIZES:
        shape = [sizes.get(dim, dim) for dim in lead]
        values = RANDOM.integers(-128, 128, (*shape, 64)).astype(np.int8)
        scale = RANDOM.standard_normal((*shape, 2)).astype(np.float32)
        expected = values.reshape(*shape, 2, 32).astype(np.float32) * scale[..., None]
        np.testing.assert_array_equal(program(values, scale), expected.reshape(values.shape))
