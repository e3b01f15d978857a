"""Matrices in panels: every number of the file is where `graph.dequantize` reads it."""

import numpy as np
import pytest

from relax_mlir.dialects.graph.quantized import BY_BLOCK, SCHEMES
from relax_mlir.llm.decoder.arrays import ELEMENTS
from relax_mlir.llm.decoder.panels import pack_matrix
from relax_mlir.llm.formats.quantization import BLOCKS, RawTensor
from relax_mlir.panels import part_kinds

# Numbers and bytes of a block, and where its float16 factors are.
OTHERS = {
    "Q5_0": (32, 22, slice(0, 2)),
    "Q5_1": (32, 24, slice(0, 4)),
    "Q4_K": (256, 144, slice(0, 4)),
    "Q5_K": (256, 176, slice(0, 4)),
    "Q6_K": (256, 210, slice(208, 210)),
}
SHAPES = [(16, 1), (48, 3), (1, 2), (17, 1), (272, 1)]


def random_matrix(scheme: str, rows: int, columns: int) -> RawTensor:
    """Blocks of any bytes, with finite factors."""
    rng = np.random.default_rng(rows)
    format = scheme.upper()
    if format in BLOCKS:
        dtype = BLOCKS[format]
        stored = rng.integers(0, 256, rows * columns // 32 * dtype.itemsize).astype(np.uint8)
        raw = RawTensor.from_bytes(format, (rows, columns), stored)
        for name in ("scale", "minimum"):
            if name in dtype.names:
                raw.data[name] = rng.standard_normal(raw.data.shape).astype(np.float16)
        return raw
    count, size, factors = OTHERS[format]
    stored = rng.integers(0, 256, (rows * columns // count, size)).astype(np.uint8)
    count = (factors.stop - factors.start) // 2
    finite = rng.standard_normal((len(stored), count)).astype(np.float16)
    stored[:, factors] = finite.view(np.uint8)
    return RawTensor.from_bytes(format, (rows, columns), stored.reshape(-1))


def empty_parts(scheme: str, rows: int, columns: int) -> dict[str, np.ndarray]:
    """Arrays for the parts of a matrix, full of something else."""
    kinds = part_kinds(scheme, rows, columns)
    return {name: np.full(dims, 7, ELEMENTS[kind]) for name, (dims, kind) in kinds.items()}


def read(scheme: str, parts: dict[str, np.ndarray], row: int, column: int) -> np.float32:
    """An element as the dialect's documentation says where it is."""
    p, r = divmod(row, 16)
    b, rest = divmod(column, 32)
    half, rest = divmod(rest, 16)
    group, place = divmod(rest, 4)
    found = SCHEMES[scheme]
    bytes_of = {name: parts[name].view(np.uint8) for name in ("data", "high") if name in parts}
    if found.bits == 8:
        number = int(parts["data"][p, b, half, group, r, place])
    else:
        number = int(bytes_of["data"][p, b, group, r, place]) >> (4 * half) & 15
    if found.bits == 5:
        number |= (int(bytes_of["high"][p, b, r, place]) >> (4 * half + group) & 1) << 4
    elif found.bits == 6:
        number |= (int(bytes_of["high"][p, b, half, r, place]) >> (2 * group) & 3) << 4

    def factor(name: str, *at: int) -> np.float32:
        inner = np.float32(parts[name][at])
        return (
            inner * np.float32(parts[f"outer_{name}"][p, b // 8, r]) if found.is_nested else inner
        )

    scale = factor("scale", p, b, r) if found.scales == 1 else factor("scale", p, b, half, r)
    value = np.float32(number - found.zero) * scale
    return value + factor("minimum", p, b, r) if found.has_minimum else value


@pytest.mark.parametrize("scheme", BY_BLOCK)
@pytest.mark.parametrize(("rows", "units"), SHAPES)
def test_every_element_is_found(scheme: str, rows: int, units: int) -> None:
    columns = units * (256 if SCHEMES[scheme].is_nested else 32)
    raw = random_matrix(scheme, rows, columns)
    parts = empty_parts(scheme, rows, columns)
    pack_matrix(raw, scheme, parts)
    exact = raw.to_f32()
    found = np.array([
        [read(scheme, parts, row, column) for column in range(columns)] for row in range(rows)
    ])  # fmt: skip
    np.testing.assert_array_equal(found, exact)
    for name, part in parts.items():
        rest = np.moveaxis(part[-1], -2 if name in ("data", "high") else -1, 0)[rows % 16 or 16 :]
        assert not rest.any(), "rows past the last one are zero"


@pytest.mark.parametrize("scheme", BY_BLOCK)
def test_hardly_a_byte_is_added(scheme: str) -> None:
    """Scales of 6 bits are kept in bytes: four more in a super-block."""
    raw = random_matrix(scheme, 64, 256)
    size = sum(part.nbytes for part in empty_parts(scheme, 64, 256).values())
    extra = 64 * 4 if raw.format in ("Q4_K", "Q5_K") else 0
    assert size == raw.data.nbytes + extra
