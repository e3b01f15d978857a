"""The functions of OpenBLAS: rows of f32 or f64 times one matrix, which may be transposed."""

from .dispatch import register_dispatch

OPENBLAS = ("scipy-openblas64", "numpy")
"""Providers of OpenBLAS with 64-bit integers and this prefix, preferred first."""


def _register(letter: str, element: str) -> None:
    rows, columns = f"%lhs: {element}[...m, k]", f"%rhs: {element}[k, n]"
    transposed = f"permute_dims(%rhs: {element}[n, k]){{axes = [1, 0]}}"
    for kind, rhs in (("nn", columns), ("nt", transposed)):  # later rows are tried first
        register_dispatch(
            "openblas",
            f"openblas.{letter}gemm_{kind}",
            f"matmul({rows}, {rhs})",
            ("lhs", "rhs"),
            c_symbol=f"scipy_cblas_{letter}gemm64_",
            convention=f"cblas_{letter}gemm_{kind}",
            providers=OPENBLAS,
            work="m*n*k",
        )


_register("d", "f64")
_register("s", "f32")
