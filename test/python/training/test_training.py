"""Steps of training against their definition in NumPy, interpreted and compiled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import UsageError
from relax_mlir.training import Trainer, with_gradient

pytestmark = pytest.mark.usefixtures("llvm_turns")

MODULE = """
!x = tensor<?x3xELEMENT, #graph.shape<["n", 3]>>
!y = tensor<?x2xELEMENT, #graph.shape<["n", 2]>>
func.func @main(%x: !x {graph.name = "x"}, %w: tensor<3x2xELEMENT> {graph.name = "w"},
                %b: tensor<2xELEMENT> {graph.name = "b"}, %y: !y {graph.name = "y"})
    -> tensor<ELEMENT> {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<3x2xELEMENT>) -> !y
  %1 = "graph.add"(%0, %b) : (!y, tensor<2xELEMENT>) -> !y
  %2 = "graph.subtract"(%1, %y) : (!y, !y) -> !y
  %3 = "graph.square"(%2) : (!y) -> !y
  %4 = "graph.mean"(%3) {axes = array<i64>, keepdims = false} : (!y) -> tensor<ELEMENT>
  return %4 : tensor<ELEMENT>
}
"""
RATE = 0.05


def _data(dtype: Any = np.float64) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    parameters = {"w": random.standard_normal((3, 2)), "b": random.standard_normal(2)}
    x, y = random.standard_normal((7, 3)), random.standard_normal((7, 2))
    return {k: v.astype(dtype) for k, v in parameters.items()}, x.astype(dtype), y.astype(dtype)


def _gradients(w: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    error = 2 * (x @ w + b - y) / y.size
    return {"w": x.T @ error, "b": error.sum(0)}


def _sgd(
    p: np.ndarray, g: np.ndarray, state: dict, t: int, momentum=0.0, nesterov=False, decay=0.0
):
    g = g + decay * p
    if momentum:
        state["v"] = momentum * state.get("v", 0) + g
        g = g + momentum * state["v"] if nesterov else state["v"]
    return p - RATE * g


def _adam(p, g, state: dict, t: int, decay=0.0, decoupled=False) -> np.ndarray:
    if decoupled:
        p = p * (1 - RATE * decay)
    else:
        g = g + decay * p
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    state["v"] = 0.999 * state.get("v", 0) + 0.001 * g * g
    mean, square = state["m"] / (1 - 0.9**t), state["v"] / (1 - 0.999**t)
    return p - RATE * mean / (np.sqrt(square) + 1e-8)


CASES: dict[str, tuple[dict[str, Any], Callable[..., Any], dict[str, Any]]] = {
    "sgd": ({"optimizer": "sgd"}, _sgd, {}),
    "momentum": ({"momentum": 0.9, "weight_decay": 0.1}, _sgd, {"momentum": 0.9, "decay": 0.1}),
    "nesterov": (
        {"momentum": 0.5, "nesterov": True},
        _sgd,
        {"momentum": 0.5, "nesterov": True},
    ),
    "adam": ({"optimizer": "adam", "weight_decay": 0.1}, _adam, {"decay": 0.1}),
    "adamw": (
        {"optimizer": "adamw", "weight_decay": 0.1},
        _adam,
        {"decay": 0.1, "decoupled": True},
    ),
    "clipped": ({"clip_norm": 0.25}, _sgd, {}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("opt_level", [0, 3])
def test_steps_of_an_optimizer(name: str, opt_level: int) -> None:
    settings, update, options = CASES[name]
    parameters, x, y = _data()
    expected = {name: value.copy() for name, value in parameters.items()}
    states: dict[str, dict] = {"w": {}, "b": {}}
    trainer = Trainer(MODULE.replace("ELEMENT", "f64"), parameters, opt_level=opt_level, **settings)
    for t in range(1, 5):
        loss = np.mean((x @ expected["w"] + expected["b"] - y) ** 2)
        np.testing.assert_allclose(trainer.step(x, y, rate=RATE), loss, rtol=1e-12)
        gradients = _gradients(**expected, x=x, y=y)
        if "clip_norm" in settings:
            norm = np.sqrt(sum(np.sum(g**2) for g in gradients.values()))
            scale = min(1, settings["clip_norm"] / (norm + 1e-6))
            gradients = {k: g * scale for k, g in gradients.items()}
        for key, gradient in gradients.items():
            expected[key] = update(expected[key], gradient, states[key], t, **options)
            np.testing.assert_allclose(parameters[key], expected[key], rtol=1e-11)
            assert trainer.parameters[key] is parameters[key]


@pytest.mark.parametrize(("element", "dtype"), [("f32", np.float32), ("f16", np.float16)])
def test_narrow_parameters_have_state_of_f32(element: str, dtype: Any) -> None:
    parameters, x, y = _data(dtype)
    trainer = Trainer(MODULE.replace("ELEMENT", element), parameters, "adam")
    losses = [float(trainer.step(x, y, rate=0.1)) for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]
    assert trainer.state["w.mean"].dtype == np.float32
    assert trainer.state["step"] == 40
    assert parameters["w"].dtype == dtype


def test_batches_may_have_any_size() -> None:
    parameters, x, y = _data()
    trainer = Trainer(MODULE.replace("ELEMENT", "f64"), parameters, "adam")
    for n in (1, 3, 7):
        trainer.step(x[:n], y[:n], rate=RATE)


def test_gradient_of_a_module() -> None:
    parameters, x, y = _data()
    adjoint = relax_mlir.interpret(with_gradient(MODULE.replace("ELEMENT", "f64"), wrt=["b", "w"]))
    _, (b, w) = adjoint["main_adjoint"](x, parameters["w"], parameters["b"], y)
    expected = _gradients(**parameters, x=x, y=y)
    np.testing.assert_allclose(b, expected["b"])
    np.testing.assert_allclose(w, expected["w"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "lion"}, "unknown optimizer 'lion'; there is sgd, adam, adamw"),
        ({"momentum": 1.0}, "momentum is 1.0, which is not from 0 to 1"),
        ({"beta2": -0.5}, "beta2 is -0.5, which is not from 0 to 1"),
        ({"clip_norm": float("nan")}, "clip_norm is nan, which is not 0 or more"),
        ({"beta3": 0.5}, "cannot train: .* unexpected keyword argument 'beta3'"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    parameters, _, _ = _data()
    with pytest.raises(UsageError, match=message):
        Trainer(MODULE.replace("ELEMENT", "f64"), parameters, **settings)
