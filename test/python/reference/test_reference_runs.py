"""Cases of TVM's tests on shapes at run time (row 29 of the list): compiled and interpreted."""

import numpy as np
import pytest
from reference_modules import tensor

import relax_mlir
from relax_mlir.errors import ExecutionError

X, Y, SQUARE = tensor("n", "m"), tensor("k", "m", "k + 1"), tensor("n*n")
SYMBOLIC_COMPUTE = f"""
func.func @main(%x: {X} {{graph.name = "x"}}, %y: {tensor(None, None, None)} {{graph.name = "y"}})
    -> ({Y}, {SQUARE}) {{
  %0 = "graph.match_cast"(%y) : ({tensor(None, None, None)}) -> {Y}
  %1 = "graph.exp"(%0) : ({Y}) -> {Y}
  %2 = "graph.reshape"(%x) {{shape = #graph.shape<["m*n"]>}} : ({X}) -> {tensor("m*n")}
  %3 = "graph.match_cast"(%2) : ({tensor("m*n")}) -> {SQUARE}
  return %1, %3 : {Y}, {SQUARE}
}}"""
MATCH_CHECK = f"""
func.func @main(%x: {X} {{graph.name = "x"}}, %y: {tensor(None, None)} {{graph.name = "y"}})
    -> {tensor("m", "n")} {{
  %0 = "graph.match_cast"(%y) : ({tensor(None, None)}) -> {tensor("m", "n")}
  %1 = "graph.permute_dims"(%0) {{axes = array<i64: 1, 0>}} : ({tensor("m", "n")}) -> {X}
  %2 = "graph.add"(%x, %1) : ({X}, {X}) -> {X}
  %3 = "graph.permute_dims"(%2) {{axes = array<i64: 1, 0>}} : ({X}) -> {tensor("m", "n")}
  return %3 : {tensor("m", "n")}
}}"""
HALF = tensor("n floordiv 2 + 1")
SYMBOLIC_SHAPE = f"""
func.func @main(%x: {tensor("n")} {{graph.name = "x"}}, %y: {HALF} {{graph.name = "y"}})
    -> ({HALF}, {tensor("n")}) {{
  %0 = "graph.exp"(%y) : ({HALF}) -> {HALF}
  %1 = "graph.add"(%x, %x) : ({tensor("n")}, {tensor("n")}) -> {tensor("n")}
  return %0, %1 : {HALF}, {tensor("n")}
}}"""


@pytest.fixture(params=["interpret", "compile"])
def run(request):
    return getattr(relax_mlir, request.param)


def array(*dims: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(dims).astype(np.float32)


def test_symbolic_compute(run) -> None:
    main = run(SYMBOLIC_COMPUTE)["main"]
    for n, k in ((2, 3), (1, 0), (7, 1)):
        x, y = array(n, n), array(k, n, k + 1)
        result, flat = main(x, y)
        np.testing.assert_allclose(result, np.exp(y), rtol=1e-5)
        np.testing.assert_array_equal(flat, x.ravel())
    with pytest.raises(ExecutionError, match=r"dim 2 is 5, but 'k \+ 1' is 4 \(k = 3"):
        main(array(2, 2), array(3, 2, 5))
    with pytest.raises(ExecutionError, match="dim 1 is 1, but 'm' is 2"):
        main(array(2, 2), array(3, 1, 4))


def test_return_match_check_with_new_expr(run) -> None:
    main = run(SYMBOLIC_COMPUTE)["main"]
    with pytest.raises(ExecutionError, match=r"dim 0 is 6, but 'n\*n' is 4 \(n = 2"):
        main(array(2, 3), array(3, 3, 4))


def test_match_check(run) -> None:
    main = run(MATCH_CHECK)["main"]
    for n, m in ((2, 3), (1, 1), (5, 0)):
        x, y = array(n, m), array(m, n)
        np.testing.assert_allclose(main(x, y), y + x.T, rtol=1e-6)
    with pytest.raises(ExecutionError, match="dim 0 is 4, but 'm' is 3"):
        main(array(2, 3), array(4, 2))
    with pytest.raises(ExecutionError, match=r"rank|dims"):
        main(array(2, 3), array(3))
    with pytest.raises(ExecutionError, match="float64"):
        main(array(2, 3), array(3, 2).astype(np.float64))


def test_vm_relax_symbolic_shape(run) -> None:
    main = run(SYMBOLIC_SHAPE)["main"]
    for n in (5, 4, 0, 33):
        x, y = array(n), array(n // 2 + 1)
        result, double = main(x, y)
        np.testing.assert_allclose(result, np.exp(y), rtol=1e-5)
        np.testing.assert_array_equal(double, 2 * x)
    with pytest.raises(ExecutionError, match=r"dim 0 is 4, but 'n floordiv 2 \+ 1' is 3"):
        main(array(5), array(4))
