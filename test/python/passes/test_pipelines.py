"""The default pipelines: what can be left out and put in, and that results stay the same."""

import numpy as np
import pytest

from relax_mlir.compiler import compile, compile_to_file
from relax_mlir.errors import UsageError
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import OPTIONAL, pipeline

MODULE = """
!x = tensor<?x48xf32, #graph.shape<["n", 48]>>
func.func @main(%x: !x, %w: tensor<48x48xf32>) -> !x attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.exp"(%x) : (!x) -> !x
  %1 = "graph.tanh"(%0) : (!x) -> !x
  %2 = "graph.matmul"(%1, %w) : (!x, tensor<48x48xf32>) -> !x
  %3 = "graph.add"(%2, %x) : (!x, !x) -> !x
  return %3 : !x
}
"""


def calls(exe) -> dict:
    return exe.metadata["functions"]["main"]["calls"]


def outputs(exe, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    weights = exe["main_params"](w) if "main_params" in exe.functions else w
    return exe["main"](x, weights)


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_pass_left_out_changes_no_result(name):
    x = np.random.default_rng(0).standard_normal((5, 48), np.float32)
    w = np.random.default_rng(1).standard_normal((48, 48), np.float32)
    want = np.tanh(np.exp(x.astype(np.float64))) @ w + x
    exe = compile(MODULE, opt_level=3, without=[name])
    np.testing.assert_allclose(outputs(exe, x, w), want, atol=2e-5)


def test_without_fusion_each_operator_is_a_call():
    assert sum(calls(compile(MODULE)).values()) < 4
    assert sum(calls(compile(MODULE, without=["fuse-ops"])).values()) == 4


def test_without_planning_tensors_do_not_share_memory():
    without = compile(MODULE, opt_level=1, without=["plan-memory"])
    sizes = [
        exe.metadata["functions"]["main"]["arena_bytes"]
        for exe in (compile(MODULE, opt_level=1), without)
    ]
    assert sizes[0] != sizes[1]


def test_a_library_computes_what_it_can():
    exe = compile(MODULE, libraries=["openblas"])
    assert calls(exe)["openblas.sgemm_nn"] == 1
    x, w = np.ones((3, 48), np.float32), np.eye(48, dtype=np.float32)
    np.testing.assert_allclose(exe["main"](x, w), np.tanh(np.exp(x)) + x, rtol=1e-6)
    site = next(
        site
        for site in exe.metadata["functions"]["main"]["sites"]
        if site["kernel"].startswith("openblas")
    )
    assert site["flops"] == f"{2 * 48 * 48}*n"
    assert site["bytes"] == f"{2 * 4 * 48}*n + {4 * 48 * 48}"


def test_pipelines_are_what_passes_read():
    for level in range(4):
        text = pipeline("x86-64-v3", level, without=["fuse-ops", "plan-memory"])
        assert str(Pipeline.parse(text)) == text


def test_other_passes_are_other_files():
    paths = {
        compile_to_file(MODULE, without=without) for without in ([], ["fuse-ops"], ["plan-memory"])
    }
    assert len(paths) == 3


def test_a_pass_that_is_needed_cannot_be_left_out():
    with pytest.raises(UsageError, match="cannot compile without 'schedule'; optional passes are"):
        pipeline(without=["schedule"])
