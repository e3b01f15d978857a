"""Loads of the first lanes of a vector: what is loaded, and what lies behind."""

import numpy as np
import pytest
from small_kernels import build, call

from relax_mlir.bindings import ir
from relax_mlir.codegen.masked_loads import split_masked_loads
from relax_mlir.dialects import make_context
from relax_mlir.target import Target

KINDS = {"f32": np.float32, "i8": np.int8, "i64": np.int64}


def kernel(kind: str, lanes: int, mask: str, behind: int) -> str:
    """to[i] = from[at + i] for i below n, else the number `behind`; the rewritten text."""
    vector = f"vector<{lanes}x{kind}>"
    text = f"""
    func.func @f(%from: memref<?x{kind}>, %to: memref<?x{kind}>, %at: index, %n: index) {{
      %c0 = arith.constant 0 : index
      %keep = vector.{mask} : vector<{lanes}xi1>
      %other = arith.constant dense<{behind}{".0" if kind[0] == "f" else ""}> : {vector}
      %x = vector.maskedload %from[%at], %keep, %other
        : memref<?x{kind}>, vector<{lanes}xi1>, {vector} into {vector}
      vector.store %x, %to[%c0] : memref<?x{kind}>, {vector}
      return
    }}"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        split_masked_loads(module)
        assert module.operation.verify()
        is_power = lanes & (lanes - 1) == 0
        assert ("vector.maskedload" in str(module)) == (not is_power)
        return str(module)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("lanes", "behind"), [(1, 0), (2, 7), (3, 0), (8, 0), (32, 5)])
def test_first_lanes(kind: str, lanes: int, behind: int) -> None:
    text = kernel(kind, lanes, "create_mask %n", behind)
    load = build(text, "f", target=Target.parse("native")).f
    x = np.random.default_rng(lanes).integers(-99, 99, lanes + 4).astype(KINDS[kind])
    for count in (-(2**40), -1, *range(lanes + 2), 2**40):
        found = np.zeros(lanes, KINDS[kind])
        read = min(max(count, 0), lanes)
        call(load, x, found, 3, count)
        np.testing.assert_array_equal(found[:read], x[3 : 3 + read])
        assert (found[read:] == behind).all()


@pytest.mark.parametrize(("lanes", "count"), [(1, 1), (8, 0), (8, 3), (8, 8), (32, 21)])
def test_known_lanes(lanes: int, count: int) -> None:
    text = kernel("f32", lanes, f"constant_mask [{count}]", 0)
    load = build(text, "f", target=Target.parse("native")).f
    x, found = np.arange(1, lanes + 5, dtype=np.float32), np.ones(lanes, np.float32)
    call(load, x, found, 3, 0)
    np.testing.assert_array_equal(found, np.where(np.arange(lanes) < count, x[3 : 3 + lanes], 0))
