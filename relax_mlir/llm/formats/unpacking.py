"""Formats that split the bits of values, or of scales: five and six bits, super-blocks of 256.

    Q5_0  d, 32 fifth bits, 16 bytes: the low and high halves of 32
    Q5_1  d, minimum, the same
    Q4_K  d, dmin, 12 bytes of 6-bit scales and minima, 128 bytes: the low and high halves of 64
    Q5_K  d, dmin, the same 12 bytes, 32 bytes of fifth bits, the same 128 bytes
    Q6_K  128 bytes of low halves, 64 bytes of two high bits, 16 scales of 8 bits, d

They are unpacked to the parts that `graph.dequantize` reads. Source: ggml `ggml-common.h` (layouts)
and `ggml-quants.c` (`dequantize_row_q5_0` and so on).
"""

import numpy as np

from relax_mlir.llm.formats.quantization import RawTensor

SIZES = {"Q5_0": 32, "Q5_1": 32, "Q4_K": 256, "Q5_K": 256, "Q6_K": 256}
"""Values per block."""
_HALF = np.dtype("<f2")


def unpack(raw: RawTensor) -> dict[str, np.ndarray]:
    """The parts of a matrix, row-major: bytes of data and of high bits, scales, outer factors.

    "data" is [rows, blocks of 32, 16], "high" [rows, blocks, 4 or 8], factors are [rows, blocks],
    scales [rows, blocks, 2] in Q6_K, outer ones [rows, super-blocks] of float16.
    """
    rows, columns = raw.shape
    blocks = columns // SIZES[raw.format]
    stored = raw.data.reshape(rows, blocks, raw.data.shape[1] // blocks)
    values, factors = _READERS[raw.format](stored)
    q = values.reshape(rows, columns // 32, 2, 4, 4)
    low = q & 15
    factors["data"] = (low[:, :, 0] | low[:, :, 1] << 4).reshape(rows, columns // 32, 16)
    high = q >> 4
    if raw.format.startswith("Q5"):
        shifts = np.arange(8, dtype=np.uint8).reshape(2, 4, 1)
        factors["high"] = np.bitwise_or.reduce(high << shifts, axis=(2, 3))
    elif raw.format == "Q6_K":
        pairs = 2 * np.arange(4, dtype=np.uint8).reshape(4, 1)
        halves = np.bitwise_or.reduce(high << pairs, axis=3)
        factors["high"] = halves.reshape(rows, columns // 32, 8)
    return factors


def _read_q5(stored: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Values [..., 32] of uint8, and factors; with a minimum if blocks have two more bytes."""
    names = ("scale", "minimum") if stored.shape[-1] == 24 else ("scale",)
    begin = 2 * len(names)
    factors = np.ascontiguousarray(stored[..., :begin]).view(_HALF)
    fifths = np.unpackbits(stored[..., begin : begin + 4], axis=-1, bitorder="little")
    data = stored[..., begin + 4 :]
    values = np.concatenate([data & 15, data >> 4], axis=-1) | fifths << 4
    return values, {name: factors[..., i] for i, name in enumerate(names)}


def _read_q4_k(stored: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Values [..., 8, 32] of uint8, and factors."""
    return _nibbles(stored[..., 16:]), _factors(stored)


def _read_q5_k(stored: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    fifths = stored[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return _nibbles(stored[..., 48:]) | fifths << 4, _factors(stored)


def _read_q6_k(stored: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rows, supers = stored.shape[:2]
    low = stored[..., :128].reshape(rows, supers, 2, 1, 2, 32)
    # 128 values: low halves of 64 bytes, then their high halves.
    low = low >> np.array([0, 4], np.uint8)[:, None, None] & 15
    pairs = stored[..., 128:192].reshape(rows, supers, 2, 1, 32)
    pairs = pairs >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    values = low.reshape(rows, supers, 2, 4, 32) | pairs << 4
    scale = np.ascontiguousarray(stored[..., 192:208]).view(np.int8)
    outer = np.ascontiguousarray(stored[..., 208:210]).view(_HALF)
    factors: dict[str, np.ndarray] = {
        "scale": scale.reshape(rows, supers * 8, 2),
        "outer_scale": outer.reshape(rows, supers),
    }
    return values, factors


def _nibbles(data: np.ndarray) -> np.ndarray:
    """For each 64 values: the low halves of 32 bytes, then the high ones."""
    chunks = data.reshape(*data.shape[:2], 4, 1, 32)
    return (chunks >> np.array([0, 4], np.uint8)[:, None] & 15).reshape(*data.shape[:2], 8, 32)


def _factors(stored: np.ndarray) -> dict[str, np.ndarray]:
    """Scales and minima of 6 bits: the first four of each are in a byte, the others are split."""
    rows, supers = stored.shape[:2]
    outer = np.ascontiguousarray(stored[..., :4]).view(_HALF)
    a, b, c = (stored[..., 4 + 4 * i : 8 + 4 * i] for i in range(3))
    scale = np.concatenate([a & 63, c & 15 | a >> 6 << 4], axis=-1)
    minimum = np.concatenate([b & 63, c >> 4 | b >> 6 << 4], axis=-1)
    return {
        "scale": scale.view(np.int8).reshape(rows, supers * 8),
        "minimum": minimum.view(np.int8).reshape(rows, supers * 8),
        "outer_scale": outer[..., 0],
        "outer_minimum": -outer[..., 1],
    }


_READERS = {
    "Q5_0": _read_q5,
    "Q5_1": _read_q5,
    "Q4_K": _read_q4_k,
    "Q5_K": _read_q5_k,
    "Q6_K": _read_q6_k,
}
