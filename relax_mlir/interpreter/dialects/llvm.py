"""The semantics of the CPU instructions that schedules emit as LLVM intrinsics.

Source: Intel intrinsics guide; Arm architecture reference manual.
"""

import re
from collections.abc import Callable

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.elements import round_to, widen
from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]

Instruction = Callable[..., np.ndarray]


def _groups(x: np.ndarray, element: type, size: int) -> np.ndarray:
    """Lanes as rows of `size` elements of a narrower type, as 64-bit integers."""
    return np.ascontiguousarray(x).view(element).reshape(-1, size).astype(np.int64)


def _products(
    a: np.ndarray, b: np.ndarray, left: type, right: type, size: int, sums: np.ndarray | int = 0
) -> np.ndarray:
    """Sums of `size` products each, modulo 2^32."""
    sums_ = (_groups(a, left, size) * _groups(b, right, size)).sum(-1) + sums
    return sums_.astype(np.int32)


def _dot_of_unsigned(sums: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _products(a, b, np.uint8, np.int8, 4, sums)


def _dot_of_signed(sums: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _products(a, b, np.int8, np.int8, 4, sums)


def _dot_of_both_unsigned(sums: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _products(a, b, np.uint8, np.uint8, 4, sums)


def _matrices(left: type, right: type) -> Instruction:
    """Products of two rows and two columns of eight elements in each 16 bytes."""

    def instruction(sums: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        rows, columns = _groups(a, left, 16), _groups(b, right, 16)
        shape = (-1, 2, 8)
        products = np.einsum("sik,sjk->sij", rows.reshape(shape), columns.reshape(shape))
        return (products.reshape(sums.shape) + sums).astype(np.int32)

    return instruction


def _pairs_of_words(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _products(a, b, np.int16, np.int16, 2)


def _saturated_pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    pairs = (_groups(a, np.uint8, 2) * _groups(b, np.int8, 2)).sum(-1)
    return np.clip(pairs, -(2**15), 2**15 - 1).astype(np.int16)


def _with_sign_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * np.sign(b)).astype(a.dtype)


def _bf16_pairs(sums: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    products = widen(a, "bf16").astype(np.float64) * widen(b, "bf16")
    return (products.reshape(-1, 2).sum(-1) + sums).astype(np.float32)


INSTRUCTIONS: dict[str, Instruction] = {
    r"x86\.avx512\.vpdpbusd\.\d+|aarch64\.neon\.usdot": _dot_of_unsigned,
    r"aarch64\.neon\.sdot": _dot_of_signed,
    r"aarch64\.neon\.udot": _dot_of_both_unsigned,
    r"aarch64\.neon\.smmla": _matrices(np.int8, np.int8),
    r"aarch64\.neon\.ummla": _matrices(np.uint8, np.uint8),
    r"aarch64\.neon\.usmmla": _matrices(np.uint8, np.int8),
    r"x86\.(sse2\.pmadd\.wd|avx2\.pmadd\.wd|avx512\.pmaddw\.d\.512)": _pairs_of_words,
    r"wasm\.dot": _pairs_of_words,
    r"x86\.avx2\.pmadd\.ub\.sw": _saturated_pairs,
    r"x86\.avx2\.psign\.b": _with_sign_of,
    r"x86\.avx512bf16\.dpbf16ps\.512|aarch64\.neon\.bfdot": _bf16_pairs,
    r"x86\.avx512bf16\.cvtneps2bf16\.512": lambda x: round_to(x, "bf16"),
}


def call_intrinsic(*operands: np.ndarray, intrin: str, result: ir.VectorType) -> np.ndarray:
    """The result of the instruction of that name."""
    for pattern, instruction in INSTRUCTIONS.items():
        if re.fullmatch(rf"llvm\.(?:{pattern})", intrin):
            return instruction(*operands).reshape(result.shape)
    raise ValueError(f"calls {intrin}, which the interpreter does not know")
