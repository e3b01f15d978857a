"""Activations that models write out, in the ways they do, are operators; what is near is not."""

import math

import numpy as np
import pytest

from relax_mlir.bindings import func, ir
from relax_mlir.decompositions.emit import add, binary, divide, emit, multiply
from relax_mlir.decompositions.written_out import written_out
from relax_mlir.dialects import graph, make_context
from relax_mlir.interpreter import Interpreted

ROOT, ANGLE = math.sqrt(2), math.sqrt(2 / math.pi)


def erf(x, scale=1 / ROOT):
    return emit(graph.ErfOp, multiply(x, scale))


def cube(x):
    return multiply(multiply(x, x), x)


def tanh(x, term, scale=ANGLE):
    return emit(graph.TanhOp, multiply(add(x, term), scale))


def power(x):
    return binary(graph.PowerOp, x, 3.0)


GELU = {
    "PyTorch's export": lambda x: multiply(
        multiply(x, add(emit(graph.ErfOp, divide(x, np.float32(ROOT).item())), 1.0)), 0.5
    ),
    "half first": lambda x: multiply(multiply(x, 0.5), add(erf(x), 1.0)),
    "halves inside": lambda x: multiply(x, add(multiply(erf(x), 0.5), 0.5)),
    "divided by two": lambda x: divide(multiply(add(erf(x), 1.0), x), 2.0),
    "rounded to half": lambda x: multiply(multiply(x, 0.5), add(erf(x, 0.70710677), 1.0)),
}
GELU_TANH = {
    "a power": lambda x: multiply(
        multiply(x, 0.5), add(tanh(x, multiply(power(x), 0.044714998)), 1.0)
    ),
    "a product": lambda x: multiply(
        x, multiply(add(tanh(x, multiply(cube(x), 0.044715)), 1.0), 0.5)
    ),
    "fast": lambda x: multiply(
        multiply(x, 0.5),
        add(
            emit(
                graph.TanhOp,
                multiply(multiply(x, 0.7978845608), add(multiply(multiply(x, 0.044715), x), 1.0)),
            ),
            1.0,
        ),
    ),
}
OTHERS = {
    "another scale": lambda x: multiply(multiply(x, 0.5), add(erf(x, 0.708), 1.0)),
    "another half": lambda x: multiply(multiply(x, 0.501), add(erf(x), 1.0)),
    "a sum of two": lambda x: multiply(x, add(erf(x), 0.5)),
    "another cube": lambda x: multiply(
        multiply(x, 0.5), add(tanh(x, multiply(cube(x), 0.0447)), 1.0)
    ),
    "no activation": lambda x: multiply(x, 0.5),
    "erf alone": lambda x: multiply(erf(x), x),
}


def built(spelling, element="f32"):
    """The text of what a spelling becomes, and of the module; x is a sum, as behind a product."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        type_ = graph.TensorType.make(["n", 3], ir.Type.parse(element)).to_mlir()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("main", ([type_, type_], [type_]))
        with ir.InsertionPoint(function.add_entry_block()):
            value = spelling(add(*function.arguments))
            made = written_out(value)
            func.ReturnOp([value if made is None else made])
        return None if made is None else made.owner.name, str(module)


@pytest.mark.parametrize("name", sorted(GELU))
@pytest.mark.parametrize("element", ["f16", "f32", "f64"])
def test_gelu(name, element):
    assert built(GELU[name], element)[0] == "graph.nn_gelu"


@pytest.mark.parametrize("name", sorted(GELU_TANH))
@pytest.mark.parametrize("element", ["bf16", "f32"])
def test_its_approximation(name, element):
    assert built(GELU_TANH[name], element)[0] == "graph.nn_gelu_tanh"


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_others_stay(name):
    assert built(OTHERS[name])[0] is None


def test_integers_stay():
    assert built(lambda x: multiply(x, x), "i32")[0] is None


@pytest.mark.parametrize("name", sorted({**GELU, **GELU_TANH}))
def test_results(name):
    """Those of the expression in double precision."""
    _, text = built({**GELU, **GELU_TANH}[name], "f64")
    x = np.random.default_rng(0).standard_normal((7, 3)) * 4
    with make_context(), ir.Location.unknown():
        got = Interpreted(ir.Module.parse(text))["main"](x, np.zeros_like(x))
    inner = x / ROOT if name in GELU else ANGLE * (x + 0.044715 * x**3)
    function = np.vectorize(math.erf) if name in GELU else np.tanh
    np.testing.assert_allclose(got, x * (1 + function(inner)) / 2, rtol=1e-12, atol=1e-12)
