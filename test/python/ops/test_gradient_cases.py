"""Gradients where definitions leave a choice, of undecided broadcasting, and of own operators."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradient_checks import Gradients, loss_of
from harness import _CONTEXT, spec

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import multiply, reduce, scalar, where
from relax_mlir.dialects import graph
from relax_mlir.errors import ExecutionError

UNDECIDED = ((1, 1), (1, 5), (5, 1), (4, 4), (0, 0), (0, 1), (1, 0))


@pytest.mark.parametrize(("n", "k"), UNDECIDED)
def test_broadcasting_that_run_time_decides(n: int, k: int) -> None:
    loss = loss_of(
        lambda x, y: multiply(x, y), [spec("f64", 2, "n", 3, "k"), spec("f64", "k", 1, "n")]
    )
    random = np.random.default_rng(n * 8 + k)
    loss.check(random.standard_normal((2, n, 3, k)), random.standard_normal((k, 1, n)))


def test_broadcasting_that_run_time_decides_is_refused_where_it_fails() -> None:
    loss = loss_of(lambda x, y: multiply(x, y), [spec("f64", "n"), spec("f64", "k")])
    with pytest.raises(ExecutionError):
        loss.gradients.adjoint(np.ones(2), np.ones(3), np.ones(3))


@pytest.mark.parametrize("opt_level", [0, 3])
def test_broadcasting_that_run_time_decides_compiled(opt_level: int) -> None:
    loss = loss_of(lambda x, y: multiply(x, y), [spec("f64", "n"), spec("f64", "k")])
    compiled = relax_mlir.compile(loss.gradients.adjoint_text, opt_level=opt_level)
    for n, k in UNDECIDED:
        arrays = (
            np.linspace(1, 2, n),
            np.linspace(2, 4, k),
            np.ones(n * k if 0 in (n, k) else max(n, k)),
        )
        for got, want in zip(
            compiled["main_adjoint"](*arrays)[1], loss.gradients.adjoint(*arrays)[1], strict=True
        ):
            np.testing.assert_allclose(got, want)


def _gradient(build: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """The gradients of the sum of what is built, of vectors."""
    loss = loss_of(build, [spec("f64", "n") for _ in arrays])
    ones = loss.gradients.loss, np.ones(arrays[0].shape)
    results = loss.gradients.adjoint(*arrays, ones[1])
    return list(results[1][: len(arrays)])


ZERO = np.zeros(1)


@pytest.mark.parametrize(
    ("op", "arrays", "expected"),
    [
        (graph.AbsOp, [ZERO], [0]),
        (graph.ReluOp, [ZERO], [0]),
        (graph.SignOp, [ZERO + 3], [0]),
        (graph.MaximumOp, [ZERO + 2, ZERO + 2], [0.5, 0.5]),
        (graph.MinimumOp, [ZERO + 2, ZERO + 2], [0.5, 0.5]),
        (graph.HypotOp, [ZERO, ZERO], [0, 0]),
        (graph.PowerOp, [ZERO, ZERO], [0, 0]),
        (graph.PowerOp, [ZERO, ZERO + 2], [0, 0]),
        (graph.PowerOp, [ZERO, ZERO + 1], [1, 0]),
        (graph.LogaddexpOp, [ZERO - np.inf, ZERO - np.inf], [0.5, 0.5]),
        (graph.LogaddexpOp, [ZERO - np.inf, ZERO], [0, 1]),
        (graph.GeluTanhOp, [ZERO + 1e200], [1]),
        (graph.GeluOp, [ZERO + 1e200], [1]),
        (graph.SiluOp, [ZERO - 1e200], [0]),
        (graph.TanhOp, [ZERO + 400], [0]),
        (graph.SigmoidOp, [ZERO - 800], [0]),
    ],
)
def test_choices(op: type, arrays: list[np.ndarray], expected: list[float]) -> None:
    gradients = _gradient(lambda *x: op.build(*x).result, *arrays)
    np.testing.assert_allclose(np.concatenate(gradients), expected)


def test_equal_extrema_share() -> None:
    x = np.array([3.0, 1, 3, 3])
    (shares,) = _gradient_of_scalar(lambda v: reduce(graph.MaxOp, v, [0]), x)
    np.testing.assert_allclose(shares, [1 / 3, 0, 1 / 3, 1 / 3])
    (of_std,) = _gradient_of_scalar(
        lambda v: graph.StdOp.build(v, axes=[0], keepdims=False, correction=0).result, x * 0 + 2
    )
    np.testing.assert_allclose(of_std, np.zeros(4))


def _gradient_of_scalar(build: Callable[..., Any], x: np.ndarray) -> list[np.ndarray]:
    loss = loss_of(build, [spec("f64", "n")])
    return list(loss.gradients.adjoint(x, np.ones(()))[1][:1])


def test_products_and_their_zeros() -> None:
    for zeros in range(3):
        x = np.array([2.0, 3, -1, 5, 0.5])
        x[1 : 1 + zeros] = 0
        for op, attributes in (
            (graph.ProdOp, {"axes": [0], "keepdims": False}),
            (graph.CumprodOp, {"axis": 0, "exclusive": False, "reverse": False}),
            (graph.CumprodOp, {"axis": 0, "exclusive": True, "reverse": True}),
        ):
            loss = loss_of(lambda v, o=op, a=attributes: o.build(v, **a).result, [spec("f64", "n")])
            loss.check(x)


def test_where_hides_what_it_does_not_select() -> None:
    """The gradient of sqrt at 0 is infinite, but 0 times it does not reach x."""
    x = np.array([0.0, 4.0])

    def build(v: ir.Value) -> ir.Value:
        safe = where(graph.GreaterOp.build(v, _zero()).result, v, 1)
        return where(graph.GreaterOp.build(v, _zero()).result, graph.SqrtOp.build(safe).result, 0)

    (gradient,) = _gradient(build, x)
    np.testing.assert_allclose(gradient, [0, 0.25])


def _zero() -> ir.Value:
    return scalar(0, ir.F64Type.get())


def test_arguments_without_effect_have_zeros() -> None:
    text = """
    func.func @main(%x: tensor<?xf64, #graph.shape<["n"]>>, %y: tensor<2x?xf64>) -> tensor<f64> {
      %0 = "graph.sum"(%x) {axes = array<i64>, keepdims = false}
        : (tensor<?xf64, #graph.shape<["n"]>>) -> tensor<f64>
      return %0 : tensor<f64>
    }"""
    with _CONTEXT, ir.Location.unknown():
        gradients = Gradients(ir.Module.parse(text))
    gradients.check(np.ones(3), np.ones((2, 4)))
    assert not gradients.adjoint(np.ones(3), np.ones((2, 4)))[1][1].any()


def test_operator_of_another_package() -> None:
    """In a process of its own: operators are for the whole process."""
    code = "import fourth_power; fourth_power.check()"
    folder = Path(__file__).parent
    path = os.pathsep.join([str(folder.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, env=environment)
