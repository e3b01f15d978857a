"""Fourier transforms of lines [b, 2, n] whose length n is known at run time only.

A convolution with a chirp (Bluestein) makes it transforms of m elements, a power of 2 that is bound
to a symbol; these go through the stages of Stockham, which are rounds of a loop:

    stage with blocks of s elements, and i = p * s + q for q < s:
        y[p * 2s + q]      =  x[i] + x[i + m / 2]
        y[p * 2s + s + q]  = (x[i] - x[i + m / 2]) * e^(sign * 2 pi i p s / m)

Source: P. N. Swarztrauber, "FFT algorithms for vector computers", 1984.
"""

import math
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import RequireOp
from relax_mlir.symbolic import Expr, Fact, as_expr

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
    floor_divide,
    less,
    maximum,
    minimum,
    multiply,
    reshape,
    scalar,
    subtract,
    symbol,
    vector,
    where,
    with_dims,
)
from ..loops import Round
from ..symbols import bind, fresh_symbols

_MOST = 40
"""The greatest power of 2 that lines are extended to."""


@dataclass(frozen=True)
class _Rotation:
    """Complex factors of the elements of lines: cosines and sines, in the type of the lines."""

    real: ir.Value
    imaginary: ir.Value

    @staticmethod
    def of(angles: ir.Value, element: ir.Type) -> "_Rotation":
        """By angles in f64."""
        cosine, sine = (emit(op, angles) for op in (graph.CosOp, graph.SinOp))
        return _Rotation(astype(cosine, element), astype(sine, element))

    def at(self, indices: ir.Value) -> "_Rotation":
        """Those at other indices."""
        return _Rotation(
            *(emit(graph.TakeOp, x, indices, axis=0) for x in (self.real, self.imaginary))
        )

    def times(self, z: ir.Value, conjugate: bool = False) -> ir.Value:
        """The lines [b, 2, n] times the factors, or their conjugates."""
        signs = reshape(vector([1, -1] if conjugate else [-1, 1], element_of(z)), [2, 1])
        crossed = multiply(emit(graph.FlipOp, z, axes=[1]), multiply(signs, self.imaginary))
        return add(multiply(z, self.real), crossed)


def by_stages(z: ir.Value, n: Expr, sign: int) -> ir.Value:
    """The sums over j of z[j] * e^(sign * 2 pi i j k / n): j k is (j^2 + k^2 - (k - j)^2) / 2."""
    i64, element = ir.IntegerType.get_signless(64), element_of(z)
    powers = vector([1 << k for k in range(_MOST)], i64)
    least = maximum(symbol(2 * n - 1, i64), 1)
    stages = emit(graph.SearchsortedOp, powers, least, right=False)
    (m,) = fresh_symbols("extended")
    bind(emit(graph.TakeOp, powers, stages, axis=0), [m])
    for fact in (Fact(as_expr(1), "<=", m), Fact(n, "<=", m)):
        RequireOp.build([fact], "fft")
    count = tensor.ExtractOp(reshape(stages, []), []).result
    fourier = _Stages(m, arith.index_cast(ir.IndexType.get(), count), element)
    chirp = _chirp(arange(0, n, 1, i64), n, sign, element)
    steps = arange(0, m, 1, i64)
    distance = minimum(steps, subtract(symbol(m, i64), steps))
    around = _chirp(distance, n, -sign, element)
    inside = less(distance, symbol(n, i64))
    parts = [expand_dims(where(inside, x, 0), [0]) for x in (around.real, around.imaginary)]
    line = reshape(graph.ConcatOp.build(*parts, axis=0).operation.results[0], [1, 2, m])
    spectrum = divide(fourier.transform(line, -1), symbol(m, element))
    real, imaginary = (
        emit(graph.TakeOp, reshape(spectrum, [2, m]), scalar(i, i64), axis=0) for i in (0, 1)
    )
    zero, none = scalar(0, element), [0, 0, 0]
    padded = emit(
        graph.PadOp, chirp.times(z), zero, low=none, high=[0, 0, m - n], interior=none,
        mode="constant",
    )  # fmt: skip
    padded = with_dims(padded, [*dims_of(padded)[:2], m])  # z may write n otherwise
    product = _Rotation(real, imaginary).times(fourier.transform(padded, -1))
    sums = fourier.transform(product, 1)
    part = {"axes": [2], "begin": [0], "end": [n], "strides": [1]}
    return chirp.times(emit(graph.StridedSliceOp, sums, **part))


def _chirp(steps: ir.Value, n: Expr, sign: int, element: ir.Type) -> _Rotation:
    """e^(sign * pi i k^2 / n), of exact k^2 modulo 2 n."""
    i64, f64 = ir.IntegerType.get_signless(64), ir.F64Type.get()
    turns = binary(graph.RemainderOp, multiply(steps, steps), symbol(2 * n, i64))
    angles = divide(multiply(astype(turns, f64), sign * math.pi), symbol(n, f64))
    return _Rotation.of(angles, element)


@dataclass(frozen=True)
class _Stages:
    """Transforms of lines of m elements, a power of 2, by so many stages."""

    m: Expr
    count: ir.Value
    element: ir.Type

    def transform(self, z: ir.Value, sign: int) -> ir.Value:
        """All stages."""
        i64, f64 = ir.IntegerType.get_signless(64), ir.F64Type.get()
        steps = arange(0, self.m, 1, i64)
        angles = divide(multiply(astype(steps, f64), sign * 2 * math.pi), symbol(self.m, f64))
        roots = _Rotation.of(angles, self.element)
        zero, one = (arith.constant(ir.IndexType.get(), i) for i in (0, 1))
        loop = scf.ForOp(zero, self.count, one, [z])
        with ir.InsertionPoint(loop.body):
            turn = Round(arith.index_cast(i64, loop.induction_variable))
            scf.YieldOp([self._stage(loop.inner_iter_args[0], roots, turn.position)])
        return loop.results[0]

    def _stage(self, z: ir.Value, roots: _Rotation, stage: ir.Value) -> ir.Value:
        """One stage, of blocks of 2^stage elements."""
        i64 = ir.IntegerType.get_signless(64)
        steps = arange(0, self.m, 1, i64)
        size = emit(graph.LeftShiftOp, scalar(1, i64), stage)
        q = emit(graph.BitwiseAndOp, steps, subtract(size, 1))
        is_second = binary(graph.NotEqualOp, emit(graph.BitwiseAndOp, steps, size), 0)
        # p * s, for the block of 2 s elements that an element is in.
        first = emit(graph.LeftShiftOp, emit(graph.RightShiftOp, steps, add(stage, 1)), stage)
        at = add(first, q)
        half = floor_divide(symbol(self.m, i64), 2)
        a, b = (emit(graph.TakeOp, z, i, axis=2) for i in (at, add(at, half)))
        return where(is_second, roots.at(first).times(subtract(a, b)), add(a, b))
