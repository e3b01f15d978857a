"""Numbers rounded to blocks of 32 that share a scale: what `quantization.py` decodes.

    Q8_0    scale = max |x| / 127                  q = x / scale
    Q4_0    scale = x of max |x|, over -8          q = x / scale + 8, so that this x is exact
    Q4_1    scale = (max - min) / 15               q = (x - min) / scale

Scale and minimum are rounded to float16 first, the quotients then to the nearest number there is.
Source: ggml `ggml-quants.c`, which divides by the scale before its rounding.
"""

import numpy as np

from relax_mlir.llm.quantization import BLOCKS, RawTensor


def to_blocks(raw: RawTensor, format: str) -> RawTensor:
    """The matrix in a format of `BLOCKS`: itself if it is stored so, else rounded.

    Its last dim must be a multiple of 32.
    """
    if raw.format == format:
        return raw
    rows, columns = raw.shape
    values = raw.to_f32().reshape(rows, columns // 32, 32)
    blocks = np.empty(values.shape[:2], BLOCKS[format])
    _ENCODERS[format](values, blocks)
    return RawTensor(format, raw.shape, blocks)


def _encode_8_0(values: np.ndarray, blocks: np.ndarray) -> None:
    blocks["scale"] = np.abs(values).max(-1) / np.float32(127)
    blocks["q"] = _quotients(values, blocks, -127, 127)


def _encode_4_0(values: np.ndarray, blocks: np.ndarray) -> None:
    at = np.abs(values).argmax(-1)[..., None]
    blocks["scale"] = np.take_along_axis(values, at, -1)[..., 0] / np.float32(-8)
    _put_nibbles(_quotients(values, blocks, -8, 7) + np.float32(8), blocks)


def _encode_4_1(values: np.ndarray, blocks: np.ndarray) -> None:
    least = values.min(-1)
    blocks["scale"] = (values.max(-1) - least) / np.float32(15)
    blocks["minimum"] = least
    above = values - blocks["minimum"].astype(np.float32)[..., None]
    _put_nibbles(_quotients(above, blocks, 0, 15), blocks)


def _quotients(values: np.ndarray, blocks: np.ndarray, low: int, high: int) -> np.ndarray:
    """Values over their scales as whole numbers of float32; 0 where the scale is."""
    scale = blocks["scale"].astype(np.float32)[..., None]
    quotients = np.divide(values, scale, out=np.zeros_like(values), where=scale != 0)
    return np.clip(np.rint(quotients), low, high)


def _put_nibbles(numbers: np.ndarray, blocks: np.ndarray) -> None:
    q = numbers.astype(np.uint8)
    blocks["q"] = q[..., :16] | q[..., 16:] << 4


_ENCODERS = {"Q8_0": _encode_8_0, "Q4_0": _encode_4_0, "Q4_1": _encode_4_1}
