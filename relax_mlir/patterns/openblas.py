"""The functions of OpenBLAS: rows of f32 or f64 times one matrix, which may be transposed.

Convolutions by products are a library of their own, `openblas_conv`: where they need no more memory
than our own ones, these are faster.
"""

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import Dim
from relax_mlir.dialects.lib import IM2COL
from relax_mlir.symbolic import const

from .dispatch import register_dispatch
from .matching import Match

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


def _register_convolution() -> None:
    register_dispatch(
        "openblas_conv",
        "openblas.conv2d",
        "nn_conv2d(%x: f32[n, c, h, w], %f: f32[o, c, p, q]){groups = 1}: [n, o, i, j]",
        ("x", "f"),
        c_symbol="scipy_cblas_sgemm64_",
        convention=IM2COL,
        providers=OPENBLAS,
        work="n*o*i*j*c*p*q",
        arguments=_integers,
    )


def _integers(matched: Match) -> list[Dim]:
    attributes = matched.value.owner.attributes
    names = "strides", "padding", "dilation"
    return [const(each) for name in names for each in ir.DenseI64ArrayAttr(attributes[name])]


_register("d", "f64")
_register("s", "f32")
_register_convolution()
