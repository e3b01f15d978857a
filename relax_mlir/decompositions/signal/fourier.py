"""Fourier transforms of lines: tensor<b, 2, n>, the real parts of a line, then the imaginary ones.

A length whose prime factors are small is transformed factor by factor, each a matrix product, as
Cooley and Tukey do; another one as a convolution with a chirp, by transforms of a power of 2
(Bluestein); one that is only known at run time by the matrix of all powers of its root if it is
short, else by stages (`stages.py`).
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import Expr

from ..emit import (
    add,
    arange,
    astype,
    binary,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    multiply,
    permute,
    reshape,
    scalar,
    symbol,
    with_dims,
)
from .stages import by_stages

FORWARD, INVERSE = -1, 1
RADIX = 128
"""The greatest factor of a length that is one matrix product."""
LONGEST = 1 << 22
SHORT, LINE = 4096, 16384
"""Lines of a length of run time are products with a matrix up to a length, and to so many elements
of the matrix for each line: measured, from 1 line to 256."""
_PASS = 64
"""What a pass costs besides its products, in products of an element."""


def constant(values: np.ndarray, element: ir.Type) -> ir.Value:
    """A tensor of f32 or f64."""
    dtype = np.float64 if isinstance(element, ir.F64Type) else np.float32
    attribute = ir.DenseElementsAttr.get(np.ascontiguousarray(values, dtype))
    return arith.ConstantOp(attribute.type, attribute).result


@lru_cache(maxsize=1024)
def radices(n: int) -> tuple[int, ...] | None:
    """The factors by which a length is transformed; None if a prime one is too great."""
    choices: list[tuple[int, ...]] = [(n,)] if n <= RADIX else []
    for factor in range(2, RADIX + 1):
        rest = radices(n // factor) if n % factor == 0 and n > factor else None
        if rest is not None:
            choices.append((factor, *rest))
    return min(choices, key=lambda chosen: sum(chosen) + _PASS * len(chosen), default=None)


def transform(z: ir.Value, sign: int) -> ir.Value:
    """The sums over j of z[j] * e^(sign * 2 pi i j k / n), for each k."""
    n = dims_of(z)[2]
    if n.value is None:
        return _of_run_time(z, n, sign)
    if n.value > LONGEST:
        raise ShapeError(f"transforms lines of up to {LONGEST} elements, but got {n}")
    if not n.value:
        return z
    factors = radices(n.value)
    return _by_chirp(z, n.value, sign) if factors is None else _by_factors(z, factors, sign)


def roots(rows: int, columns: int, n: int, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of all products of a row and a column, in n-ths of a circle."""
    products = np.arange(rows)[:, None] * np.arange(columns) % max(n, 1)
    angles = products * (2 * math.pi / max(n, 1))
    return np.cos(angles), sign * np.sin(angles)


def matrix(n: int, sign: int) -> np.ndarray:
    """The matrix that a column of real parts, then imaginary ones, is multiplied with."""
    cosines, sines = roots(n, n, n, sign)
    return np.block([[cosines, -sines], [sines, cosines]])


def times(z: ir.Value, real: np.ndarray, imaginary: np.ndarray) -> ir.Value:
    """The elements [b, 2, ...] times complex constants."""
    element = element_of(z)
    crossed = constant(np.stack([-imaginary, imaginary]), element)
    straight = multiply(z, constant(real, element))
    return add(straight, multiply(emit(graph.FlipOp, z, axes=[1]), crossed))


def _by_factors(z: ir.Value, factors: Sequence[int], sign: int) -> ir.Value:
    """With j = j1 * n2 + j2 and k = k2 * n1 + k1: sums over j1, a factor each, sums over j2."""
    lines = dims_of(z)[0]
    first, *others = factors
    if not others:
        rows = reshape(z, [lines, 2 * first])
        product = emit(graph.MatmulOp, rows, constant(matrix(first, sign).T, element_of(z)))
        return reshape(product, [lines, 2, first])
    rest = math.prod(others)
    columns = reshape(z, [lines, 2 * first, rest])
    product = emit(graph.MatmulOp, constant(matrix(first, sign), element_of(z)), columns)
    split = reshape(product, [lines, 2, first, rest])
    rotated = times(split, *roots(first, rest, first * rest, sign))
    inner = reshape(permute(rotated, [0, 2, 1, 3]), [lines * first, 2, rest])
    done = reshape(_by_factors(inner, others, sign), [lines, first, 2, rest])
    return reshape(permute(done, [0, 2, 3, 1]), [lines, 2, first * rest])


def _by_chirp(z: ir.Value, n: int, sign: int) -> ir.Value:
    """j * k is (j^2 + k^2 - (k - j)^2) / 2, so that the sum is a convolution."""
    size = 1 << (2 * n - 2).bit_length()
    angles = np.arange(n) ** 2 % (2 * n) * (math.pi / n)
    chirp = np.exp(1j * sign * angles)
    around = np.zeros(size, complex)
    around[:n] = chirp.conj()
    around[size - n + 1 :] = chirp.conj()[:0:-1]
    spectrum = np.fft.fft(around) / size
    zero = scalar(0, element_of(z))
    padded = emit(
        graph.PadOp, times(z, chirp.real, chirp.imag), zero, low=[0, 0, 0],
        high=[0, 0, size - n], interior=[0, 0, 0], mode="constant",
    )  # fmt: skip
    product = times(transform(padded, FORWARD), spectrum.real, spectrum.imag)
    sums = sliced(transform(product, INVERSE), 0, n)
    return times(sums, chirp.real, chirp.imag)


def _of_run_time(z: ir.Value, n: Expr, sign: int) -> ir.Value:
    """By the matrix or by stages, as the length and the count of lines are."""
    branch = scf.IfOp(_is_short(z), [z.type], has_else=True)
    for block, build in ((branch.then_block, _by_matrix), (branch.else_block, by_stages)):
        with ir.InsertionPoint(block):
            scf.YieldOp([with_dims(build(z, n, sign), dims_of(z))])
    return branch.results[0]


def _is_short(z: ir.Value) -> ir.Value:
    """Whether the matrix costs less: its elements are computed once for all lines."""
    index, at_most = ir.IndexType.get(), arith.CmpIPredicate.ule
    lines, size = (tensor.DimOp(z, arith.constant(index, axis)).result for axis in (0, 2))
    is_possible = arith.cmpi(at_most, size, arith.constant(index, SHORT))
    room = arith.muli(lines, arith.constant(index, LINE))
    return arith.andi(is_possible, arith.cmpi(at_most, arith.muli(size, size), room))


def _by_matrix(z: ir.Value, n: Expr, sign: int) -> ir.Value:
    """By products with cosines and with sines."""
    i64, f64 = ir.IntegerType.get_signless(64), ir.F64Type.get()
    steps = arange(0, n, 1, i64)
    products = multiply(expand_dims(steps, [1]), expand_dims(steps, [0]))
    turns = astype(binary(graph.RemainderOp, products, symbol(n, i64)), f64)
    angles = divide(multiply(turns, 2 * math.pi), symbol(n, f64))
    cosines, sines = (
        emit(graph.MatmulOp, z, astype(emit(op, angles), element_of(z)))
        for op in (graph.CosOp, graph.SinOp)
    )
    signs = constant(np.array([[-sign], [sign]]), element_of(z))
    return add(cosines, multiply(emit(graph.FlipOp, sines, axes=[1]), signs))


def sliced(z: ir.Value, begin: Expr | int, end: Expr | int) -> ir.Value:
    """A part of each line."""
    axis = len(dims_of(z)) - 1
    return emit(graph.StridedSliceOp, z, axes=[axis], begin=[begin], end=[end], strides=[1])
