"""Fourier transforms: of real elements, of complex ones, and back to real ones."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import dims_of, divide, element_of, emit, symbol
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, product

from ....complex import Pair, joined, of_real, split
from ...call import Call
from ...registry import of_pairs

BY_ROOT = 1
"""The normalization by the square root of the count of elements; 0 is none, 2 by the count."""


@of_pairs("_fft_c2c")
def fft(call: Call, x: Pair, dim: Sequence[int], normalization: int, forward: bool) -> Pair:
    """The transform along some axes, or its inverse."""
    axes = _axes(call, x, dim)
    result = split(_transformed(joined(x), axes, inverse=not forward))
    return result.map(_normalization(normalization, [dims_of(x.real)[axis] for axis in axes]))


@of_pairs("_fft_r2c")
def rfft(call: Call, x: ir.Value, dim: Sequence[int], normalization: int, onesided: bool) -> Pair:
    """The transform of real elements, of which half along the last axis is enough."""
    axes = _axes(call, x, dim)
    if onesided:
        pairs = _transformed(d.rfft(x, axis=axes[-1]), axes[:-1], inverse=False)
    else:
        pairs = _transformed(joined(of_real(x)), axes, inverse=False)
    scaled = _normalization(normalization, [dims_of(x)[axis] for axis in axes])
    return split(pairs).map(scaled)


@of_pairs("_fft_c2r")
def irfft(call: Call, x: Pair, dim: Sequence[int], normalization: int, length: Any) -> ir.Value:
    """The inverse of the transform of real elements, of half along the last axis."""
    *axes, last = _axes(call, x, dim)
    n = call.expr(length)
    pairs = _transformed(joined(x), axes, inverse=True)
    real = d.irfft(pairs, n, axis=last, scaled=False)
    return _normalization(normalization, [*(dims_of(x.real)[axis] for axis in axes), n])(real)


def _axes(call: Call, x: Any, dim: Sequence[int]) -> list[int]:
    return [call.axis(axis, call.rank(x)) for axis in dim]


def _transformed(pairs: ir.Value, axes: Sequence[int], inverse: bool) -> ir.Value:
    for axis in axes:
        pairs = d.fft(pairs, axis=axis, inverse=inverse, scaled=False)
    return pairs


def _normalization(kind: int, extents: Sequence[Expr]) -> Any:
    """A function that divides by the count of elements, by its root, or by nothing."""

    def scaled(x: ir.Value) -> ir.Value:
        if not kind:
            return x
        count = symbol(product(extents), element_of(x))
        return divide(x, emit(graph.SqrtOp, count) if kind == BY_ROOT else count)

    return scaled
