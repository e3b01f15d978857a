"""Kernels and functions may be called like functions of C."""

import numpy as np
import pytest

import relax_mlir

TEXT = """
func.func @{name}(%x: tensor<?x{element}, #graph.shape<["n"]>>) -> tensor<?x{element}, #graph.shape<["n"]>> {{
  %0 = "graph.{op}"(%x) : (tensor<?x{element}, #graph.shape<["n"]>>) -> tensor<?x{element}, #graph.shape<["n"]>>
  return %0 : tensor<?x{element}, #graph.shape<["n"]>>
}}
"""  # noqa: E501


@pytest.mark.parametrize("op", ["floor", "ceil", "trunc"])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_a_kernel_that_calls_its_namesake(op: str, element: str) -> None:
    text = TEXT.format(name="main", op=op, element=element)
    # This target has no instruction for it.
    main = relax_mlir.compile(text, target="x86-64")["main"]
    x = np.linspace(-4, 4, 33).astype(np.float32 if element == "f32" else np.float64)
    np.testing.assert_array_equal(main(x), getattr(np, op)(x))


@pytest.mark.parametrize("name", ["malloc", "memcpy", "exp", "rx_create"])
def test_a_function_of_a_name_of_the_runtime(name: str) -> None:
    function = relax_mlir.compile(TEXT.format(name=name, op="exp", element="f32"))[name]
    x = np.linspace(-4, 4, 33).astype(np.float32)
    np.testing.assert_allclose(function(x), np.exp(x), rtol=1e-6)
