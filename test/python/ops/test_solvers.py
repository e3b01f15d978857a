"""Linear equations and factors of matrices against NumPy in float64."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, floats, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError

TOLERANCE = {"f64": 1e-11, "f32": 3e-4, "f16": 0.05, "bf16": 0.3}


def _matrices(b: int, n: int, dtype: str = "f64") -> np.ndarray:
    """Well-conditioned ones whose greatest elements are not on the diagonal."""
    shift = np.roll(np.eye(n), 1, axis=0) * (3 + n)
    return (wide(floats((b, n, n), dtype)) + shift).astype(NUMPY[dtype])


def _assert_near(found, wanted, dtype="f64") -> None:
    assert found.dtype == NUMPY[dtype]
    assert found.shape == wanted.shape
    scale = np.abs(wanted).max(initial=1)
    np.testing.assert_allclose(wide(found) / scale, wanted / scale, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_solve(left: bool, lower: bool, transpose: bool, unit_diagonal: bool) -> None:
    settings = {
        "left": left, "lower": lower, "transpose": transpose, "unit_diagonal": unit_diagonal
    }  # fmt: skip
    run = Decomposed(
        lambda a, b: d.triangular_solve(a, b, **settings),
        spec("f64", 2, "b", "n", "n"), spec("f64", 2, "b", *(("n", "k") if left else ("k", "n"))),
    )  # fmt: skip
    for b, n, k in ((1, 1, 1), (2, 5, 3), (0, 2, 1), (1, 0, 2), (1, 9, 1)):
        a = floats((2, b, n, n), "f64") + np.eye(n) * (4 + n)
        y = floats((2, b, *((n, k) if left else (k, n))), "f64")
        triangle = np.tril(a) if lower else np.triu(a)
        triangle[..., range(n), range(n)] = 1 if unit_diagonal else a[..., range(n), range(n)]
        triangle = triangle.swapaxes(-1, -2) if transpose else triangle
        wanted = (
            np.linalg.solve(triangle, y) if left
            else np.linalg.solve(triangle.swapaxes(-1, -2), y.swapaxes(-1, -2)).swapaxes(-1, -2)
        )  # fmt: skip
        other = (
            np.triu(np.full((n, n), np.nan), 1) if lower else np.tril(np.full((n, n), np.nan), -1)
        )
        if unit_diagonal:
            other = other + np.diag(np.full(n, np.nan))
        _assert_near(run(a + other, y), wanted)


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(lower: bool) -> None:
    run = Decomposed(lambda a: d.cholesky(a, lower=lower), spec("f64", "b", "n", "n"))
    for b, n in ((1, 1), (3, 5), (2, 17), (0, 3), (1, 0)):
        half = floats((b, n, n), "f64")
        a = half @ half.swapaxes(1, 2) + np.eye(n)
        nans = np.full((n, n), np.nan)
        factor = np.linalg.cholesky(a)
        wanted = factor if lower else factor.swapaxes(1, 2)
        _assert_near(run(a + (np.triu(nans, 1) if lower else np.tril(nans, -1))), wanted)


def test_dims_that_are_known_to_be_0() -> None:
    run = Decomposed(d.triangular_solve, spec("f64", 0, 0), spec("f64", 0, 3))
    assert run(np.zeros((0, 0)), np.zeros((0, 3))).shape == (0, 3)


def test_cholesky_of_what_has_none() -> None:
    run = Decomposed(d.cholesky, spec("f64", 2, 2))
    assert np.isnan(run(np.array([[1.0, 2], [2, 1]]))[1, 1])


def test_det() -> None:
    run = Decomposed(d.det, spec("f64", "b", 2, "n", "n"))
    for b, n in ((1, 1), (3, 2), (2, 7), (1, 0), (0, 3)):
        a = _matrices(2 * b, n).reshape(b, 2, n, n)
        wanted = np.linalg.det(a)
        found = run(a)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.parametrize(
    ("matrix", "wanted"),
    [
        ([[0, 1], [1, 0]], -1), ([[0, 0], [0, 0]], 0), ([[1, 2], [2, 4]], 0),
        ([[0, 2, 0], [0, 0, 3], [4, 0, 0]], 24), ([[1, 2, 3], [4, 5, 6], [1, 2, 3]], 0),
    ],
)  # fmt: skip
def test_det_of_singular_matrices_and_permutations(matrix, wanted) -> None:
    n = len(matrix)
    assert Decomposed(d.det, spec("f64", n, n))(np.array(matrix, float)) == wanted


def test_solve() -> None:
    run = Decomposed(d.solve, spec("f64", "b", "n", "n"), spec("f64", "b", "n", "k"))
    for b, n, k in ((1, 1, 1), (2, 5, 3), (1, 16, 1), (0, 3, 2), (2, 0, 2), (1, 3, 0)):
        a, y = _matrices(b, n), floats((b, n, k), "f64")
        _assert_near(run(a, y), np.linalg.solve(a, y))


def test_inverse() -> None:
    run = Decomposed(d.inverse, spec("f64", "n", "n"))
    for n in (0, 1, 2, 9):
        a = _matrices(1, n)[0]
        _assert_near(run(a), np.linalg.inv(a))


def test_dims_that_only_run_time_knows() -> None:
    run = Decomposed(d.inverse, spec("f64", "b", "n", "m"))
    a = _matrices(2, 3)
    _assert_near(run(a), np.linalg.inv(a))
    with pytest.raises(Exception, match=r"m == n|n == m|match_cast"):
        run(np.ones((1, 2, 3)))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_types(dtype: str) -> None:
    a, b = _matrices(2, 5, dtype), floats((2, 5, 2), dtype)
    run = Decomposed(d.solve, spec(dtype, 2, "n", "n"), spec(dtype, 2, "n", "k"))
    _assert_near(run(a, b), np.linalg.solve(wide(a), wide(b)), dtype)


A, B = spec("f32", 2, 3, 3), spec("f32", 2, 3, 1)


@pytest.mark.parametrize(
    ("build", "specs", "message"),
    [
        (d.det, [spec("f32", 2, 3)], "expects square matrices, but got 2 by 3"),
        (d.det, [spec("i32", 3, 3)], "expects matrices of floats"),
        (d.det, [spec("f32", 3)], "expects matrices of floats"),
        (d.inverse, [spec("f32", 3)], "expects matrices, but got rank 1"),
        (d.cholesky, [spec("f32", 2, 3)], "expects square matrices"),
        (d.solve, [A, spec("f32", 2, 4, 1)], "expects 3 equations, but got 4"),
        (d.solve, [A, spec("f32", 3, 3, 1)], r"expects one batch of matrices, but got \[2\] and"),
        (d.solve, [A, spec("f64", 2, 3, 1)], "expects one element type, but got f32 and f64"),
        (d.triangular_solve, [A, spec("f32", 2, 4, 1)], "expects 3 equations, but got 4"),
        (lambda a, b: d.triangular_solve(a, b, left=False), [A, B], "3 equations, but got 1"),
        (d.triangular_solve, [A, spec("f32", 3, 1)], "expects one batch of matrices"),
    ],
)
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
