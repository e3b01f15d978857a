"""Operators on block-quantised tensors."""

import numpy as np

from relax_mlir import panels
from relax_mlir.dialects.graph.quantized import BLOCK, NEST, PANEL, PARTS, SCHEMES
from relax_mlir.interpreter.elements import exact as read

from .gather import clamped

__all__ = ["read"]

_SMALLEST = np.float32(1e-36)


def quantize(matrix: np.ndarray, *, scheme: str, axis: int) -> list[np.ndarray]:
    """Rounds each group of values by its own factors, in f32."""
    rows = matrix if axis else matrix.T
    return list(panels.quantize(np.ascontiguousarray(rows, np.float32), scheme).values())


def dequantize(*parts: np.ndarray | None, scheme: str) -> np.ndarray:
    """The matrix, all rows of the last panel included."""
    return _decoded(scheme, *parts)


def dequantize_rows(indices: np.ndarray, *parts: np.ndarray | None, scheme: str) -> np.ndarray:
    """Rows by index, which is clamped."""
    matrix = _decoded(scheme, *parts)
    return matrix[clamped(indices, len(matrix))]


def _decoded(scheme: str, *operands: np.ndarray | None) -> np.ndarray:
    """scale * (q - zero) + minimum."""
    kind, parts = SCHEMES[scheme], dict(zip(PARTS, operands, strict=False))
    data = parts["data"]
    assert data is not None
    panel_count, blocks = data.shape[:2]
    q = _unpacked(data, parts.get("high"), kind.bits) - kind.zero

    def factor(name: str) -> np.ndarray:
        """[panels, blocks, halves or 1, rows]."""
        part = parts[name]
        assert part is not None
        part = np.repeat(part.astype(np.float64), kind.shared, 1)
        part = part if part.ndim == 4 else part[:, :, None]
        if not kind.is_nested:
            return part
        outer = parts[f"outer_{name}"]
        assert outer is not None
        return part * np.repeat(outer, NEST, 1)[:, :, None]

    # [panels, blocks, halves, groups, rows, 4]
    values = q * factor("scale")[:, :, :, None, :, None]
    if kind.has_minimum:
        values = values + factor("minimum")[:, :, :, None, :, None]
    by_row = values.transpose(0, 4, 1, 2, 3, 5)
    return by_row.reshape(panel_count * PANEL, blocks * BLOCK)


def _unpacked(data: np.ndarray, high: np.ndarray | None, bits: int) -> np.ndarray:
    """The unpacked values, [panels, blocks, halves, groups, rows, 4]."""
    if bits == 8:
        return data.astype(np.float64)
    byte = data.view(np.uint8).astype(np.int64)
    values = np.stack([byte & 15, byte >> 4], 2)
    half, group = (np.arange(n).reshape(shape) for n, shape in ((2, (2, 1, 1, 1)), (4, (4, 1, 1))))
    if high is not None:
        above = high.view(np.uint8).astype(np.int64)
        if bits == 5:
            above = above[:, :, None, None] >> (4 * half + group) & 1
        else:
            above = above[:, :, :, None] >> (2 * group) & 3
        values = values | above << 4
    return values.astype(np.float64)


def quantize_blocks(x: np.ndarray, *, symmetric: bool) -> list[np.ndarray]:
    """8 bits and f32 factors by blocks of 32, in f32."""
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], x.shape[-1] // BLOCK, BLOCK)
    high, low = blocks.max(-1), blocks.min(-1)
    if symmetric:
        width = np.abs(blocks).max(-1)
        scale = width / np.float32(127)
        steps, factors = _steps(blocks, 127, width), [scale]
    else:
        half = np.float32(0.5)  # the whole range may be beyond f32
        width = high * half - low * half
        steps = _steps(blocks * half - low[..., None] * half, 254, width) - np.float32(127)
        factors = [width / np.float32(127), low + width]
    bounded = np.minimum(np.fmax(steps, np.float32(-127)), np.float32(127))  # -127 for NaN
    return [bounded.astype(np.int8).reshape(x.shape), *factors]


def _steps(x: np.ndarray, levels: int, width: np.ndarray) -> np.ndarray:
    """x in units of width / levels, rounded half to even; x where the width is 0."""
    limit = np.float32(levels)
    factor = limit / np.where(width < _SMALLEST, limit, width)
    return np.rint(x * factor[..., None])


def dequantize_blocks(
    values: np.ndarray, scale: np.ndarray, offset: np.ndarray | None = None
) -> np.ndarray:
    """values * scale of their block, plus its offset."""
    blocks = values.reshape(*scale.shape, BLOCK) * scale[..., None]
    return (blocks if offset is None else blocks + offset[..., None]).reshape(values.shape)
