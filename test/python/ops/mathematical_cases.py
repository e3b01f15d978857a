"""Decompositions of matrices and special functions, as cases."""

import functools
from collections.abc import Callable, Iterator

from decomposed import Decomposition
from harness import spec

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import add, element_of, emit, expand_dims, multiply, permute
from relax_mlir.dialects import graph


def mathematical(dtype: str) -> Iterator[Decomposition]:
    """All of them."""
    yield from _solvers(dtype)
    yield from _special(dtype)


def _solvers(dtype: str) -> Iterator[Decomposition]:
    a, b = spec(dtype, "n", 4, 4), spec(dtype, "n", 4, "m")

    def near(x):  # an identity, so that pivots are the same ones in each type
        eye = emit(graph.EyeOp, shape=[4, 4], k=0, dtype=element_of(x))
        return add(multiply(x, 0.125), eye)

    yield Decomposition("triangular_solve", lambda x, y: d.triangular_solve(near(x), y), [a, b])
    yield Decomposition("cholesky", lambda x: d.cholesky(near(x)), [a])
    yield Decomposition("det", lambda x: d.det(near(x)), [a])
    yield Decomposition("solve", lambda x, y: d.solve(near(x), y), [a, b])
    yield Decomposition("inverse", lambda x: d.inverse(near(x)), [a])
    yield Decomposition("slogdet", lambda x: d.slogdet(near(x)), [a])
    yield Decomposition("solve_ex", lambda x, y: d.solve_ex(near(x), y), [a, b])
    yield Decomposition("inverse_ex", lambda x: d.inverse_ex(near(x)), [a])
    yield Decomposition("cholesky_ex", lambda x: d.cholesky_ex(near(x)), [a])
    yield Decomposition("matrix_exp", lambda x: d.matrix_exp(x), [a])
    yield from _factorizations(dtype, near)


def _special(dtype: str) -> Iterator[Decomposition]:
    """Functions of mathematics; those with a pole at 0 from above it."""
    x, y = spec(dtype, "n", "m"), spec(dtype, "m")
    entire = ("airy_ai", "bessel_j0", "bessel_j1", "erfc", "erfcx", "spherical_bessel_j0")
    for name in (*entire, "modified_bessel_i0", "modified_bessel_i1"):
        yield Decomposition(name, getattr(d, name), [x], -12, 12)
    positive = ("bessel_y0", "bessel_y1", "digamma", "lgamma", "modified_bessel_k0")
    for name in (*positive, "modified_bessel_k1"):
        yield Decomposition(name, getattr(d, name), [x], 0.25, 12)
    for name in ("ndtri", "erfinv"):
        yield Decomposition(name, getattr(d, name), [x], 0.0625, 0.9375)
    yield Decomposition("polygamma", lambda x: d.polygamma(1, x), [x], 0.25, 12)
    yield Decomposition("zeta", d.zeta, [x, y], 1.5, 9)
    yield Decomposition("igamma", d.igamma, [x, y], 0.25, 9)
    yield Decomposition("igammac", d.igammac, [x, y], 0.25, 9)
    yield Decomposition("logcumsumexp", lambda x: d.logcumsumexp(x, axis=1), [x])


def _factorizations(dtype: str, near: Callable[[ir.Value], ir.Value]) -> Iterator[Decomposition]:
    """Those that are not unique as their products."""
    a, tall = spec(dtype, "n", 4, 4), spec(dtype, "n", 4, "m")
    b, taus, pivots = spec(dtype, "n", 4, "m"), spec(dtype, "n", 4), spec("i64", "n", 4)

    def product(*factors: ir.Value) -> ir.Value:
        return functools.reduce(lambda x, y: emit(graph.MatmulOp, x, y), factors)

    def scaled(columns: ir.Value, values: ir.Value, rows: ir.Value) -> ir.Value:
        return product(multiply(columns, expand_dims(values, [1])), rows)

    def of_eigh(x: ir.Value) -> ir.Value:
        values, vectors = d.eigh(near(x))
        return scaled(vectors, values, permute(vectors, [0, 2, 1]))

    yield Decomposition("lu_factor", lambda x: d.lu_factor(near(x)), [a])
    yield Decomposition("lu_factor_ex", lambda x: d.lu_factor_ex(near(x)), [a])
    yield Decomposition("lu_unpack", lambda x: product(*d.lu_unpack(*d.lu_factor(x))), [tall])
    yield Decomposition("lu_solve", lambda x, p, y: d.lu_solve(near(x), p, y), [a, pivots, b])
    yield Decomposition("geqrf", lambda x: d.geqrf(near(x)), [a])
    yield Decomposition("qr", lambda x: product(*d.qr(x)), [tall])
    yield Decomposition("householder_product", d.householder_product, [a, taus], -1, 1)
    yield Decomposition("ormqr", d.ormqr, [a, taus, b], -1, 1)
    yield Decomposition("eigh", of_eigh, [a])
    yield Decomposition("eigvalsh", lambda x: d.eigvalsh(near(x)), [a])
    yield Decomposition("svd", lambda x: scaled(*d.svd(x)), [tall])
    yield Decomposition("svdvals", d.svdvals, [tall])
    yield Decomposition("pinv", lambda x: d.pinv(near(x)), [a])
