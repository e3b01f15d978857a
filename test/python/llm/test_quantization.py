"""Stored formats decode exactly: element by element after the definition, and as in `gguf`."""

import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from relax_mlir.llm.formats.quantization import FORMATS, PLAIN, RawTensor

ROWS = 5


def stored(format: str, blocks_per_row: int, seed: int = 0) -> tuple[np.ndarray, tuple[int, int]]:
    """Random bytes with finite scales, and the shape of the tensor they are."""
    block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[format]]
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, (ROWS, blocks_per_row, block_bytes), np.uint8)
    if format not in PLAIN:  # scales are float16 somewhere in the block: clear a bit of exponents
        data &= 0xBF
    return data.reshape(-1), (ROWS, blocks_per_row * block)


@pytest.mark.parametrize("blocks_per_row", [1, 2, 7])
@pytest.mark.parametrize("format", FORMATS)
def test_decodes_as_gguf_does(format, blocks_per_row):
    data, shape = stored(format, blocks_per_row)
    values = RawTensor.from_bytes(format, shape, data).to_f32()
    kind = GGMLQuantizationType[format]
    expected = dequantize(data.reshape(ROWS, -1), kind)
    assert values.dtype == np.float32
    assert values.shape == shape
    np.testing.assert_array_equal(values, expected)


def test_q4_1_by_definition():
    data, shape = stored("Q4_1", 3)
    values = RawTensor.from_bytes("Q4_1", shape, data).to_f32().reshape(-1, 32)
    for block, row in zip(data.reshape(-1, 20), values, strict=True):
        scale, minimum = (float(x) for x in block[:4].view(np.float16))
        for i, byte in enumerate(block[4:].tolist()):
            assert row[i] == np.float32(scale * (byte & 15) + minimum)
            assert row[i + 16] == np.float32(scale * (byte >> 4) + minimum)


def test_q4_0_and_q8_0_by_definition():
    q4 = np.concatenate([np.array([0.5], np.float16).view(np.uint8), np.arange(16, dtype=np.uint8)])
    values = RawTensor.from_bytes("Q4_0", (32,), q4).to_f32()
    np.testing.assert_array_equal(values[:16], (np.arange(16) - 8) * 0.5)
    np.testing.assert_array_equal(values[16:], np.full(16, -4.0))
    q8 = np.arange(-16, 16, dtype=np.int8).view(np.uint8)
    q8 = np.concatenate([np.array([-0.25], np.float16).view(np.uint8), q8])
    values = RawTensor.from_bytes("Q8_0", (32,), q8).to_f32()
    np.testing.assert_array_equal(values, np.arange(-16, 16) * -0.25)


@pytest.mark.parametrize("format", ["F32", "F16", "BF16", "Q8_0", "Q4_1"])
def test_rounds_to_bf16(format):
    data, shape = stored(format, 7)
    tensor = RawTensor.from_bytes(format, shape, data)
    values = tensor.to_f32().astype(np.float64)
    bits = tensor.to_bf16(np.zeros(shape, np.uint16))
    found = (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    normal = np.isfinite(values) & (np.abs(values) > 2.0**-126) & (np.abs(values) < 2.0**127)
    assert normal.sum() > values.size // 2
    mantissa, exponent = np.frexp(values[normal])
    np.testing.assert_array_equal(found[normal], np.ldexp(np.round(mantissa * 256) / 256, exponent))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(values))


def test_rounds_special_numbers_to_bf16():
    values = np.array([0, -0.0, np.inf, -np.inf, 3.4e38, 1 + 2.0**-8, 1 + 3 * 2.0**-8], np.float32)
    nan = np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)
    bits = RawTensor("F32", (9,), np.append(values, nan)).to_bf16(np.zeros(9, np.uint16))
    expected = [0, 0x8000, 0x7F80, 0xFF80, 0x7F80, 0x3F80, 0x3F82, 0x7FC0, 0xFFFF]
    assert [hex(b) for b in bits] == [hex(b) for b in expected]


@pytest.mark.parametrize("format", FORMATS)
def test_rows_move_without_decoding(format):
    data, shape = stored(format, 2)
    tensor = RawTensor.from_bytes(format, shape, data)
    order = np.array([3, 0, 4, 1, 2])
    np.testing.assert_array_equal(tensor.take_rows(order).to_f32(), tensor.to_f32()[order])


def test_decoded_tensor_is_the_callers():
    data = np.zeros(8, np.uint8)
    RawTensor.from_bytes("F32", (2,), data).to_f32()[:] = 1
    assert not data.any()
