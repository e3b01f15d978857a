"""Selections by masks, and medians, against NumPy."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from gradient_checks import Gradients
from harness import FLOATS, INTEGERS, NUMPY, numbers, spec, wide

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.decompositions import argwhere, compress, index_by_mask, masked_select, median
from relax_mlir.decompositions.emit import multiply, reduce
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.errors import ExecutionError

DTYPES = (*FLOATS, *INTEGERS, "i1")


def _mask(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(0, 2, shape).astype(bool)


@pytest.mark.parametrize("dtype", DTYPES)
def test_compress(dtype: str) -> None:
    for axis in (None, 0, 1, -1):
        run = Decomposed(
            lambda x, c, axis=axis: compress(x, c, axis=axis),
            spec(dtype, "n", "m"),
            spec("i1", "k"),
        )
        for n, m in ((0, 3), (3, 0), (1, 1), (5, 7), (2, 33)):
            x = numbers((n, m), dtype)
            extent = x.size if axis is None else x.shape[axis]
            for k in {0, extent // 2, extent}:
                condition = _mask((k,))
                found = run(x, condition)
                np.testing.assert_array_equal(found, np.compress(condition, x, axis))
        with pytest.raises(ExecutionError, match="compress"):
            run(numbers((2, 2), dtype), _mask((5,)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_index_by_mask(dtype: str) -> None:
    for rank in range(4):
        dims = ("n", 2, "m")
        run = Decomposed(index_by_mask, spec(dtype, *dims), spec("i1", *dims[:rank]))
        for n, m in ((0, 3), (3, 0), (1, 1), (5, 7)):
            x = numbers((n, 2, m), dtype)
            for mask in (_mask(x.shape[:rank]), np.zeros(x.shape[:rank], bool)):
                np.testing.assert_array_equal(run(x, mask), x[mask])


def test_masked_select_broadcasts() -> None:
    for mask_dims in (("n", "m"), ("m",), ("n", 1), (), (1, 1)):
        run = Decomposed(masked_select, spec("f32", "n", "m"), spec("i1", *mask_dims))
        for n, m in ((0, 3), (1, 1), (5, 7)):
            x = numbers((n, m), "f32")
            mask = _mask(tuple({"n": n, "m": m}.get(dim, dim) for dim in mask_dims))
            np.testing.assert_array_equal(run(x, mask), x[np.broadcast_to(mask, x.shape)])


def test_argwhere() -> None:
    run = Decomposed(argwhere, spec("i32", "n", 3))
    for n in (0, 1, 7):
        x = numbers((n, 3), "i32")
        np.testing.assert_array_equal(run(x), np.argwhere(x))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("keepdims", [False, True])
def test_median(dtype: str, keepdims: bool) -> None:
    for axes in (None, [0], [-1], [0, 2]):
        run = Decomposed(
            lambda x, axes=axes: median(x, axes=axes, keepdims=keepdims), spec(dtype, "n", 3, "m")
        )
        for n, m in ((1, 1), (2, 5), (4, 4)):
            x = numbers((n, 3, m), dtype)
            places = tuple(range(3)) if axes is None else tuple(axis % 3 for axis in axes)
            others = [axis for axis in range(3) if axis not in places]
            lines = x.transpose(*others, *places).reshape(*(x.shape[i] for i in others), -1)
            order = np.argsort(wide(lines), -1, kind="stable")
            at = order[..., (lines.shape[-1] - 1) // 2]
            shape = [1 if i in places else x.shape[i] for i in range(3)] if keepdims else at.shape
            values, indices = run(x)
            wanted = np.take_along_axis(lines, at[..., None], -1).reshape(shape)
            np.testing.assert_array_equal(values, wanted)
            np.testing.assert_array_equal(indices, at.reshape(shape))


def test_median_of_nan_and_of_nothing() -> None:
    run = Decomposed(median, spec("f32", "n"))
    values, index = run(np.array([np.nan, 1, 3, np.nan, 2], np.float32))
    assert (values, index) == (3, 2)
    with pytest.raises(ExecutionError):
        run(np.zeros(0, np.float32))


@pytest.mark.parametrize(
    ("build", "specs", "message"),
    [
        (compress, (spec("f32", 3), spec("i32", 3)), "expects truth values, but got i32"),
        (compress, (spec("f32", 3), spec("i1", 3, 1)), "condition of rank 1, but got rank 2"),
        (compress, (spec("f32", 3), spec("i1", 4)), "has a condition of 4 for 3 slices"),
        (
            index_by_mask,
            (spec("f32", 3), spec("i1", 3, 1)),
            "mask of rank 2 for a tensor of rank 1",
        ),
        (index_by_mask, (spec("f32", 3), spec("i1", 4)), "mask with dim 0 of 4 for one of 3"),
        (masked_select, (spec("f32", 3), spec("i1", 4)), "cannot broadcast dim 3 with dim 4"),
        (argwhere, (spec("f32"),), "expects a tensor of rank 1 or more"),
        (median, (spec("f32", 0),), "expects an element at least"),
    ],
)
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})


@pytest.mark.rotate(2)
@pytest.mark.parametrize("level", [0, 2])
def test_selections_compiled(level: int) -> None:
    x, mask = spec("f32", "n", "m"), spec("i1", "n", "m")
    functions = {
        "compress": (lambda x, c: compress(x, c, axis=1), [x, spec("i1", "m")]),
        "by_mask": (index_by_mask, [x, mask]),
        "rows": (index_by_mask, [x, spec("i1", "n")]),
    }
    compiled = relax_mlir.compile(module_of(functions), opt_level=level)
    for n, m in ((0, 3), (1, 1), (5, 7), (33, 16)):
        x = numbers((n, m), "f32").astype(NUMPY["f32"])
        for which in (_mask((n, m)), np.zeros((n, m), bool), np.ones((n, m), bool)):
            found = compiled["by_mask"](x, which)
            np.testing.assert_array_equal(found, x[which])
        columns, rows = _mask((m,)), _mask((n,))
        np.testing.assert_array_equal(compiled["compress"](x, columns), x[:, columns])
        np.testing.assert_array_equal(compiled["rows"](x, rows), x[rows])


def test_gradient_of_what_is_selected() -> None:
    def loss(x: ir.Value, mask: ir.Value) -> ir.Value:
        there = index_by_mask(x, mask)
        return reduce(graph.SumOp, multiply(there, there), [0])

    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(module_of({"main": (loss, [spec("f64", "n"), spec("i1", "n")])}))
        gradients = Gradients(module)
    for n in (0, 1, 17):
        x, mask = numbers((n,), "f64"), _mask((n,))
        gradients.check(x, mask)
        (found,) = gradients.adjoint(x, mask)[1]
        np.testing.assert_allclose(found, np.where(mask, 2 * x, 0))
