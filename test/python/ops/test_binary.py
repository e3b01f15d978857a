"""Element-wise operators of two and three tensors against float64 NumPy."""

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
    numbers,
    spec,
    wide,
)

from relax_mlir.dialects import graph

# Operator: reference, bound in units of the last place.
ARITHMETIC = {
    graph.AddOp: (np.add, 0.5),
    graph.SubtractOp: (np.subtract, 0.5),
    graph.MultiplyOp: (np.multiply, 0.5),
    graph.MaximumOp: (np.maximum, 0),
    graph.MinimumOp: (np.minimum, 0),
}
FLOAT_ONLY = {
    graph.DivideOp: (np.divide, 0.5),
    graph.Atan2Op: (np.arctan2, 4),
    graph.CopysignOp: (np.copysign, 0),
    graph.HypotOp: (np.hypot, 4),
    graph.LogaddexpOp: (np.logaddexp, 16),
}
COMPARE = {
    graph.EqualOp: np.equal,
    graph.NotEqualOp: np.not_equal,
    graph.LessOp: np.less,
    graph.LessEqualOp: np.less_equal,
    graph.GreaterOp: np.greater,
    graph.GreaterEqualOp: np.greater_equal,
}
BITWISE = {
    graph.BitwiseAndOp: np.bitwise_and,
    graph.BitwiseOrOp: np.bitwise_or,
    graph.BitwiseXorOp: np.bitwise_xor,
}
LOGICAL = {
    graph.LogicalAndOp: np.logical_and,
    graph.LogicalOrOp: np.logical_or,
    graph.LogicalXorOp: np.logical_xor,
}
SIZES = (0, 1, 7, 31, 64, 257)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 2.0, 1e-3)


def _name(op: object) -> str:
    return op.OPERATION_NAME.removeprefix("graph.") if isinstance(op, type) else op.__name__


def _pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every value against every other."""
    return np.repeat(values, len(values)), np.tile(values, len(values))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ARITHMETIC | FLOAT_ONLY, ids=_name)
def test_floats(op: type, dtype: str, route: str) -> None:
    reference, ulps = (ARITHMETIC | FLOAT_ONLY)[op]
    bound = ulps if dtype in ("f32", "f64") else 1
    program = Program(op, spec(dtype, "n"), spec(dtype, "n"), route=route)
    for size in SIZES:
        x, y = floats((size,), dtype), floats((size,), dtype)[::-1].copy()
        assert_close(program(x, y), reference(wide(x), wide(y)), bound)
    x, y = _pairs(np.array(SPECIAL, NUMPY[dtype]))
    with np.errstate(all="ignore"):
        expected = reference(wide(x), wide(y))
    actual = program(x, y)
    assert_close(actual, expected, bound)
    # IEEE 754 leaves open which zero is the greater one.
    if op not in (graph.MaximumOp, graph.MinimumOp):
        assert_same_signs(actual, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ARITHMETIC, ids=_name)
def test_integers_wrap(op: type, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n"), spec(dtype, "n"), route=route)
    limits = np.iinfo(NUMPY[dtype])
    for size in SIZES:
        x, y = integers((size,), dtype), integers((size,), dtype)[::-1].copy()
        assert_close(program(x, y), ARITHMETIC[op][0](x, y))
    x, y = _pairs(np.array([limits.min, limits.max, -1, 0, 2], NUMPY[dtype]))
    with np.errstate(over="ignore"):
        assert_close(program(x, y), ARITHMETIC[op][0](x, y))


@pytest.mark.parametrize(
    ("op", "reference"),
    [(graph.FloorDivideOp, np.floor_divide), (graph.RemainderOp, np.remainder)],
    ids=_name,
)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division(op: type, reference, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n"), spec(dtype, "n"), route=route)
    limits = np.iinfo(NUMPY[dtype])
    values = np.array([limits.min, limits.max, -7, -2, -1, 0, 1, 3, 5], NUMPY[dtype])
    x, y = _pairs(values)
    with np.errstate(all="ignore"):
        expected = reference(x, y)
    # NumPy too gives 0 for a zero divisor, and wraps the one quotient that does not fit.
    assert_close(program(x, y), expected)


@pytest.mark.parametrize("op", [graph.FloorDivideOp, graph.RemainderOp], ids=_name)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_float_division(op: type, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n"), spec(dtype, "n"), route=route)
    values = [-7.5, -2, -0.5, 0.1, 0.2, 0.5, 1, 2, 3, 6, 7, 0.7, 9, 64.25, 1e-45]
    values += [0.0, -0.0, np.inf, -np.inf, np.nan]
    if route == "wgsl":
        values.remove(1e-45)  # WebGPU may take it for zero
    x, y = _pairs(np.array(values, NUMPY[dtype]))
    reference = np.floor_divide if op is graph.FloorDivideOp else np.remainder
    with np.errstate(all="ignore"):
        expected = reference(x, y)
    actual = program(x, y)
    assert_close(actual, expected, 1)
    assert_same_signs(actual, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_power(dtype: str, route: str) -> None:
    program = Program(graph.PowerOp, spec(dtype, "n"), spec(dtype, "n"), route=route)
    bound = 4 if dtype in ("f32", "f64") else 1
    for size in SIZES:
        x, y = floats((size,), dtype, 0.1, 5), floats((size,), dtype, -4, 4)[::-1].copy()
        assert_close(program(x, y), np.power(wide(x), wide(y)), bound)
    values = [-2, -1, -0.5, -0.0, 0, 0.5, 1, 2, 3, np.inf, -np.inf, np.nan]
    x, y = _pairs(np.array(values, NUMPY[dtype]))
    with np.errstate(all="ignore"):
        expected = np.power(wide(x), wide(y))
    assert_close(program(x, y), expected, bound)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_power(dtype: str, route: str) -> None:
    program = Program(graph.PowerOp, spec(dtype, "n"), spec(dtype, "n"), route=route)
    base = np.array([-3, -2, -1, 0, 1, 2, 3], NUMPY[dtype])
    exponent = np.array([0, 1, 2, 3, 7, 9], NUMPY[dtype])
    x, y = np.repeat(base, len(exponent)), np.tile(exponent, len(base))
    assert_close(program(x, y), np.power(x, y))
    # The reciprocal of an integer, rounded towards 0; 0 has none and gives 0.
    x, y = np.repeat(base, 3), np.tile(np.array([-1, -2, -3], NUMPY[dtype]), len(base))
    expected = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2, -1, 1), 0))
    assert_close(program(x, y), expected)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i64", "i8", "i1"])
@pytest.mark.parametrize("op", COMPARE, ids=_name)
def test_compare(op: type, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n"), spec(dtype, "n"), route=route)
    if dtype == "i1":
        values = np.array([True, False])
    elif dtype in FLOATS:
        values = np.array(SPECIAL, NUMPY[dtype])
    else:
        limits = np.iinfo(NUMPY[dtype])
        values = np.array([limits.min, -1, 0, 1, limits.max], NUMPY[dtype])
    x, y = _pairs(values)
    with np.errstate(invalid="ignore"):
        expected = COMPARE[op](x, y)
    assert_close(program(x, y), expected)
    assert_close(program(x[:0], y[:0]), np.zeros(0, bool))


@pytest.mark.parametrize("dtype", [*INTEGERS, "i1"])
@pytest.mark.parametrize("op", BITWISE, ids=_name)
def test_bitwise(op: type, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n"), spec(dtype, "n"), route=route)
    for size in SIZES:
        x, y = integers((size,), dtype, -99, 99), integers((size,), dtype, -99, 99)[::-1].copy()
        assert_close(program(x, y), BITWISE[op](x, y))


@pytest.mark.parametrize("op", LOGICAL, ids=_name)
def test_logical(op: type, route: str) -> None:
    program = Program(op, spec("i1", "n"), spec("i1", "n"), route=route)
    for size in SIZES:
        x, y = _pairs(integers((size,), "i1"))
        assert_close(program(x, y), LOGICAL[op](x, y))


def _logical_right_shift(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    """On Python's integers, which have no ends."""
    width = x.dtype.itemsize * 8
    bits = [int(a) % 2**width >> b if b >= 0 else 0 for a, b in zip(x, places.tolist())]
    return np.array(bits, f"u{x.dtype}").view(x.dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("op", "reference"),
    [
        (graph.LeftShiftOp, np.left_shift),
        (graph.RightShiftOp, np.right_shift),
        (graph.LogicalRightShiftOp, _logical_right_shift),
    ],
    ids=_name,
)
def test_shifts(op: type, reference, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n"), spec(dtype, "n"), route=route)
    width = NUMPY[dtype].itemsize * 8
    limits = np.iinfo(NUMPY[dtype])
    values = np.array([limits.min, limits.max, -5, -1, 0, 1, 6], NUMPY[dtype])
    places = np.array([0, 1, 3, width - 1, width, width + 1, 2 * width, 127, -1], NUMPY[dtype])
    x, y = np.repeat(values, len(places)), np.tile(places, len(values))
    assert_close(program(x, y), reference(x, y))


@pytest.mark.parametrize(
    ("lhs", "rhs", "sizes"),
    [
        (("n", 1), ("m",), ({"n": 5, "m": 7}, {"n": 1, "m": 1}, {"n": 0, "m": 3})),
        (("n", "m"), (1, "m"), ({"n": 2, "m": 33}, {"n": 3, "m": 0})),
        (("n", 1, "m"), (4, 1), ({"n": 3, "m": 17},)),
        ((), ("n",), ({"n": 9}, {"n": 0})),
        (("n",), (), ({"n": 9},)),
        ((1,), (1,), ({},)),
        ((1, 1), (1,), ({},)),
        ((), (), ({},)),
        (("2*n", 3), ("n + n", 1), ({"n": 4},)),
        ((2, 1, 3, 1), (5, 1, 7), ({},)),
    ],
)
def test_broadcast(lhs, rhs, sizes, route: str) -> None:
    program = Program(graph.SubtractOp, spec("f32", *lhs), spec("f32", *rhs), route=route)
    for symbols in sizes:
        x, y = (floats(_extents(dims, symbols), "f32") for dims in (lhs, rhs))
        assert_close(program(x, y, **symbols), wide(x) - wide(y), 0.5)


def _extents(dims, symbols) -> tuple[int, ...]:
    known = {"2*n": 2 * symbols.get("n", 0), "n + n": 2 * symbols.get("n", 0), **symbols}
    return tuple(known.get(dim, dim) for dim in dims)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "i1"])
def test_where(dtype: str, route: str) -> None:
    dims = (("n", 1), ("n", "m"), ("m",))
    specs = [spec(kind, *d) for kind, d in zip(("i1", dtype, dtype), dims, strict=True)]
    program = Program(graph.WhereOp, *specs, route=route)
    for n, m in ((1, 1), (3, 17), (0, 4), (5, 64)):
        condition = integers((n, 1), "i1")
        x, y = numbers((n, m), dtype), numbers((m,), dtype)
        assert_close(program(condition, x, y), np.where(condition, wide(x), wide(y)), 0)


def test_every_binary_operator_is_here() -> None:
    tested = {*ARITHMETIC, *FLOAT_ONLY, *COMPARE, *BITWISE, *LOGICAL}
    tested |= {graph.FloorDivideOp, graph.RemainderOp, graph.PowerOp}
    tested |= {graph.LeftShiftOp, graph.RightShiftOp, graph.LogicalRightShiftOp}
    declared = {
        kind
        for kind in vars(graph).values()
        if isinstance(kind, type)
        and issubclass(kind, graph.BinaryOp)
        and hasattr(kind, "OPERATION_NAME")
    }
    assert declared <= tested
