"""Functions of linalg, converted, interpreted and compiled, against NumPy."""

from typing import Any

import numpy as np
import pytest
from linalg_cases import CASES, TEXT, f32, i64

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.passes import Pipeline

WAYS: tuple[object, ...] = ("interpreted", 0, 2, 3)


def converted(text: str) -> str:
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        Pipeline.parse("builtin.module(relax-convert-linalg)").run(module, verify=True)
        return str(module)


@pytest.fixture(scope="module", params=WAYS)
def module(request: pytest.FixtureRequest) -> Any:
    if request.param == "interpreted":
        return relax_mlir.interpret(converted(TEXT))
    return relax_mlir.compile(TEXT, opt_level=request.param)


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_numpy(module: Any, name: str) -> None:
    for arguments in CASES[name].calls:
        want = CASES[name].meaning(*arguments)
        got = module[name](*arguments)
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
        ("generated", (f32(0), i64(0, 0), 0), "requires arg0_0 >= 1"),
    ],
)
def test_dims_that_an_op_needs_to_agree_are_checked(
    name: str, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ExecutionError) as error:
        relax_mlir.compile(TEXT)[name](*arguments)
    assert message in str(error.value)


def test_a_function_without_linalg_is_left_alone() -> None:
    text = """
    func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "graph.exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    assert converted(text) == str_of(text)


def str_of(text: str) -> str:
    with make_context():
        return str(parse_module(text))
