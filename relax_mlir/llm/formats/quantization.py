"""Stored tensor formats, and their exact conversion to float32.

A format stores a row as blocks of elements that share a scale; blocks never cross rows, so rows of
a quantised matrix can be permuted without decoding it. Element i of a block decodes to

    Q8_0    scale * q[i]                32 elements, int8
    Q4_0    scale * (q[i] - 8)          32 elements, unsigned 4 bit
    Q4_1    scale * q[i] + minimum      32 elements, unsigned 4 bit

with scale and minimum in float16. 4-bit element i < 16 is the low half of byte i, element i + 16
its high half. `scale * q[i]` is exact in float32 (11 + 8 significant bits), so fused and separate
multiply-add agree. The other formats are decoded by the `gguf` package.

Source: ggml `ggml-common.h` (block layouts); GGUF specification.
"""

from dataclasses import dataclass

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize as gguf_dequantize

PLAIN: dict[str, np.dtype] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),  # NumPy has no bfloat16: the bits
}
BLOCKS: dict[str, np.dtype] = {
    "Q8_0": np.dtype([("scale", "<f2"), ("q", "i1", 32)]),
    "Q4_0": np.dtype([("scale", "<f2"), ("q", "u1", 16)]),
    "Q4_1": np.dtype([("scale", "<f2"), ("minimum", "<f2"), ("q", "u1", 16)]),
}
OTHER_BLOCKS = ("Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
RARE_BLOCKS = (
    *("Q2_K", "Q3_K", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"),
    *("IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4"),
)
FORMATS: tuple[str, ...] = (*PLAIN, *BLOCKS, *OTHER_BLOCKS, *RARE_BLOCKS)
DECODED = ("F16", *RARE_BLOCKS)
"""Formats whose matrices are always stored as float32, apart from `F32` itself."""
CHUNK_BLOCKS = 2048  # their values stay in the cache between the steps of decoding


@dataclass(frozen=True, eq=False)
class RawTensor:
    """A tensor in its storage format.

    `shape` counts elements, outermost first. `data` has the same leading dims; its last one counts

      - elements in `PLAIN` formats: float32, float16, or uint16 with the bits of a bfloat16
      - blocks in `BLOCKS` formats: records with the fields `scale`, `minimum` (Q4_1) and `q`
      - bytes in all others: uint8
    """

    format: str
    shape: tuple[int, ...]
    data: np.ndarray

    @staticmethod
    def from_bytes(format: str, shape: tuple[int, ...], stored: np.ndarray) -> "RawTensor":
        """Views `stored` (uint8, 1-D, of the right size) as a tensor, without a copy."""
        if format in PLAIN:
            return RawTensor(format, shape, stored.view(PLAIN[format]).reshape(shape))
        block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[format]]
        *rows, length = shape
        if format in BLOCKS:
            data = stored.view(BLOCKS[format]).reshape(*rows, length // block)
        else:
            data = stored.reshape(*rows, length // block * block_bytes)
        return RawTensor(format, shape, data)

    def rows(self, begin: int, end: int) -> "RawTensor":
        """Rows `begin` to `end` of a matrix, without a copy."""
        data = self.data[begin:end]
        return RawTensor(self.format, (len(data), *self.shape[1:]), data)

    def flattened(self) -> "RawTensor":
        """All leading dims as one, without a copy."""
        data = self.data.reshape(-1, self.data.shape[-1])
        return RawTensor(self.format, (len(data), self.shape[-1]), data)

    def transposed(self) -> "RawTensor":
        """The last two dims swapped; blocks, which would cross rows then, are decoded."""
        if self.format not in PLAIN:
            return RawTensor("F32", self.shape, self.to_f32()).transposed()
        data = self.data.swapaxes(-1, -2)
        return RawTensor(self.format, data.shape, data)

    def take_rows(self, order: np.ndarray) -> "RawTensor":
        """The tensor whose row i is row `order[i]` of this one (a copy)."""
        return RawTensor(self.format, (len(order), *self.shape[1:]), self.data[order])

    def to_f32(self, out: np.ndarray | None = None) -> np.ndarray:
        """The exact values: `out`, a row-major float32 array of `shape`, or a new one.

        Those of a block whose scale is infinite or NaN are so too.
        """
        if out is None:
            out = np.empty(self.shape, np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            self._decode(out)
        return out

    def _decode(self, out: np.ndarray) -> None:
        if self.format == "BF16":
            np.left_shift(self.data, 16, out=out.view(np.uint32), dtype=np.uint32)
        elif self.format in PLAIN:
            out[...] = self.data
        elif self.format in BLOCKS:
            blocks, values = self.data.reshape(-1), out.reshape(-1, 32)
            for start in range(0, len(blocks), CHUNK_BLOCKS):
                part = slice(start, start + CHUNK_BLOCKS)
                _decode(blocks[part], values[part])
        else:
            decoded = gguf_dequantize(self.data, GGMLQuantizationType[self.format])
            out[...] = decoded.reshape(self.shape)

    def to_bf16(self, out: np.ndarray) -> np.ndarray:
        """Fills `out`, row-major uint16 of `shape`, with the bits of the values as bfloat16.

        They are rounded to nearest, ties to even; those of a bfloat16 tensor are copied.
        """
        if self.format == "BF16":
            out[...] = self.data
            return out
        rows = max(1, CHUNK_BLOCKS * 32 * len(out) // max(1, out.size))
        for start in range(0, len(out), rows):
            out[start : start + rows] = _round_to_bf16(self.rows(start, start + rows).to_f32())
        return out


def _round_to_bf16(values: np.ndarray) -> np.ndarray:
    """Rounds float32 to the bits of bfloat16 (uint16); NaN stays NaN."""
    bits = values.view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), bits >> 16 | 0x40, rounded).astype(np.uint16)


def _decode(blocks: np.ndarray, values: np.ndarray) -> None:
    """Decodes a 1-D array of one of the `BLOCKS` records into float32[len(blocks), 32]."""
    q = blocks["q"]
    if q.shape[1] == 32:
        values[:] = q
    else:
        values[:, :16] = q & 15
        values[:, 16:] = q >> 4
    has_minimum = "minimum" in (blocks.dtype.names or ())
    if not has_minimum and q.dtype == np.uint8:
        values -= 8
    values *= blocks["scale"].astype(np.float32)[:, None]
    if has_minimum:
        values += blocks["minimum"].astype(np.float32)[:, None]
