"""What the calling conventions of library functions ask of operands, and what they return."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph.convolution import Conv2dOp
from relax_mlir.dialects.graph.types import (
    Dim,
    ShapeError,
    TensorType,
    dims_differ,
    exact_dims,
)
from relax_mlir.symbolic import const, product

DLPACK = "dlpack"
"""The convention of functions that take DLPack descriptors; it asks nothing of operands."""

Rule = Callable[[Sequence[TensorType], Sequence[Dim]], TensorType]
"""From operands, and the integers that a call passes on, to the result."""


def _require_operands(operands: Sequence[TensorType], element: ir.Type | None) -> None:
    """Raises ShapeError unless there are two operands of an element type."""
    if len(operands) != 2:
        raise ShapeError(f"expects 2 operands, but got {len(operands)}")
    for operand in operands:
        if operand.element != element:
            raise ShapeError(f"expects elements of {element}, but got {operand.element}")


def _gemm(letter: str, transpose_rhs: bool) -> Rule:
    """lhs [rows.., k] times rhs [k, n], or [n, k] if it is transposed: [rows.., n], all f32 or f64.

    BLAS names element types by letters: s is f32, d is f64.
    """

    def rule(operands: Sequence[TensorType], _: Sequence[Dim]) -> TensorType:
        _require_operands(operands, ir.F32Type.get() if letter == "s" else ir.F64Type.get())
        lhs, rhs = operands
        if lhs.dims is None or len(lhs.dims) < 1 or rhs.dims is None or len(rhs.dims) != 2:
            raise ShapeError(f"expects ranks of at least 1 and of 2, but got '{lhs}' and '{rhs}'")
        *rows, k = lhs.dims
        n, depth = rhs.dims if transpose_rhs else reversed(rhs.dims)
        if dims_differ(k, depth):
            raise ShapeError(f"contracts dim {k} of lhs with dim {depth} of rhs")
        return TensorType((*rows, n), lhs.element)

    return rule


def _conv2d(operands: Sequence[TensorType], arguments: Sequence[Dim]) -> TensorType:
    """`graph.nn_conv2d` of one group and f32, whose strides, padding and dilation are integers."""
    _require_operands(operands, ir.F32Type.get())
    known = [each.value for each in arguments if each is not None and each.value is not None]
    if len(known) != 8 or len(arguments) != 8:
        listed = ", ".join(map(str, arguments))
        raise ShapeError(
            f"expects 8 constants, of strides, padding and dilation, but got ({listed})"
        )
    images, filters = operands
    strides, padding, dilation = known[:2], known[2:6], known[6:]
    return Conv2dOp.infer_return_type(images, filters, strides, padding, dilation, groups=1)


CUBLAS_NN, CUBLAS_NT = "cublas_gemm_nn", "cublas_gemm_nt"
"""Products on an NVIDIA device, the second side of which is transposed or not."""


def _cublas(transpose_rhs: bool) -> Rule:
    """lhs [rows.., k] times rhs [k, n], or lhs [batch.., m, k] times rhs [batch.., k, n].

    Both are of f16, bf16, f32 or f64; rhs is [n, k], or [batch.., n, k], if it is transposed.
    """

    def rule(operands: Sequence[TensorType], _: Sequence[Dim]) -> TensorType:
        kinds = (ir.F16Type.get(), ir.BF16Type.get(), ir.F32Type.get(), ir.F64Type.get())
        element = operands[0].element if operands else None
        if element not in kinds:
            known = ", ".join(map(str, kinds))
            raise ShapeError(f"expects elements of one of {known}, but got {element}")
        _require_operands(operands, element)
        lhs, rhs = operands
        if lhs.dims is None or rhs.dims is None or len(rhs.dims) not in (2, len(lhs.dims)):
            raise ShapeError(f"expects rhs of rank 2, or that of lhs, but got '{lhs}' and '{rhs}'")
        if len(lhs.dims) < (1 if len(rhs.dims) == 2 else 3):
            raise ShapeError(f"expects rows and columns, but got '{lhs}' and '{rhs}'")
        *rows, k = lhs.dims
        *batch, first, second = rhs.dims
        n, depth = (first, second) if transpose_rhs else (second, first)
        if dims_differ(k, depth) or any(map(dims_differ, rows, batch)):
            raise ShapeError(f"cannot multiply '{lhs}' by '{rhs}'")
        return TensorType((*rows, n), lhs.element)

    return rule


IM2COL = "im2col_sgemm"
"""The convention of convolutions by `cblas_sgemm`, with a workspace for the windows of an image."""

RULES: dict[str, Rule] = {
    **{
        f"cblas_{letter}gemm_{kind}": _gemm(letter, transpose_rhs=kind == "nt")
        for letter in "sd"
        for kind in ("nn", "nt")
    },
    CUBLAS_NN: _cublas(transpose_rhs=False),
    CUBLAS_NT: _cublas(transpose_rhs=True),
    IM2COL: _conv2d,
}
"""Conventions that `lib.function` may name, and their deduction rules."""


def workspaces(
    convention: str, operands: Sequence[TensorType], arguments: Sequence[Dim]
) -> tuple[Dim, ...]:
    """The bytes of each workspace that a function takes by a convention of `RULES`.

    Raises ShapeError for operands that the convention does not take, or whose dims are not known.
    """
    if convention != IM2COL:
        return ()
    pixels = exact_dims(_conv2d(operands, arguments).dims)[2:]
    window = exact_dims(operands[1].dims)[1:]
    return (product((const(4), *window, *pixels)),)
