"""Reductions of integers to fractions, which are rounded to 0."""

import numpy as np
import pytest
from onnx_nodes import INT64, model, node

import relax_mlir
from relax_mlir.frontends.onnx import from_onnx

KINDS = {
    "ReduceMean": lambda x: np.trunc(x.mean(1)),
    "ReduceL2": lambda x: np.trunc(np.sqrt((x * x).sum(1))),
    "ReduceLogSum": lambda x: np.trunc(np.log(x.sum(1))),
    "ReduceLogSumExp": lambda x: np.trunc(np.log(np.exp(x).sum(1))),
}


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 16), (0, 3)])
def test_reductions(shape, level):
    x = np.random.default_rng(0).integers(-9, 20, shape) + 6 * np.arange(shape[1]) + 10
    nodes = [node(op, "x axes", op, keepdims=0) for op in KINDS]
    constants = {"axes": np.array([1])}
    proto = model(nodes, {"x": ["n", "m"]}, list(KINDS), constants, {"x": INT64})
    main = relax_mlir.compile(from_onnx(proto), opt_level=level)["main"]
    for got, wanted in zip(main(x), KINDS.values(), strict=True):
        np.testing.assert_array_equal(got, wanted(x.astype(np.float64)).astype(np.int64))


def test_the_mean_of_large_integers_is_exact():
    x = np.array([[2**61 + 1, 2**61 + 2], [-(2**61), -(2**61) - 3]])
    nodes = [node("ReduceMean", "x axes", "y", keepdims=0)]
    proto = model(nodes, {"x": ["n", 2]}, ["y"], {"axes": np.array([1])}, {"x": INT64})
    main = relax_mlir.compile(from_onnx(proto), opt_level=0)["main"]
    np.testing.assert_array_equal(main(x), [2**61 + 1, -(2**61) - 1])
