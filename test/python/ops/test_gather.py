"""Operators that pick elements by tensors of indices, against NumPy."""

import numpy as np
import pytest
from harness import FLOATS, INTEGERS, NUMPY, Program, integers, numbers, spec, wide

from relax_mlir.dialects import graph

DTYPES = (*FLOATS, *INTEGERS, "i1")


def _same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(wide(actual), wide(expected))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements(dtype: str, axis: int, route: str) -> None:
    indices = spec("i32", *("k" if i == axis % 3 else d for i, d in enumerate(("n", 3, "m"))))
    program = Program(
        graph.GatherElementsOp, spec(dtype, "n", 3, "m"), indices, axis=axis, route=route
    )
    for n, m, k in ((1, 1, 1), (5, 7, 4), (2, 3, 0), (1, 13, 17)):
        x = numbers((n, 3, m), dtype)
        shape = [n, 3, m]
        shape[axis] = k
        places = integers(shape, "i32", 0, x.shape[axis] - 1)
        _same(program(x, places), np.take_along_axis(x, places, axis))


def test_gather_elements_of_fewer_rows(route: str) -> None:
    program = Program(
        graph.GatherElementsOp, spec("f32", "n", "m"), spec("i64", "r", 2), axis=1, route=route
    )
    for n, m, r in ((5, 7, 3), (4, 1, 4), (3, 2, 0)):
        x, places = numbers((n, m), "f32"), integers((r, 2), "i64", 0, m - 1)
        _same(program(x, places), np.take_along_axis(x[:r], places, 1))


@pytest.mark.parametrize("index", ["i64", "i8"])
def test_indices_are_clamped(index: str, route: str) -> None:
    limits = np.iinfo(NUMPY[index])
    x = numbers((5, 2), "f32")
    rows = np.array([limits.min, -1, 0, 4, 5, limits.max], NUMPY[index])
    wanted = np.clip(rows, 0, 4)
    table, pairs = spec("f32", "v", 2), np.stack([rows, rows], 1)
    program = Program(graph.GatherElementsOp, table, spec(index, "n", 2), axis=0, route=route)
    _same(program(x, pairs), np.take_along_axis(x, np.clip(pairs, 0, 4), 0))
    program = Program(graph.GatherNdOp, table, spec(index, "n", 2), batch_dims=0, route=route)
    _same(program(x, pairs), x[wanted, np.clip(rows, 0, 1)])
    program = Program(graph.IndexTensorOp, table, spec(index, "n"), axes=(0,), route=route)
    _same(program(x, rows), x[wanted])


ND = [
    # dims of the input, of the indices, batch dims
    (("n", 4, "m"), ("k", 1), 0),
    (("n", 4, "m"), ("k", 2, 2), 0),
    (("n", 4, "m"), (3,), 0),
    (("n", 4, "m"), ("n", "k", 1), 1),
    (("n", 4, "m"), ("n", 4, 1), 2),
    (("n", 4, "m"), ("k", 0), 0),
]


def _gather_nd(x: np.ndarray, indices: np.ndarray, batch: int) -> np.ndarray:
    """One tuple of indices after the other."""
    lead, rest = indices.shape[:-1], x.shape[batch + indices.shape[-1] :]
    result = np.zeros((*lead, *rest), x.dtype)
    for at in np.ndindex(*lead):
        result[at] = x[(*at[:batch], *indices[at])]
    return result


@pytest.mark.parametrize(("dims", "index_dims", "batch"), ND)
def test_gather_nd(dims, index_dims, batch: int, route: str) -> None:
    program = Program(
        graph.GatherNdOp,
        spec("f32", *dims),
        spec("i64", *index_dims),
        batch_dims=batch,
        route=route,
    )
    for sizes in ({"n": 3, "m": 5, "k": 4}, {"n": 1, "m": 1, "k": 1}, {"n": 2, "m": 3, "k": 0}):
        x = numbers([sizes.get(dim, dim) for dim in dims], "f32")
        shape = [sizes.get(dim, dim) for dim in index_dims]
        picked = x.shape[batch : batch + shape[-1]]
        indices = integers(shape, "i64", 0, 1000) % np.array(picked, np.int64)
        _same(program(x, indices), _gather_nd(x, indices, batch))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_nd_dtypes(dtype: str, route: str) -> None:
    program = Program(
        graph.GatherNdOp, spec(dtype, "n", 3), spec("i32", "k", 1), batch_dims=0, route=route
    )
    x, indices = numbers((7, 3), dtype), integers((11, 1), "i32", 0, 6)
    _same(program(x, indices), x[indices[:, 0]])


INDEXED = [
    # dims of the indices, axes, which part of the tensor of dims n, 4, m they are
    ([("k",)], (0,), lambda x, a: x[a]),
    ([("k", 2)], (1,), lambda x, a: x[:, a]),
    ([("k",), ("k",)], (0, 1), lambda x, a, b: x[a, b]),
    ([("k", 1), (3,)], (1, 2), lambda x, a, b: x[:, a, b]),
    ([("k",), ("k",)], (0, -1), lambda x, a, b: x[a, :, b]),
    ([(), ("k",)], (0, 2), lambda x, a, b: x[a, :, b]),
    ([("k",), (1,), ()], (0, 1, 2), lambda x, a, b, c: x[a, b, c]),
]


@pytest.mark.parametrize(("dims", "axes", "want"), INDEXED)
def test_index_tensor(dims, axes, want, route: str) -> None:
    program = Program(
        graph.IndexTensorOp,
        spec("f32", "n", 4, "m"),
        *(spec("i64", *item) for item in dims),
        axes=axes,
        route=route,
    )
    for n, m, k in ((3, 5, 7), (1, 1, 1), (2, 3, 0)):
        x = numbers((n, 4, m), "f32")
        indices = [
            integers([k if dim == "k" else dim for dim in item], "i64", 0, x.shape[axis] - 1)
            for item, axis in zip(dims, axes, strict=True)
        ]
        _same(program(x, *indices), want(x, *indices))


@pytest.mark.parametrize("dtype", DTYPES)
def test_index_tensor_dtypes(dtype: str, route: str) -> None:
    program = Program(
        graph.IndexTensorOp, spec(dtype, "n", "m"), spec("i32", "k"), axes=(1,), route=route
    )
    x, indices = numbers((3, 5), dtype), integers((17,), "i32", 0, 4)
    _same(program(x, indices), x[:, indices])


def test_an_axis_without_elements(route: str) -> None:
    x = np.zeros((0, 2), np.float32)
    program = Program(
        graph.GatherElementsOp, spec("f32", "v", 2), spec("i64", "n", 2), axis=0, route=route
    )
    _same(program(x, np.zeros((0, 2), np.int64)), x)
    program = Program(
        graph.IndexTensorOp, spec("f32", "v", 2), spec("i64", "n"), axes=(0,), route=route
    )
    _same(program(x, np.zeros(0, np.int64)), x)


def test_indices_of_an_empty_axis_that_broadcast_to_none(route: str) -> None:
    operands = [spec("f32", 3, "m"), spec("i64", "k"), spec("i64", 1)]
    program = Program(graph.IndexTensorOp, *operands, axes=(0, 1), route=route)
    x, none = np.zeros((3, 0), np.float32), np.zeros(0, np.int64)
    _same(program(x, none, np.zeros(1, np.int64)), np.zeros(0, np.float32))
