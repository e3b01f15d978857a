"""Reductions of windows along any axes: reduce_window."""

import math
from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import const

from ..emit import add, arange, bounds_of, dims_of, element_of, emit, expand_dims, reduce, scalar
from ..windows import Windows
from .columns import require_windows

REDUCTIONS: dict[str, type[graph.InferredOp]] = {
    "add": graph.SumOp,
    "multiply": graph.ProdOp,
    "minimum": graph.MinOp,
    "maximum": graph.MaxOp,
}


def reduce_window(
    x: ir.Value,
    reduction: str,
    window: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[tuple[int, int]] | None = None,
    base_dilation: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
) -> ir.Value:
    """The sum, product, least or greatest element of each window, of a size along every axis.

    What is outside changes nothing; `base_dilation` - 1 such elements are between neighbours. A
    negative padding removes elements. Source: StableHLO `reduce_window`.
    """
    rank, ones = len(dims_of(x)), [1] * len(dims_of(x))
    pads = list(padding or [(0, 0)] * rank)
    settings = window, strides or ones, base_dilation or ones, dilation or ones
    if reduction not in REDUCTIONS:
        raise ShapeError(f"expects one of {', '.join(REDUCTIONS)}, but got '{reduction}'")
    if any(len(each) != rank for each in (*settings, pads)):
        raise ShapeError(f"expects a window of rank {rank}, with as many strides and dilations")
    if rank and min(min(each) for each in settings) < 1:
        raise ShapeError(f"has a window of {list(window)} by steps of {list(settings[1])}")
    if any(low or high for low, high in pads) or any(each > 1 for each in settings[2]):
        outside = scalar(_neutral(reduction, element_of(x)), element_of(x))
        low, high = ([const(pad[end]) for pad in pads] for end in (0, 1))
        interior = [each - 1 for each in settings[2]]
        widths = {"low": low, "high": high, "interior": interior}
        x = emit(graph.PadOp, x, outside, mode="constant", **widths)
    sides = [
        Windows(size, stride, 0, 0, step, 0)
        for size, stride, step in zip(window, settings[1], settings[3])
    ]
    counts = require_windows(sides, dims_of(x), "@reduce_window")
    i64 = ir.IntegerType.get_signless(64)
    for axis, (side, count) in enumerate(zip(sides, counts)):
        if side.size == side.stride == 1:
            continue
        steps = expand_dims(arange(0, side.size, side.dilation, i64), [1])
        starts = expand_dims(arange(0, count, side.stride, i64), [0])
        taken = emit(graph.TakeOp, x, add(steps, starts), axis=axis)
        x = reduce(REDUCTIONS[reduction], taken, [axis])
    return x


def _neutral(reduction: str, element: ir.Type) -> float:
    """The element that a reduction does not change by."""
    if reduction in ("add", "multiply"):
        return 0 if reduction == "add" else 1
    end = 0 if reduction == "maximum" else 1
    if isinstance(element, ir.IntegerType):
        return bounds_of(element)[end]
    return (-math.inf, math.inf)[end]
