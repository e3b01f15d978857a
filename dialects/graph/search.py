"""Operators that find positions: argmax, argmin, searchsorted, first_nonzero (TVM `search`)."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import const

from .data_dependent import require_elements_that_compare
from .dialect import ShapeAttr
from .elementwise import require_number, require_one_element_type
from .op import FlagAttr, InferredOp
from .statistical import reduced_type
from .types import Dim, ShapeError, TensorType, as_dims, dims_differ, known_dims


class _ArgReduceOp(InferredOp, traits=[ext.Pure]):
    """The position along one axis of an extreme element, as i64; the first of equal ones."""

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axis: ir.IntegerAttr
    keepdims: FlagAttr

    @staticmethod
    def infer_return_type(input: TensorType, axis: int, keepdims: bool) -> TensorType:
        """C1: the axis is in range; C2: the element type is a number."""
        require_number(input)
        dims = reduced_type(input, [axis], keepdims).dims
        return TensorType(dims, ir.IntegerType.get_signless(64))


class ArgmaxOp(_ArgReduceOp, name="argmax"):
    """The position of the greatest element, or of the first NaN.

    C1  the axis is in range
    C2  the element type is a number

    Source: array API 2023.12 `argmax`.
    """


class ArgminOp(_ArgReduceOp, name="argmin"):
    """The position of the least element, or of the first NaN.

    C1  the axis is in range
    C2  the element type is a number

    Source: array API 2023.12 `argmin`.
    """


class SearchsortedOp(InferredOp, name="searchsorted", traits=[ext.Pure]):
    """For each value the count of elements of a sorted line that come before it, as i64.

    Elements that are equal come after the value, with `right` before it; a NaN is greater than
    all else. The line is the input, or the last axis of it at the value's other indices.
    It is halved until one position is left, which is the answer if it is sorted.

    C1  both operands have one element type, a float or an integer
    C2  the input has rank 1, or that of the values
    C3  dims in front of the last are not provably different

    Source: ATen `searchsorted`, `bucketize`; TVM `relax.bucketize`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    values: ext.Operand[Any]
    right: FlagAttr

    @staticmethod
    def infer_return_type(input: TensorType, values: TensorType, right: bool) -> TensorType:
        require_one_element_type(input, values)  # C1
        require_number(input)
        i64 = ir.IntegerType.get_signless(64)
        if input.dims is None:
            return TensorType(values.dims, i64)
        if len(input.dims) != 1:
            rank = None if values.dims is None else len(values.dims)
            if not input.dims or rank not in (None, len(input.dims)):  # C2
                raise ShapeError(f"searches '{input}' for '{values}'")
            for own, other in zip(input.dims[:-1], values.dims[:-1] if values.dims else ()):
                if dims_differ(own, other):  # C3
                    raise ShapeError(f"searches lines of dim {own} for values of dim {other}")
        return TensorType(values.dims, i64)


class FirstNonzeroOp(InferredOp, name="first_nonzero", traits=[ext.Pure]):
    """The indices of the first `count` elements that are not 0: `nonzero` of a known size.

    The result has the dims [rank, count], a column for each element in row-major order; columns
    that are left are -1.

    C1  the elements are numeric or `i1`
    C2  the rank is known, and 1 or more
    C3  `count` is one known expression

    Source: JAX `numpy.nonzero` with `size`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    count: ShapeAttr

    @staticmethod
    def infer_return_type(input: TensorType, count: Sequence[Dim]) -> TensorType:
        require_elements_that_compare(input)  # C1
        if not input.dims:  # C2
            raise ShapeError(f"expects a tensor of known rank above 0, but got '{input}'")
        known = known_dims(as_dims(count))
        if known is None or len(known) != 1:  # C3
            raise ShapeError(f"expects one known count of indices, but got {len(count)}")
        dims = (const(len(input.dims)), *known)
        return TensorType(dims, ir.IntegerType.get_signless(64))
