"""Reductions and searches against NumPy; floats in float64."""

import numpy as np
import pytest
from harness import FLOATS, INTEGERS, NUMPY, Program, assert_close, numbers, spec, wide

from relax_mlir.dialects import graph

REDUCTIONS = {
    graph.SumOp: np.sum,
    graph.ProdOp: np.prod,
    graph.MaxOp: np.max,
    graph.MinOp: np.min,
    graph.MeanOp: np.mean,
}
AXES = [((0,), False), ((1,), True), ((-1,), False), ((0, 2), True), ((2, 0), False), ((), True)]


def _assert_near(actual: np.ndarray, expected: np.ndarray, x: np.ndarray) -> None:
    """Bounds the error by the sum of magnitudes that went in; NaN against NaN only."""
    assert actual.shape == expected.shape
    unit = {2: 2.0**-8, 4: 2.0**-22, 8: 2.0**-51}[actual.dtype.itemsize]
    scale = np.abs(wide(x)).sum()
    np.testing.assert_allclose(wide(actual), expected, rtol=unit * 16, atol=unit * scale)


def _operand(op: type, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Repeatable numbers whose product stays in range."""
    x = numbers(shape, dtype)
    return (1 + x / 8).astype(x.dtype) if op is graph.ProdOp and dtype in FLOATS else x


def _name(op: object) -> str:
    return op.OPERATION_NAME.removeprefix("graph.") if isinstance(op, type) else str(op)


def _reduce(op: type, x: np.ndarray, axes: tuple, keepdims: bool) -> np.ndarray:
    """NumPy's answer in float64 or in wrapping integers; maxima of nothing as the op says."""
    axis = axes or None
    options = {"keepdims": keepdims}
    if op in (graph.MaxOp, graph.MinOp):
        least = np.iinfo(x.dtype) if x.dtype.kind == "i" else None
        low, high = (least.min, least.max) if least else (-np.inf, np.inf)
        options["initial"] = low if op is graph.MaxOp else high
    elif x.dtype.kind == "i" and op is not graph.MeanOp:
        options["dtype"] = x.dtype
    with np.errstate(all="ignore"):
        return REDUCTIONS[op](wide(x), axis=axis, **options)


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize(("axes", "keepdims"), AXES)
@pytest.mark.parametrize("op", REDUCTIONS, ids=_name)
def test_axes(op: type, axes, keepdims, route: str) -> None:
    program = Program(op, spec("f32", "n", 4, "m"), axes=axes, keepdims=keepdims, route=route)
    for n, m in ((1, 1), (3, 5), (7, 33), (0, 3), (2, 0)):
        x = _operand(op, (n, 4, m), "f32")
        _assert_near(program(x), _reduce(op, x, axes, keepdims), x)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("op", REDUCTIONS, ids=_name)
def test_dtypes(op: type, dtype: str, route: str) -> None:
    if op is graph.MeanOp and dtype in INTEGERS:
        dtype = "f32"
    program = Program(op, spec(dtype, "n", "m"), axes=(1,), keepdims=False, route=route)
    for n, m in ((1, 1), (3, 7), (5, 64), (2, 129)):
        x = _operand(op, (n, m), dtype)
        expected = _reduce(op, x, (1,), False)
        if dtype in INTEGERS:
            assert_close(program(x), expected)
        else:
            _assert_near(program(x), expected, x)


def test_half_precision_adds_in_f32(route: str) -> None:
    for dtype in ("f16", "bf16"):
        program = Program(graph.SumOp, spec(dtype, "n"), axes=(0,), keepdims=False, route=route)
        # Adding ones in the dtype itself would stop at 256 or 2048.
        x = np.ones(4096, NUMPY[dtype])
        assert_close(program(x), np.asarray(4096.0))


@pytest.mark.parametrize("axis_first", [True, False])
def test_columns_and_rows(axis_first: bool, route: str) -> None:
    axis = 0 if axis_first else 1
    program = Program(graph.SumOp, spec("f32", "n", "m"), axes=(axis,), keepdims=False, route=route)
    for n, m in ((1, 17), (17, 1), (16, 16), (33, 65), (100, 3)):
        x = numbers((n, m), "f32")
        _assert_near(program(x), wide(x).sum(axis), x)


@pytest.mark.parametrize("op", [graph.MaxOp, graph.MinOp], ids=_name)
@pytest.mark.parametrize("dtype", FLOATS)
def test_extremes_of_special_floats(op: type, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n", "m"), axes=(1,), keepdims=True, route=route)
    rows = [[np.nan, 1, 2], [1, np.nan, 2], [1, 2, np.nan], [np.inf, -np.inf, 0], [-np.inf] * 3]
    x = np.array(rows, NUMPY[dtype])
    assert_close(program(x), REDUCTIONS[op](wide(x), axis=1, keepdims=True), 0)
    # A NaN must also be found where vectors end.
    for m in (8, 16, 31, 64):
        x = numbers((m, m), dtype)
        np.fill_diagonal(x, np.nan)
        assert np.isnan(program(x)).all()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype: str, route: str) -> None:
    program = Program(graph.SumOp, spec(dtype, "n"), axes=(), keepdims=False, route=route)
    x = np.array([np.iinfo(NUMPY[dtype]).max, 1, 1], NUMPY[dtype])
    assert_close(program(x), np.asarray(np.iinfo(NUMPY[dtype]).min + 1))


@pytest.mark.parametrize("op", REDUCTIONS, ids=_name)
def test_rank_0_and_unit_dims(op: type, route: str) -> None:
    for dims in ((), (1,), (1, 1)):
        for keepdims in (False, True):
            program = Program(op, spec("f32", *dims), axes=(), keepdims=keepdims, route=route)
            x = numbers(dims, "f32")
            assert_close(program(x), REDUCTIONS[op](wide(x), keepdims=keepdims), 0)


SEARCHES = [(graph.ArgmaxOp, np.argmax), (graph.ArgminOp, np.argmin)]


@pytest.mark.parametrize(
    ("axis", "keepdims", "dtype"),
    [
        *((1, False, dtype) for dtype in (*FLOATS, *INTEGERS)),
        (-1, True, "f32"),
        (0, False, "f32"),
        (0, True, "i8"),
    ],
)
@pytest.mark.parametrize(("op", "reference"), SEARCHES, ids=["argmax", "argmin"])
def test_search(op: type, reference, axis, keepdims, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n", "m"), axis=axis, keepdims=keepdims, route=route)
    for n, m in ((1, 1), (3, 7), (5, 64), (2, 129)):
        x = numbers((n, m), dtype)
        assert_close(program(x), reference(wide(x), axis=axis, keepdims=keepdims))
        # The first of equal ones.
        x = np.zeros((n, m), NUMPY[dtype])
        assert not program(x).any()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("op", "reference"), SEARCHES, ids=["argmax", "argmin"])
def test_search_of_special_floats(op: type, reference, dtype: str, route: str) -> None:
    program = Program(op, spec(dtype, "n", "m"), axis=1, keepdims=False, route=route)
    inf, nan = np.inf, np.nan
    rows = [
        [1, nan, 2, nan],
        [inf, nan, 2, 3],
        [-inf, -inf, -inf, -inf],
        [inf, inf, inf, inf],
        [-inf, 0, -inf, 0],
        [nan, nan, nan, nan],
        [0.0, -0.0, 0.0, -0.0],
    ]
    x = np.array(rows, NUMPY[dtype])
    assert_close(program(x), reference(wide(x), axis=1))


@pytest.mark.parametrize(("op", "reference"), SEARCHES, ids=["argmax", "argmin"])
def test_search_of_extreme_integers(op: type, reference, route: str) -> None:
    program = Program(op, spec("i8", "n", "m"), axis=1, keepdims=False, route=route)
    x = np.array([[-128, -128, 127], [127, 127, -128], [127, 127, 127]], np.int8)
    assert_close(program(x), reference(x, axis=1))


@pytest.mark.parametrize(
    ("op", "reference"), [(graph.AnyOp, np.any), (graph.AllOp, np.all)], ids=["any", "all"]
)
@pytest.mark.parametrize(("axes", "keepdims"), [((0,), False), ((1, -1), True), ((), False)])
def test_truth(op: type, reference, axes, keepdims: bool, route: str) -> None:
    program = Program(op, spec("i1", "n", 3, "m"), axes=axes, keepdims=keepdims, route=route)
    random = np.random.default_rng(8)
    for n, m in ((1, 1), (5, 7), (0, 2), (2, 0), (3, 17)):
        for share in (0.05, 0.95):
            x = random.random((n, 3, m)) < share
            wanted = reference(x, axis=axes or None, keepdims=keepdims)
            assert_close(program(x), np.asarray(wanted))


@pytest.mark.filterwarnings("ignore:Degrees of freedom", "ignore:invalid value", "ignore:divide by")
@pytest.mark.parametrize("correction", [0, 1, 5])
@pytest.mark.parametrize(("axes", "keepdims"), AXES)
def test_spread(axes, keepdims: bool, correction: int, route: str) -> None:
    for op, reference in ((graph.VarianceOp, np.var), (graph.StdOp, np.std)):
        settings = {"axes": axes, "keepdims": keepdims, "correction": correction}
        program = Program(op, spec("f32", "n", 4, "m"), route=route, **settings)
        for n, m in ((1, 1), (3, 5), (7, 33), (0, 3)):
            x = numbers((n, 4, m), "f32")
            expected = reference(wide(x), axis=axes or None, keepdims=keepdims, ddof=correction)
            np.testing.assert_allclose(program(x), expected, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", FLOATS)
def test_spread_far_from_zero(dtype: str, route: str) -> None:
    settings = {"axes": (1,), "keepdims": False, "correction": 1, "route": route}
    x = (numbers((3, 65), dtype) + 100).astype(NUMPY[dtype])
    expected = np.var(wide(x), axis=1, ddof=1)
    tolerance = {8: 1e-12, 4: 1e-5, 2: 1e-2}[x.dtype.itemsize]
    program = Program(graph.VarianceOp, spec(dtype, "n", "m"), **settings)
    np.testing.assert_allclose(wide(program(x)), expected, rtol=tolerance)
    program = Program(graph.StdOp, spec(dtype, "n", "m"), **settings)
    np.testing.assert_allclose(wide(program(x)), np.sqrt(expected), rtol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("axes", "keepdims"), AXES)
def test_logsumexp(axes, keepdims: bool, dtype: str, route: str) -> None:
    settings = {"axes": axes, "keepdims": keepdims, "route": route}
    program = Program(graph.LogsumexpOp, spec(dtype, "n", 4, "m"), **settings)
    for n, m in ((1, 1), (3, 5), (2, 33), (0, 3)):
        x = numbers((n, 4, m), dtype) * NUMPY[dtype].type(8)
        with np.errstate(divide="ignore"):
            expected = np.log(np.sum(np.exp(wide(x)), axis=axes or None, keepdims=keepdims))
        tolerance = {8: 1e-13, 4: 2e-6, 2: 1e-2}[x.dtype.itemsize]
        found = wide(program(x))
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_logsumexp_of_special_floats(route: str) -> None:
    program = Program(
        graph.LogsumexpOp, spec("f32", "n", 2), axes=(1,), keepdims=False, route=route
    )
    inf, nan = np.inf, np.nan
    x = np.array([[1e4, 1e4], [-inf, -inf], [inf, 1], [nan, inf], [-inf, 3], [inf, -inf]])
    expected = [1e4 + np.log(2), -inf, inf, nan, 3, inf]
    np.testing.assert_allclose(program(x.astype(np.float32)), expected, rtol=1e-6)
