"""Calling conventions of external libraries: the C arguments of library calls."""

import string
from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, llvm
from relax_mlir.dialects.lib import IM2COL

from .builder import Builder

ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 111, 112

Operand = tuple[ir.Value, Sequence[ir.Value]]
"""A tensor argument: its pointer and its dims."""

Convention = Callable[[Builder, ir.Value, Sequence[Operand], Sequence[ir.Value]], None]
"""Appends the call of a C function, given as a pointer, with tensors and integers."""


def _cblas_gemm(letter: str, transpose_rhs: bool) -> Convention:
    """`cblas_sgemm` or `cblas_dgemm` with 64-bit integers.

    The rows of `lhs` and all its leading dims are one m.
    """

    def emit(
        out: Builder, function: ir.Value, tensors: Sequence[Operand], _: Sequence[ir.Value]
    ) -> None:
        (lhs, (*rows, k)), (rhs, rhs_dims), (result, _) = tensors
        m, n = out.product(rows), rhs_dims[0 if transpose_rhs else 1]
        # BLAS refuses a leading dim of 0, even of an empty matrix.
        lda, ldb, ldc = (
            arith.maxsi(size, out.integer(1), ip=out.at)
            for size in (k, k if transpose_rhs else n, n)
        )
        order, left, right = (
            out.integer(flag, out.i32)
            for flag in (ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE if transpose_rhs else NO_TRANSPOSE)
        )
        element = ir.F32Type.get() if letter == "s" else ir.F64Type.get()
        one, zero = (out.real(ir.FloatAttr.get(element, x)) for x in (1.0, 0.0))
        arguments = [order, left, right, m, n, k, one, lhs, lda, rhs, ldb, zero, result, ldc]
        llvm.CallOp(None, [function, *arguments], [], [], ip=out.at)

    return emit


def _im2col_sgemm(
    out: Builder, function: ir.Value, tensors: Sequence[Operand], integers: Sequence[ir.Value]
) -> None:
    """`rx_im2col_sgemm` with an `RxConv2d`; the last tensor is the workspace."""
    dims, (count, _, *window), (_, _, *pixels), _ = (each for _, each in tensors)
    fields = [*dims, count, *window, *pixels, *integers]
    conv = out.stack(len(fields))
    out.store_integers(fields, conv)
    pointers = [pointer for pointer, _ in tensors]
    out.call_runtime("rx_im2col_sgemm", [function, conv, *pointers])


CONVENTIONS: dict[str, Convention] = {
    **{
        f"cblas_{letter}gemm_{kind}": _cblas_gemm(letter, transpose_rhs=kind == "nt")
        for letter in "sd"
        for kind in ("nn", "nt")
    },
    IM2COL: _im2col_sgemm,
}
"""Conventions that `lib.function` may name."""


LETTERS = string.ascii_letters + string.digits


def slot_name(library_function: str) -> str:
    """Name of the global that holds the address of a library function, set at load time.

    Other functions have other names: what is no letter or digit becomes `_` and its code.
    """
    return "rx_lib_" + "".join(
        chr(byte) if chr(byte) in LETTERS else f"_{byte:02x}" for byte in library_function.encode()
    )
