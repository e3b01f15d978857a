"""Distributions of random elements; those of half precision are computed in f32."""

import math
from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError
from relax_mlir.symbolic import Expr

from ..emit import (
    add,
    astype,
    binary,
    dims_of,
    element_of,
    emit,
    is_integer,
    less,
    multiply,
    reshape,
    where,
    widen,
)
from .philox import column, count_of, first, pairs, shift_left, shift_right, width_of, words

_DIGITS = {ir.F16Type: 11, ir.BF16Type: 8, ir.F32Type: 24, ir.F64Type: 53}
"""Bits of a fraction, all of which are random."""

Dims = Sequence[Dim | int | str]


def _digits(element: ir.Type) -> int:
    for kind, digits in _DIGITS.items():
        if isinstance(element, kind):
            return digits
    raise ShapeError(f"expects a float element type, but got {element}")


def _compute(element: ir.Type) -> ir.Type:
    return element if isinstance(element, ir.F64Type) else ir.F32Type.get()


def _long(table: ir.Value) -> ir.Value:
    """The 53 first bits of each pair of words."""
    high, low = column(table, 1), column(table, 0)
    return binary(graph.BitwiseOrOp, shift_left(high, 21), shift_right(low, 11))


def _fractions(state: ir.Value, count: Expr, element: ir.Type) -> tuple[ir.Value, ir.Value]:
    """Multiples of 2^-digits from 0 up to 1, exclusive, and the next state."""
    digits = _digits(element)
    if digits > 32:
        table, after = pairs(state, count)
        line = _long(table)
    else:
        line, after = words(state, count)
        line = shift_right(line, 32 - digits)
    return multiply(astype(line, _compute(element)), 2.0**-digits), after


def random_uniform(
    state: ir.Value, dims: Dims, element: ir.Type, *, low: float = 0, high: float = 1
) -> tuple[ir.Value, ir.Value]:
    """Elements from `low` to `high`, and the next state; of 0 and 1 the latter is excluded.

    Source: ONNX `RandomUniform`; ATen `uniform_`.
    """
    if not (math.isfinite(high - low) and low <= high):
        raise ShapeError(f"expects an interval, but got {low} to {high}")
    exact, count = count_of(dims)
    line, after = _fractions(state, count, element)
    if (low, high) != (0, 1):
        line = add(multiply(line, high - low), low)
    return reshape(astype(line, element), exact), after


def random_normal(
    state: ir.Value, dims: Dims, element: ir.Type, *, mean: float = 0, scale: float = 1
) -> tuple[ir.Value, ir.Value]:
    """Elements of a normal distribution, and the next state.

    Two elements are the sine and cosine of a random angle, times a random length. Source: ONNX
    `RandomNormal`; Box and Muller, 1958.
    """
    exact, count = count_of(dims)
    half = (count + 1) // 2
    if _digits(element) > 32:
        table, after = pairs(state, half * 2)
        table, bits = reshape(_long(table), [half, 2]), 53
    else:
        table, after = pairs(state, half)
        bits = 32
    compute = _compute(element)
    share = multiply(astype(add(column(table, 0), 1), compute), 2.0**-bits)
    angle = multiply(astype(column(table, 1), compute), 2 * math.pi * 2.0**-bits)
    length = emit(graph.SqrtOp, multiply(emit(graph.LogOp, share), -2))
    both = [multiply(length, emit(op, angle)) for op in (graph.CosOp, graph.SinOp)]
    stacked = graph.StackOp.build(*both, axis=1).operation.results[0]
    line = first(reshape(stacked, [half * 2]), count)
    if (mean, scale) != (0, 1):
        line = add(multiply(line, scale), mean)
    return reshape(astype(line, element), exact), after


def random_integers(
    state: ir.Value, dims: Dims, element: ir.Type, low: int, high: int
) -> tuple[ir.Value, ir.Value]:
    """Integers from `low` up to `high`, exclusive, all as likely to 2^-32; and the next state.

    Of 64 random bits as a fraction, the whole part of its product with the count of integers.
    Source: arXiv 1805.10941, without rejection; ATen `randint`.
    """
    end = 1 << (width_of(element) - 1)
    if not -end <= low < high <= end or high - low > 1 << 32:
        raise ShapeError(f"expects up to 2^32 integers of {element}, but got {low} to {high}")
    exact, count = count_of(dims)
    table, after = pairs(state, count)
    carry = shift_right(multiply(column(table, 0), high - low), 32)
    whole = shift_right(add(multiply(column(table, 1), high - low), carry), 32)
    return reshape(astype(add(whole, low), element), exact), after


def bernoulli(
    state: ir.Value, probability: ir.Value, element: ir.Type | None = None
) -> tuple[ir.Value, ir.Value]:
    """1 with the probability that each element is, else 0, as i1 or as `element`; the next state.

    Source: ONNX `Bernoulli`; ATen `bernoulli`.
    """
    if is_integer(element_of(probability)):
        raise ShapeError(f"expects float probabilities, but got {element_of(probability)}")
    limits = widen(probability)
    drawn, after = random_uniform(state, dims_of(limits), element_of(limits))
    chosen = less(drawn, limits)
    return chosen if element is None else astype(chosen, element), after


def dropout(
    state: ir.Value, x: ir.Value, ratio: float = 0.5
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The elements divided by 1 - ratio, of which a share of `ratio` is 0.

    Returns them, where they are not 0 by chance, and the next state. Source: arXiv 1207.0580; ONNX
    `Dropout` in training; ATen `native_dropout`.
    """
    if not 0 <= ratio <= 1:
        raise ShapeError(f"expects a ratio from 0 to 1, but got {ratio}")
    if is_integer(element_of(x)):
        raise ShapeError(f"expects floats, but got {element_of(x)}")
    drawn, after = random_uniform(state, dims_of(x), ir.F32Type.get())
    mask = binary(graph.GreaterEqualOp, drawn, ratio)
    scaled = multiply(widen(x), 0 if ratio == 1 else 1 / (1 - ratio))
    return astype(where(mask, scaled, 0), element_of(x)), mask, after
