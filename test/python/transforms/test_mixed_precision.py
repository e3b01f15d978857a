"""Products in half precision: as exact as rounding operands and results allows, sums in f32."""

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.passes import Pipeline

EPSILON = {"bf16": 2.0**-8, "f16": 2.0**-11}
MODULE = """
!x = tensor<?x?xf32, #graph.shape<["n", "k"]>>
!w = tensor<?x?xf32, #graph.shape<["k", "m"]>>
!y = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func @main(%x: !x, %w: !w, %b: tensor<?xf32, #graph.shape<["m"]>>) -> !y
    attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = "graph.add"(%0, %b) : (!y, tensor<?xf32, #graph.shape<["m"]>>) -> !y
  %2 = "graph.nn_relu"(%1) : (!y) -> !y
  return %2 : !y
}"""


def converted(dtype: str) -> str:
    with make_context(), ir.Location.unknown():
        module = parse_module(MODULE)
        pass_ = f"relax-mixed-precision{{dtype={dtype}}}"
        Pipeline.parse(f"builtin.module({pass_},relax-infer-shapes,relax-verify)").run(module)
        return str(module)


@pytest.fixture(params=["bf16", "f16"])
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("sizes", [(0, 3, 2), (1, 1, 1), (3, 0, 5), (7, 64, 13), (17, 301, 33)])
def test_results_are_within_roundings(dtype: str, sizes: tuple[int, int, int]) -> None:
    n, k, m = sizes
    random = np.random.default_rng(k)
    x, w, b = (random.standard_normal(s).astype(np.float32) for s in ((n, k), (k, m), (m,)))
    got = relax_mlir.interpret(converted(dtype))["main"](x, w, b)
    product = x.astype(np.float64) @ w
    magnitude = np.abs(x).astype(np.float64) @ np.abs(w)
    # Each operand, the product, the vector and the sum are rounded once.
    bound = EPSILON[dtype] * (2 * magnitude + 2 * np.abs(product) + 2 * np.abs(b)) * 1.1
    assert got.dtype == np.float32
    assert (np.abs(got - np.maximum(product + b, 0)) <= bound).all()


@pytest.mark.parametrize("run", [relax_mlir.interpret, relax_mlir.compile])
def test_sums_are_added_up_in_f32(dtype: str, run) -> None:
    """4096 ones are 4096, where 8 or 11 bits would have stopped at 256 or 2048."""
    ones = np.ones((1, 4096), np.float32)
    got = run(converted(dtype))["main"](ones, ones.T, np.zeros(1, np.float32))
    np.testing.assert_array_equal(got, 4096)
