"""The functions of cuBLAS: products on NVIDIA's devices, of rows or of batches of matrices.

The second side may be transposed. Elements of 16 bits are summed in f32.
"""

from relax_mlir.dialects.graph import TensorType
from relax_mlir.dialects.lib import CUBLAS_NN, CUBLAS_NT

from .dispatch import register_dispatch
from .matching import Match

CUBLAS = (
    *("nvidia-cublas", "nvidia-cublas-cu12", "nvidia-cublas-cu11"),
    *("libcublas.so.13", "libcublas.so.12", "libcublas.so.11"),
)
"""Providers of cuBLAS: packages of Python, and what NVIDIA's toolkit installs."""
BATCHES = {"": [1, 0], "a, ": [0, 2, 1], "a, b, ": [0, 1, 3, 2]}
"""Dims in front of those of a matrix, and how such are transposed."""


def _has_the_element_of_its_operands(matched: Match) -> bool:
    return TensorType.of(matched.value).element == TensorType.of(matched["lhs"]).element


def _register(element: str, batch: str, axes: list[int]) -> None:
    suffix = f"_{len(axes)}d" if batch else ""
    lhs = f"%lhs: {element}[{batch}m, k]" if batch else f"%lhs: {element}[...m, k]"
    columns = f"%rhs: {element}[{batch}k, n]"
    transposed = f"permute_dims(%rhs: {element}[{batch}n, k]){{{{axes = {axes}}}}}".format()
    for convention, rhs in ((CUBLAS_NN, columns), (CUBLAS_NT, transposed)):  # the later one first
        register_dispatch(
            "cublas",
            f"cublas.{convention.removeprefix('cublas_')}_{element}{suffix}",
            f"matmul({lhs}, {rhs})",
            ("lhs", "rhs"),
            c_symbol="cublasGemmStridedBatchedEx",
            convention=convention,
            providers=CUBLAS,
            work="*".join([*batch.replace(",", "").split(), "m", "n", "k"]),
            check=_has_the_element_of_its_operands,
            device="cuda",
        )


for _element in ("f64", "f32", "bf16", "f16"):
    for _batch, _axes in BATCHES.items():
        _register(_element, _batch, _axes)
