"""one_hot and eye, against NumPy."""

import numpy as np
import pytest
from harness import FLOATS, INTEGERS, NUMPY, Program, assert_close, integers, numbers, spec, wide

from relax_mlir.dialects import graph

DTYPES = (*FLOATS, *INTEGERS, "i1")


@pytest.mark.parametrize("depth", [0, 1, 5, "d"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(depth: int | str, axis: int, route: str) -> None:
    program = Program(
        graph.OneHotOp,
        spec("i64", "n", 3),
        spec("f32"),
        spec("f32"),
        depth=(depth,),
        axis=axis,
        route=route,
    )
    on, off = np.float32(2).reshape(()), np.float32(-1).reshape(())
    for n in (0, 1, 7):
        free = {"d": 4} if depth == "d" else {}
        count = free.get("d", depth)
        indices = integers((n, 3), "i64", -2, 6)  # some are nowhere
        hot = np.expand_dims(indices, -1) == np.arange(count)
        wanted = np.moveaxis(np.where(hot, on, off), -1, axis)
        assert_close(program(indices, on, off, **free), wanted, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_hot_dtypes(dtype: str, route: str) -> None:
    program = Program(
        graph.OneHotOp,
        spec("i32", "n"),
        spec(dtype),
        spec(dtype),
        depth=(9,),
        axis=-1,
        route=route,
    )
    on, off = np.array(1, NUMPY[dtype]), numbers((), dtype)
    indices = integers((5,), "i32", 0, 8)
    wanted = np.where(indices[:, None] == np.arange(9), wide(on), wide(off))
    assert_close(program(indices, on, off), wanted.astype(NUMPY[dtype]), 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [-2, 0, 3])
def test_eye(dtype: str, k: int, route: str) -> None:
    program = Program(graph.EyeOp, shape=("n", "m"), k=k, dtype=dtype, route=route)
    for n, m in ((1, 1), (5, 7), (7, 5), (0, 2), (3, 17)):
        assert_close(program(n=n, m=m), np.eye(n, m, k).astype(NUMPY[dtype]), 0)
