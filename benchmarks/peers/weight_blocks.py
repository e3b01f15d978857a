"""Blocks of 32 elements with a scale each, recovered from the float32 weights decoded from them.

    Q4_1   w[n, k] = d[n, k/32] q[n, k] + m[n, k/32],   q = 0 .. 15
    Q8_0   w[n, k] = d[n, k/32] q[n, k],                q = -127 .. 127

Scales d and offsets m are float16. Source: GGUF; ggml's `block_q4_1` and `block_q8_0`.
"""

from dataclasses import dataclass

import numpy as np

BLOCK = 32
MOST_ERROR = 1e-6
"""Of weights that blocks stand for, as a share of the greatest weight."""


@dataclass(frozen=True)
class Blocks:
    """Weights[n, k] in blocks: bytes of elements, float32[n, k/32] scales and, if any, offsets."""

    bits: int
    packed: np.ndarray
    scales: np.ndarray
    offsets: np.ndarray | None


def blocks_of(weights: np.ndarray, name: str) -> Blocks:
    """The blocks that float32 weights[n, k] were decoded from.

    Raises ValueError, which says `name`, if they are neither Q4_1 nor Q8_0.
    """
    blocks = weights.reshape(len(weights), -1, BLOCK)
    most = np.abs(blocks).max()
    for format_of in (_four_bits, _eight_bits):
        format_, restored = format_of(blocks)
        if np.abs(restored - blocks).max() <= MOST_ERROR * most:
            return format_
    raise ValueError(f"{name} has blocks of {BLOCK} elements that are neither Q4_1 nor Q8_0")


def _four_bits(blocks: np.ndarray) -> tuple[Blocks, np.ndarray]:
    """Blocks of Q4_1, and the weights that they stand for."""
    offsets = _half(blocks.min(2))
    scales = _half((blocks.max(2) - offsets) / 15)
    steps = np.where(scales == 0, 1, scales)[..., None]
    elements = np.rint((blocks - offsets[..., None]) / steps).clip(0, 15).astype(np.uint8)
    packed = elements[..., 0::2] | elements[..., 1::2] << 4
    restored = elements * scales[..., None] + offsets[..., None]
    return Blocks(4, packed, scales, offsets), restored


def _eight_bits(blocks: np.ndarray) -> tuple[Blocks, np.ndarray]:
    """Blocks of Q8_0, and the weights that they stand for."""
    scales = _half(np.abs(blocks).max(2) / 127)
    steps = np.where(scales == 0, 1, scales)[..., None]
    elements = np.rint(blocks / steps).clip(-127, 127)
    packed = (elements + 128).astype(np.uint8)
    return Blocks(8, packed, scales, None), elements * scales[..., None]


def _half(x: np.ndarray) -> np.ndarray:
    """Float32 values that are exact in float16."""
    return x.astype(np.float16).astype(np.float32)
