"""Windows by which parts of a signal are weighted, and mel filters."""

import math
from collections.abc import Sequence

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError
from relax_mlir.dialects.graph.elementwise import is_float
from relax_mlir.dialects.graph.types import as_dims

from ..emit import add, arange, astype, divide, emit, less, maximum, multiply, symbol, where
from .fourier import constant

HANN = 0.5, 0.5
HAMMING = 25 / 46, 21 / 46
BLACKMAN = 0.42, 0.5, 0.08

MOST = 1 << 22
"""Elements of a matrix that becomes a constant."""


def hann_window(size: Dim | int | str, element: ir.Type, *, periodic: bool = True) -> ir.Value:
    """sin^2 from 0 to pi. Source: ONNX `HannWindow`; ATen `hann_window`."""
    return _window(HANN, size, element, periodic)


def hamming_window(size: Dim | int | str, element: ir.Type, *, periodic: bool = True) -> ir.Value:
    """25/46 - 21/46 * cos from 0 to 2 pi. Source: ONNX `HammingWindow`."""
    return _window(HAMMING, size, element, periodic)


def blackman_window(size: Dim | int | str, element: ir.Type, *, periodic: bool = True) -> ir.Value:
    """0.42 - 0.5 * cos + 0.08 * cos of the double angle. Source: ONNX `BlackmanWindow`."""
    return _window(BLACKMAN, size, element, periodic)


def _window(
    factors: Sequence[float], size: Dim | int | str, element: ir.Type, periodic: bool
) -> ir.Value:
    """Sums of cosines; a window of one element that ends where it begins is 1."""
    (count,) = graph.exact_dims(as_dims([size]))
    if not is_float(element):
        raise ShapeError(f"expects a float element type, but got {element}")
    if count.value is not None and count.value < 0:
        raise ShapeError(f"expects a size, but got {count}")
    f64 = ir.F64Type.get()
    last = symbol(count, f64) if periodic else maximum(symbol(count - 1, f64), 1)
    angles = divide(multiply(arange(0, count, 1, f64), 2 * math.pi), last)
    total = add(multiply(angles, 0), factors[0])
    for harmonic, factor in enumerate(factors[1:], 1):
        cosine = emit(graph.CosOp, multiply(angles, harmonic))
        total = add(total, multiply(cosine, factor if harmonic % 2 == 0 else -factor))
    if not periodic:
        total = where(less(symbol(count, f64), 2), 1, total)
    return astype(total, element)


def mel_weight_matrix(
    bins: int, length: int, sample_rate: int, low: float, high: float, element: ir.Type
) -> ir.Value:
    """Triangles of so many mel bins over the spectrum of `length` samples, [length // 2 + 1, bins].

    Bins are equally far apart in mel, from `low` to `high` Hz. Source: ONNX `MelWeightMatrix`.
    """
    if min(bins, length, sample_rate) < 1 or not 0 <= low <= high <= sample_rate / 2:
        given = f"{bins} bins of {length} samples at {sample_rate} Hz from {low} to {high}"
        raise ShapeError(f"expects a range up to half of the sample rate, but got {given}")
    if not is_float(element):
        raise ShapeError(f"expects a float element type, but got {element}")
    if bins * (length // 2 + 1) > MOST:
        raise ShapeError(f"expects at most {MOST} weights, but got {bins} bins of {length} samples")
    ends = [2595 * math.log10(1 + hertz / 700) for hertz in (low, high)]
    mels = np.arange(bins + 2) * (ends[1] - ends[0]) / (bins + 2) + ends[0]
    hertz = 700 * (10 ** (mels / 2595) - 1)
    edges = ((length + 1) * hertz // sample_rate).astype(int)
    first, centre, last = edges[:-2], edges[1:-1], edges[2:]
    row = np.arange(length // 2 + 1)[:, None]
    rising = np.where(centre > first, (row - first) / np.maximum(centre - first, 1), 1)
    falling = (last - row) / np.maximum(last - centre, 1)
    matrix = np.where((first <= row) & (row <= centre), rising, 0)
    matrix = np.where((centre <= row) & (row < last), falling, matrix)
    f64 = isinstance(element, ir.F64Type)
    return astype(constant(matrix, element if f64 else ir.F32Type.get()), element)
