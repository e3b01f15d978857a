"""Matrices of 4 bits in safetensors files, of the kinds GPTQ and AWQ: words of 32 bits of 8 values.

A matrix `X.weight` [out, in] is four tensors, where a group of inputs shares a scale and a zero:

    value[o, i] = scales[g, o] * (q[i, o] - zeros[g, o])        g = group of input i

            X.qweight           X.qzeros             X.scales        X.g_idx
    gptq    i32[in / 8, out]    i32[g, out / 8]      f16[g, out]     i32[in]
    awq     i32[in, out / 8]    i32[g, out / 8]      f16[g, out]

Four bits i of a word are value i of eight (gptq), or value `AWQ_ORDER[i]`. Files of GPTQ have the
zeros less 1 in four bits, unless their format is "gptq_v2".

Where 32 consecutive inputs are of one group, they are a block of Q4_0 if all zeros are 8, else of
Q5_0, whose q - 16 is here q - zero: both are exact. Others are decoded to float32.

Source: GPTQ (arXiv 2210.17323), AWQ (arXiv 2306.00978), and the packages AutoGPTQ and AutoAWQ.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.formats.quantization import BLOCKS, RawTensor

METHODS = ("gptq", "awq")
PARTS = ("qweight", "qzeros", "scales", "g_idx")
"""The ends of names of tensors that a matrix consists of."""
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
WORD = 8  # values of 4 bits in 32
BLOCK = 32


@dataclass(frozen=True)
class Packing:
    """How a folder packs its matrices: by the `method`, in groups of `group` inputs, 0 for all.

    `bias` is what is added to the zeros of the file.
    """

    method: str
    group: int
    bias: int

    def shape(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, int] | None:
        """The shape of the matrix whose parts have these shapes; None if they do not fit."""
        words, zeros, scales = (shapes.get(part, ()) for part in PARTS[:3])
        if not len(words) == len(zeros) == len(scales) == 2 or 0 in words:
            return None
        by_input = self.method == "gptq"
        rows, columns = (words[1], words[0] * WORD) if by_input else (words[1] * WORD, words[0])
        groups = -(-columns // (self.group or columns))
        fits = scales == (groups, rows) and zeros == (groups, rows // WORD) and rows % WORD == 0
        order = shapes.get("g_idx", (columns,) if by_input else ())
        return (rows, columns) if fits and order == ((columns,) if by_input else ()) else None


def packing_of(fields: Fields) -> Packing | None:
    """The packing that `config.json` states; None without one. Raises ModelError for another."""
    own = fields.table("quantization_config")
    if not own.values:
        return None
    method = own.text("quant_method", "")
    if method not in METHODS:
        raise _refusal(fields, "quant_method", method, "gptq and awq")
    accepted: dict[str, tuple[Any, ...]] = {"bits": (4,), "w_bit": (4,)}
    if method == "awq":
        accepted |= {"version": ("gemm", "GEMM"), "zero_point": (True,)}
    else:
        accepted |= {"checkpoint_format": ("gptq", "gptq_v2"), "pack_dtype": ("int32",)}
        accepted |= {"dynamic": ({},), "is_marlin_format": (False,)}
    for key, known in accepted.items():
        if (value := own.values.get(key)) is not None and value not in known:
            raise _refusal(fields, key, value, " and ".join(map(repr, known)))
    own.integer("bits", own.integer("w_bit", 4))
    group = own.values.get("group_size", own.values.get("q_group_size", 128))
    size = 0 if group == -1 else Fields(own.where, {"group_size": group}).integer("group_size")
    is_biased = method == "gptq" and own.text("checkpoint_format", "gptq") == "gptq"
    return Packing(method, size, int(is_biased))


def _refusal(fields: Fields, key: str, value: Any, known: str) -> Exception:
    return fields.refuse(
        f"'quantization_config' has '{key}' {quoted(value)}; supported are {known}"
    )


@dataclass(frozen=True, eq=False)
class PackedMatrix:
    """The parts of a matrix [out, in], of which only words stay on disk.

    `group_of` has the group of each input, int64[in]; `zeros` are int16, `scales` float32, of
    [groups, out].
    """

    packing: Packing
    words: np.ndarray
    zeros: np.ndarray
    scales: np.ndarray
    group_of: np.ndarray

    @staticmethod
    def of(packing: Packing, parts: Mapping[str, RawTensor]) -> "PackedMatrix | None":
        """The matrix of tensors by the ends of their names; None if an input has no group."""
        words, scales = parts["qweight"].data, parts["scales"].to_f32()
        columns = len(words) * (WORD if packing.method == "gptq" else 1)
        group_of = np.arange(columns) // (packing.group or columns)
        if "g_idx" in parts:
            group_of = parts["g_idx"].data.astype(np.int64)
            if ((group_of < 0) | (group_of >= len(scales))).any():
                return None
        zeros = _unpacked(parts["qzeros"].data, packing.method).astype(np.int16)
        return PackedMatrix(packing, words, (zeros + packing.bias) & 15, scales, group_of)

    @property
    def format(self) -> str:
        """The format that has the values exactly."""
        blocks = self.group_of[: len(self.group_of) // BLOCK * BLOCK].reshape(-1, BLOCK)
        with np.errstate(over="ignore"):
            are_halves = (self.scales.astype(np.float16) == self.scales).all()
        if len(self.group_of) % BLOCK or (blocks != blocks[:, :1]).any() or not are_halves:
            return "F32"
        return "Q4_0" if (self.zeros == 8).all() else "Q5_0"

    def decode(self) -> RawTensor:
        """The matrix in its `format`."""
        packed_rows = self.words.T if self.packing.method == "gptq" else self.words
        q = _unpacked(packed_rows, self.packing.method)
        q = q if self.packing.method == "gptq" else q.T
        format, shape = self.format, q.shape
        if format == "F32":
            each = self.scales.T[:, self.group_of]
            return RawTensor(format, shape, each * (q - self.zeros.T[:, self.group_of]))
        groups = self.group_of[::BLOCK]
        scales = self.scales.T[:, groups].astype(np.float16)
        if format == "Q4_0":
            blocks = np.empty(scales.shape, BLOCKS["Q4_0"])
            blocks["scale"], blocks["q"] = scales, _halves(q.astype(np.uint8))
            return RawTensor(format, shape, blocks)
        q5 = (q.astype(np.int16) - self.zeros.T[:, self.group_of] + 16).astype(np.uint8)
        fifths = np.packbits((q5 >> 4).reshape(*scales.shape, BLOCK), axis=-1, bitorder="little")
        factors = np.ascontiguousarray(scales)[..., None].view(np.uint8)
        data = np.concatenate([factors, fifths, _halves(q5 & 15)], axis=-1)
        return RawTensor(format, shape, data.reshape(len(data), -1))


def _unpacked(words: np.ndarray, method: str) -> np.ndarray:
    """The values of words i32[rows, n / 8] by their place: uint8[rows, n]."""
    shifts = np.arange(0, 4 * WORD, 4, dtype=np.uint32)
    fours = (words.view(np.uint32)[..., None] >> shifts & 15).astype(np.uint8)
    if method == "awq":
        fours = fours[..., np.argsort(AWQ_ORDER)]
    return fours.reshape(len(words), -1)


def _halves(q: np.ndarray) -> np.ndarray:
    """The bytes of blocks: the first 16 of 32 values in low halves, uint8[rows, blocks, 16]."""
    pairs = q.reshape(len(q), -1, 2, BLOCK // 2)
    return np.asarray(pairs[:, :, 0] | pairs[:, :, 1] << 4, np.uint8)
