"""A perceptron that tests of devices run, in text and in NumPy."""

from typing import Any

import numpy as np

MLP = """
!x = tensor<?x40xf32, #graph.shape<["n", 40]>>
!h = tensor<?x72xf32, #graph.shape<["n", 72]>>
!y = tensor<?x10xf32, #graph.shape<["n", 10]>>
func.func @main(%x: !x, %w: tensor<40x72xf32>, %v: tensor<72x10xf32>) -> !y
    attributes {graph.num_inputs = 1 : i64} {
  %b = arith.constant dense<[0., 1., 2., 3., 4., 5., 6., 7., 8., 9.]> : tensor<10xf32>
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<40x72xf32>) -> !h
  %1 = "graph.nn_relu"(%0) : (!h) -> !h
  %2 = "graph.matmul"(%1, %v) : (!h, tensor<72x10xf32>) -> !y
  %3 = "graph.add"(%2, %b) : (!y, tensor<10xf32>) -> !y
  %4 = "graph.nn_softmax"(%3) {axis = -1 : i64} : (!y) -> !y
  return %4 : !y
}
"""


def normal(*shape: int) -> np.ndarray:
    """Random f32 values of a spread of a quarter."""
    return (np.random.default_rng().standard_normal(shape) / 4).astype(np.float32)


def perceptron(x: np.ndarray, w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What it means, in f64."""
    x, w, v = (each.astype(np.float64) for each in (x, w, v))
    y = np.maximum(x @ w, 0) @ v + np.arange(10)
    e = np.exp(y - y.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def check_perceptron(module: Any) -> None:
    """Calls a compiled one with several counts of rows, its weights laid out if it wants that."""
    w, v = normal(40, 72), normal(72, 10)
    given = module["main_params"](w, v) if "main_params" in module.functions else (w, v)
    given = given if isinstance(given, tuple) else (given,)
    for n in (0, 1, 17, 65):
        x = normal(n, 40)
        np.testing.assert_allclose(module["main"](x, *given), perceptron(x, w, v), rtol=1e-3)
