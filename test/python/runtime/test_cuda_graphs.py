"""Launches as graphs of NVIDIA's driver, on a stand-in for it: the same results, fewer calls."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cuda_driver import Driver, nothing_left
from perceptron import MLP, check_perceptron, normal, perceptron

import relax_mlir
from relax_mlir.errors import ExecutionError

INVALID, MEMORY, ILLEGAL = 1, 2, 700
LOOP = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x, %times: index) -> !x {
  %from = arith.constant 0 : index
  %step = arith.constant 1 : index
  %two = arith.constant dense<2.0> : tensor<f32>
  %y = scf.for %i = %from to %times step %step iter_args(%y = %x) -> (!x) {
    %0 = "graph.add"(%y, %two) : (!x, tensor<f32>) -> !x
    scf.yield %0 : !x
  }
  return %y : !x
}
"""
DEPENDENT = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x) -> tensor<1x?xi64> {
  %0 = "graph.nn_relu"(%x) : (!x) -> !x
  %1 = "graph.negative"(%0) : (!x) -> !x
  %2 = "graph.nonzero"(%1) : (!x) -> tensor<1x?xi64>
  %3 = "graph.negative"(%2) : (tensor<1x?xi64>) -> tensor<1x?xi64>
  return %3 : tensor<1x?xi64>
}
"""


@pytest.fixture
def cuda() -> Iterator[Driver]:
    with nothing_left() as own:
        yield own


def compiled(text: str = MLP, level: int = 0) -> Any:
    return relax_mlir.compile(text, "cuda:sm_90a", opt_level=level)


def launches(cuda: Driver) -> tuple[int, int, int]:
    """Of graphs, of kernels, and changes of nodes until now."""
    own = cuda.library
    return own.standin_graph_launches(), own.standin_launches(), own.standin_changes()


def test_a_graph_is_launched_from_the_second_call_on(cuda: Driver) -> None:
    """Calls of the same arrays change nothing of it."""
    module = compiled()
    arrays = [module.device.array(normal(*shape)) for shape in ((3, 40), (40, 72), (72, 10))]
    result = module.device.array(normal(3, 10))
    call = module["main"].bind(*arrays, results=[result])
    seen = [launches(cuda)]
    for _ in range(4):
        call.run()
        np.testing.assert_allclose(
            result.numpy(), perceptron(*(x.numpy() for x in arrays)), rtol=1e-3
        )
        seen.append(launches(cuda))
    graphs = [after[0] - before[0] for before, after in pairwise(seen)]
    kernels = [after[1] - before[1] for before, after in pairwise(seen)]
    assert graphs == [0, 1, 1, 1]
    assert len(set(kernels)) == 1
    assert kernels[0] > 2
    assert seen[-1][2] == seen[0][2]


def test_sizes_and_addresses_change_nodes(cuda: Driver) -> None:
    module, before = compiled(), launches(cuda)
    for _ in range(2):
        check_perceptron(module)
    after = launches(cuda)
    assert after[0] - before[0] >= 4
    assert after[2] > before[2]


def test_without_graphs(cuda: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_CUDA_GRAPHS", "0")
    before = launches(cuda)
    module = compiled()
    check_perceptron(module)
    assert launches(cuda)[0] == before[0]
    assert launches(cuda)[1] > before[1]


@pytest.mark.rotate(4)
@pytest.mark.parametrize(
    "function",
    [
        "cuGraphCreate",
        "cuGraphAddKernelNode",
        "cuGraphInstantiate_v2",
        "cuGraphExecKernelNodeSetParams",
        "cuGraphLaunch",
    ],
)
@pytest.mark.parametrize("after", [1, 2])
def test_what_the_driver_refuses_is_launched_kernel_by_kernel(
    cuda: Driver, function: str, after: int
) -> None:
    module = compiled()
    cuda.fail(function, after, MEMORY)
    for _ in range(2):
        check_perceptron(module)


def test_a_kernel_of_a_graph_that_fails(cuda: Driver) -> None:
    module = compiled()
    arrays = normal(3, 40), normal(40, 72), normal(72, 10)
    for _ in range(3):
        module["main"](*arrays)
    cuda.interpret(False)
    with pytest.raises(ExecutionError, match="illegal memory access was encountered"):
        module["main"](*arrays)
    cuda.interpret(True)


def test_a_launch_that_fails_is_named(cuda: Driver) -> None:
    """Of several that are made at once."""
    module = compiled()
    arrays = normal(3, 40), normal(40, 72), normal(72, 10)
    cuda.fail("cuLaunchKernel", 3, INVALID)
    with pytest.raises(ExecutionError, match=r"matmul.*: cannot launch"):
        module["main"](*arrays)
    np.testing.assert_allclose(module["main"](*arrays), perceptron(*arrays), rtol=1e-3)


def test_loops(cuda: Driver) -> None:
    """Of any count of launches: one graph for each count, and at most 1,024 launches in one."""
    module, before = compiled(LOOP, level=2), launches(cuda)
    x = normal(5)
    for times in (0, 1, 2, 2, 7, 7, 1030):
        y = module["main"](x, times)
        want = x.copy()
        for _ in range(times):
            want += np.float32(2)
        np.testing.assert_array_equal(y, want)
    assert launches(cuda)[0] - before[0] == 2


def test_the_host_reads_what_launches_before_have_stored(cuda: Driver) -> None:
    module = compiled(DEPENDENT)
    for n in (0, 1, 17, 64, 64):
        x = normal(n)
        want = -np.array(np.maximum(x, 0).nonzero())
        np.testing.assert_array_equal(module["main"](x), want)
