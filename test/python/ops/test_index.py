"""Operators that select elements, make tensors and convert element types, against NumPy."""

import numpy as np
import pytest
from harness import FLOATS, INTEGERS, NUMPY, Program, integers, numbers, spec, wide

from relax_mlir.dialects import graph

DTYPES = (*FLOATS, *INTEGERS, "i1")


def _same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    # NumPy compares NaNs of its own types only.
    np.testing.assert_array_equal(wide(actual), wide(expected))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["i64", "i32"])
def test_take_rows(dtype: str, index: str, route: str) -> None:
    program = Program(graph.TakeOp, spec(dtype, "v", 5), spec(index, "n"), axis=0, route=route)
    for v, n in ((1, 1), (7, 17), (3, 0), (33, 4)):
        x, rows = numbers((v, 5), dtype), integers((n,), index, 0, v - 1)
        _same(program(x, rows), x[rows])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("index_dims", [(), ("n",), ("n", 2)])
def test_take_axes(axis: int, index_dims, route: str) -> None:
    program = Program(
        graph.TakeOp, spec("f32", 3, 4, "m"), spec("i64", *index_dims), axis=axis, route=route
    )
    for n, m in ((5, 7), (1, 1), (0, 2)):
        x = numbers((3, 4, m), "f32")
        limit = x.shape[axis] - 1
        places = integers([n if dim == "n" else dim for dim in index_dims], "i64", 0, limit)
        _same(program(x, places), np.take(x, places, axis))


@pytest.mark.parametrize("index", ["i64", "i32", "i8"])
def test_take_clamps(index: str, route: str) -> None:
    program = Program(graph.TakeOp, spec("f32", "v", 2), spec(index, "n"), axis=0, route=route)
    limits = np.iinfo(NUMPY[index])
    x = numbers((5, 2), "f32")
    rows = np.array([limits.min, -1, 0, 4, 5, limits.max], NUMPY[index])
    _same(program(x, rows), x[np.clip(rows, 0, 4)])


def test_take_from_an_empty_axis(route: str) -> None:
    program = Program(graph.TakeOp, spec("f32", "v", 2), spec("i64", "n"), axis=0, route=route)
    x = np.zeros((0, 2), np.float32)
    _same(program(x, np.zeros(0, np.int64)), x)


SLICES = [
    # dims, axes, begin, end, strides, symbols
    (("n", 8), (1,), (2,), (6,), (1,), {"n": 5}),
    (("n", 8), (-1,), (1,), (8,), (3,), {"n": 5}),
    (("n", 8), (0,), ("n - r",), ("n",), (1,), {"n": 7, "r": 3}),
    (("n", 8), (0,), ("n - r",), ("n",), (1,), {"n": 7, "r": 0}),
    (("n", 8), (0, 1), ("n - 1", 3), ("n", 5), (1, 1), {"n": 4}),
    (("n", "m"), (1, 0), (1, 0), ("m", "n"), (2, 3), {"n": 8, "m": 9}),
    (("n",), (0,), ("m",), ("m",), (1,), {"n": 4, "m": 2}),
    (("n",), (0,), (0,), ("n",), (1,), {"n": 4}),
    (("n", 3), (), (), (), (), {"n": 4}),
    ((9, 9), (0, 1), (0, 8), (9, 9), (4, 1), {}),
    ((5,), (0,), (5,), (5,), (2,), {}),
    ((5, "n"), (0, 1), (5, 0), (5, "n"), (1, 1), {"n": 3}),
    ((0, "n"), (0,), (0,), (0,), (1,), {"n": 3}),
    ((5,), (0,), (5,), ("m",), (1,), {"m": 5}),
]


@pytest.mark.parametrize(("dims", "axes", "begin", "end", "strides", "symbols"), SLICES)
def test_strided_slice(dims, axes, begin, end, strides, symbols, route: str) -> None:
    program = Program(
        graph.StridedSliceOp,
        spec("f32", *dims),
        axes=axes,
        begin=begin,
        end=end,
        strides=strides,
        route=route,
    )
    x = numbers([symbols.get(dim, dim) for dim in dims], "f32")
    parts = [slice(None)] * len(dims)
    for axis, first, last, stride in zip(axes, begin, end, strides, strict=True):
        bounds = [eval(str(bound), {}, dict(symbols)) for bound in (first, last)]
        parts[axis] = slice(*bounds, stride)
    _same(program(x, **symbols), x[tuple(parts)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_strided_slice_dtypes(dtype: str, route: str) -> None:
    program = Program(
        graph.StridedSliceOp,
        spec(dtype, "n", 7),
        axes=(1,),
        begin=(1,),
        end=(6,),
        strides=(2,),
        route=route,
    )
    for n in (0, 1, 17):
        x = numbers((n, 7), dtype)
        _same(program(x), x[:, 1:6:2])


STARTS = ((0, 0), (1, 2), (-5, 100), (2, -1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dynamic_slice(dtype: str, route: str) -> None:
    program = Program(
        graph.DynamicSliceOp, spec(dtype, "n", "m"), spec("i32", 2), sizes=(2, "m - 1"), route=route
    )
    for n, m in ((2, 1), (5, 7), (3, 17)):
        x = numbers((n, m), dtype)
        for start in STARTS:
            i, j = min(max(start[0], 0), n - 2), min(max(start[1], 0), 1)
            _same(program(x, np.array(start, np.int32)), x[i : i + 2, j : j + m - 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_dynamic_update_slice(dtype: str, route: str) -> None:
    program = Program(
        graph.DynamicUpdateSliceOp,
        spec(dtype, "n", "m"),
        spec(dtype, "k", 2),
        spec("i64", 2),
        route=route,
    )
    for n, m, k in ((2, 2, 1), (5, 7, 3), (3, 17, 0)):
        x, updates = numbers((n, m), dtype), numbers((k, 2), dtype)
        for start in STARTS:
            i, j = min(max(start[0], 0), n - k), min(max(start[1], 0), m - 2)
            wanted = x.copy()
            wanted[i : i + k, j : j + 2] = updates
            _same(program(x, updates, np.array(start)), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_full(dtype: str, route: str) -> None:
    program = Program(graph.FullOp, spec(dtype), shape=("n", 3, "2*m"), route=route)
    value = numbers((), dtype)
    for n, m in ((1, 1), (0, 2), (7, 9)):
        _same(program(value, n=n, m=m), np.full((n, 3, 2 * m), value))
    _same(Program(graph.FullOp, spec(dtype), shape=(), route=route)(value), value)


def _arange(bounds, symbols, dtype: str, route: str) -> None:
    program = Program(graph.ArangeOp, bounds=bounds, dtype=dtype, route=route)
    start, stop, step = (eval(str(bound), {}, dict(symbols)) for bound in bounds)
    expected = np.array(range(start, stop, step), np.int64).astype(NUMPY[dtype])
    _same(program(**symbols), expected)


@pytest.mark.parametrize(
    ("bounds", "symbols"),
    [
        ((0, "n", 1), {"n": 17}),
        ((0, "n", 1), {"n": 0}),
        (("p", "p + n", 1), {"n": 5, "p": 9}),
        ((3, "n", 4), {"n": 20}),
        ((3, "n", 4), {"n": 1}),
        ((-5, 6, 2), {}),
        ((4, 2, 1), {}),
    ],
)
def test_arange(bounds, symbols, route: str) -> None:
    _arange(bounds, symbols, "i64", route)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i32", "i8"])
def test_arange_dtypes(dtype: str, route: str) -> None:
    _arange((-3, "n", 2), {"n": 33}, dtype, route)


@pytest.mark.parametrize("k", [-3, -1, 0, 1, 2, 9])
@pytest.mark.parametrize(
    ("op", "reference"), [(graph.TrilOp, np.tril), (graph.TriuOp, np.triu)], ids=["tril", "triu"]
)
def test_triangles(op: type, reference, k: int, route: str) -> None:
    program = Program(op, spec("f32", 2, "n", "m"), k=k, route=route)
    for n, m in ((3, 5), (5, 3), (1, 1), (0, 2), (17, 16)):
        x = numbers((2, n, m), "f32") + 9
        _same(program(x), reference(x, k))


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles_of_every_dtype(dtype: str, route: str) -> None:
    program = Program(graph.TrilOp, spec(dtype, "n", "n"), k=0, route=route)
    x = numbers((7, 7), dtype)
    expected = np.where(np.tri(7, dtype=bool), x, np.zeros((), x.dtype))
    _same(program(x), expected)


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_astype(source: str, target: str, route: str) -> None:
    program = Program(graph.AstypeOp, spec(source, "n"), dtype=target, route=route)
    for n in (0, 1, 31):
        x = numbers((n,), source)
        _same(program(x), x.astype(NUMPY[target]))


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", FLOATS)
def test_astype_of_special_floats(source: str, target: str, route: str) -> None:
    program = Program(graph.AstypeOp, spec(source, "n"), dtype=target, route=route)
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 65504, 1e-7, 3e38, 1 + 2**-9, 1 + 3 * 2**-9]
    with np.errstate(over="ignore"):
        x = np.array(values).astype(NUMPY[source])
        expected = x.astype(np.float64).astype(NUMPY[target])
    actual = program(x)
    _same(actual, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[number], np.signbit(expected)[number])


@pytest.mark.parametrize("source", FLOATS)
def test_astype_of_special_floats_to_truth(source: str, route: str) -> None:
    program = Program(graph.AstypeOp, spec(source, "n"), dtype="i1", route=route)
    x = np.array([np.nan, np.inf, 0.0, -0.0, 0.25, -1], NUMPY[source])
    _same(program(x), np.array([True, True, False, False, True, True]))


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_astype_clamps_floats(source: str, target: str, route: str) -> None:
    program = Program(graph.AstypeOp, spec(source, "n"), dtype=target, route=route)
    limits = np.iinfo(NUMPY[target])
    bound = 2.0 ** (8 * NUMPY[target].itemsize - 1)
    values = [np.nan, np.inf, -np.inf, bound, -bound, 1.5 * bound, -1.5 * bound, bound / 2, -0.9]
    with np.errstate(over="ignore"):
        x = np.array(values).astype(NUMPY[source])
    exact = [0 if np.isnan(v) else v if np.isinf(v) else int(v) for v in x.astype(np.float64)]
    expected = [int(min(max(value, limits.min), limits.max)) for value in exact]
    _same(program(x), np.array(expected, NUMPY[target]))


def test_astype_wraps_wide_integers(route: str) -> None:
    program = Program(graph.AstypeOp, spec("i64", "n"), dtype="i8", route=route)
    x = np.array([-(2**63), -129, -128, -1, 127, 128, 256, 2**63 - 1])
    _same(program(x), x.astype(np.int8))
