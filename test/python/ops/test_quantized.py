"""Operators on block-quantised tensors, against NumPy."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from harness import NUMPY, Program, spec

from relax_mlir.dialects import graph
from relax_mlir.dialects.graph.quantized import BY_BLOCK, BY_GROUP, PARTS, SCHEMES

RANDOM = np.random.default_rng(0)
LEADS = [(), ("n",), ("m", "n"), (3, "n")]
SIZES = [{"m": 2, "n": 7}, {"m": 1, "n": 1}, {"m": 3, "n": 0}, {"m": 2, "n": 33}]


class Packed:
    """An operator on a matrix, built from those parts that the scheme has, in their order."""

    def __init__(self, op: type, scheme: str) -> None:
        self.op, self.parts = op, list(SCHEMES[scheme].parts(1, 8))
        self.OPERATION_NAME = op.OPERATION_NAME

    def declared_attributes(self) -> dict[str, type]:
        """Those of the operator."""
        return self.op.declared_attributes()

    def build(self, *operands, scheme: str):
        """The operator, with what comes in front of the parts."""
        first = len(operands) - len(self.parts)
        given = dict(zip(self.parts, operands[first:], strict=True))
        return self.op.build(*operands[:first], *map(given.get, PARTS), scheme=scheme)


def panels(scheme: str, panel: int | str, blocks: int) -> list:
    """Specs of the operands that hold a matrix."""
    parts = SCHEMES[scheme].parts(0, blocks)
    return [spec(element, panel, *dims[1:]) for element, dims in parts.values()]


def random_panels(scheme: str, panel: int, blocks: int) -> dict[str, np.ndarray]:
    """Any bytes, and factors of any sign."""
    parts = {}
    for name, (element, dims) in SCHEMES[scheme].parts(panel, blocks).items():
        if element == "i8":
            parts[name] = RANDOM.integers(-128, 128, dims).astype(np.int8)
        else:
            parts[name] = RANDOM.standard_normal(dims).astype(np.float16)
    return parts


def decoded(scheme: str, parts: dict[str, np.ndarray]) -> np.ndarray:
    """The matrix in float64: dims p, b, half, group, r, place to p, r, b, half, group, place."""
    found, numbers = SCHEMES[scheme], parts["data"]
    if found.bits < 8:
        byte = numbers.view(np.uint8)
        numbers = np.stack([byte & 15, byte >> 4], axis=2)
    half, group = np.ogrid[:2, :4]
    if found.bits == 5:
        high = parts["high"].view(np.uint8)[:, :, None, None]
        numbers = numbers | (high >> (4 * half + group)[..., None, None].astype(np.uint8) & 1) << 4
    elif found.bits == 6:
        high = parts["high"].view(np.uint8)[:, :, :, None]
        numbers = numbers | (high >> (2 * group)[..., None, None].astype(np.uint8) & 3) << 4
    rows, blocks = numbers.shape[0] * 16, numbers.shape[1]
    numbers = numbers.astype(np.float64).transpose(0, 4, 1, 2, 3, 5) - found.zero
    numbers = numbers.reshape(rows, blocks, 2, 16)

    def factor(name: str) -> np.ndarray:
        inner = np.repeat(parts[name].astype(np.float64), found.shared, 1)
        inner = inner[:, :, None] if inner.ndim == 3 else inner
        if found.is_nested:
            inner = inner * np.repeat(parts[f"outer_{name}"].astype(np.float64), 8, 1)[:, :, None]
        return inner.transpose(0, 3, 1, 2).reshape(rows, blocks, inner.shape[2], 1)

    values = numbers * factor("scale") + (factor("minimum") if found.has_minimum else 0)
    return values.reshape(rows, 32 * blocks)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_dequantize(scheme: str, route: str) -> None:
    op = Packed(graph.DequantizeOp, scheme)
    program = Program(op, *panels(scheme, "p", 8), scheme=scheme, route=route)
    for panel in (0, 1, 5):
        parts = random_panels(scheme, panel, 8)
        expected = decoded(scheme, parts).astype(np.float32)
        found = program(*parts.values())
        np.testing.assert_allclose(
            found, expected, rtol=1e-6, atol=1e-6 * np.ptp([0, *expected.flat])
        )


@pytest.mark.parametrize("scheme", BY_BLOCK)
def test_numbers_without_minimum_decode_exactly(scheme: str, route: str) -> None:
    op = Packed(graph.DequantizeOp, scheme)
    program = Program(op, *panels(scheme, 2, 8), scheme=scheme, route=route)
    parts = random_panels(scheme, 2, 8)
    if "minimum" in parts:
        parts["minimum"][...] = 0
    expected = decoded(scheme, parts).astype(np.float32)
    np.testing.assert_array_equal(program(*parts.values()), expected)


@pytest.mark.parametrize(
    ("scheme", "index"), [*product(BY_BLOCK, ["i32", "i64"]), *product(BY_GROUP, ["i64"])]
)
def test_dequantize_rows(scheme: str, index: str, route: str) -> None:
    specs = [spec(index, "n"), *panels(scheme, "p", 16)]
    op = Packed(graph.DequantizeRowsOp, scheme)
    program = Program(op, *specs, scheme=scheme, route=route)
    for panel, count in ((1, 1), (3, 17), (2, 0)):
        parts = random_panels(scheme, panel, 16)
        rows = RANDOM.integers(0, 16 * panel, count).astype(NUMPY[index])
        expected = decoded(scheme, parts).astype(np.float32)
        found = program(rows, *parts.values())
        np.testing.assert_allclose(found, expected[rows], rtol=1e-6, atol=1e-6 * np.ptp(expected))


def test_dequantize_rows_clamps(route: str) -> None:
    specs = [spec("i32", "n"), *panels("q8_0", "p", 1)]
    op = Packed(graph.DequantizeRowsOp, "q8_0")
    program = Program(op, *specs, scheme="q8_0", route=route)
    parts = random_panels("q8_0", 2, 1)
    limits = np.iinfo(np.int32)
    rows = np.array([limits.min, -1, 0, 31, 32, limits.max], np.int32)
    expected = decoded("q8_0", parts)[np.clip(rows, 0, 31)].astype(np.float32)
    np.testing.assert_array_equal(program(rows, *parts.values()), expected)


def blocks_of_all_sizes(lead: tuple, sizes: dict) -> np.ndarray:
    """Three blocks a row, each with a scale of its own."""
    shape = [sizes.get(dim, dim) for dim in lead]
    x = RANDOM.standard_normal((*shape, 96)).astype(np.float32)
    x[..., 32:64] *= np.float32(1e-20)
    x[..., 64:] += 3
    return x


def same(got: np.ndarray, wanted: np.ndarray, route: str) -> None:
    """Compares results of quotients, which are off by up to 2.5 ulp in WGSL, a step in bytes."""
    if route != "wgsl":
        np.testing.assert_array_equal(got, wanted)
    elif got.dtype == np.int8:
        assert (np.abs(got.astype(int) - wanted) <= 1).all()
    else:
        np.testing.assert_array_max_ulp(got, wanted, 3)


def quantized_blocks(lead: tuple, route: str, symmetric: bool) -> Iterator[tuple]:
    """Numbers of each size in SIZES, as blocks (..., 3, 32), and what `quantize_blocks` returns."""
    x_spec = spec("f32", *lead, 96)
    program = Program(graph.QuantizeBlocksOp, x_spec, symmetric=symmetric, route=route)
    for sizes in SIZES:
        x = blocks_of_all_sizes(lead, sizes)
        yield x.reshape(*x.shape[:-1], 3, 32), program(x)


@pytest.mark.parametrize("lead", LEADS)
def test_quantize_blocks_between_extremes(lead: tuple, route: str) -> None:
    for blocks, (values, scale, offset) in quantized_blocks(lead, route, symmetric=False):
        low, high = blocks.min(-1), blocks.max(-1)
        same(scale, (high - low) / np.float32(254), route)
        middle = low + scale.astype(np.float64) * 127
        assert (np.abs(offset - middle) <= 1e-6 * np.maximum(np.abs(low), high)).all()
        factor = np.float32(254) / (high - low)
        steps = np.rint((blocks - low[..., None]) * factor[..., None]) - 127
        same(values, steps.reshape(values.shape).astype(np.int8), route)
        wide = values.reshape(blocks.shape).astype(np.float64)
        decoded = wide * scale[..., None] + offset[..., None]
        error = np.abs(decoded - blocks)
        assert (error <= (0.5 + 1e-4) * scale[..., None]).all()  # half a step, everywhere


def test_blocks_that_are_all_the_same_have_no_error(route: str) -> None:
    op, x_spec = graph.QuantizeBlocksOp, spec("f32", "n", 32)
    program = Program(op, x_spec, symmetric=False, route=route)
    least = 2e-38 if route == "wgsl" else 1e-40  # WGSL may flush subnormal numbers
    x = np.repeat(np.array([[0], [-3.5], [1e30], [least]], np.float32), 32, -1)
    values, scale, offset = program(x)
    np.testing.assert_array_equal(values, np.full_like(values, -127))
    np.testing.assert_array_equal(scale, np.zeros_like(scale))
    np.testing.assert_array_equal(offset, x[:, :1])


def test_blocks_whose_range_is_beyond_f32(route: str) -> None:
    op, x_spec = graph.QuantizeBlocksOp, spec("f32", "n", 32)
    program = Program(op, x_spec, symmetric=False, route=route)
    x = (RANDOM.uniform(-1, 1, (5, 32)) * 3.4e38).astype(np.float32)
    most = np.finfo(np.float32).max
    x[0, :2], x[1, 3], x[2, 4], x[3] = (-most, most), most, -most, most
    values, scale, offset = (found.astype(np.float64) for found in program(x))
    low, high = (end(x.astype(np.float64), -1, keepdims=True) for end in (np.min, np.max))
    np.testing.assert_allclose(scale, (high - low) / 254, rtol=1e-6)
    np.testing.assert_allclose(offset, (high + low) / 2, rtol=0, atol=1e-6 * most)
    error = np.abs(values * scale + offset - x)
    assert (error <= (0.5 + 1e-4) * scale + 1e-6 * most).all()


@pytest.mark.parametrize("symmetric", [False, True])
def test_what_is_not_finite_shows(symmetric: bool, route: str) -> None:
    op, x_spec = graph.QuantizeBlocksOp, spec("f32", "n", 32)
    program = Program(op, x_spec, symmetric=symmetric, route=route)
    x = RANDOM.standard_normal((6, 32)).astype(np.float32)
    odd = np.array([np.nan, np.inf, -np.inf], np.float32)
    x[:3, 7], x[3, 30] = odd, -odd[0]
    x[4, :2] = np.inf, -np.inf
    values, scale = program(x)[:2]
    lowest = np.where(np.isfinite(x), 0 if symmetric else -127, -127)
    np.testing.assert_array_equal(values[[1, 2, 4]], lowest[[1, 2, 4]])
    assert np.isnan(scale[[0, 3]]).all()
    assert not np.isfinite(scale[:5]).any()
    assert np.isfinite(scale[5]).all()


@pytest.mark.parametrize("lead", LEADS)
def test_quantize_blocks(lead: tuple, route: str) -> None:
    for blocks, (values, scale) in quantized_blocks(lead, route, symmetric=True):
        greatest = np.abs(blocks).max(-1)
        same(scale, greatest / np.float32(127), route)
        factor = np.float32(127) / greatest
        expected = np.rint(blocks * factor[..., None]).reshape(values.shape)
        same(values, expected.astype(np.int8), route)


def test_quantize_blocks_of_zero_and_ties(route: str) -> None:
    op, x_spec = graph.QuantizeBlocksOp, spec("f32", "n", 32)
    program = Program(op, x_spec, symmetric=True, route=route)
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


@pytest.mark.parametrize("has_offset", [False, True])
@pytest.mark.parametrize("lead", LEADS)
def test_dequantize_blocks(lead: tuple, has_offset: bool, route: str) -> None:
    specs = [spec("i8", *lead, 64), *[spec("f32", *lead, 2)] * (1 + has_offset)]
    program = Program(graph.DequantizeBlocksOp, *specs, route=route)
    for sizes in SIZES:
        shape = [sizes.get(dim, dim) for dim in lead]
        values = RANDOM.integers(-128, 128, (*shape, 64)).astype(np.int8)
        scale, offset = RANDOM.standard_normal((2, *shape, 2)).astype(np.float32)
        expected = values.reshape(*shape, 2, 32).astype(np.float64) * scale[..., None]
        if has_offset:
            expected += offset[..., None]
        found = program(values, scale, *[offset] * has_offset)
        error = np.abs(found - expected.reshape(values.shape))
        assert error.max(initial=0) <= 1e-4  # of numbers up to some hundreds, two roundings
