"""Short rows of which several share a group of threads, on devices, against NumPy."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from device_modules import built

import relax_mlir
from relax_mlir.bindings import gpu, ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.rewriting import walk_ops
from relax_mlir.schedule.gpu.rows import FEWEST_ELEMENTS, MOST_THREADS
from relax_mlir.target import Device
from relax_mlir.testing.outlined import outlined
from relax_mlir.testing.ptx import on_ptx

SOFTMAX = """
!x = tensor<?xLENGTHxf32, #graph.shape<["n", LENGTH]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.nn_softmax"(%x) {axis = -1 : i64} : (!x) -> !x
  return %0 : !x
}
"""
LARGEST = """
!x = tensor<?xLENGTHxTYPE, #graph.shape<["n", LENGTH]>>
!s = tensor<?xTYPE, #graph.shape<["n"]>>
!i = tensor<?xi64, #graph.shape<["n"]>>
func.func @main(%x: !x) -> (!s, !i) {
  %0 = "graph.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (!x) -> !s
  %1 = "graph.argmax"(%x) {axis = 1 : i64, keepdims = false} : (!x) -> !i
  return %0, %1 : !s, !i
}
"""


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(1, keepdims=True)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("length", "threads"),
    [(FEWEST_ELEMENTS - 1, 0), (FEWEST_ELEMENTS, 4), (31, 8), (64, 16), (65, 16), (257, 64),
     (509, MOST_THREADS)],
)  # fmt: skip
def test_softmax(length: int, threads: int) -> None:
    """Threads for each row, and the rows that are left."""
    module, kernels, _ = built(SOFTMAX.replace("LENGTH", str(length)), "gpu", 2)
    rows = MOST_THREADS // threads if threads else 0
    sizes = [kernel.block[0] for kernel in kernels]
    assert sizes == ([256] if not rows else [MOST_THREADS] if rows == 1 else [128, threads])
    for n in (0, 1, rows - 1, rows, rows + 1, 2 * rows + 3):
        x = normal(max(n, 0), length)
        np.testing.assert_allclose(module["main"](x), softmax(x), rtol=2e-5, err_msg=f"{n} rows")


@pytest.mark.parametrize(
    ("target", "element"), [("gpu", "i64"), ("vulkan", "f32"), ("x86-64-v3@webgpu", "i32")]
)
def test_sums_and_positions(target: str, element: str) -> None:
    """Integers wrap around; of equal elements, the first one is the largest."""
    text = LARGEST.replace("LENGTH", "100").replace("TYPE", element)
    module, _, _ = built(text, target, 2)
    dtype = {"i64": "int64", "f32": "float32", "i32": "int32"}[element]
    for n in (3, 4, 9):
        x = np.random.default_rng().integers(-9, 9, (n, 100)).astype(dtype)
        total, position = module["main"](x)
        np.testing.assert_array_equal(total, x.sum(1, dtype=dtype))
        np.testing.assert_array_equal(position, x.argmax(1))


@cache
def lowered(target: str) -> str:
    with make_context(), ir.Location.unknown():
        module = outlined(SOFTMAX.replace("LENGTH", "33"), target)
        return str(module)


def test_as_ptx() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(lowered("cuda:sm_75"))
        main: Any = on_ptx(module, Device.parse("cuda:sm_75"))
    for n in (1, 16, 37):
        x = normal(n, 33)
        np.testing.assert_allclose(main(x), softmax(x), rtol=2e-5)


def test_missing_barriers_are_errors() -> None:
    """Each of the launch for several rows, but the last one, which follows another one."""
    with make_context(), ir.Location.unknown():
        count = len(walk_ops(ir.Module.parse(lowered("gpu")).operation, gpu.BarrierOp))
        assert count == 12
        for index in range(count // 2 - 1):
            module = ir.Module.parse(lowered("gpu"))
            walk_ops(module.operation, gpu.BarrierOp)[index].operation.erase()
            with pytest.raises(ExecutionError, match="without a barrier"):
                relax_mlir.interpret(module)["main"](normal(32, 33))
