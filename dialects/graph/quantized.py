"""Operators on block-quantised tensors: numbers of few bits that share a scale by blocks of 32.

Weights are kept in panels of 16 rows. Within a panel, four numbers that follow one another in a
row lie side by side, then those of the next row: a vector register holds four steps of 16 dot
products, the layout of the machines' 8-bit dot product instructions.

    scheme   element                   data                          with q in
    q8_0     scale * q                 i8 [p, b, 2, 4, 16, 4]        -128 to 127
    q4_0     scale * (q - 8)           i8 [p, b, 4, 16, 4]           0 to 15, two to a byte
    q4_1     scale * q + minimum       i8 [p, b, 4, 16, 4]           0 to 15, two to a byte

Element (16 p + r, 32 b + 16 h + 4 g + j) of a matrix is q = data[p, b, h, g, r, j], or the half h
(0: low) of the byte data[p, b, g, r, j]; its scale and minimum are at [p, b, r], in f16.

Source: ggml `ggml-common.h` for what the schemes mean; the order is our own.
"""

from dataclasses import dataclass
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import as_expr

from .elementwise import is_integer
from .op import InferredOp
from .types import ShapeError, TensorType, dims_differ

BLOCK = 32
"""Numbers along a row that share a scale."""
PANEL = 16
"""Rows of a panel."""


@dataclass(frozen=True)
class Scheme:
    """How numbers of `bits` bits are read: signed or less `zero`, with or without a minimum."""

    bits: int
    zero: int = 0
    has_minimum: bool = False

    @property
    def inner(self) -> tuple[int, ...]:
        """Dims of a block of a panel."""
        return (2, 4, PANEL, 4) if self.bits == 8 else (4, PANEL, 4)


SCHEMES = {"q8_0": Scheme(8), "q4_0": Scheme(4, zero=8), "q4_1": Scheme(4, has_minimum=True)}


class DequantizeOp(InferredOp, name="dequantize", traits=[ext.Pure]):
    """Decodes a matrix from panels to f32.

        data : tensor<p, b, ...xi8>    scale, minimum : tensor<p, b, 16xf16>
        result : tensor<16*p x 32*b x f32>

    C1  the scheme is known
    C2  the data is i8 and has the dims of the scheme
    C3  a minimum is given just where the scheme has one
    C4  scale and minimum are f16 [p, b, 16]
    """

    result: ext.Result[Any]
    data: ext.Operand[Any]
    scale: ext.Operand[Any]
    minimum: ext.Operand[Any] | None = None
    scheme: ir.StringAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(
        data: TensorType, scale: TensorType, minimum: TensorType | None = None, *, scheme: str
    ) -> TensorType:
        _check_panels(scheme, data, scale, minimum)
        panels, blocks = data.dims[:2]
        return TensorType.make([panels * PANEL, blocks * BLOCK], ir.F32Type.get())


class DequantizeRowsOp(InferredOp, name="dequantize_rows", traits=[ext.Pure]):
    """Decodes the rows of a matrix that indices name, an embedding lookup.

        indices : tensor<n, integer>    data, scale, minimum : see graph.dequantize
        result : tensor<n x 32*b x f32>

    An index outside of the rows is clamped to them.

    C1  the indices are integers of rank 1
    C2  data, scale and minimum are those of the scheme
    """

    result: ext.Result[Any]
    indices: ext.Operand[Any]
    data: ext.Operand[Any]
    scale: ext.Operand[Any]
    minimum: ext.Operand[Any] | None = None
    scheme: ir.StringAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(
        indices: TensorType,
        data: TensorType,
        scale: TensorType,
        minimum: TensorType | None = None,
        *,
        scheme: str,
    ) -> TensorType:
        if not is_integer(indices.element) or indices.dims is None or len(indices.dims) != 1:  # C1
            raise ShapeError(f"expects integer indices of rank 1, but got '{indices}'")
        _check_panels(scheme, data, scale, minimum)  # C2
        return TensorType.make([indices.dims[0], data.dims[1] * BLOCK], ir.F32Type.get())


class QuantizeBlocksOp(InferredOp, name="quantize_blocks", traits=[ext.Pure]):
    """Rounds each block of 32 along the last dim to 8 bits, by its greatest magnitude.

        input : tensor<..., kxf32>    values : tensor<..., kxi8>    scale : tensor<..., k/32xf32>
        scale = max |input| / 127, values = input / scale rounded half to even, 0 below 1e-36

    C1  the input is f32 of rank 1 or more
    C2  k is a known multiple of 32

    Source: ggml `quantize_row_q8_0`, which keeps the scale in f16.
    """

    values: ext.Result[Any]
    scale: ext.Result[Any]
    input: ext.Operand[Any]

    @staticmethod
    def infer_return_type(input: TensorType) -> list[TensorType]:
        if not isinstance(input.element, ir.F32Type) or not input.dims:  # C1
            raise ShapeError(f"expects f32 of rank 1 or more, but got '{input}'")
        *lead, k = input.dims
        i8 = ir.IntegerType.get_signless(8)
        return [
            TensorType(input.dims, i8),
            TensorType.make([*lead, _blocks_of(k)], input.element),
        ]


class DequantizeBlocksOp(InferredOp, name="dequantize_blocks", traits=[ext.Pure]):
    """Decodes what `quantize_blocks` made: values * scale.

        values : tensor<..., kxi8>    scale : tensor<..., k/32xf32>
        result : tensor<..., kxf32>

    C1  the values are i8 of rank 1 or more, the scale is f32
    C2  the last dim of the values is a known multiple of 32
    C3  the scale's dims are those of the blocks
    """

    result: ext.Result[Any]
    values: ext.Operand[Any]
    scale: ext.Operand[Any]

    @staticmethod
    def infer_return_type(values: TensorType, scale: TensorType) -> TensorType:
        f32 = ir.F32Type.get()
        if not _is_i8(values) or not values.dims or scale.element != f32:  # C1
            got = f"'{values}' and '{scale}'"
            raise ShapeError(f"expects i8 values and an f32 scale, but got {got}")
        *lead, k = values.dims
        _require_dims("a scale", scale, (*lead, as_expr(_blocks_of(k))))  # C2, C3
        return TensorType(values.dims, f32)


def _blocks_of(k) -> int:
    """The number of blocks in k elements."""
    if k is None or k.value is None or k.value % BLOCK:
        raise ShapeError(f"expects a last dim that is a multiple of {BLOCK}, but got {k}")
    return k.value // BLOCK


def _check_panels(
    scheme: str, data: TensorType, scale: TensorType, minimum: TensorType | None
) -> None:
    """Checks the operands that hold a matrix."""
    if scheme not in SCHEMES:  # C1
        raise ShapeError(f"has scheme '{scheme}'; accepted are {', '.join(SCHEMES)}")
    found = SCHEMES[scheme]
    if not _is_i8(data) or data.dims is None or len(data.dims) != 2 + len(found.inner):  # C2
        raise ShapeError(f"expects i8 data of rank {2 + len(found.inner)}, but got '{data}'")
    panels, blocks, *_ = data.dims
    _require_dims("data", data, (panels, blocks, *map(as_expr, found.inner)))
    if (minimum is not None) != found.has_minimum:  # C3
        takes = "takes a" if found.has_minimum else "takes no"
        raise ShapeError(f"has scheme '{scheme}', which {takes} minimum")
    for what, operand in (("a scale", scale), ("a minimum", minimum)):  # C4
        if operand is not None:
            if operand.element != ir.F16Type.get():
                raise ShapeError(f"expects {what} of f16, but got {operand.element}")
            _require_dims(what, operand, (panels, blocks, as_expr(PANEL)))


def _require_dims(what: str, operand: TensorType, dims: tuple) -> None:
    found = operand.dims
    if found is None or len(found) != len(dims) or any(map(dims_differ, found, dims)):
        expected = ", ".join(map(str, dims))
        raise ShapeError(f"expects {what} of dims [{expected}], but got '{operand}'")


def _is_i8(annotation: TensorType) -> bool:
    return annotation.element == ir.IntegerType.get_signless(8)
