"""Matrices in panels: every number of the file is where `graph.dequantize` reads it."""

import numpy as np
import pytest

from relax_mlir.dialects.graph.quantized import SCHEMES
from relax_mlir.llm.panels import DTYPES, pack_matrix, part_dims
from relax_mlir.llm.quantization import BLOCKS, RawTensor

FORMATS = {"q8_0": "Q8_0", "q4_0": "Q4_0", "q4_1": "Q4_1"}


def random_matrix(scheme: str, rows: int, columns: int) -> RawTensor:
    """Blocks of any bytes, with finite factors."""
    rng = np.random.default_rng(rows)
    dtype = BLOCKS[FORMATS[scheme]]
    stored = rng.integers(0, 256, rows * columns // 32 * dtype.itemsize).astype(np.uint8)
    raw = RawTensor.from_bytes(FORMATS[scheme], (rows, columns), stored)
    for name in ("scale", "minimum"):
        if name in dtype.names:
            raw.data[name] = rng.standard_normal(raw.data.shape).astype(np.float16)
    return raw


def read(scheme: str, parts: dict[str, np.ndarray], row: int, column: int) -> np.float32:
    """An element as the dialect's documentation says where it is."""
    p, r = divmod(row, 16)
    b, rest = divmod(column, 32)
    half, rest = divmod(rest, 16)
    group, place = divmod(rest, 4)
    if SCHEMES[scheme].bits == 8:
        number = int(parts["data"][p, b, half, group, r, place])
    else:
        number = int(parts["data"].view(np.uint8)[p, b, group, r, place]) >> (4 * half) & 15
    value = np.float32(number - SCHEMES[scheme].zero) * np.float32(parts["scale"][p, b, r])
    return value + np.float32(parts["minimum"][p, b, r]) if "minimum" in parts else value


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("rows", "columns"), [(16, 32), (48, 96), (1, 64), (17, 32), (272, 32)])
def test_every_element_is_found(scheme: str, rows: int, columns: int) -> None:
    raw = random_matrix(scheme, rows, columns)
    names = ["data", "scale", "minimum"][: 2 + SCHEMES[scheme].has_minimum]
    parts = {
        name: np.full(part_dims(name, scheme, rows, columns), 7, DTYPES[name]) for name in names
    }
    pack_matrix(raw, scheme, parts)
    exact = raw.to_f32()
    found = np.array([
        [read(scheme, parts, row, column) for column in range(columns)] for row in range(rows)
    ])  # fmt: skip
    np.testing.assert_array_equal(found, exact)
    for name in names:
        rest = parts[name][-1].swapaxes(0, -1 if name != "data" else -2)[rows % 16 or 16 :]
        assert not rest.any(), "rows past the last one are zero"


def test_schemes_are_formats_of_files() -> None:
    assert {FORMATS[scheme] for scheme in SCHEMES} == set(BLOCKS)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_byte_is_added(scheme: str) -> None:
    raw = random_matrix(scheme, 64, 128)
    names = ["data", "scale", "minimum"][: 2 + SCHEMES[scheme].has_minimum]
    sizes = [DTYPES[n].itemsize * np.prod(part_dims(n, scheme, 64, 128)) for n in names]
    assert sum(sizes) == raw.data.nbytes
