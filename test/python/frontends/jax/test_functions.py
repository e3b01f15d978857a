"""Functions of JAX with symbolic shapes agree with JAX, interpreted and compiled."""

import functions
import jax.numpy as jnp
import numpy as np
import pytest

import relax_mlir
from relax_mlir.frontends.jax import jit
from relax_mlir.interpreter import interpret


@pytest.mark.rotate(3)
@pytest.mark.parametrize("name", functions.FUNCTIONS)
def test_function_interpreted(name):
    functions.compare(name, interpret(functions.imported(name).module)["main"])


@pytest.mark.rotate(12)
@pytest.mark.parametrize("name", functions.FUNCTIONS)
def test_function_compiled(name):
    main = relax_mlir.compile(functions.imported(name), opt_level=1)["main"]
    functions.compare(name, main, seed=1)


def test_jit_compiles_once_for_all_sizes():
    main = jit(lambda x: {"sum": jnp.sum(x, axis=0), "twice": x * 2}, shapes=("b, 3",))
    for size in (1, 4):
        x = np.arange(size * 3, dtype=np.float32).reshape(size, 3)
        result = main(x)
        np.testing.assert_allclose(result["sum"], x.sum(0))
        np.testing.assert_allclose(result["twice"], x * 2)


def test_jit_without_symbols_compiles_for_each_shape():
    main = jit(lambda x, y: x @ y)
    np.testing.assert_allclose(
        main(np.ones((2, 3), "f4"), np.ones((3, 4), "f4")), np.full((2, 4), 3)
    )
