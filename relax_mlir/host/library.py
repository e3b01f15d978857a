"""Calling conventions of external libraries: how a library call becomes C arguments."""

from collections.abc import Callable, Sequence
from typing import Protocol

POINTER = "!llvm.ptr"
ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 111, 112


class Writer(Protocol):
    """What a convention needs of the function being written."""

    def value(self, text: str) -> str:
        """Appends an operation with one result; returns the result's name."""

    def line(self, text: str) -> None:
        """Appends an operation without results."""


class Tensor(Protocol):
    """A tensor argument: the pointer's and the dims' SSA names."""

    @property
    def pointer(self) -> str:
        """The pointer's name."""

    @property
    def dims(self) -> Sequence[str]:
        """The dims' names."""


Convention = Callable[[Writer, str, Sequence[Tensor]], None]


def _cblas_gemm(transpose_rhs: bool) -> Convention:
    """`cblas_sgemm` with 64-bit integers: rows of `lhs` and all its leading dims are one m."""

    def emit(writer: Writer, function: str, tensors: Sequence[Tensor]) -> None:
        lhs, rhs, out = tensors
        *rows, k = lhs.dims
        n = rhs.dims[0] if transpose_rhs else rhs.dims[1]
        m = writer.value("arith.constant 1 : index")
        for row in rows:
            m = writer.value(f"arith.muli {m}, {row} : index")
        sizes = [writer.value(f"arith.index_cast {size} : index to i64") for size in (m, n, k)]
        one_i64 = writer.value("arith.constant 1 : i64")
        # BLAS refuses a leading dim of 0, even of an empty matrix.
        ldb, ldc, lda = (
            writer.value(f"arith.maxsi {size}, {one_i64} : i64")
            for size in (sizes[2] if transpose_rhs else sizes[1], sizes[1], sizes[2])
        )
        order, left, right = (
            writer.value(f"arith.constant {flag} : i32")
            for flag in (ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE if transpose_rhs else NO_TRANSPOSE)
        )
        one = writer.value("arith.constant 1.0 : f32")
        zero = writer.value("arith.constant 0.0 : f32")
        arguments = [order, left, right, *sizes, one, lhs.pointer, lda, rhs.pointer, ldb]
        arguments += [zero, out.pointer, ldc]
        types = ["i32"] * 3 + ["i64"] * 3 + ["f32", POINTER, "i64", POINTER, "i64"]
        types += ["f32", POINTER, "i64"]
        writer.line(
            f"llvm.call {function}({', '.join(arguments)}) : !llvm.ptr, ({', '.join(types)}) -> ()"
        )

    return emit


CONVENTIONS: dict[str, Convention] = {
    "cblas_sgemm_nn": _cblas_gemm(transpose_rhs=False),
    "cblas_sgemm_nt": _cblas_gemm(transpose_rhs=True),
}
"""Conventions that `lib.function` may name."""


def slot_name(library_function: str) -> str:
    """Name of the global that holds the address of a library function, set at load time."""
    return "rx_lib_" + library_function.replace(".", "_")
