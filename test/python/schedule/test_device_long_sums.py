"""Products of few tiles and long sums on devices: parts of the sums in groups of their own."""

import numpy as np
import pytest
from device_modules import as_ptx, built

from relax_mlir.schedule.gpu.products.split import SHORTEST

PRODUCT = """
!x = tensor<?x?xTYPE, #graph.shape<["m", "k"]>>
!w = tensor<?x?xTYPE, #graph.shape<["k", "n"]>>
!y = tensor<?x?xTYPE, #graph.shape<["m", "n"]>>
func.func @main(%x: !x, %w: !w, %r: !y) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = "graph.subtract"(%r, %0) : (!y, !y) -> !y
  return %1 : !y
}
"""
DEPTHS = (0, 1, SHORTEST - 1, 2 * SHORTEST - 1, 2 * SHORTEST, 2 * SHORTEST + 1, 1031)


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng().integers(-9, 9, shape)


@pytest.mark.parametrize("element", ["f32", "i8"])
def test_the_host_divides_sums_by_their_length(element: str) -> None:
    """Sums of small integers are exact in any order; those of bytes wrap around."""
    module, kernels, rules = built(PRODUCT.replace("TYPE", element), "gpu", 2)
    assert rules == ["products"]
    assert len(kernels) == 4  # one row, few rows, tiles, sums of parts
    dtype = {"f32": "float32", "i8": "int8"}[element]
    for k in np.random.default_rng().choice(DEPTHS, 4, replace=False):
        m, n = np.random.default_rng().choice([5, 31, 65], 2)
        x, w, r = integers(m, k), integers(k, n), integers(m, n)
        got = module["main"](*(each.astype(dtype) for each in (x, w, r)))
        np.testing.assert_array_equal(got, (r - x @ w).astype(dtype), f"{m} x {n}, {k} along k")


def test_results_are_the_same_each_time() -> None:
    module, _, _ = built(PRODUCT.replace("TYPE", "f32"), "gpu", 2)
    rng = np.random.default_rng()
    x, w, r = (rng.standard_normal(s).astype(np.float32) for s in ((9, 1999), (1999, 20), (9, 20)))
    got = module["main"](x, w, r)
    np.testing.assert_allclose(got, r - x.astype(np.float64) @ w, rtol=0, atol=2e-4)
    np.testing.assert_array_equal(got, module["main"](x, w, r))


GATED = """
!x = tensor<2x9x?xf32, #graph.shape<[2, 9, "k"]>>
!w = tensor<2x?x12xf32, #graph.shape<[2, "k", 12]>>
!y = tensor<2x9x12xf32>
func.func @main(%x: !x, %w: !w, %v: !w) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = "graph.nn_relu"(%0) : (!y) -> !y
  %2 = "graph.matmul"(%x, %v) : (!x, !w) -> !y
  %3 = "graph.multiply"(%1, %2) : (!y, !y) -> !y
  return %3 : !y
}
"""


@pytest.mark.parametrize("target", ["gpu", "vulkan"])
def test_batches_of_two_products(target: str) -> None:
    module, _, _ = built(GATED, target, 3)
    for k in (3, 700):
        x, w, v = (integers(*shape).astype(np.float32)
                   for shape in ((2, 9, k), (2, k, 12), (2, k, 12)))  # fmt: skip
        np.testing.assert_array_equal(module["main"](x, w, v), np.maximum(x @ w, 0) * (x @ v))


IMAGE = """
!x = tensor<1x64x5x4xf32>
!w = tensor<20x64x3x3xf32>
!y = tensor<1x20x3x2xf32>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, !w) -> !y
  %1 = "graph.nn_relu"(%0) : (!y) -> !y
  return %1 : !y
}
"""


def test_convolutions_of_small_images() -> None:
    """Sums over 64 channels of windows of 3 x 3: two parts."""
    module, kernels, rules = built(IMAGE, "gpu", 2)
    assert rules == ["convolution"]
    assert [kernel.block[0] for kernel in kernels] == [256, 120]
    x, w = integers(1, 64, 5, 4).astype(np.float32), integers(20, 64, 3, 3).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    exact = np.maximum(np.einsum("bchwij,fcij->bfhw", windows, w), 0)
    np.testing.assert_array_equal(module["main"](x, w), exact)


def test_as_ptx() -> None:
    main = as_ptx(PRODUCT.replace("TYPE", "i32"), "cuda:sm_75")
    for k in (17, 600):
        x, w, r = (integers(*s).astype(np.int32) for s in ((7, k), (k, 33), (7, 33)))
        np.testing.assert_array_equal(main(x, w, r), r - x @ w)
