"""Tensors plus the rows that a table has for them, as learnt positions."""

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import ExecutionError

ROWS = 8
TEXT = f"""
func.func @main(%x: tensor<?x?x3xf32, #graph.shape<["b", "n", 3]>>, %t: tensor<{ROWS}x3xf32>)
    -> tensor<?x?x3xf32, #graph.shape<["b", "n", 3]>> {{
  %s = "graph.strided_slice"(%t) {{axes = array<i64: 0>, begin = #graph.shape<[0]>,
      end = #graph.shape<["min(n, {ROWS})"]>, strides = array<i64: 1>}}
      : (tensor<{ROWS}x3xf32>) -> tensor<?x3xf32>
  %r = "graph.add"(%s, %x) : (tensor<?x3xf32>, tensor<?x?x3xf32, #graph.shape<["b", "n", 3]>>)
      -> tensor<?x?x3xf32, #graph.shape<["b", "n", 3]>>
  return %r : tensor<?x?x3xf32, #graph.shape<["b", "n", 3]>>
}}
"""


@pytest.mark.parametrize("make", [relax_mlir.interpret, relax_mlir.compile])
def test_rows_of_a_table(make):
    main, rng = make(TEXT)["main"], np.random.default_rng()
    table = rng.standard_normal((ROWS, 3), np.float32)
    for n in (0, 1, 2, ROWS - 1, ROWS):
        x = rng.standard_normal((2, n, 3), np.float32)
        np.testing.assert_array_equal(main(x, table), x + table[:n])
    for n in (ROWS + 1, 1000):
        with pytest.raises(ExecutionError, match=f"n <= {ROWS}, but n = {n} |broadcast"):
            main(np.zeros((2, n, 3), np.float32), table)
