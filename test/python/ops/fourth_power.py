"""An operator that is no part of the package, with its gradient and its meaning beside it.

Whoever imports this adds it to the dialect of the process.
"""

from typing import Any

import numpy as np
from gradient_checks import Gradients

from relax_mlir.bindings import ext, ir
from relax_mlir.decompositions.emit import multiply
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import InferredOp, TensorType
from relax_mlir.gradients import Adjoint, Contributions


class FourthPowerOp(InferredOp, name="own_fourth_power", traits=[ext.Pure]):
    """The fourth power of each element."""

    result: ext.Result[Any]
    input: ext.Operand[Any]

    @staticmethod
    def infer_return_type(input: TensorType) -> TensorType:
        return input


def own_fourth_power(x: np.ndarray) -> np.ndarray:
    return x**4


def fourth_power_gradient(op: FourthPowerOp, adjoint: Adjoint) -> Contributions:
    """Its rule is next to it, and so is its meaning."""
    square = multiply(op.input, op.input)
    yield op.input, multiply(adjoint.seed, multiply(multiply(square, op.input), 4))


def check() -> None:
    """Compares its gradient with differences."""
    text = """
    func.func @main(%x: tensor<5xf64>) -> tensor<f64> {
      %0 = "graph.own_fourth_power"(%x) : (tensor<5xf64>) -> tensor<5xf64>
      %1 = "graph.sum"(%0) {axes = array<i64>, keepdims = false} : (tensor<5xf64>) -> tensor<f64>
      return %1 : tensor<f64>
    }"""
    with make_context(), ir.Location.unknown():
        gradients = Gradients(ir.Module.parse(text))
    gradients.check(np.linspace(-2, 2, 5))
