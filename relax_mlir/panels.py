"""Quantised matrices as NumPy arrays: rounding, and the layout of `graph.dequantize`.

    row-major:  data[row, block, 16 or 32], factors[row, block, ..]
    in panels:  data[p, b, ...], factors[p, b, .., r] with p = row // 16, r = row % 16

The results are bitwise those of `graph.quantize`.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from relax_mlir.dialects.graph.quantized import BLOCK, PANEL, SCHEMES

ELEMENTS = {"i8": np.dtype(np.int8), "f16": np.dtype(np.float16)}
"""Element types of parts, by their names in the graph."""

MAX_FACTOR = np.float32(65504)
"""The greatest number of f16."""


def part_kinds(scheme: str, rows: int, columns: int) -> dict[str, tuple[tuple[int, ...], str]]:
    """The dims and the element type of each part of a matrix [rows, columns]."""
    parts = SCHEMES[scheme].parts(-(-rows // PANEL), columns // BLOCK)
    return {part: (dims, element) for part, (element, dims) in parts.items()}


def quantize(matrix: np.ndarray, scheme: str) -> dict[str, np.ndarray]:
    """The parts of float32[rows, columns] in panels; the scheme's group divides the columns."""
    parts = {
        name: np.empty(dims, ELEMENTS[element])
        for name, (dims, element) in part_kinds(scheme, *matrix.shape).items()
    }
    (rows, columns), format = matrix.shape, SCHEMES[scheme]
    groups = matrix.reshape(rows, columns // format.group, format.group)
    rounded = round_blocks(groups, scheme)
    size = BLOCK * format.bits // 8
    rounded["data"] = rounded["data"].reshape(rows, columns // BLOCK, size)
    fill(parts, rounded)
    return parts


def round_blocks(values: np.ndarray, scheme: str) -> dict[str, np.ndarray]:
    """The parts of float32[..., n], row-major, as computed by `graph.quantize`.

    n = 32, 64 or 128 values share a scale. "data" is int8[..., n], or uint8[..., n/2], of which the
    low nibbles of 16 bytes are the first 16 of 32 values; "scale" and "minimum" are float16[...].
    """
    format = SCHEMES[scheme]
    if format.bits == 8:
        greatest = np.abs(values).max(-1)
        scale = _half(greatest / np.float32(127), greatest)
        return {"data": _quotients(values, scale, -127, 127).astype(np.int8), "scale": scale}
    high, low = values.max(-1), values.min(-1)
    if not format.has_minimum:
        high, low = np.maximum(high, 0), np.minimum(low, 0)
        scale = _half(np.where(high > -low, high, low) / np.float32(-8), high, low)
        biased = _quotients(values, scale, -8, 7) + np.float32(8)
        return {"data": _nibbles(biased), "scale": scale}
    with np.errstate(over="ignore", invalid="ignore"):  # clamped later, or of infinities
        width = high - low
    scale, minimum = _half(width / np.float32(15), high, low), _half(low, high, low)
    above = values - minimum.astype(np.float32)[..., None]
    return {"data": _nibbles(_quotients(above, scale, 0, 15)), "scale": scale, "minimum": minimum}


def fill(parts: Mapping[str, np.ndarray], rows: Mapping[str, np.ndarray]) -> None:
    """Fills panels from row-major parts; rows past the last one become zero."""
    for name, out in parts.items():
        _transpose(rows[name], out)


def _transpose(rows: np.ndarray, out: np.ndarray) -> None:
    """[rows, blocks, ..] to [panels, blocks, .., 16, 4 bytes or none].

    Four consecutive bytes of a row stay together, so these are words of 32 bits.
    """
    panels, blocks = out.shape[:2]
    missing = panels * PANEL - len(rows)
    if missing:
        rows = np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
    if out.shape[-1] == 4:
        rows, out = np.ascontiguousarray(rows).view(np.uint32), out.view(np.uint32)
    count = prod(rows.shape[2:])
    source = rows.reshape(panels, PANEL, blocks, count)
    out.reshape(panels, blocks, count, PANEL)[...] = source.transpose(0, 2, 3, 1)


def is_representable(parts: Mapping[str, np.ndarray]) -> bool:
    """Whether no factor is at the limit of f16, clamped to it or infinite."""
    factors = [part for part in parts.values() if part.dtype == np.float16]
    return all(bool((np.abs(part) < MAX_FACTOR).all()) for part in factors)


def _half(factors: np.ndarray, *extremes: np.ndarray) -> np.ndarray:
    """Factors in f16, clamped to its range unless an extreme is infinite or NaN."""
    finite = np.logical_and.reduce([np.isfinite(extreme) for extreme in extremes])
    bounded = np.clip(factors, -MAX_FACTOR, MAX_FACTOR)
    return np.where(finite, bounded, factors).astype(np.float16)


def _quotients(values: np.ndarray, scale: np.ndarray, low: int, high: int) -> np.ndarray:
    """Values over their scales, rounded to integers of float32; 0 where the scale is 0."""
    divisor = scale.astype(np.float32)[..., None]
    with np.errstate(invalid="ignore"):  # infinite over infinite
        quotients = np.divide(values, divisor, out=np.zeros_like(values), where=divisor != 0)
    bounded = np.fmax(np.rint(quotients), np.float32(low))  # replaces NaN
    return np.minimum(bounded, np.float32(high))


def _nibbles(values: np.ndarray) -> np.ndarray:
    *lead, count = values.shape
    q = values.astype(np.uint8).reshape(*lead, count // BLOCK, 2, BLOCK // 2)
    return (q[..., 0, :] | q[..., 1, :] << 4).reshape(*lead, count // 2)
