"""A lookup in an axis without elements is refused, unless nothing is looked up."""

import numpy as np
import pytest

from relax_mlir.compiler import compile
from relax_mlir.errors import ExecutionError

MODULE = """
func.func @main(%x: tensor<?x3xf32, #graph.shape<["m", 3]>> {graph.name = "x"},
                %ids: tensor<?xi32, #graph.shape<["n"]>> {graph.name = "ids"})
    -> tensor<?x3xf32, #graph.shape<["n", 3]>> {
  %0 = "graph.take"(%x, %ids) {axis = 0 : i64}
      : (tensor<?x3xf32, #graph.shape<["m", 3]>>, tensor<?xi32, #graph.shape<["n"]>>)
      -> tensor<?x3xf32, #graph.shape<["n", 3]>>
  return %0 : tensor<?x3xf32, #graph.shape<["n", 3]>>
}
"""


@pytest.mark.parametrize("opt_level", [0, 2])
def test_an_axis_without_elements(opt_level):
    take = compile(MODULE, opt_level=opt_level)["main"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(take(x, np.array([1, 0, 9], np.int32)), x[[1, 0, 1]])
    none = np.zeros(0, np.int32)
    assert take(x, none).shape == take(x[:0], none).shape == (0, 3)
    with pytest.raises(ExecutionError, match=r"requires min\(n, 1\) <= m.*m = 0 from argument 0"):
        take(x[:0], np.zeros(1, np.int32))
