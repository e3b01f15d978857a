"""Functions of other dialects, converted, interpreted and compiled, against NumPy."""

from typing import Any

import linalg_cases
import numpy as np
import pytest
import torch_cases
import tosa_cases
from levels import ONE_LEVEL
from linalg_cases import f32, i64

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.passes import Pipeline

FAMILIES: dict[str, Any] = {
    "linalg": linalg_cases,
    "torch": torch_cases,
    "tosa": tosa_cases,
}
WAYS: tuple[object, ...] = ("interpreted", *ONE_LEVEL)
NAMES = [(family, name) for family, cases in FAMILIES.items() for name in cases.CASES]


def converted(text: str, family: str) -> str:
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        Pipeline.parse(f"builtin.module(relax-convert-{family})").run(module, verify=True)
        return str(module)


@pytest.fixture(scope="module", params=WAYS)
def modules(request: pytest.FixtureRequest) -> dict[str, Any]:
    def made(family: str, text: str) -> Any:
        if request.param == "interpreted":
            return relax_mlir.interpret(converted(text, family))
        return relax_mlir.compile(text, opt_level=request.param)

    return {family: made(family, cases.TEXT) for family, cases in FAMILIES.items()}


@pytest.mark.parametrize(("family", "name"), NAMES)
def test_results_are_those_of_numpy(modules: dict[str, Any], family: str, name: str) -> None:
    case = FAMILIES[family].CASES[name]
    for arguments in case.calls:
        want = case.meaning(*arguments)
        got = modules[family][name](*arguments)
        pairs = [(got, want)] if not isinstance(want, tuple) else zip(got, want, strict=True)
        for actual, expected in pairs:
            assert np.shape(actual) == np.shape(expected)
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("accumulated", (f32(4, 5), f32(6, 7), f32(4, 7)), "dim 0 is 6, but 'arg0_1' is 5"),
        ("accumulated", (f32(4, 5), f32(5, 7), f32(3, 7)), "dim 0 is 3, but 'arg0_0' is 4"),
        ("tiled", (f32(4, 5), f32(6, 7)), "requires arg1_0 == arg0_1"),
        ("pooling", (f32(1, 4, 5, 2), 3, 3), "requires size + 2 <= arg0_1 or size == 0"),
        ("pooling", (f32(1, 4, 5, 2), -1, 3), "has a negative dim"),
        ("gather", (f32(0, 3), i64(1)), "requires arg0_0 >= 1"),
        ("inserted_at_the_end", (f32(1), f32(2)), "requires 0 <= arg0_0 - 2"),
        ("generated", (f32(0), i64(0, 0), 0), "requires arg0_0 >= 1"),
    ],
)
def test_dims_that_an_op_needs_to_agree_are_checked(
    name: str, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ExecutionError) as error:
        relax_mlir.compile(linalg_cases.TEXT)[name](*arguments)
    assert message in str(error.value)


def test_a_function_of_the_graph_is_left_alone() -> None:
    text = """
    func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "graph.exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    assert converted(text, "tosa") == str_of(text)


def str_of(text: str) -> str:
    with make_context():
        return str(parse_module(text))
