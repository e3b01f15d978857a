"""Checks that memory which a call writes to belongs to only one of its arrays."""

import math
from collections.abc import Iterable, Sequence

from relax_mlir.runtime.tensors import DLTensor

Span = tuple[int, int, bool, int]
"""The first address of an array, the one after its last, whether it is written to, its index."""


def span(tensor: DLTensor, is_written: bool, index: int) -> Span:
    """The span of a contiguous array."""
    begin = tensor.data or 0
    count = math.prod(tensor.shape[: tensor.ndim])
    return begin, begin + count * tensor.bits // 8, is_written, index


def first_overlap(spans: Iterable[Span]) -> tuple[int, int] | None:
    """The indices of two arrays that share memory, of which one is written to; None if none do."""
    end_of_all = end_of_written = -1
    last = last_written = -1
    for begin, end, is_written, index in sorted(spans):
        if begin == end:
            continue
        if begin < end_of_written:
            return last_written, index
        if is_written and begin < end_of_all:
            return last, index
        if end > end_of_all:
            end_of_all, last = end, index
        if is_written and end > end_of_written:
            end_of_written, last_written = end, index
    return None


def overlap_with(new: Span, others: Sequence[Span]) -> int | None:
    """The index of another array that shares memory with `new`, if one of the two is written to."""
    begin, end, is_written, index = new
    for other_begin, other_end, other_written, other in others:
        if (is_written or other_written) and other != index:
            if max(begin, other_begin) < min(end, other_end):
                return other
    return None
