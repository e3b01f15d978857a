"""Operators that move elements against NumPy: exact for every element type."""

import numpy as np
import pytest
from harness import Program, numbers, spec

from relax_mlir.dialects import graph

DTYPES = ("f32", "f64", "f16", "bf16", "i8", "i32", "i64", "i1")
SIZES = (0, 1, 2, 7, 33)


def _same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_permute_dims(dtype: str, route: str) -> None:
    program = Program(graph.PermuteDimsOp, spec(dtype, "n", 3, "m"), axes=(2, 0, 1), route=route)
    for n, m in ((0, 4), (1, 1), (7, 5), (16, 17), (33, 8)):
        x = numbers((n, 3, m), dtype)
        _same(program(x), x.transpose(2, 0, 1))


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
@pytest.mark.parametrize("dims", [(3, 5), (16, 16), (64, 33), (1, 9), (0, 4)])
def test_permute_dims_static(dims, axes, route: str) -> None:
    program = Program(graph.PermuteDimsOp, spec("f32", *dims), axes=axes, route=route)
    x = numbers(dims, "f32")
    _same(program(x), x.transpose(axes))


def test_permute_dims_of_rank_0_and_4(route: str) -> None:
    x = numbers((), "f32")
    _same(Program(graph.PermuteDimsOp, spec("f32"), axes=(), route=route)(x), x)
    program = Program(
        graph.PermuteDimsOp, spec("f32", "b", "n", "h", 4), axes=(0, 2, 1, 3), route=route
    )
    x = numbers((2, 7, 3, 4), "f32")
    _same(program(x), x.transpose(0, 2, 1, 3))


RESHAPES = [
    (("n", 4), ("4*n",), {"n": 5}),
    (("n", 4), ("4*n",), {"n": 0}),
    (("n", 4), ("n", 2, 2), {"n": 3}),
    (("n", 12), ("n", 3, 4), {"n": 7}),
    (("n", 3, 4), ("n", 12), {"n": 7}),
    (("n", "m"), ("m", "n"), {"n": 3, "m": 5}),
    (("n", "m"), ("n*m",), {"n": 3, "m": 5}),
    (("n*m",), ("n", "m"), {"n": 3, "m": 5}),
    (("n", 6), ("2*n", 3), {"n": 5}),
    (("n", 6), (3, "2*n"), {"n": 5}),
    (("n", 1, "m"), ("n", "m"), {"n": 3, "m": 4}),
    (("n", "m"), (1, "n", 1, "m", 1), {"n": 3, "m": 4}),
    (("n",), ("n",), {"n": 9}),
    ((), (1, 1), {}),
    ((1, 1), (), {}),
    ((1,), (), {}),
    (("n", "m"), (), {"n": 1, "m": 1}),
    ((), ("n",), {"n": 1}),
    (("n",), ("m", 3), {"n": 12, "m": 4}),
    ((), (), {}),
    ((6, 4), (3, 8), {}),
    ((2, 3, 4), (4, 3, 2), {}),
    ((0, 3), (3, 0), {}),
    ((0, 3), (0,), {}),
    ((5,), (1, 5), {}),
    (("n + 1", 2), ("2*n + 2",), {"n": 4}),
    (("2*n + 2",), ("n + 1", 2), {"n": 4}),
    ((2, "n", 3, "m"), ("2*n", "3*m"), {"n": 5, "m": 7}),
    (("2*n", "3*m"), (2, "n", 3, "m"), {"n": 5, "m": 7}),
    (("n", "m", "k"), ("k", "n*m"), {"n": 2, "m": 3, "k": 4}),
]


@pytest.mark.parametrize(("before", "after", "symbols"), RESHAPES)
def test_reshape(before, after, symbols, route: str) -> None:
    program = Program(graph.ReshapeOp, spec("f32", *before), shape=after, route=route)
    shape = [eval(str(dim), {}, dict(symbols)) for dim in before]
    x = numbers(shape, "f32")
    result = [eval(str(dim), {}, dict(symbols)) for dim in after]
    _same(program(x, **symbols), x.reshape(result))


@pytest.mark.parametrize("dtype", DTYPES)
def test_reshape_dtypes(dtype: str, route: str) -> None:
    program = Program(graph.ReshapeOp, spec(dtype, "n", 6), shape=("n", 2, 3), route=route)
    for n in SIZES:
        x = numbers((n, 6), dtype)
        _same(program(x), x.reshape(n, 2, 3))


@pytest.mark.parametrize(
    ("dims", "axes"),
    [(("n",), (0,)), (("n",), (-1,)), (("n", 4), (0, 2, 4)), ((), (0, 1)), (("n",), ())],
)
def test_expand_dims(dims, axes, route: str) -> None:
    program = Program(graph.ExpandDimsOp, spec("f32", *dims), axes=axes, route=route)
    for n in (0, 1, 5):
        x = numbers([n if dim == "n" else dim for dim in dims], "f32")
        _same(program(x), np.expand_dims(x, axes))


@pytest.mark.parametrize(
    ("dims", "axes"),
    [((1, "n"), (0,)), (("n", 1), (-1,)), ((1, "n", 1), (0, 2)), ((1,), (0,)), (("n",), ())],
)
def test_squeeze(dims, axes, route: str) -> None:
    program = Program(graph.SqueezeOp, spec("f32", *dims), axes=axes, route=route)
    for n in (0, 1, 5):
        x = numbers([n if dim == "n" else dim for dim in dims], "f32")
        _same(program(x), np.squeeze(x, axes))


@pytest.mark.parametrize(
    ("dims", "shape"),
    [
        (("n",), ("m", "n")),
        (("n", 1), ("n", "m")),
        ((), ("n", "m")),
        ((1, 1), ("n", "m")),
        (("n", "m"), ("n", "m")),
        ((1,), (1,)),
        ((3, 1), (2, 3, 5)),
    ],
)
def test_broadcast_to(dims, shape, route: str) -> None:
    program = Program(graph.BroadcastToOp, spec("f32", *dims), shape=shape, route=route)
    for n, m in ((5, 3), (0, 2), (1, 17)):
        symbols = {"n": n, "m": m}
        x = numbers([symbols.get(dim, dim) for dim in dims], "f32")
        expected = np.broadcast_to(x, [symbols.get(dim, dim) for dim in shape])
        _same(program(x, **symbols), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_concat(dtype: str, route: str) -> None:
    specs = [spec(dtype, 2, dim, "k") for dim in ("n", "m", 3)]
    program = Program(graph.ConcatOp, *specs, axis=1, route=route)
    for n, m, k in ((1, 1, 1), (5, 0, 7), (0, 0, 3), (3, 2, 0), (4, 17, 33)):
        parts = [numbers((2, extent, k), dtype) for extent in (n, m, 3)]
        _same(program(*parts), np.concatenate(parts, 1))


@pytest.mark.parametrize("axis", [0, -1])
def test_concat_axes(axis: int, route: str) -> None:
    dims = [("n", 4), ("m", 4)] if axis == 0 else [(4, "n"), (4, "m")]
    program = Program(
        graph.ConcatOp, *[spec("f32", *item) for item in dims], axis=axis, route=route
    )
    for n, m in ((3, 5), (0, 1), (16, 1)):
        symbols = {"n": n, "m": m}
        parts = [numbers([symbols.get(dim, dim) for dim in item], "f32") for item in dims]
        _same(program(*parts), np.concatenate(parts, axis))


def test_concat_of_empty_parts(route: str) -> None:
    dims = (0, 3, 0)
    program = Program(graph.ConcatOp, *[spec("f32", d, "n") for d in dims], axis=0, route=route)
    parts = [numbers((d, 5), "f32") for d in dims]
    _same(program(*parts), np.concatenate(parts))


def test_concat_of_one_and_of_many(route: str) -> None:
    x = numbers((3, 2), "f32")
    _same(Program(graph.ConcatOp, spec("f32", "n", 2), axis=0, route=route)(x), x)
    program = Program(graph.ConcatOp, *[spec("f32", "n")] * 3, spec("f32", 2), axis=0, route=route)
    parts = [numbers((5,), "f32") + i for i in range(3)] + [numbers((2,), "f32")]
    _same(program(*parts), np.concatenate(parts))


@pytest.mark.parametrize(
    ("dims", "sizes", "axis"),
    [
        (("n", 6), (1, 2, 3), 1),
        (("n", 6), (6,), -1),
        (("2*n", 3), ("n", "n"), 0),
        (("n + m", 3), ("n", "m"), 0),
        ((5, "n"), (0, 5), 0),
        ((5, "n"), (2, 3, 0), 0),
    ],
)
def test_split(dims, sizes, axis, route: str) -> None:
    program = Program(graph.SplitOp, spec("f32", *dims), sizes=sizes, axis=axis, route=route)
    for n, m in ((3, 4), (0, 1), (17, 0)):
        symbols = {"n": n, "m": m}
        x = numbers([eval(str(dim), {}, dict(symbols)) for dim in dims], "f32")
        cuts = np.cumsum([symbols.get(size, size) for size in sizes])[:-1]
        results = program(x, **symbols)
        results = results if isinstance(results, tuple) else (results,)
        for actual, expected in zip(results, np.split(x, cuts, axis), strict=True):
            _same(actual, expected)
