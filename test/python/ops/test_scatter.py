"""Operators that write elements by tensors of indices, one update after the other."""

from collections.abc import Callable

import numpy as np
import pytest
from harness import (
    FLOATS,
    INTEGERS,
    NUMPY,
    Program,
    add_function,
    assert_close,
    integers,
    numbers,
    spec,
    wide,
)

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import graph, make_context

DTYPES = (*FLOATS, *INTEGERS, "i1")
COMBINE: dict[str, Callable] = {
    "none": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _apply(x: np.ndarray, updates: list[tuple[tuple, np.ndarray]], reduction: str) -> np.ndarray:
    """Places and values in order; floats are combined in float64."""
    result = wide(x).copy()
    for at, value in updates:
        if all(0 <= i < n for i, n in zip(at, x.shape) if not isinstance(i, slice)):
            result[at] = COMBINE[reduction](result[at], wide(np.asarray(value)))
    return result


def _elements(x, indices, updates, axis: int, reduction: str) -> np.ndarray:
    pairs = []
    for at in np.ndindex(*indices.shape):
        place = list(at)
        place[axis] = int(indices[at])
        pairs.append((tuple(place), updates[at]))
    return _apply(x, pairs, reduction)


@pytest.mark.parametrize("reduction", list(COMBINE))
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(axis: int, reduction: str, route: str) -> None:
    dims = ["k" if i == axis % 3 else d for i, d in enumerate(("n", 3, "m"))]
    program = Program(
        graph.ScatterElementsOp,
        spec("f64", "n", 3, "m"),
        spec("i64", *dims),
        spec("f64", *dims),
        axis=axis,
        reduction=reduction,
        route=route,
    )
    for n, m, k in ((1, 1, 1), (2, 5, 7), (3, 2, 0), (0, 2, 3)):
        x, shape = numbers((n, 3, m), "f64"), [n, 3, m]
        shape[axis] = k
        indices = integers(shape, "i64", -1, x.shape[axis])  # some are outside
        updates = numbers(shape, "f64")
        wanted = _elements(x, indices, updates, axis, reduction)
        assert_close(program(x, indices, updates), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", list(COMBINE))
def test_scatter_elements_dtypes(dtype: str, reduction: str, route: str) -> None:
    if dtype == "i1" and reduction != "none":
        return
    program = Program(
        graph.ScatterElementsOp,
        spec(dtype, "n"),
        spec("i32", "k"),
        spec(dtype, "k"),
        axis=0,
        reduction=reduction,
        route=route,
    )
    x, updates = numbers((5,), dtype), numbers((13,), dtype)
    indices = integers((13,), "i32", 0, 4)
    wanted = _elements(x, indices, updates, 0, reduction)
    if dtype == "f32":
        result = program(x, indices, updates)
        np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-6)
    else:  # half precision is added up in more, and rounded once
        assert_close(program(x, indices, updates), wanted.astype(NUMPY[dtype]))


def test_fewer_updates_than_rows(route: str) -> None:
    program = Program(
        graph.ScatterElementsOp,
        spec("i32", "n", 3, "m"),
        spec("i64", "r", 2, "c"),
        spec("i32", "r", 2, "c"),
        axis=1,
        reduction="none",
        route=route,
    )
    for n, m, r, c in ((4, 5, 2, 3), (1, 1, 0, 1), (3, 130, 3, 70)):
        x, updates = integers((n, 3, m), "i32"), integers((r, 2, c), "i32")
        indices = integers((r, 2, c), "i64", 0, 2)
        wanted = _elements(x, indices, updates, 1, "none")
        assert_close(program(x, indices, updates), wanted)


@pytest.mark.parametrize("reduction", list(COMBINE))
@pytest.mark.parametrize(
    ("dims", "index_dims"),
    [
        (("n", "m"), ("k", 1)),
        (("n", "m"), ("k", 2)),
        (("n", "m"), (1,)),
        (("n",), (1,)),
        (("n", 2, "m"), (2, "k", 2)),
    ],
)
def test_scatter_nd(dims, index_dims, reduction: str, route: str) -> None:
    *lead, count = index_dims
    program = Program(
        graph.ScatterNdOp,
        spec("f64", *dims),
        spec("i64", *index_dims),
        spec("f64", *lead, *dims[count:]),
        reduction=reduction,
        route=route,
    )
    for sizes in ({"n": 3, "m": 5, "k": 7}, {"n": 1, "m": 1, "k": 1}, {"n": 2, "m": 67, "k": 0}):
        x = numbers([sizes.get(dim, dim) for dim in dims], "f64")
        indices = integers([sizes.get(dim, dim) for dim in index_dims], "i64", -1, 3)
        updates = numbers((*indices.shape[:-1], *x.shape[count:]), "f64")
        pairs = [
            (tuple(map(int, indices[at])), updates[at]) for at in np.ndindex(*indices.shape[:-1])
        ]
        assert_close(program(x, indices, updates), _apply(x, pairs, reduction), 4)


PUTS = [
    # dims of the values and of indices, axes
    (("k", 4, "m"), [("k",)], (0,)),
    (("m",), [("k",)], (0,)),
    (("n", "k", 1), [("k",)], (1,)),
    ((), [("k",)], (2,)),
    (("k", 3), [("k", 1), (3,)], (0, 2)),
    (("k",), [("k",), (), (1,)], (0, 1, 2)),
]


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize(("dims", "index_dims", "axes"), PUTS)
def test_index_put(dims, index_dims, axes, reduction: str, route: str) -> None:
    if axes == (0, 2):
        dims = (*dims, 4)
    program = Program(
        graph.IndexPutOp,
        spec("f64", "n", 4, "m"),
        spec("f64", *dims),
        *(spec("i64", *item) for item in index_dims),
        axes=axes,
        reduction=reduction,
        route=route,
    )
    for n, m, k in ((3, 5, 7), (1, 1, 1), (2, 3, 0)):
        sizes = {"n": n, "m": m, "k": k}
        x = numbers((n, 4, m), "f64")
        values = numbers([sizes.get(dim, dim) for dim in dims], "f64")
        indices = [
            integers([sizes.get(dim, dim) for dim in item], "i64", 0, x.shape[axis] - 1)
            for item, axis in zip(index_dims, axes, strict=True)
        ]
        where: list = [slice(None)] * 3
        for axis, item in zip(axes, indices, strict=True):
            where[axis] = item
        # NumPy assigns in order, and `at` adds each.
        wanted = x.copy()
        if reduction == "add":
            np.add.at(wanted, tuple(where), values)
        else:
            wanted[tuple(where)] = values
        assert_close(program(x, values, *indices), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_slice_scatter(dtype: str, route: str) -> None:
    program = Program(
        graph.SliceScatterOp,
        spec(dtype, "n", "m"),
        spec(dtype, "(n + 1) floordiv 2", "m - 2"),
        axes=(0, -1),
        begin=(0, 1),
        end=("n", "m - 1"),
        strides=(2, 1),
        route=route,
    )
    for n, m in ((0, 2), (1, 3), (5, 7), (8, 18)):
        x, updates = numbers((n, m), dtype), numbers(((n + 1) // 2, m - 2), dtype)
        wanted = x.copy()
        wanted[::2, 1 : m - 1] = updates
        assert_close(program(x, updates, n=n, m=m), wide(wanted), 0)


def test_an_empty_slice_at_the_end(route: str) -> None:
    program = Program(
        graph.SliceScatterOp,
        spec("f32", 5),
        spec("f32", 0),
        axes=(0,),
        begin=(5,),
        end=(5,),
        strides=(2,),
        route=route,
    )
    x = numbers((5,), "f32")
    assert_close(program(x, np.zeros(0, np.float32)), x, 0)


def test_the_last_update_stays_on_any_number_of_threads() -> None:
    """Rows and columns enough for many tasks, and few places that all updates go to."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        operands = [spec("f32", "n", "m"), spec("i64", "k", 1), spec("f32", "k", "m")]
        add_function(module, "rows", graph.ScatterNdOp, operands, [], {"reduction": "none"})
        operands = [spec("f32", "n", "m"), spec("i64", "n", "k"), spec("f32", "n", "k")]
        attributes = {"axis": 1, "reduction": "add"}
        add_function(module, "sums", graph.ScatterElementsOp, operands, [], attributes)
        compiled = relax_mlir.compile(str(module))
    n, m, k = 300, 700, 50
    x, random = numbers((n, m), "f32"), np.random.default_rng(5)
    rows, updates = random.integers(0, 3, (k, 1)), random.standard_normal((k, m), np.float32)
    wanted = x.copy()
    for row, update in zip(rows[:, 0], updates, strict=True):
        wanted[row] = update
    np.testing.assert_array_equal(compiled["rows"](x, rows, updates), wanted)
    places, parts = random.integers(0, 3, (n, k)), random.standard_normal((n, k), np.float32)
    wanted = _elements(x, places, parts, 1, "add")
    np.testing.assert_allclose(compiled["sums"](x, places, parts), wanted, rtol=1e-4, atol=1e-4)
