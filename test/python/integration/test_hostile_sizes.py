"""Shape values near 2^63: an error that says what is too large, and no memory that is not ours."""

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import ExecutionError

MODULE = """
!x = tensor<?xf32, #graph.shape<["n"]>>
!z = tensor<?xf32, #graph.shape<["n*m"]>>
!part = tensor<?xf32, #graph.shape<["k"]>>
func.func @product(%s: !graph.shape_value<["n", "m"]> {graph.name = "s"}, %z: !z {graph.name = "z"})
    -> !z {
  %0 = "graph.exp"(%z) : (!z) -> !z
  return %0 : !z
}
func.func @slice(%x: !x {graph.name = "x"}, %s: !graph.shape_value<["m", "k"]> {graph.name = "s"})
    -> !part {
  %0 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<["m"]>,
      end = #graph.shape<["m + k"]>, strides = array<i64: 1>} : (!x) -> !part
  return %0 : !part
}
"""


@pytest.fixture(scope="module", params=[0, 2])
def exe(request) -> relax_mlir.Executable:
    return relax_mlir.compile(MODULE, opt_level=request.param)


@pytest.mark.parametrize(("n", "m"), [(2**32, 2**32), (2**33, 2**31), (2**62, 4), (2**63 - 1,) * 2])
def test_a_product_is_not_compared_modulo_2_64(exe, n, m):
    with pytest.raises(ExecutionError) as error:
        exe["product"]([n, m], np.zeros(0, np.float32))
    text = f"argument 1 'z': dim 0 is 0, but 'm*n' is {m * n} ("
    assert str(error.value).startswith(text)
    assert str(error.value).endswith("), beyond 2^63 - 1")
    np.testing.assert_array_equal(exe["product"]([0, m], np.zeros(0, np.float32)), [])


@pytest.mark.parametrize(
    ("m", "k"), [(2**63 - 8, 16), (16, 2**63 - 8), (2**63 - 1, 1), (2**62, 2**62), (93, 8)]
)
def test_a_slice_stays_within_its_tensor(exe, m, k):
    memory = np.full(300, 42, np.float32)
    x = memory[100:200]
    x[:] = np.arange(100)
    np.testing.assert_array_equal(exe["slice"](x, [93, 7]), x[93:])
    with pytest.raises(ExecutionError, match=r"^'slice' requires k \+ m <= n, but k = ") as error:
        exe["slice"](x, [m, k])
    assert f"k = {k} from argument 1 's', value 1, m = {m} from argument 1 's'" in str(error.value)
