"""Attention to pages on threads of devices: more heads that share keys than a tile has rows."""

import numpy as np
import pytest
from device_modules import built

from relax_mlir.interpreter import interpret

PAGES = """
!pages = tensor<?xKVx3xWIDTHxf32, #graph.shape<["p", KV, 3, WIDTH]>>
!query = tensor<?xHEADSxWIDTHxf32, #graph.shape<["n", HEADS, WIDTH]>>
!tables = tensor<?x?xi32, #graph.shape<["b", "s"]>>
!ids = tensor<?xi32, #graph.shape<["n"]>>
func.func @main(%q: !query, %k: !pages, %v: !pages, %t: !tables, %s: !ids, %p: !ids) -> !query {
  %0 = "graph.nn_paged_attention"(%q, %k, %v, %t, %s, %p)
      {scale = 0.25 : f64, window = WINDOW : i64, cap = 2.0 : f64,
       operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>}
      : (!query, !pages, !pages, !tables, !ids, !ids) -> !query
  return %0 : !query
}
"""
LEAST, MOST = -(2**31), 2**31 - 1


@pytest.mark.parametrize(
    ("target", "heads", "kv_heads", "width", "window"),
    [("gpu", 34, 2, 8, 0), ("vulkan", 6, 2, 300, 40), ("gpu", 5, 5, 1, 0)],
)
def test_pages(target: str, heads: int, kv_heads: int, width: int, window: int) -> None:
    """Sequences, pages and positions that there are not are the nearest that there are."""
    text = PAGES.replace("HEADS", str(heads)).replace("KV", str(kv_heads))
    text = text.replace("WIDTH", str(width)).replace("WINDOW", str(window))
    module, _, rules = built(text, target, 2)
    assert rules == ["paged_attention"]
    random = np.random.default_rng(heads)
    for tokens, pages, sequences, slots in (
        (3, 9, 2, 4),
        (2, 5, 1, 90),
        (0, 3, 1, 1),
        (1, 0, 1, 1),
    ):
        q = random.standard_normal((tokens, heads, width)).astype(np.float32)
        shape = pages, kv_heads, 3, width
        k, v = (random.standard_normal(shape).astype(np.float32) for _ in range(2))
        table = random.integers(-2, pages + 2, (sequences, slots)).astype(np.int32)
        ids = random.integers(-1, sequences + 1, tokens).astype(np.int32)
        at = np.array([3 * slots - 1, MOST, LEAST][:tokens], np.int32)
        arguments = q, k, v, table, ids, at
        wanted = interpret(text)["main"](*arguments)
        np.testing.assert_allclose(module["main"](*arguments), wanted, rtol=2e-5, atol=2e-5)
