"""Programs that read along one axis and write along another, on devices, against NumPy."""

import numpy as np
import pytest
from device_modules import built

import relax_mlir
from relax_mlir.bindings import gpu, ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.rewriting import walk_ops
from relax_mlir.schedule.gpu.transposes import SHORT, TILE
from relax_mlir.target import Device
from relax_mlir.testing.outlined import outlined
from relax_mlir.testing.ptx import on_ptx

MATRIX = """
!x = tensor<?x?xTYPE, #graph.shape<["n", "m"]>>
!y = tensor<?x?xTYPE, #graph.shape<["m", "n"]>>
func.func @main(%x: !x) -> !y {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (!x) -> !y
  return %0 : !y
}
"""
SIZES = (0, 1, SHORT - 1, SHORT, TILE - 1, TILE, TILE + 1, 97)
TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i8": "int8",
         "i1": "bool"}  # fmt: skip


def elements(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Elements of which neighbours differ, whatever their type."""
    x = np.random.default_rng().integers(0, 2 if dtype == "bool" else 100, shape)
    return x.astype(dtype)


@pytest.mark.parametrize("element", TYPES)
def test_matrices_of_any_size(element: str) -> None:
    """The host has tiles where both extents are long enough."""
    module, kernels, _ = built(MATRIX.replace("TYPE", element), "gpu", 2)
    assert [kernel.workgroup_bytes > 0 for kernel in kernels] == [False, True]
    for n in SIZES:
        for m in (n, *np.random.default_rng().choice(SIZES, 2)):
            x = elements((n, m), TYPES[element])
            np.testing.assert_array_equal(module["main"](x), x.T, f"{n} x {m}")


@pytest.mark.parametrize("target", ["vulkan", "x86-64-v3@webgpu"])
def test_groups_of_other_devices(target: str) -> None:
    """Those of Vulkan have 128 threads: each copies eight elements."""
    module, _, _ = built(MATRIX.replace("TYPE", "f32"), target, 2)
    x = elements((67, 33), "float32")
    np.testing.assert_array_equal(module["main"](x), x.T)


IMAGES = """
!x = tensor<?x3x?x?xf32, #graph.shape<["b", 3, "h", "w"]>>
!c = tensor<?x19x?x?xf32, #graph.shape<["b", 19, "h", "w"]>>
!y = tensor<?x?x?x19xf32, #graph.shape<["b", "h", "w", 19]>>
!z = tensor<?x?x?x3xf32, #graph.shape<["b", "h", "w", 3]>>
func.func @main(%x: !c, %s: tensor<19xf32>, %r: !y, %few: !x) -> (!y, !z) {
  %0 = "graph.exp"(%x) : (!c) -> !c
  %1 = "graph.permute_dims"(%0) {axes = array<i64: 0, 2, 3, 1>} : (!c) -> !y
  %2 = "graph.multiply"(%1, %s) : (!y, tensor<19xf32>) -> !y
  %3 = "graph.add"(%2, %r) : (!y, !y) -> !y
  %4 = "graph.permute_dims"(%few) {axes = array<i64: 0, 2, 3, 1>} : (!x) -> !z
  return %3, %4 : !y, !z
}
"""


def test_pixels_are_rows_with_work_before_and_after() -> None:
    """Height and width are one axis, so that short rows of images have tiles too."""
    module, kernels, rules = built(IMAGES, "gpu", 2)
    assert rules == ["nests", "nests"]
    assert sum(kernel.workgroup_bytes > 0 for kernel in kernels) == 1
    rng = np.random.default_rng()
    for b, h, w in ((2, 5, 7), (1, 1, 9), (3, 1, 1), (2, 0, 4), (1, 8, 8), (1, 33, 3)):
        shapes = (b, 19, h, w), (19,), (b, h, w, 19), (b, 3, h, w)
        x, s, r, few = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
        got, third = module["main"](x, s, r, few)
        exact = np.exp(x.astype(np.float64)).transpose(0, 2, 3, 1) * s + r
        np.testing.assert_allclose(got, exact, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(third, few.transpose(0, 2, 3, 1))


SUMS = """
!a = tensor<?x?x?xf64, #graph.shape<["l", "m", "n"]>>
!b = tensor<?x?x?xf64, #graph.shape<["n", "m", "l"]>>
!c = tensor<?x?x?xf64, #graph.shape<["n", "l", "m"]>>
func.func @main(%x: !a, %y: !b, %z: !c) -> (!a, !a) {
  %0 = "graph.permute_dims"(%y) {axes = array<i64: 2, 1, 0>} : (!b) -> !a
  %1 = "graph.permute_dims"(%z) {axes = array<i64: 1, 2, 0>} : (!c) -> !a
  %2 = "graph.add"(%x, %0) : (!a, !a) -> !a
  %3 = "graph.subtract"(%2, %1) : (!a, !a) -> !a
  %4 = "graph.multiply"(%3, %0) : (!a, !a) -> !a
  return %3, %4 : !a, !a
}
"""


@pytest.mark.parametrize("target", ["gpu", "vulkan"])
def test_reads_along_several_axes(target: str) -> None:
    """One is read by tiles, twice; what is along others is read as it lies."""
    module, _, _ = built(SUMS, target, 2)
    rng = np.random.default_rng()
    for l, m, n in ((9, 3, 40), (33, 2, 8), (8, 35, 33), (1, 2, 3), (4, 0, 5)):  # noqa: E741
        x, y, z = (rng.standard_normal(s) for s in ((l, m, n), (n, m, l), (n, l, m)))
        first = x + y.transpose(2, 1, 0) - z.transpose(1, 2, 0)
        np.testing.assert_allclose(module["main"](x, y, z)[0], first)
        np.testing.assert_allclose(module["main"](x, y, z)[1], first * y.transpose(2, 1, 0))


def lowered(text: str, target: str) -> ir.Module:
    module = outlined(text, target)
    return module


def test_as_ptx() -> None:
    with make_context(), ir.Location.unknown():
        module = lowered(MATRIX.replace("TYPE", "i8"), "cuda:sm_80")
        main = on_ptx(module, Device.parse("cuda:sm_80"))
    for n, m in ((0, 3), (5, 64), (33, 70)):
        x = elements((n, m), "int8")
        np.testing.assert_array_equal(main(x), x.T)


def test_a_missing_barrier_is_an_error() -> None:
    with make_context(), ir.Location.unknown():
        module = lowered(MATRIX.replace("TYPE", "f32"), "gpu")
        (barrier,) = walk_ops(module.operation, gpu.BarrierOp)
        barrier.operation.erase()
        main = relax_mlir.interpret(module)["main"]
        with pytest.raises(ExecutionError, match="without a barrier"):
            main(elements((40, 40), "float32"))
