"""Images at another size, with the rounding of Pillow.

Each axis is a product with a matrix of weights: an element of the result is a mean of those of the
source around it, by a kernel that reaches as far as an element of the result, if that is larger.
Columns are first, and both products are rounded to integers of 0 to 255: Pillow 13 begins with the
rows of some images, which changes elements by one. Weights are computed in f64, products in f32:
they differ from Pillow's, of integers with 22 bits after the point, where a mean is within about
1e-5 of the middle of two integers.

Source: Pillow, `Resample.c`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    arange,
    astype,
    divide,
    emit,
    expand_dims,
    less,
    maximum,
    minimum,
    multiply,
    permute,
    reduce,
    reshape,
    subtract,
    symbol,
    where,
)
from relax_mlir.dialects import graph
from relax_mlir.llm.modules.nn import DimLike, dims_of, matmul
from relax_mlir.symbolic import Expr, as_expr


@dataclass(frozen=True)
class Axis:
    """`count` elements from `begin` of an axis that is resized from `source` to `target`."""

    source: DimLike
    target: DimLike
    begin: DimLike
    count: DimLike


@dataclass(frozen=True)
class Kernel:
    """Weights by the distance to an element's centre: 0 from `reach` on."""

    reach: float
    weight: Callable[[ir.Value], ir.Value]


def _linear(x: ir.Value) -> ir.Value:
    return maximum(subtract(1.0, x), 0.0)


def _cubic(x: ir.Value) -> ir.Value:
    """Keys' convolution with a = -0.5."""
    near = add(multiply(multiply(subtract(multiply(x, 1.5), 2.5), x), x), 1.0)
    inner = add(multiply(subtract(x, 5.0), x), 8.0)
    far = multiply(subtract(multiply(inner, x), 4.0), -0.5)
    return where(less(x, 1.0), near, where(less(x, 2.0), far, 0.0))


def _lanczos(x: ir.Value) -> ir.Value:
    """sinc(x) * sinc(x / 3)."""
    angle = multiply(maximum(x, 1e-9), math.pi)
    third = divide(angle, 3.0)
    sines = multiply(emit(graph.SinOp, angle), emit(graph.SinOp, third))
    return where(less(x, 3.0), divide(sines, multiply(angle, third)), 0.0)


KERNELS = {1: Kernel(3.0, _lanczos), 2: Kernel(1.0, _linear), 3: Kernel(2.0, _cubic)}
"""By Pillow's constants: Lanczos, bilinear and bicubic."""


def resampled(image: ir.Value, rows: Axis, columns: Axis, kernel: Kernel) -> ir.Value:
    """Integers float32[3, rows, columns] of an image, uint8[height, width, 3]."""
    planes = permute(astype(image, ir.F32Type.get()), [2, 0, 1])
    return resampled_planes(planes, rows, columns, kernel)


def resampled_planes(planes: ir.Value, rows: Axis, columns: Axis, kernel: Kernel) -> ir.Value:
    """The same of integers float32[3, height, width]."""
    height, width = dims_of(planes)[1:]
    across = permute(_weights(columns, kernel), [1, 0])
    flat = reshape(planes, [f"3 * ({height})", width])
    resized = reshape(_rounded(matmul(flat, across)), [3, height, columns.count])
    return _rounded(matmul(_weights(rows, kernel), resized))


def _weights(axis: Axis, kernel: Kernel) -> ir.Value:
    """The weight of each element of the source, float32[count, source]; each row's sum is 1."""
    f64 = ir.F64Type.get()
    scale = divide(symbol(_expr(axis.source), f64), symbol(_expr(axis.target), f64))
    targets = arange(_expr(axis.begin), _expr(axis.count), 1, f64)
    centres = expand_dims(multiply(add(targets, 0.5), scale), [1])
    sources = add(arange(0, _expr(axis.source), 1, f64), 0.5)
    distance = emit(graph.AbsOp, subtract(sources, centres))
    weights = kernel.weight(divide(distance, maximum(scale, 1.0)))
    total = reduce(graph.SumOp, weights, [1], keepdims=True)
    return astype(divide(weights, total), ir.F32Type.get())


def _rounded(x: ir.Value) -> ir.Value:
    nearest = emit(graph.FloorOp, add(x, 0.5))
    return minimum(maximum(nearest, 0.0), 255.0)


def _expr(dim: DimLike) -> Expr:
    assert dim is not None
    return as_expr(dim)
