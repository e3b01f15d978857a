"""Factors of matrices multiply to them, have the shapes and zeros that they should, in float64."""

import functools

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from gradient_checks import loss_of
from harness import NUMPY, floats, spec, wide

import relax_mlir
from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError

EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
SHAPES = [
    (2, 3, 3), (2, 5, 3), (3, 3, 5), (1, 1, 1), (1, 1, 4), (1, 4, 1), (2, 0, 3), (2, 3, 0),
    (0, 2, 2), (1, 17, 16), (1, 8, 31),
]  # fmt: skip


@functools.cache
def _run(name: str, dtype: str = "f64", square: bool = False, **settings) -> Decomposed:
    dims = ("b", "n", "n") if square else ("b", "m", "n")
    return Decomposed(functools.partial(getattr(d, name), **settings), spec(dtype, *dims))


def _matrices(b: int, m: int, n: int, rank: int | None = None, dtype: str = "f64") -> np.ndarray:
    if rank is None:
        return floats((b, m, n), dtype)
    return floats((b, m, rank), dtype) @ floats((b, rank, n), dtype)


def _symmetric(b: int, n: int, dtype: str = "f64") -> np.ndarray:
    a = wide(floats((b, n, n), dtype))
    return (a + a.swapaxes(1, 2)).astype(NUMPY[dtype])


def _assert_near(result, wanted, dtype: str = "f64", factor: float = 64) -> None:
    assert result.shape == wanted.shape
    scale = np.abs(wanted).max(initial=1)
    most = max(result.shape, default=1) or 1
    bound = factor * most * EPSILON[dtype]
    np.testing.assert_allclose(wide(result) / scale, wide(wanted) / scale, rtol=0, atol=bound)


def _assert_orthonormal(columns, dtype: str = "f64") -> None:
    columns = wide(columns)
    eye = np.broadcast_to(np.eye(columns.shape[2]), (len(columns), *columns.shape[2:] * 2))
    _assert_near(columns.swapaxes(1, 2) @ columns, eye, dtype)


def _assert_zero(matrices) -> None:
    assert not matrices.any()


@pytest.mark.parametrize("rank", [None, 1])
@pytest.mark.parametrize("dims", SHAPES)
def test_lu(dims, rank) -> None:
    a = _matrices(*dims, rank)
    packed, pivots, info = _run("lu_factor_ex")(a)
    p, lower, upper = _lu_unpack()(packed, pivots)
    b, m, n = dims
    k = min(m, n)
    assert (p.shape, lower.shape, upper.shape) == ((b, m, m), (b, m, k), (b, k, n))
    _assert_near(p @ lower @ upper, a)
    _assert_zero(np.triu(lower, 1))
    _assert_zero(np.tril(upper, -1))
    assert (lower[:, range(k), range(k)] == 1).all()
    assert (np.abs(lower) <= 1).all()
    assert (pivots >= np.arange(k)).all()
    zeros = upper[:, range(k), range(k)] == 0
    np.testing.assert_array_equal(info, np.where(zeros.any(1), zeros.argmax(1) + 1 if k else 0, 0))


@functools.cache
def _lu_unpack() -> Decomposed:
    return Decomposed(d.lu_unpack, spec("f64", "b", "m", "n"), spec("i64", "b", "min(m, n)"))


@pytest.mark.parametrize("transpose", [False, True])
def test_lu_solve(transpose: bool) -> None:
    def solve(a, b):
        return d.lu_solve(*d.lu_factor(a), b, transpose=transpose)

    run = Decomposed(solve, spec("f64", 2, "b", "n", "n"), spec("f64", 2, "b", "n", "k"))
    for b, n, k in ((1, 1, 1), (2, 5, 3), (1, 16, 1), (0, 3, 2), (2, 0, 2), (1, 3, 0)):
        a = _matrices(2 * b, n, n).reshape(2, b, n, n) + 4 * np.roll(np.eye(n), 1, axis=0) * n
        y = floats((2, b, n, k), "f64")
        _assert_near(run(a, y), np.linalg.solve(a.swapaxes(-1, -2) if transpose else a, y))


def test_what_says_that_there_is_no_result() -> None:
    a = np.stack([np.diag([2.0, 3, 4]), np.diag([2.0, 0, 4]), np.diag([2.0, 3, -4])])
    assert _run("inverse_ex", square=True)(a)[1].tolist() == [0, 2, 0]
    assert _run("cholesky_ex", square=True)(a)[1].tolist() == [0, 2, 3]
    none = np.zeros((2, 0, 0))
    assert _run("inverse_ex", square=True)(none)[1].tolist() == [0, 0]


def test_slogdet() -> None:
    for b, n in ((3, 4), (1, 0), (1, 1), (2, 17)):
        a = _matrices(b, n, n)
        for result, wanted in zip(_run("slogdet", square=True)(a), np.linalg.slogdet(a)):
            _assert_near(result, wanted)
    sign, size = _run("slogdet", square=True)(np.full((1, 200, 200), 0.0) + 1e30 * np.eye(200))
    np.testing.assert_allclose((sign[0], size[0]), (1, 200 * np.log(1e30)))
    sign, size = _run("slogdet", square=True)(np.ones((1, 3, 3)))
    assert (sign[0], size[0]) == (0, -np.inf)


@pytest.mark.parametrize("rank", [None, 1])
@pytest.mark.parametrize("dims", SHAPES)
def test_qr(dims, rank) -> None:
    a = _matrices(*dims, rank)
    for complete in (False, True):
        q, r = _run("qr", complete=complete)(a)
        _assert_orthonormal(q)
        _assert_near(q @ r, a)
        _assert_zero(np.tril(r, -1))
    assert q.shape[1:] == (dims[1], dims[1])
    if a.size and rank is None:  # signs are LAPACK's
        _assert_near(r, np.stack([np.linalg.qr(each, mode="complete")[1] for each in a]))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_reflectors_of_small_and_great_elements(scale: float) -> None:
    a = _matrices(1, 5, 3) * scale
    a[0, 1:, 0] *= 1e-200 if scale > 1 else 1
    q, r = _run("qr", complete=False)(a)
    _assert_orthonormal(q)
    _assert_near(q @ (r / scale), a / scale)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_ormqr(left: bool, transpose: bool) -> None:
    def product(a, c):
        return d.ormqr(*d.geqrf(a), c, left=left, transpose=transpose)

    run = Decomposed(
        product, spec("f64", "b", "m", "n"), spec("f64", "b", *("mk" if left else "km"))
    )
    for b, m, n, k in ((1, 3, 3, 2), (2, 5, 2, 3), (1, 4, 0, 2), (1, 1, 1, 1)):
        a, c = _matrices(b, m, n), _matrices(b, *((m, k) if left else (k, m)))
        q, _ = _run("qr", complete=True)(a)
        q = q.swapaxes(1, 2) if transpose else q
        _assert_near(run(a, c), q @ c if left else c @ q)


def test_householder_product() -> None:
    run = Decomposed(lambda a: d.householder_product(*d.geqrf(a)), spec("f64", "b", "n + k", "n"))
    for b, m, n in ((2, 5, 3), (1, 4, 4), (1, 3, 0)):
        a = _matrices(b, m, n)
        _assert_near(run(a), _run("qr", complete=False)(a)[0])


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 17])
def test_eigh(n: int) -> None:
    random = _symmetric(3, n)
    eye = np.broadcast_to(np.eye(n), (1, n, n))
    cases = [random, random * 1e-300, random * 1e300, eye, np.ones((2, n, n)), 0 * random]
    graded = 10.0 ** -np.arange(n)
    for a in [*cases, random * graded[:, None] * graded]:
        scale = np.abs(a).max(initial=0) or 1
        values, vectors = _run("eigh", square=True)(np.ascontiguousarray(a))
        _assert_orthonormal(vectors)
        assert (np.diff(values) >= 0).all()
        _assert_near(vectors * (values / scale)[:, None] @ vectors.swapaxes(1, 2), a / scale)
        _assert_near(values / scale, np.linalg.eigvalsh(a / scale))


@pytest.mark.parametrize("lower", [False, True])
def test_eigenvalues_of_one_triangle(lower: bool) -> None:
    a = _symmetric(2, 5)
    other = np.full((5, 5), np.nan)
    read = a + (np.triu(other, 1) if lower else np.tril(other, -1))
    _assert_near(_run("eigvalsh", square=True, lower=lower)(read), np.linalg.eigvalsh(a))


@pytest.mark.parametrize("rank", [None, 1])
@pytest.mark.parametrize("dims", SHAPES)
def test_svd(dims, rank) -> None:
    a = _matrices(*dims, rank)
    k = min(dims[1:])
    for full in (False, True):
        u, values, vt = _run("svd", full_matrices=full)(a)
        _assert_orthonormal(u)
        _assert_orthonormal(vt.swapaxes(1, 2))
        _assert_near((u[:, :, :k] * values[:, None]) @ vt[:, :k], a)
        _assert_near(values, np.linalg.svd(a, compute_uv=False))
        assert (np.diff(values) <= 0).all()
    assert (u.shape[2], vt.shape[1]) == dims[1:]
    np.testing.assert_array_equal(_run("svdvals")(a) if dims[1] >= dims[2] else values, values)


@pytest.mark.parametrize("dims", [(2, 3), (3, 2)])
def test_svd_of_known_dims(dims) -> None:
    a = floats(dims, "f64")
    u, values, vt = Decomposed(d.svd, spec("f64", *dims))(a)
    _assert_near(u * values @ vt, a)
    _assert_near(Decomposed(d.svdvals, spec("f64", *dims))(a), values)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_svd_of_small_and_great_elements(scale: float) -> None:
    a = _matrices(2, 4, 4)
    _assert_near(_run("svdvals")(a * scale) / scale, np.linalg.svd(a, compute_uv=False))


@pytest.mark.parametrize("dims", [(2, 3, 3), (1, 5, 3), (2, 3, 5), (1, 0, 3), (1, 3, 0)])
def test_pinv(dims) -> None:
    run = Decomposed(
        lambda a, bound: d.pinv(a, rtol=bound), spec("f64", "b", "m", "n"), spec("f64")
    )
    for rank in (None, 1):
        a = _matrices(*dims, rank)
        _assert_near(_run("pinv")(a), np.linalg.pinv(a, rcond=1e-13), factor=1e4)
        _assert_near(run(a, np.array(0.4)), np.linalg.pinv(a, rcond=0.4), factor=1e4)


def test_pinv_of_symmetric_matrices_and_below_a_bound() -> None:
    a = _symmetric(2, 4)
    a[0] = np.outer(a[0, 0], a[0, 0])
    wanted = np.linalg.pinv(a, rcond=1e-13)
    _assert_near(_run("pinv", square=True, hermitian=True)(a), wanted, factor=1e4)
    run = Decomposed(lambda a, bound: d.pinv(a, atol=bound), spec("f64", 3, 3), spec("f64"))
    _assert_near(run(np.diag([3.0, 2, 1]), np.array(1.5)), np.diag([1 / 3, 0.5, 0]))


def test_matrix_exp() -> None:
    run = _run("matrix_exp", square=True)
    for b, n in ((3, 4), (1, 1), (1, 0), (0, 2), (1, 9)):
        a, scales = _symmetric(b, n), np.array([1e-9, 1, 20])[:b, None, None]
        values, vectors = np.linalg.eigh(a * scales)
        wanted = (vectors * np.exp(values)[:, None]) @ vectors.swapaxes(1, 2)
        _assert_near(run(a * scales), wanted, factor=4096)
    turn = np.array([[[0.0, -2.5], [2.5, 0]]])
    wanted = np.array([[[np.cos(2.5), -np.sin(2.5)], [np.sin(2.5), np.cos(2.5)]]])
    _assert_near(run(turn), wanted)
    nilpotent = np.array([[[0, 1e9, 0], [0, 0, 1e-9], [0, 0, 0]]])
    np.testing.assert_allclose(run(nilpotent), np.eye(3) + nilpotent + nilpotent @ nilpotent / 2)


def test_what_is_not_finite_ends() -> None:
    a = np.array([[[1.0, np.inf], [np.nan, 2]]])
    for name in ("eigh", "svd", "qr", "lu_factor", "matrix_exp"):
        results = _run(name, square=name in ("eigh", "matrix_exp"))(a)
        assert np.isnan(results[0] if isinstance(results, tuple) else results).any(), name


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_types(dtype: str) -> None:
    a = _matrices(2, 7, 4, dtype=dtype)
    for name in ("svd", "qr"):
        factors = _run(name, dtype)(a)
        assert all(each.dtype == NUMPY[dtype] for each in factors)
        product = [wide(each) for each in factors]
        middle = [product[1][:, :, None] * product[2]] if name == "svd" else product[1:]
        _assert_near(product[0] @ middle[0], wide(a), dtype)
    symmetric = _symmetric(2, 5, dtype)
    values, vectors = _run("eigh", dtype, square=True)(symmetric)
    _assert_near(values, np.linalg.eigvalsh(wide(symmetric)), dtype)
    _assert_orthonormal(vectors, dtype)


@pytest.mark.rotate(4)
def test_compiled() -> None:
    """Loops of sweeps in loops, of sizes that only run time knows."""

    def values(a):
        return *d.svd(a), *d.lu_factor_ex(a)

    text = module_of({"main": (values, [spec("f64", "b", "m", "n")])})
    compiled = relax_mlir.compile(text)["main"]
    for dims in ((2, 5, 3), (1, 3, 7), (1, 0, 2)):
        a = _matrices(*dims)
        u, values, vt, *lu = compiled(a)
        _assert_near((u * values[:, None]) @ vt, a)
        _assert_orthonormal(u)
        for result, wanted in zip(lu, _run("lu_factor_ex")(a), strict=True):
            _assert_near(result, wanted)


def _products(u, values, vt):
    return values, d.matmul(u, vt)


@pytest.mark.parametrize(
    ("build", "matrix"),
    [
        (lambda a: d.lu_factor(a)[0], floats((3, 3), "f64")),
        (d.qr, floats((3, 3), "f64")),
        (d.qr, floats((4, 2), "f64")),
        (d.eigh, _symmetric(1, 3)[0]),
        (d.eigh, np.diag([1.0, 2, 4])),
        (lambda a: _products(*d.svd(a)), floats((4, 3), "f64")),
        (d.pinv, floats((2, 3), "f64")),
        (d.matrix_exp, floats((3, 3), "f64")),
    ],
)
def test_gradients(build, matrix) -> None:
    """Through rotations and reflections: small ones count too."""
    loss_of(build, [spec("f64", *matrix.shape)]).check(matrix)


A = spec("f32", 2, 3, 3)


@pytest.mark.parametrize(
    ("build", "specs", "message"),
    [
        (d.eigh, [spec("f32", 2, 3)], "expects square matrices, but got 2 by 3"),
        (d.svd, [spec("f32", 3)], "expects matrices of floats"),
        (d.qr, [spec("i32", 3, 3)], "expects matrices of floats"),
        (d.matrix_exp, [spec("f32", 2, 3)], "expects square matrices"),
        (d.lu_factor, [spec("f32", 3)], "expects matrices of floats"),
        (d.lu_unpack, [A, spec("i64", 2, 4)], r"expects pivots of shape \[2, 3\], but got"),
        (d.lu_solve, [A, spec("i64", 2, 3), spec("f32", 2, 4, 1)], "expects 3 equations"),
        (d.ormqr, [A, spec("f32", 3), A], r"expects taus of shape \[2, 3\], but got"),
        (d.ormqr, [A, spec("f32", 2, 3), spec("f32", 2, 4, 1)], "multiplies Q of 3 rows with 4"),
        (d.householder_product, [A, spec("f32", 2, 4)], "has 4 taus for 3 reflectors"),
    ],
)  # fmt: skip
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
