"""Operators on the bits of elements: bitcast, and words of random bits."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import const

from .dialect import ShapeAttr
from .elementwise import is_float, is_integer
from .op import InferredOp
from .types import (
    Dim,
    ShapeError,
    TensorType,
    as_dims,
    dims_differ,
    element_bits,
    is_small_float,
    known_dims,
)


class BitcastOp(InferredOp, name="bitcast", traits=[ext.Pure]):
    """The bits of each element, as an element of another type.

    C1  both element types are numbers
    C2  they have as many bits

    Source: StableHLO `bitcast_convert`; ONNX `BitCast`; ATen `view.dtype`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    dtype: ir.TypeAttr

    @staticmethod
    def infer_return_type(input: TensorType, dtype: ir.Type) -> TensorType:
        if not _has_bits(input.element):  # C1
            raise ShapeError(f"expects a number element type, but got {input.element}")
        if not _has_bits(dtype):
            raise ShapeError(f"expects a float or integer dtype, but got {dtype}")
        if element_bits(dtype) != element_bits(input.element):  # C2
            raise ShapeError(f"expects types of as many bits, but got {input.element} and {dtype}")
        return TensorType(input.dims, dtype)


def _has_bits(element: ir.Type) -> bool:
    return is_float(element) or is_integer(element) or is_small_float(element)


class PhiloxOp(InferredOp, name="philox", traits=[ext.Pure]):
    """Words of 32 random bits, four of each of so many blocks: the same on every target.

    The state is a key and the counter of the first block. Block i is Philox4x32-10 of the key and
    of the counter plus i, which wraps; the lower 32 bits of each come first.

    C1  the state is a tensor of two i64
    C2  the count of blocks is one known expression

    Source: Salmon et al., SC 2011 (Random123); StableHLO `rng_bit_generator`.
    """

    first: ext.Result[Any]
    second: ext.Result[Any]
    third: ext.Result[Any]
    fourth: ext.Result[Any]
    state: ext.Operand[Any]
    blocks: ShapeAttr

    @staticmethod
    def infer_return_type(state: TensorType, blocks: Sequence[Dim]) -> Sequence[TensorType]:
        if state.element != ir.IntegerType.get_signless(64) or (
            state.dims is not None
            and (len(state.dims) != 1 or dims_differ(state.dims[0], const(2)))
        ):  # C1
            raise ShapeError(f"expects a state of two i64, but got '{state}'")
        counts = known_dims(as_dims(blocks))
        if counts is None or len(counts) != 1:  # C2
            raise ShapeError(f"expects one count of blocks, but got {len(blocks)}")
        return [TensorType.make(counts, ir.IntegerType.get_signless(32))] * 4
