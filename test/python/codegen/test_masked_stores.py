"""Stores of the first lanes of a vector: what is stored, and what is left alone."""

import numpy as np
import pytest
from small_kernels import RUNNABLE, build, call

from relax_mlir.target import Target

KINDS = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "i64": np.int64, "f16": np.float16}


def kernel(kind: str, lanes: int) -> str:
    """to[at + i] = from[i] for i below n, of so many lanes at most."""
    vector = f"vector<{lanes}x{kind}>"
    return f"""
    func.func @f(%from: memref<?x{kind}>, %to: memref<?x{kind}>, %at: index, %n: index) {{
      %c0 = arith.constant 0 : index
      %x = vector.load %from[%c0] : memref<?x{kind}>, {vector}
      %keep = vector.create_mask %n : vector<{lanes}xi1>
      vector.maskedstore %to[%at], %keep, %x : memref<?x{kind}>, vector<{lanes}xi1>, {vector}
      return
    }}"""


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lanes", [1, 2, 3, 8, 12, 32])
def test_first_lanes(kind: str, lanes: int, target: str) -> None:
    store = build(kernel(kind, lanes), "f", target=Target.parse(target)).f
    x = np.random.default_rng(lanes).integers(-99, 99, lanes).astype(KINDS[kind])
    for count in (-(2**40), -1, *range(lanes + 2), 2**40):
        found = np.full(lanes + 4, 100).astype(KINDS[kind])
        expected = found.copy()
        kept = min(max(count, 0), lanes)
        expected[3 : 3 + kept] = x[:kept]
        call(store, x, found, 3, count)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("kind", ["f32", "i8"])
@pytest.mark.parametrize(("lanes", "count"), [(1, 1), (8, 0), (8, 3), (8, 8), (32, 21)])
def test_known_lanes(kind: str, lanes: int, count: int, target: str) -> None:
    text = kernel(kind, lanes).replace("create_mask %n", f"constant_mask [{count}]")
    store = build(text, "f", target=Target.parse(target)).f
    x = np.random.default_rng(lanes).integers(-99, 99, lanes).astype(KINDS[kind])
    found = np.full(lanes + 4, 100).astype(KINDS[kind])
    expected = found.copy()
    expected[3 : 3 + count] = x[:count]
    call(store, x, found, 3, 0)
    np.testing.assert_array_equal(found, expected)
