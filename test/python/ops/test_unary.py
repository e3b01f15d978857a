"""Element-wise operators of one tensor against float64 NumPy."""

import math

import numpy as np
import pytest
from harness import (
    FLOATS,
    INTEGERS,
    NUMPY,
    Program,
    assert_close,
    assert_same_signs,
    floats,
    integers,
    spec,
    wide,
)

from relax_mlir.dialects import graph


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _with_limit(x: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The product, and what it goes to at -infinity."""
    return np.where(x == -np.inf, -0.0, x * share)


def _gelu(x: np.ndarray) -> np.ndarray:
    return _with_limit(x, _erfc(-x / np.sqrt(2)) / 2)


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return _with_limit(x, _sigmoid(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


_erf, _erfc = (np.vectorize(f, otypes=[np.float64]) for f in (math.erf, math.erfc))

# Operator: reference, interval of arguments, bound in units of the last place.
FUNCTIONS = {
    graph.AcosOp: (np.arccos, -1, 1, 4),
    graph.AcoshOp: (np.arccosh, 1, 50, 4),
    graph.AsinOp: (np.arcsin, -1, 1, 4),
    graph.AsinhOp: (np.arcsinh, -50, 50, 4),
    graph.AtanOp: (np.arctan, -50, 50, 4),
    graph.AtanhOp: (np.arctanh, -0.99, 0.99, 4),
    graph.CosOp: (np.cos, -30, 30, 4),
    graph.CoshOp: (np.cosh, -9, 9, 4),
    graph.ErfOp: (_erf, -4, 4, 4),
    graph.ExpOp: (np.exp, -20, 11, 4),
    graph.Expm1Op: (np.expm1, -5, 5, 4),
    graph.LogOp: (np.log, 0.01, 99, 4),
    graph.Log10Op: (np.log10, 0.01, 99, 4),
    graph.Log1pOp: (np.log1p, -0.9, 9, 4),
    graph.Log2Op: (np.log2, 0.01, 99, 4),
    graph.SinOp: (np.sin, -30, 30, 4),
    graph.SinhOp: (np.sinh, -9, 9, 4),
    graph.TanOp: (np.tan, -1.5, 1.5, 4),
    graph.TanhOp: (np.tanh, -9, 9, 4),
    graph.SigmoidOp: (_sigmoid, -20, 20, 4),
    graph.SiluOp: (lambda x: _with_limit(x, _sigmoid(x)), -20, 20, 4),
    graph.GeluTanhOp: (_gelu_tanh, -5, 3, 64),
    graph.GeluOp: (_gelu, -5, 3, 64),
    graph.RsqrtOp: (lambda x: 1 / np.sqrt(x), 0.01, 99, 2),
    graph.SqrtOp: (np.sqrt, 0, 99, 0.5),
    graph.ReciprocalOp: (lambda x: 1 / x, -9, 9, 0.5),
    graph.SquareOp: (np.square, -9, 9, 0.5),
    graph.AbsOp: (np.abs, -9, 9, 0),
    graph.NegativeOp: (np.negative, -9, 9, 0),
    graph.SignOp: (np.sign, -9, 9, 0),
    graph.CeilOp: (np.ceil, -9, 9, 0),
    graph.FloorOp: (np.floor, -9, 9, 0),
    graph.RoundOp: (np.round, -9, 9, 0),
    graph.TruncOp: (np.trunc, -9, 9, 0),
    graph.ReluOp: (lambda x: np.maximum(x, 0), -9, 9, 0),
}
PREDICATES = {
    graph.IsfiniteOp: np.isfinite,
    graph.IsinfOp: np.isinf,
    graph.IsnanOp: np.isnan,
    graph.SignbitOp: np.signbit,
}
SIZES = (0, 1, 7, 31, 64, 257)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-3)


def _name(op: type) -> str:
    return op.OPERATION_NAME.removeprefix("graph.")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", FUNCTIONS, ids=_name)
def test_functions(op: type, dtype: str, route: str) -> None:
    reference, low, high, ulps = FUNCTIONS[op]
    program = Program(op, spec(dtype, "n"), route=route)
    # Reduced precision rounds once, from f32.
    bound = ulps if dtype in ("f32", "f64") else 1
    for size in SIZES:
        x = floats((size,), dtype, low, high)
        assert_close(program(x), reference(wide(x)), bound)
    x = np.array(SPECIAL, NUMPY[dtype])
    with np.errstate(all="ignore"):
        expected = reference(wide(x))
    actual = program(x)
    assert_close(actual, expected, bound)
    if op not in (graph.ReluOp, graph.SiluOp, graph.SignOp):
        assert_same_signs(actual, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", PREDICATES, ids=_name)
def test_predicates(op: type, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n"), route=route)
    for size in SIZES:
        x = np.resize(np.array(SPECIAL, NUMPY[dtype]), size)
        assert_close(program(x), PREDICATES[op](x))
    negative_nan = np.copysign(np.array([np.nan]), [-1]).astype(NUMPY[dtype])
    assert_close(program(negative_nan), PREDICATES[op](negative_nan))


def _popcount(x: np.ndarray) -> np.ndarray:
    """Of Python's integers."""
    mask = 2 ** (8 * x.dtype.itemsize) - 1
    counts = [(int(value) & mask).bit_count() for value in x.reshape(-1)]
    return np.array(counts, x.dtype).reshape(x.shape)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("op", "reference"),
    [
        (graph.AbsOp, np.abs),
        (graph.NegativeOp, np.negative),
        (graph.SignOp, np.sign),
        (graph.SquareOp, np.square),
        (graph.ReluOp, lambda x: np.maximum(x, 0)),
        (graph.BitwiseNotOp, np.invert),
        (graph.PopcountOp, _popcount),
    ],
    ids=lambda x: _name(x) if isinstance(x, type) else "",
)
def test_integers_wrap(op: type, reference, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n", 3), route=route)
    for size in (0, 1, 5, 16):
        x = integers((size, 3), dtype)
        assert_close(program(x), reference(x))
    limits = np.iinfo(NUMPY[dtype])
    x = np.array([[limits.min, limits.max, limits.min + 1]], NUMPY[dtype])
    assert_close(program(x), reference(x))


@pytest.mark.parametrize("op", [graph.LogicalNotOp, graph.BitwiseNotOp], ids=_name)
def test_truth_values(op: type, route: str) -> None:
    program = Program(op, spec("i1", "n"), route=route)
    for size in (0, 1, 3, 33):
        x = integers((size,), "i1")
        assert_close(program(x), ~x)


@pytest.mark.parametrize("dims", [(), (1,), (2, 3), (0, 5), (3, 1, 4, 1, 5)])
def test_static_ranks(dims: tuple[int, ...], route: str) -> None:
    program = Program(graph.SquareOp, spec("f32", *dims), route=route)
    x = floats(dims, "f32")
    assert_close(program(x), np.square(wide(x)), 0.5)


def test_every_element_wise_operator_is_here() -> None:
    tested = {*FUNCTIONS, *PREDICATES, graph.BitwiseNotOp, graph.PopcountOp, graph.LogicalNotOp}
    declared = {
        kind
        for kind in vars(graph).values()
        if isinstance(kind, type)
        and issubclass(kind, graph.UnaryOp)
        and hasattr(kind, "OPERATION_NAME")
    }
    assert declared <= tested
