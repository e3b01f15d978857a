"""Products of bytes less zero points are exact, whatever kernels multiply; weights are packed."""

import numpy as np
import pytest
from onnx import TensorProto
from onnx_nodes import model, node

import relax_mlir
from relax_mlir.frontends.onnx import from_onnx

KINDS = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}
ZEROS = {"none": ((), ()), "both": ((), (3,)), "columns": ((7,), "n"), "zero": ((0,), (0,))}


def zero_point(random, dtype, zero, columns):
    """One of rank 0, of a given value or the least one, or one for each column."""
    if zero == "n":
        return random.integers(*bounds(dtype), columns, dtype, endpoint=True)
    return np.array(zero[0] if zero else np.iinfo(dtype).min, dtype)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("left", sorted(KINDS, key=str))
@pytest.mark.parametrize("right", sorted(KINDS, key=str))
@pytest.mark.parametrize("zeros", sorted(ZEROS))
@pytest.mark.parametrize(("k", "n"), [(1, 1), (101, 33), (64, 96)])
def test_products(left, right, zeros, k, n):
    random = np.random.default_rng(k)
    w = random.integers(*bounds(right), (k, n), right, endpoint=True)
    w[0] = np.iinfo(right).min
    constants = {"w": w}
    if zeros != "none":
        for name, dtype, zero in zip("ab", (left, right), ZEROS[zeros], strict=True):
            constants[name] = zero_point(random, dtype, zero, n)
    inputs = " ".join(["x", "w", *("ab" if zeros != "none" else "")])
    proto = model(
        [node("MatMulInteger", inputs, "y")], {"x": ["m", k]}, ["y"], constants, {"x": KINDS[left]}
    )
    for level in (0, 2):
        exe = relax_mlir.compile(from_onnx(proto), opt_level=level)
        for m in (0, 1, 5, 16):
            x = random.integers(*bounds(left), (m, k), left, endpoint=True)
            x[:, :1] = np.iinfo(left).max
            a, b = (constants.get(name, np.int64(0)).astype(np.int64) for name in "ab")
            expected = (x.astype(np.int64) - a) @ (w.astype(np.int64) - b)
            np.testing.assert_array_equal(exe["main"](x), expected)
    assert n == 1 or any("packed" in name for name in exe.metadata["functions"]["main"]["calls"])


def bounds(dtype):
    """The least and the greatest integer."""
    return np.iinfo(dtype).min, np.iinfo(dtype).max
