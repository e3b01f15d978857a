"""Products by cuBLAS within graphs of NVIDIA's driver, on stand-ins for both."""

from collections.abc import Iterator
from importlib import metadata
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cublas import cublas
from cuda_driver import Driver, nothing_left
from perceptron import normal

import relax_mlir
from relax_mlir.errors import ExecutionError
from relax_mlir.patterns.cublas import CUBLAS

TEXT = """
!x = tensor<?x?xf32, #graph.shape<["m", "k"]>>
!w = tensor<?x?xf32, #graph.shape<["k", "n"]>>
!y = tensor<?x?xf32, #graph.shape<["m", "n"]>>
!r = tensor<?x?xf32, #graph.shape<["m", "m"]>>
func.func @main(%x: !x, %w: !w) -> !r {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = "graph.nn_relu"(%0) : (!y) -> !y
  %t = "graph.permute_dims"(%1) {axes = array<i64: 1, 0>}
      : (!y) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  %2 = "graph.matmul"(%0, %t) : (!y, tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> !r
  %3 = "graph.negative"(%2) : (!r) -> !r
  return %3 : !r
}
"""
MEMORY, ILLEGAL = 2, 700


@pytest.fixture
def cuda() -> Iterator[Driver]:
    installed = {each.metadata["Name"] for each in metadata.distributions()}
    if installed & set(CUBLAS):
        pytest.skip("cuBLAS itself is installed")
    cublas()
    with nothing_left() as own:
        yield own


def compiled() -> Any:
    return relax_mlir.compile(TEXT, "cuda:sm_90a", libraries=["cublas"])


def expected(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    y = x.astype(np.float64) @ w
    return -(y @ np.maximum(y, 0).T)


def check(module: Any, *dims: int) -> None:
    m, k, n = dims
    x, w = normal(m, k), normal(k, n)
    np.testing.assert_allclose(module["main"](x, w), expected(x, w), rtol=1e-4, atol=1e-4)


def counts(cuda: Driver) -> tuple[int, int, int]:
    """Launches of graphs, calls of cuBLAS, and changes of nodes until now."""
    own = cuda.library
    return own.standin_graph_launches(), cublas().fake_products(), own.standin_changes()


def test_the_library_is_called_twice_for_any_count_of_calls(cuda: Driver) -> None:
    """By the first call, and to capture what it does: then all of a call is one graph."""
    module = compiled()
    x, w = module.device.array(normal(5, 7)), module.device.array(normal(7, 3))
    result = module.device.array(normal(5, 5))
    call, seen = module["main"].bind(x, w, results=[result]), [counts(cuda)]
    for _ in range(4):
        call.run()
        np.testing.assert_allclose(result.numpy(), expected(x.numpy(), w.numpy()), rtol=1e-4)
        seen.append(counts(cuda))
    differences = [tuple(np.subtract(after, before)) for before, after in pairwise(seen)]
    assert differences == [(0, 2, 0), (1, 2, 0), (1, 0, 0), (1, 0, 0)]


def test_matrices_elsewhere_change_nodes(cuda: Driver) -> None:
    """Graphs are of sizes; products of other ones have others, and come back to theirs."""
    module, kept = compiled(), []
    for _ in range(3):
        arrays = [module.device.array(normal(*dims)) for dims in ((4, 9), (9, 6))]
        kept += [*arrays, module["main"](*arrays)]
        wanted = expected(*(each.numpy() for each in arrays))
        np.testing.assert_allclose(kept[-1].numpy(), wanted, rtol=1e-4, atol=1e-4)
    before = counts(cuda)
    arrays = [module.device.array(normal(*dims)) for dims in ((4, 9), (9, 6))]
    kept += [*arrays, module["main"](*arrays)]
    graphs, products, changes = np.subtract(counts(cuda), before)
    assert graphs == 1
    assert 1 <= products <= 2
    assert changes >= products
    for dims in ((1, 9, 6), (4, 9, 6), (1, 9, 6), (4, 0, 6), (4, 0, 6), (0, 3, 2), (3, 2, 0)):
        check(module, *dims)
    assert counts(cuda)[0] - before[0] >= 4


@pytest.mark.parametrize(
    "function",
    [
        *("cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuStreamCreate"),
        *("cuGraphAddChildGraphNode", "cuGraphExecChildGraphNodeSetParams"),
    ],
)
def test_what_the_driver_refuses_is_queued_one_by_one(cuda: Driver, function: str) -> None:
    module = compiled()
    check(module, 3, 4, 5)
    cuda.fail(function, 1, MEMORY)
    for _ in range(3):
        check(module, 3, 4, 5)


@pytest.mark.parametrize(
    "function", ["cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasGemmStridedBatchedEx"]
)
def test_what_the_library_refuses_to_have_captured(cuda: Driver, function: str) -> None:
    module = compiled()
    check(module, 3, 4, 5)
    cublas().fake_fail(function.encode(), 14)
    for _ in range(3):
        check(module, 3, 4, 5)


def test_there_is_no_memory_for_its_workspace(cuda: Driver) -> None:
    module = compiled()
    x, w = (module.device.array(normal(2, 2)) for _ in range(2))
    result = module.device.array(normal(2, 2))
    call = module["main"].bind(x, w, results=[result])
    for after in (1, 2):
        cuda.fail("cuMemAlloc_v2", after, MEMORY)
        with pytest.raises((ExecutionError, MemoryError), match=r"workspace of 32 MiB|out of mem"):
            call.run()
    call.run()
    np.testing.assert_allclose(result.numpy(), expected(x.numpy(), w.numpy()), rtol=1e-4)


def test_without_graphs(cuda: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_CUDA_GRAPHS", "0")
    before, module = counts(cuda), compiled()
    for _ in range(3):
        check(module, 3, 4, 5)
    assert np.subtract(counts(cuda), before).tolist() == [0, 6, 0]
