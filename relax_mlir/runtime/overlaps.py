"""Memory that a call writes to is memory of one of its arrays only."""

import math
from collections.abc import Iterable, Sequence

from relax_mlir.runtime.tensors import DLTensor

Span = tuple[int, int, bool, int]
"""The first address of an array and the one behind it, whether it is written to, its number."""


def span(tensor: DLTensor, is_written: bool, number: int) -> Span:
    """Where an array lies that is described without gaps."""
    begin = tensor.data or 0
    count = math.prod(tensor.shape[: tensor.ndim])
    return begin, begin + count * tensor.bits // 8, is_written, number


def first_overlap(spans: Iterable[Span]) -> tuple[int, int] | None:
    """The numbers of two arrays that share memory to which one of them is written, or None."""
    behind = behind_written = -1
    last = last_written = -1
    for begin, end, is_written, number in sorted(spans):
        if begin == end:
            continue
        if begin < behind_written:
            return last_written, number
        if is_written and begin < behind:
            return last, number
        if end > behind:
            behind, last = end, number
        if is_written and end > behind_written:
            behind_written, last_written = end, number
    return None


def overlap_with(new: Span, others: Sequence[Span]) -> int | None:
    """The number of another array that shares memory with `new` to which one of them is written."""
    begin, end, is_written, number = new
    for other_begin, other_end, other_written, other in others:
        if (is_written or other_written) and other != number:
            if max(begin, other_begin) < min(end, other_end):
                return other
    return None
