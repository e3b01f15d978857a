"""Products by cuBLAS, of which there is a stand-in: results, arguments, failures, refusals."""

import gc
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
import pytest
from call_segments import segments
from cublas import cublas
from cuda_driver import driver
from perceptron import normal

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError, UsageError
from relax_mlir.patterns.cublas import CUBLAS

TARGET = "cuda:sm_90a"
ROWS = """
!x = tensor<?x?x{e}, #graph.shape<["m", "k"]>>
!w = tensor<?x?x{e}, #graph.shape<["k", "n"]>>
!t = tensor<?x?x{e}, #graph.shape<["n", "k"]>>
!z = tensor<2x?x?x{e}, #graph.shape<[2, "m", "k"]>>
!y = tensor<?x?x{e}, #graph.shape<["m", "n"]>>
!r = tensor<2x?x?x{e}, #graph.shape<[2, "m", "n"]>>
func.func @main(%x: !x, %w: !w, %t: !t, %z: !z) -> (!y, !y, !r) {{
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = "graph.negative"(%0) : (!y) -> !y
  %2 = "graph.permute_dims"(%t) {{axes = array<i64: 1, 0>}} : (!t) -> !w
  %3 = "graph.matmul"(%x, %2) : (!x, !w) -> !y
  %4 = "graph.matmul"(%z, %w) : (!z, !w) -> !r
  return %1, %3, %4 : !y, !y, !r
}}
"""
BATCHES = """
!x = tensor<?x3x?x?xf32, #graph.shape<["b", 3, "m", "k"]>>
!w = tensor<?x3x?x?xf32, #graph.shape<["b", 3, "k", "n"]>>
!t = tensor<?x3x?x?xf32, #graph.shape<["b", 3, "n", "k"]>>
!y = tensor<?x3x?x?xf32, #graph.shape<["b", 3, "m", "n"]>>
func.func @main(%x: !x, %w: !w, %t: !t) -> (!y, !y) {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = "graph.permute_dims"(%t) {axes = array<i64: 0, 1, 3, 2>} : (!t) -> !w
  %2 = "graph.matmul"(%x, %1) : (!x, !w) -> !y
  return %0, %2 : !y, !y
}
"""


@pytest.fixture(autouse=True)
def _stand_ins() -> Iterator[None]:
    installed = {each.metadata["Name"] for each in metadata.distributions()}
    if installed & set(CUBLAS):
        pytest.skip("cuBLAS itself is installed")
    cublas()
    driver().library.standin_reset()
    yield
    driver().library.standin_reset()


@cache
def built(text: str) -> Any:
    cublas()
    return relax_mlir.compile(text, TARGET, libraries=["cublas"])


@pytest.mark.rotate(3)
@pytest.mark.parametrize("element", ["f32", "f64", "f16"])
def test_rows(element: str) -> None:
    module, dtype = built(ROWS.format(e=element)), np.dtype(f"float{element[1:]}")
    near = {"f32": 1e-5, "f64": 1e-12, "f16": 2e-3}[element]
    meaning = relax_mlir.interpret(ROWS.format(e=element))["main"]
    before = cublas().fake_products()
    for m, k, n in ((1, 1, 1), (3, 17, 5), (16, 1, 33), (0, 4, 4), (2, 3, 0), (2, 0, 3)):
        x, w, t, z = (normal(*dims).astype(dtype) for dims in ((m, k), (k, n), (n, k), (2, m, k)))
        wide = [each.astype(np.float64) for each in (x, w, t, z)]
        wanted = -(wide[0] @ wide[1]), wide[0] @ wide[2].T, wide[3] @ wide[1]
        for got, known, value in zip(module["main"](x, w, t, z), meaning(x, w, t, z), wanted):
            np.testing.assert_allclose(got, value, rtol=near, atol=near * (1 + k))
            np.testing.assert_allclose(known, value, rtol=near, atol=near * (1 + k))
    assert cublas().fake_products() - before == 3 * 3


def test_bf16() -> None:
    text = ROWS.format(e="bf16")
    x, w, t, z = (
        (normal(*dims).view(np.uint32) >> 16).astype(np.uint16)
        for dims in ((3, 9), (9, 4), (4, 9), (2, 3, 9))
    )
    meaning = relax_mlir.interpret(text)["main"](x, w, t, z)
    for got, known in zip(built(text)["main"](x, w, t, z), meaning):
        np.testing.assert_allclose(
            (got.astype(np.uint32) << 16).view(np.float32),
            (known.astype(np.uint32) << 16).view(np.float32),
            rtol=2**-7,
            atol=1e-6,
        )


def test_batches() -> None:
    for b, m, k, n in ((1, 2, 3, 4), (2, 5, 7, 1), (0, 2, 2, 2), (2, 1, 0, 3)):
        x, w, t = normal(b, 3, m, k), normal(b, 3, k, n), normal(b, 3, n, k)
        results = built(BATCHES)["main"](x, w, t)
        wide = [each.astype(np.float64) for each in (x, w, t)]
        wanted = wide[0] @ wide[1], wide[0] @ wide[2].swapaxes(-1, -2)
        for got, value in zip(results, wanted):
            np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "status", "says"),
    [
        ("cublasCreate_v2", 3, f"{TARGET}: a product: it cannot start: cuBLAS says 3"),
        ("cublasSetMathMode", 1, "it cannot start: cuBLAS says 1"),
        ("cublasSetStream_v2", 1, "it cannot use a stream: cuBLAS says 1"),
        ("cublasSetWorkspace_v2", 7, "it cannot use a stream: cuBLAS says 7"),
        ("cublasGemmStridedBatchedEx", 14, "a product: it cannot multiply: cuBLAS says 14"),
    ],
)
def test_failures(function: str, status: int, says: str) -> None:
    gc.collect()
    handles, live = cublas().fake_handles(), driver().library.standin_live()
    module = relax_mlir.compile(BATCHES, TARGET, libraries=["cublas"], use_cache=False)
    arrays = normal(1, 3, 2, 3), normal(1, 3, 3, 4), normal(1, 3, 4, 3)
    cublas().fake_fail(function.encode(), status)
    with pytest.raises(ExecutionError, match=says):
        module["main"](*arrays)
    result, _ = module["main"](*arrays)
    np.testing.assert_allclose(result, arrays[0] @ arrays[1], rtol=1e-5, atol=1e-6)
    assert cublas().fake_handles() == handles + 1
    del module
    gc.collect()
    assert (cublas().fake_handles(), driver().library.standin_live()) == (handles, live)


def test_where_it_does_not_compute() -> None:
    with pytest.raises(UsageError, match="'cublas' computes on devices of 'cuda', but target"):
        relax_mlir.compile(BATCHES, "vulkan", libraries=["cublas"])
    text = f"""
    "lib.function"() {{sym_name = "f", c_symbol = "cublasGemmStridedBatchedEx",
        convention = "cublas_gemm_nn", libraries = ["libcublas.so.12"]}} : () -> ()
    func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {{
      %0 = "graph.call_dps_library"(%x, %x) {{callee = @f,
          sym_args = #graph.shape<[]>, {segments(2, 1)}}}
          : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }}"""
    for target in ("native", "gpu"):
        with pytest.raises(CompileError, match="'@f', which computes on devices of 'cuda', but is"):
            relax_mlir.compile(text, target)
    x = normal(2, 2)
    np.testing.assert_allclose(relax_mlir.compile(text, TARGET)["main"](x), x @ x, rtol=1e-5)


def test_several_devices_and_the_host() -> None:
    """Each function is called where it computes."""
    text = """
    !x = tensor<3x3xf32>
    func.func @main(%x: !x) -> !x {
      %0 = "graph.matmul"(%x, %x) : (!x, !x) -> !x
      %1 = "graph.matmul"(%0, %x) {graph.device = "cuda"} : (!x, !x) -> !x
      %2 = "graph.matmul"(%1, %x) {graph.device = "cpu"} : (!x, !x) -> !x
      return %2 : !x
    }"""
    module = relax_mlir.compile(text, "gpu@cuda:sm_90a", libraries=["cublas", "openblas"])
    assert [each["function"] for each in module.metadata["libraries"]] == [
        "openblas.sgemm_nn",
        "cublas.gemm_nn_f32",
    ]
    x, before = normal(3, 3), cublas().fake_products()
    wanted = np.linalg.matrix_power(x.astype(np.float64), 4)
    np.testing.assert_allclose(module["main"](x), wanted, rtol=1e-4)
    assert cublas().fake_products() == before + 1
