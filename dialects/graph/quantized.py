"""Operators on block-quantised tensors: numbers of few bits that share a scale by 32 or more.

`quantize` rounds a matrix of floats, `dequantize` and `dequantize_rows` decode; files may also hold
schemes that nothing here rounds to.

Weights are kept in panels of 16 rows. Within a panel, four numbers that follow one another in a
row lie side by side, then those of the next row: a vector register holds four steps of 16 dot
products, the layout of the machines' 8-bit dot product instructions.

    scheme              element                      scale and minimum
    q8_0, q5_0, q4_0    scale * (q - zero)           f16, one for a block
    q5_1, q4_1          scale * q + minimum          f16, one of each for a block
    q4_k, q5_k          scale * q + minimum          i8, times the f16 of eight blocks
    q6_k                scale * (q - 32)             i8 for half a block, times such an f16
    q8_64, q8_128       scale * q                    f16, one for 64 or 128 numbers
    q4_64, q4_128       scale * (q - 8)              the same
    q4_64_minimum, ..   scale * q + minimum          f16, one of each for 64 or 128

Element (16 p + r, 32 b + 16 h + 4 g + j) of a matrix is q = data[p, b, h, g, r, j] in 8 bits. Of
narrower ones, the low four bits are half h (0: low) of the byte data[p, b, g, r, j]; a fifth is
bit 4 h + g of high[p, b, r, j], a fifth and sixth are bits 2 g and 2 g + 1 of high[p, b, h, r, j].
Scale and minimum are at [p, b, r], the former at [p, b, h, r] where half a block has its own, what
they are times at [p, b // 8, r]. Those of 64 and 128 are at [p, b // 2, r] and [p, b // 4, r].

Source: ggml `ggml-common.h` for what the schemes mean; the order is our own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import as_expr

from .elementwise import is_float, is_integer
from .op import FlagAttr, InferredOp
from .types import UNKNOWN, Dim, ShapeError, TensorType, as_dims, dims_differ

BLOCK = 32
"""Numbers along a row that share a scale, or two."""
PANEL = 16
"""Rows of a panel."""
NEST = 8
"""Blocks that share what their scales are times."""
PARTS = ("data", "scale", "minimum", "high", "outer_scale", "outer_minimum")
"""What a matrix consists of, in the order of operands."""


@dataclass(frozen=True)
class Scheme:
    """How numbers of `bits` bits are read, less `zero`, with or without a minimum.

    `scales` are those of a block; `is_nested` says that they are integers, times another number.
    `shared` is the number of blocks that have scale and minimum together.
    """

    bits: int
    zero: int = 0
    has_minimum: bool = False
    scales: int = 1
    is_nested: bool = False
    shared: int = 1

    @property
    def group(self) -> int:
        """Numbers that are rounded together: those that share a scale, or all of a block."""
        return BLOCK * self.shared

    def parts(self, panels: Dim | int, blocks: Dim | int) -> dict[str, tuple[str, tuple]]:
        """Element type (i8 or f16) and dims of each part of a matrix."""
        by_row = (PANEL,)
        factor = "i8" if self.is_nested else "f16"
        halves = () if self.scales == 1 else (self.scales,)
        data = (2, 4, PANEL, 4) if self.bits == 8 else (4, PANEL, 4)
        groups, nests = _divided(blocks, self.shared), _divided(blocks, NEST)
        parts = {"data": ("i8", (panels, blocks, *data))}
        parts["scale"] = (factor, (panels, groups, *halves, *by_row))
        if self.has_minimum:
            parts["minimum"] = (factor, (panels, groups, *by_row))
        if self.bits in (5, 6):
            planes = () if self.bits == 5 else (2,)
            parts["high"] = ("i8", (panels, blocks, *planes, PANEL, 4))
        if self.is_nested:
            parts["outer_scale"] = ("f16", (panels, nests, *by_row))
            if self.has_minimum:
                parts["outer_minimum"] = ("f16", (panels, nests, *by_row))
        return parts


BY_BLOCK = {
    "q8_0": Scheme(8),
    "q4_0": Scheme(4, zero=8),
    "q4_1": Scheme(4, has_minimum=True),
    "q5_0": Scheme(5, zero=16),
    "q5_1": Scheme(5, has_minimum=True),
    "q4_k": Scheme(4, has_minimum=True, is_nested=True),
    "q5_k": Scheme(5, has_minimum=True, is_nested=True),
    "q6_k": Scheme(6, zero=32, scales=2, is_nested=True),
}
"""The schemes of files, whose blocks have scales of their own."""

BY_GROUP = {
    "q8_64": Scheme(8, shared=2),
    "q8_128": Scheme(8, shared=4),
    "q4_64": Scheme(4, zero=8, shared=2),
    "q4_128": Scheme(4, zero=8, shared=4),
    "q4_64_minimum": Scheme(4, has_minimum=True, shared=2),
    "q4_128_minimum": Scheme(4, has_minimum=True, shared=4),
}
"""The schemes where several blocks share a scale: the same numbers, in fewer bytes."""

SCHEMES = BY_BLOCK | BY_GROUP

ROUNDED = ("q8_0", "q4_0", "q4_1", *BY_GROUP)
"""The schemes that `quantize` rounds to."""


class QuantizeOp(InferredOp, name="quantize", traits=[ext.Pure]):
    """Rounds a matrix to numbers of few bits, each 32 to 128 along `axis` by a scale of their own.

        matrix : tensor<n x k x float> (axis 1) or tensor<k x n x float> (axis 0)
        results : the parts of the scheme for n rows of k, in panels : see graph.dequantize

    Rows past the n-th, up to a whole panel, are zero. In f32, with factors then rounded to f16:

        q8_0  scale = max |x| / 127                   q = x / scale, -127 to 127
        q4_0  scale = x of max |x|, over -8           q = x / scale + 8, 0 to 15
        q4_1  scale = (max - min) / 15, minimum = min q = (x - minimum) / scale, 0 to 15

    q is rounded half to even, and as if x were 0 where the scale is 0. Factors go as far as f16
    does, to 65504: numbers beyond 8319008 (q8_0), 524032 (q4_0) or 65504 (q4_1) become the furthest
    that there are. Where a number is infinite or none, so is the scale. The schemes of 64 and 128
    numbers are as those of 32 with as many bits, of which a minimum has the name.

    C1  the scheme is one that floats can be rounded to
    C2  the matrix is of floats, of rank 2
    C3  `axis` is 0 or 1
    C4  k is a known multiple of 32, or of the 64 or 128 that share a scale

    Source: ggml `quantize_row_q8_0_ref` and so on, which round before factors are in f16.
    """

    data: ext.Result[Any]
    scale: ext.Result[Any]
    minimum: ext.Result[Any] | None
    matrix: ext.Operand[Any]
    scheme: ir.StringAttr = ext.attribute(kw_only=True)
    axis: ir.IntegerAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(matrix: TensorType, scheme: str, axis: int) -> list[TensorType]:
        if scheme not in ROUNDED:  # C1
            raise ShapeError(f"has scheme '{scheme}'; floats are rounded to {', '.join(ROUNDED)}")
        if not is_float(matrix.element) or matrix.dims is None or len(matrix.dims) != 2:  # C2
            raise ShapeError(f"expects a matrix of floats, but got '{matrix}'")
        if axis not in (0, 1):  # C3
            raise ShapeError(f"expects an axis of 0 or 1, but got {axis}")
        found = SCHEMES[scheme]
        n, k = matrix.dims[1 - axis], matrix.dims[axis]
        blocks = _blocks_of(k, "dim along blocks", found.group)  # C4
        panels = None if n is None else (n + (PANEL - 1)) // PANEL
        return [
            TensorType.make(dims, ir.Type.parse(element))
            for element, dims in found.parts(panels, blocks).values()
        ]


class DequantizeOp(InferredOp, name="dequantize", traits=[ext.Pure]):
    """Decodes a matrix from panels to f32.

        data : tensor<p x b x ...xi8>    the parts of the scheme : see above
        result : tensor<16*p x 32*b x f32>

    C1  the scheme is known
    C2  the parts are those of the scheme
    C3  each part has the element type and the dims of the scheme
    C4  where blocks share a factor, their number is a known multiple of 2, 4 or 8
    """

    result: ext.Result[Any]
    data: ext.Operand[Any]
    scale: ext.Operand[Any]
    minimum: ext.Operand[Any] | None = None
    high: ext.Operand[Any] | None = None
    outer_scale: ext.Operand[Any] | None = None
    outer_minimum: ext.Operand[Any] | None = None
    scheme: ir.StringAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(*parts: TensorType | None, scheme: str) -> TensorType:
        panels, blocks = _check_parts(scheme, parts)
        return TensorType((_times(panels, PANEL), _times(blocks, BLOCK)), ir.F32Type.get())


class DequantizeRowsOp(InferredOp, name="dequantize_rows", traits=[ext.Pure]):
    """Decodes the rows of a matrix that indices name, an embedding lookup.

        indices : tensor<n, integer>    the others : see graph.dequantize
        result : tensor<n x 32*b x f32>

    An index outside of the rows is clamped to them.

    C1  the indices are integers of rank 1
    C2  the parts are those of the scheme
    """

    result: ext.Result[Any]
    indices: ext.Operand[Any]
    data: ext.Operand[Any]
    scale: ext.Operand[Any]
    minimum: ext.Operand[Any] | None = None
    high: ext.Operand[Any] | None = None
    outer_scale: ext.Operand[Any] | None = None
    outer_minimum: ext.Operand[Any] | None = None
    scheme: ir.StringAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(
        indices: TensorType, *parts: TensorType | None, scheme: str
    ) -> TensorType:
        if not is_integer(indices.element) or indices.dims is None or len(indices.dims) != 1:  # C1
            raise ShapeError(f"expects integer indices of rank 1, but got '{indices}'")
        _, blocks = _check_parts(scheme, parts)  # C2
        return TensorType((indices.dims[0], _times(blocks, BLOCK)), ir.F32Type.get())


class QuantizeBlocksOp(InferredOp, name="quantize_blocks", traits=[ext.Pure]):
    """Rounds each block of 32 along the last dim to 8 bits.

        input : tensor<..., kxf32>    values : tensor<..., kxi8>
        scale, offset : tensor<..., k/32xf32>

    Symmetric, there is no offset; otherwise numbers lie between the least and the greatest of the
    block, which leaves half to a third of the error where few numbers are far greater than others:

        symmetric  scale = max |input| / 127    values = input / scale
        otherwise  scale = (max - min) / 254    values = (input - min) / scale, less 127
                   offset = min + (max - min) / 2

    Quotients are rounded half to even; they are 0 where max |input|, or half of max - min, is below
    1e-36. No value is -128, whose negation some machines' dot products need and cannot hold. Where
    an input is NaN or infinite, so is the scale of its block, and quotients of NaN give -127.

    C1  the input is f32 of rank 1 or more
    C2  k is a known multiple of 32

    Source: ggml `quantize_row_q8_0`, which keeps the scale in f16.
    """

    values: ext.Result[Any]
    scale: ext.Result[Any]
    offset: ext.Result[Any] | None
    input: ext.Operand[Any]
    symmetric: FlagAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(input: TensorType, symmetric: bool) -> list[TensorType]:
        if not isinstance(input.element, ir.F32Type) or not input.dims:  # C1
            raise ShapeError(f"expects f32 of rank 1 or more, but got '{input}'")
        *lead, k = input.dims
        i8 = ir.IntegerType.get_signless(8)
        factor = TensorType.make([*lead, _blocks_of(k)], input.element)
        return [TensorType(input.dims, i8), *([factor] if symmetric else [factor, factor])]


class DequantizeBlocksOp(InferredOp, name="dequantize_blocks", traits=[ext.Pure]):
    """Decodes what `quantize_blocks` made: values * scale, plus the offset if there is one.

        values : tensor<..., kxi8>    scale, offset : tensor<..., k/32xf32>
        result : tensor<..., kxf32>

    C1  the values are i8 of rank 1 or more, scale and offset are f32
    C2  the last dim of the values is a known multiple of 32
    C3  the dims of scale and offset are those of the blocks
    """

    result: ext.Result[Any]
    values: ext.Operand[Any]
    scale: ext.Operand[Any]
    offset: ext.Operand[Any] | None = None

    @staticmethod
    def infer_return_type(
        values: TensorType, scale: TensorType, offset: TensorType | None = None
    ) -> TensorType:
        f32 = ir.F32Type.get()
        factors = {"scale": scale} if offset is None else {"scale": scale, "offset": offset}
        for name, factor in factors.items():
            if not _is_i8(values) or not values.dims or factor.element != f32:  # C1
                got = f"'{values}' and '{factor}'"
                raise ShapeError(f"expects i8 values and an f32 {name}, but got {got}")
            *lead, k = values.dims
            dims = (*lead, as_expr(_blocks_of(k)))
            _require_dims(f"{'an' if name == 'offset' else 'a'} {name}", factor, dims)  # C2, C3
        return TensorType(values.dims, f32)


def _blocks_of(k: Dim, what: str = "last dim", unit: int = BLOCK) -> int:
    """The number of blocks in k elements, which have to be a multiple of `unit`."""
    if k is None or k.value is None or k.value % unit:
        raise ShapeError(f"expects a {what} that is a multiple of {unit}, but got {k}")
    return k.value // BLOCK


def _check_parts(scheme: str, parts: tuple[TensorType | None, ...]) -> tuple[Dim, Dim]:
    """Checks the operands that hold a matrix; returns the numbers of panels and blocks."""
    if scheme not in SCHEMES:  # C1
        raise ShapeError(f"has scheme '{scheme}'; accepted are {', '.join(SCHEMES)}")
    found = SCHEMES[scheme]
    given: Mapping[str, TensorType] = {
        name: part for name, part in zip(PARTS, parts) if part is not None
    }
    expected = found.parts(0, 0)
    for name in PARTS:  # C2
        if (name in given) != (name in expected):
            takes = "takes" if name in expected else "takes no"
            raise ShapeError(f"has scheme '{scheme}', which {takes} operand '{name}'")
    data, rank = given["data"], len(expected["data"][1])
    if not _is_i8(data) or data.dims is None or len(data.dims) != rank:  # C3
        raise ShapeError(f"expects i8 data of rank {rank}, but got '{data}'")
    panels, blocks = data.dims[:2]
    unit = NEST if found.is_nested else found.shared
    if unit > 1 and (blocks is None or blocks.value is None or blocks.value % unit):  # C4
        raise ShapeError(f"expects a multiple of {unit} blocks, but got {blocks}")
    for name, (element, dims) in found.parts(panels, blocks).items():
        if str(given[name].element) != element:
            raise ShapeError(f"expects '{name}' of {element}, but got {given[name].element}")
        _require_dims(f"'{name}'", given[name], as_dims(dims))
    return panels, blocks


def _require_dims(what: str, operand: TensorType, dims: Sequence[Dim]) -> None:
    found = operand.dims
    if found is None or len(found) != len(dims) or any(map(dims_differ, found, dims)):
        expected = ", ".join(UNKNOWN if dim is None else str(dim) for dim in dims)
        raise ShapeError(f"expects {what} of dims [{expected}], but got '{operand}'")


def _divided(dim: Dim | int, by: int) -> Dim | int:
    return None if dim is None else dim // by


def _times(dim: Dim, factor: int) -> Dim:
    return None if dim is None else dim * factor


def _is_i8(annotation: TensorType) -> bool:
    return annotation.element == ir.IntegerType.get_signless(8)
