"""Symbols that a match_cast binds inside of a function."""

import numpy as np
import pytest
from host_module import build
from levels import LEVELS

from relax_mlir.errors import ExecutionError
from relax_mlir.executable import Executable
from relax_mlir.pipelines import pipeline

TEXT = """
!k = tensor<?xf32, #graph.shape<["k"]>>
!kk = tensor<?xf32, #graph.shape<["2*k"]>>
!sum = tensor<?xf32, #graph.shape<["n + 3*k + 1"]>>
!n = tensor<?xf32, #graph.shape<["n"]>>
!any = tensor<?xf32>

func.func @temporaries(%x: !any) -> !k {
  %0 = "graph.match_cast"(%x) : (!any) -> !k
  %1 = "graph.nn_softmax"(%0) {axis = 0 : i64} : (!k) -> !k
  %2 = "graph.nn_softmax"(%1) {axis = 0 : i64} : (!k) -> !k
  return %2 : !k
}
func.func @doubled(%x: !any) -> !k {
  %0 = "graph.match_cast"(%x) : (!any) -> !kk
  %1 = "graph.strided_slice"(%0) {axes = array<i64: 0>, begin = #graph.shape<[0]>,
      end = #graph.shape<["k"]>, strides = array<i64: 1>} : (!kk) -> !k
  return %1 : !k
}
func.func @sums(%x: !n, %y: !any) -> (!sum, !k) attributes {graph.facts = ["k != 5"]} {
  %0 = "graph.match_cast"(%y) : (!any) -> !sum
  %1 = "graph.negative"(%0) : (!sum) -> !sum
  %2 = "graph.strided_slice"(%0) {axes = array<i64: 0>, begin = #graph.shape<[0]>,
      end = #graph.shape<["k"]>, strides = array<i64: 1>} : (!sum) -> !k
  %3 = "graph.nn_softmax"(%2) {axis = 0 : i64} : (!k) -> !k
  return %1, %3 : !sum, !k
}
func.func @twice(%x: !any, %y: !any) -> !k {
  %0 = "graph.match_cast"(%x) : (!any) -> !k
  %1 = "graph.match_cast"(%y) : (!any) -> !k
  %2 = "graph.add"(%0, %1) : (!k, !k) -> !k
  return %2 : !k
}
"""


@pytest.fixture(scope="module", params=LEVELS, ids=lambda level: f"O{level}")
def exe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Executable:
    """The module, where no cast of an argument becomes part of the signature."""
    passes = pipeline("native", request.param).removeprefix("builtin.module(").removesuffix(")")
    kept = [text for text in passes.split(",") if not text.startswith("relax-name-dims")]
    return build(TEXT, tmp_path_factory.mktemp("casts"), ",".join(kept))


def numbers(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal(n).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(initial=0))
    return e / e.sum()


@pytest.mark.parametrize("n", [0, 1, 6, 17])
def test_a_bound_symbol_sizes_temporaries(exe: Executable, n: int) -> None:
    x = numbers(n)
    np.testing.assert_allclose(exe["temporaries"](x), softmax(softmax(x)), rtol=1e-5)


def test_a_multiple_is_divided_exactly(exe: Executable) -> None:
    for n in (0, 2, 6, 34):
        x = numbers(n)
        np.testing.assert_array_equal(exe["doubled"](x), x[: n // 2])
    message = r"^match_cast: dim 0 is 5, but '2\*k' cannot be 5 for any integer k >= 0$"
    with pytest.raises(ExecutionError, match=message):
        exe["doubled"](numbers(5))


def test_a_sum_has_one_new_symbol(exe: Executable) -> None:
    for n, k in ((0, 0), (3, 1), (5, 7)):
        y = numbers(n + 3 * k + 1)
        negative, part = exe["sums"](numbers(n), y)
        np.testing.assert_array_equal(negative, -y)
        np.testing.assert_allclose(part, softmax(y[:k]), rtol=1e-5)
    message = r"^match_cast: dim 0 is 3, but '3\*k \+ n \+ 1' cannot be 3 for any integer k >= 0$"
    with pytest.raises(ExecutionError, match=message):
        exe["sums"](numbers(4), numbers(3))
    with pytest.raises(ExecutionError, match=r"^'sums' requires k != 5, but k = 5"):
        exe["sums"](numbers(0), numbers(16))


def test_a_bound_symbol_is_compared(exe: Executable) -> None:
    x, y = numbers(4), numbers(4) * 3
    np.testing.assert_array_equal(exe["twice"](x, y), x + y)
    with pytest.raises(ExecutionError, match=r"^match_cast: dim 0 is 7, but 'k' is 4$"):
        exe["twice"](x, numbers(7))
