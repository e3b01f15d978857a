"""Facts and symbols where they belong: checked when compiled functions are called."""

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import ExecutionError
from relax_mlir.pipelines import OPT_LEVELS

REQUIRED = """
!n = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
func.func @main(%x: !n, %y: !k) -> !n {
  "graph.require"() {any_of = ["k == n", "k == 1", "n == 1"], by = "graph.add"} : () -> ()
  "graph.require"() {any_of = ["n mod 2 == 1"], by = "@odd"} : () -> ()
  %0 = "graph.negative"(%x) : (!n) -> !n
  return %0 : !n
}
"""


def ones(*dims: int) -> np.ndarray:
    return np.ones(dims, np.float32)


@pytest.mark.parametrize("level", OPT_LEVELS)
def test_one_of_the_required_facts_has_to_hold(level):
    main = relax_mlir.compile(REQUIRED, opt_level=level)["main"]
    for n, k in ((3, 3), (3, 1), (1, 7), (1, 0)):
        np.testing.assert_array_equal(main(ones(n), ones(k)), -ones(n))
    with pytest.raises(ExecutionError, match=r"graph\.add requires k == n or k == 1 or n == 1"):
        main(ones(3), ones(2))
    with pytest.raises(ExecutionError, match=r"@odd requires n mod 2 == 1"):
        main(ones(4), ones(4))


SEGMENTS = (
    "operandSegmentSizes = array<i32: 1" + ", 0" * 31 + ">, "
    "resultSegmentSizes = array<i32: 1" + ", 0" * 7 + ">"
)
CALLED = f"""
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!n_half = tensor<?xf32, #graph.shape<["n floordiv 2"]>>
!m_half = tensor<?xf32, #graph.shape<["m floordiv 2"]>>
func.func private @half(%x: !n) -> !n_half attributes {{graph.facts = ["n mod 2 == 0"]}} {{
  %0 = "graph.strided_slice"(%x) {{axes = array<i64: 0>, begin = #graph.shape<[0]>,
      end = #graph.shape<["n floordiv 2"]>, strides = array<i64: 1>}} : (!n) -> !n_half
  return %0 : !n_half
}}
func.func @main(%x: !m) -> !m_half {{
  %0 = "graph.call"(%x) {{callee = @half, {SEGMENTS}}} : (!m) -> !m_half
  return %0 : !m_half
}}
"""


@pytest.mark.parametrize("level", OPT_LEVELS)
def test_facts_of_a_function_are_checked_where_it_is_called(level):
    main = relax_mlir.compile(CALLED, opt_level=level)["main"]
    for n in (0, 2, 34):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(main(x), x[: n // 2])
    with pytest.raises(ExecutionError, match="@half requires m mod 2 == 0"):
        main(ones(5))
