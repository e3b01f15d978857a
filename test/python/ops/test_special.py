"""Special functions in f64 against mpmath, in units in the last place of what is computed."""

import functools
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from decomposed import Decomposed, module_of
from gradient_checks import loss_of
from harness import NUMPY, floats, spec, wide
from mpmath import mp

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError

COUNT = 20
INFINITE = float("inf")


def _uniform(low: float, high: float) -> np.ndarray:
    generator = np.random.default_rng(abs(hash((low, high))))
    return generator.uniform(low, high, COUNT)


def _powers(low: float, high: float) -> np.ndarray:
    return 10 ** _uniform(low, high)


def _exact(function: Callable, *operands: np.ndarray) -> np.ndarray:
    with mp.workdps(max(mp.dps, 40)):
        return np.array(
            [float(function(*map(mp.mpf, map(float, each)))) for each in zip(*operands)]
        )


def _ulps(result: np.ndarray, wanted: np.ndarray, size: np.ndarray | float) -> float:
    """The greatest error, in ulps of the result, or of `size` where it is greater."""
    units = np.spacing(np.maximum(np.abs(wanted), size))
    return float((np.abs(result - wanted) / units).max())


@functools.cache
def _run(name: str, operands: int = 1, **settings) -> Decomposed:
    build = functools.partial(getattr(d, name), **settings)
    return Decomposed(build, *[spec("f64", "n")] * operands)


def _waves(x: np.ndarray) -> np.ndarray:
    """How high the waves of Bessel functions are."""
    return np.minimum(1, np.sqrt(2 / np.pi / np.abs(x)))


def _quantile(p: mpmath.mpf) -> mpmath.mpf:
    start = -mp.sqrt(-2 * mp.log(p)) if p < 0.1 else 2.5 * (p - 0.5)
    return mp.findroot(lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2) - mp.log(p), start)


FUNCTIONS = [
    ("erfc", mp.erfc, (-6, 27), (-10, 1), 5, None),
    ("erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), (-26, 50), (-10, 9), 8, None),
    ("ndtri", _quantile, (0.01, 0.6), (-300, -1), 4, None),
    ("bessel_j0", lambda x: mp.besselj(0, x), (-60, 60), (-8, 5), 8, _waves),
    ("bessel_j1", lambda x: mp.besselj(1, x), (-60, 60), (-8, 5), 16, lambda x: _waves(x) / 4),
    ("bessel_y0", lambda x: mp.bessely(0, x), (0.01, 60), (-8, 5), 8, _waves),
    ("bessel_y1", lambda x: mp.bessely(1, x), (0.01, 60), (-8, 5), 8, _waves),
    ("modified_bessel_k0", lambda x: mp.besselk(0, x), (0.01, 30), (-8, 2.8), 8, None),
    ("modified_bessel_k1", lambda x: mp.besselk(1, x), (0.01, 30), (-8, 2.8), 8, None),
    ("modified_bessel_i0", lambda x: mp.besseli(0, x), (-30, 30), (-8, 2.8), 16, None),
    ("modified_bessel_i1", lambda x: mp.besseli(1, x), (-30, 30), (-8, 2.8), 16, None),
    ("spherical_bessel_j0", mp.sinc, (-30, 30), (-8, 4), 4, lambda x: 1 / np.abs(x)),
]


@pytest.mark.parametrize(("name", "exact", "linear", "powers", "bound", "size"), FUNCTIONS)
def test_accuracy(name, exact, linear, powers, bound, size) -> None:
    x = np.concatenate([_uniform(*linear), _powers(*powers)])
    least = 0.0 if size is None else size(x)
    assert _ulps(_run(name)(x), _exact(exact, x), least) <= bound


@pytest.mark.parametrize("name", ["i0", "i1", "k0", "k1"])
def test_scaled(name: str) -> None:
    x = np.concatenate([_uniform(0.01, 30), _powers(2, 5)])
    function = mp.besseli if name[0] == "i" else mp.besselk
    sign = -1 if name[0] == "i" else 1
    wanted = _exact(lambda x: function(int(name[1]), x) * mp.exp(sign * x), x)
    assert _ulps(_run(f"modified_bessel_{name}", scaled=True)(x), wanted, 0) <= 16


def test_airy() -> None:
    """An error of the argument is one of 2/3 |x|^(3/2), by which the function falls or turns."""
    x = np.concatenate([_uniform(-30, 100), _uniform(-8, 8), _powers(-8, 0)])
    size = np.where(x < 0, 0.5 * np.abs(x) ** -0.25, 0)
    result, wanted = _run("airy_ai")(x), _exact(mp.airyai, x)
    errors = np.abs(result - wanted) / np.spacing(np.maximum(np.abs(wanted), size))
    assert (errors <= 12 + 2 * np.abs(x) ** 1.5).all()


def test_zeta() -> None:
    s = np.concatenate([1 + _powers(-3, 1.5), _uniform(1, 50), np.round(_uniform(2, 9))])
    q = np.concatenate([_powers(-4, 4), _powers(-2, 1), _uniform(-20, -0.01)])
    with mp.workdps(300):
        wanted = _exact(mp.zeta, s, q)
    assert _ulps(_run("zeta", 2)(s, q), wanted, 0.5 * (q < 0)) <= 64


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma(n: int) -> None:
    x = np.concatenate([_uniform(-9.9, 30), _powers(-3, 3)])
    wanted = _exact(functools.partial(mp.psi, n), x)
    assert _ulps(_polygamma(n)(x), wanted, 0.25) <= 64


def _polygamma(n: int) -> Decomposed:
    return Decomposed(lambda x: d.polygamma(n, x), spec("f64", "n"))


def _lower(a: mpmath.mpf, x: mpmath.mpf) -> mpmath.mpf:
    term = total = mp.mpf(1)
    n = 1
    while term > total * mp.mpf(10) ** -330:
        term *= x / (a + n)
        total += term
        n += 1
    return mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) * total


GAMMAS = {
    "small": lambda: (_powers(-8, 1), _powers(-4, 2)),
    "medium": lambda: ((a := _powers(0, 2.6)), a * _uniform(0.2, 2)),
    "large": lambda: ((a := _powers(2.3, 4.5)), a + np.sqrt(a) * _uniform(-5, 5)),
}


@pytest.mark.parametrize("kind", GAMMAS)
def test_incomplete_gamma(kind: str) -> None:
    """Errors grow with the logarithm of the result, and with a."""
    a, x = GAMMAS[kind]()
    with mp.workdps(340):
        lower = [_lower(*map(mp.mpf, pair)) for pair in zip(a.tolist(), x.tolist())]
        wanted = [
            np.array([float(each) for each in part]) for part in (lower, [1 - v for v in lower])
        ]
    for name, exact in zip(("igamma", "igammac"), wanted):
        errors = np.abs(_run(name, 2)(a, x) - exact) / np.spacing(exact)
        assert (errors <= 64 + 2 * np.abs(np.log(exact)) + a).all(), name


EDGES = {
    "erfc": [(0, 1), (INFINITE, 0), (-INFINITE, 2), (1e300, 0)],
    "erfcx": [(0, 1), (INFINITE, 0), (-INFINITE, INFINITE), (-30, INFINITE)],
    "ndtri": [(0, -INFINITE), (1, INFINITE), (0.5, 0), (-0.1, np.nan), (1.1, np.nan)],
    "bessel_j0": [(0, 1), (INFINITE, 0), (-INFINITE, 0)],
    "bessel_j1": [(0, 0), (INFINITE, 0)],
    "bessel_y0": [(0, -INFINITE), (-1, np.nan), (INFINITE, 0)],
    "bessel_y1": [(0, -INFINITE), (-1, np.nan), (5e-324, -INFINITE)],
    "modified_bessel_k0": [(0, INFINITE), (-1, np.nan), (INFINITE, 0), (5e-324, 744.5560034370396)],
    "modified_bessel_k1": [(0, INFINITE), (-1, np.nan), (INFINITE, 0), (5e-324, INFINITE)],
    "spherical_bessel_j0": [(0, 1), (INFINITE, 0), (5e-324, 1)],
    "airy_ai": [(INFINITE, 0), (1e300, 0)],
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str) -> None:
    x, wanted = np.array([*EDGES[name], (np.nan, np.nan)], float).T
    np.testing.assert_allclose(_run(name)(np.ascontiguousarray(x)), wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("igamma", [(0, 0, np.nan), (0, 1, 1), (1, 0, 0), (INFINITE, 1, 0), (1, INFINITE, 1)]),
        ("igammac", [(0, 1, 0), (1, 0, 1), (INFINITE, 1, 1), (1, INFINITE, 0), (5, 1e300, 0)]),
        ("igamma", [(INFINITE, INFINITE, np.nan), (-1, 1, np.nan), (1, -1, np.nan)]),
        ("zeta", [(1, 2, INFINITE), (0.5, 2, np.nan), (2, -3, INFINITE), (2.5, -0.5, np.nan)]),
        ("zeta", [(INFINITE, 1, 1), (2, INFINITE, 0), (1e300, 2, 0), (2, np.nan, np.nan)]),
    ],
)  # fmt: skip
def test_edges_of_two(name: str, edges) -> None:
    a, b, wanted = np.array(edges, float).T.copy()
    np.testing.assert_array_equal(_run(name, 2)(a, b), wanted)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_types(dtype: str) -> None:
    x = floats([COUNT], dtype, 0.125, 9)
    result = Decomposed(d.erfc, spec(dtype, "n"))(x)
    assert result.dtype == NUMPY[dtype]
    np.testing.assert_array_equal(result, _exact(mp.erfc, wide(x)).astype(NUMPY[dtype]))


def test_an_order_below_0_is_refused() -> None:
    with pytest.raises(ShapeError, match="expects an order of 0 or more, but got -1"):
        module_of({"main": (lambda x: d.polygamma(-1, x), [spec("f32", 3)])})


def test_logcumsumexp() -> None:
    run = Decomposed(lambda x: d.logcumsumexp(x, axis=1), spec("f64", "n", "m", 2))
    for dims in ((3, 5, 2), (1, 1, 2), (2, 0, 2), (0, 3, 2)):
        x = floats(dims, "f64") * 300
        np.testing.assert_allclose(run(x), np.logaddexp.accumulate(x, axis=1) if x.size else x)
    x = np.array([-INFINITE, -INFINITE, 1, INFINITE, 1]).repeat(2).reshape(1, 5, 2)
    wanted = [-INFINITE, -INFINITE, 1, INFINITE, INFINITE]
    np.testing.assert_array_equal(run(x)[0, :, 0], wanted)
    with pytest.raises(ShapeError, match="expects floats, but got i32"):
        module_of({"main": (lambda x: d.logcumsumexp(x, axis=0), [spec("i32", 3)])})


@pytest.mark.parametrize("name", ["erfc", "bessel_y1", "modified_bessel_k0", "logcumsumexp"])
def test_gradients(name: str) -> None:
    settings = {"axis": 0} if name == "logcumsumexp" else {}
    build = functools.partial(getattr(d, name), **settings)
    loss_of(build, [spec("f64", "n")]).check(_uniform(0.5, 3), n=COUNT)


def test_gradients_of_igamma() -> None:
    loss = loss_of(d.igamma, [spec("f64", "n"), spec("f64", "n")])
    loss.check(_uniform(0.5, 3), _uniform(0.5, 4), n=COUNT)
