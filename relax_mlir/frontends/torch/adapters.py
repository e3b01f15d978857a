"""Functions of complex tensors, made of functions of real ones.

@operator("permute", pairs=by_part)      # real and imaginary parts are permuted alike
"""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ir

from ..complex import Pair, joined
from ..complex.arithmetic import absolute, is_true, multilinear
from .call import Call
from .registry import Function
from .types import is_complex


def by_parts_of(*positions: int) -> Any:
    """An adapter for what is linear in its elements, such as what only changes their position.

    `positions` are those of the operands, or lists of them, that have elements; scalars among these
    are of the real part, unless they are complex. Others are the same for both parts.
    """

    def adapt(function: Function) -> Function:
        def build(call: Call, *operands: Any, **options: Any) -> Any:
            if not is_complex(call.value):  # only the dims of complex operands matter
                return function(call, *operands, **options)
            given = [
                _as_pairs(call, each) if index in positions else each
                for index, each in enumerate(operands)
            ]
            results = (
                function(call.for_part(i), *(_part(each, i) for each in given), **options)
                for i in (0, 1)
            )
            return _paired(*results)

        return build

    return adapt


by_part = by_parts_of(0)
"""The adapter for functions of the elements of the first operand."""


def bilinear(function: Function) -> Function:
    """What is linear in each of the first two operands."""

    def build(call: Call, a: Any, b: Any, *operands: Any, **options: Any) -> Pair:
        own = call.for_part(0)
        return multilinear(
            lambda x, y: function(own, x, y, *operands, **options), call.pair(a), call.pair(b)
        )

    return build


def unchanged(function: Function) -> Function:
    """What takes complex tensors as others."""
    return function


def with_joined(function: Function) -> Function:
    """What takes complex tensors as real ones with both parts along a last dim."""
    return _of_each(function, joined)


def of_truth(function: Function) -> Function:
    """What asks whether elements are 0."""
    return _of_each(function, is_true)


def of_size(function: Function) -> Function:
    """What depends on the distances of elements from 0."""
    return _of_each(function, absolute)


def _of_each(function: Function, convert: Any) -> Function:
    def build(call: Call, *operands: Any, **options: Any) -> Any:
        return function(call, *(_converted(each, convert) for each in operands), **options)

    return build


def _converted(value: Any, convert: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_converted(each, convert) for each in value]
    return convert(value) if isinstance(value, Pair) else value


def _as_pairs(call: Call, value: Any) -> Any:
    """An operand, or a list of them, with complex tensors for real ones."""
    if isinstance(value, list | tuple):
        return [_as_pairs(call, each) for each in value]
    return call.pair(value) if isinstance(value, ir.Value) else value


def _part(value: Any, index: int) -> Any:
    if isinstance(value, list | tuple):
        return [_part(each, index) for each in value]
    return value.parts[index] if isinstance(value, Pair) else value


def _paired(real: Any, imaginary: Any) -> Any:
    if isinstance(real, Sequence):
        return [Pair(*each) for each in zip(real, imaginary, strict=True)]
    return Pair(real, imaginary)
