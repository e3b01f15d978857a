"""A target whose parts were replaced is what is scheduled for, compiled for, and told of."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir import Target
from relax_mlir.bindings import ir
from relax_mlir.codegen import building
from relax_mlir.compiler import compile_to_file
from relax_mlir.dialects import make_context
from relax_mlir.errors import UsageError
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.target import lacking

TEXT = """
!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
func.func @main(%x: !x, %w: tensor<64x64xf32>) -> !x attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<64x64xf32>) -> !x
  %1 = "graph.nn_softmax"(%0) {axis = 1 : i64} : (!x) -> !x
  return %1 : !x
}
"""
WIDE = Target.parse("x86-64-v3")
NARROW = replace(WIDE, host=replace(WIDE.host, vector_bytes=16))


def widths(text: str) -> set[int]:
    return {int(width) for width in re.findall(r"vector<(\d+)xf32>", text)}


@pytest.mark.parametrize("level", [0, 2, 3])
def test_kernels_have_the_vectors_of_the_target(level: int) -> None:
    found = []
    for target in (WIDE, NARROW):
        passes = pipeline(str(target), level)
        assert str(Pipeline.parse(passes)) == passes
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(TEXT)
            Pipeline.parse(passes).run(module)
            found.append(max(widths(str(module))))
            with building(target) as build:
                text = build.llvm_text(module)
        assert f'"prefer-vector-width"="{8 * target.host.vector_bytes}"' in text
    assert found == [8, 4]


def test_weights_are_packed_for_the_vectors_of_the_target() -> None:
    columns = []
    for target in (WIDE, NARROW):
        found = relax_mlir.compile(TEXT, target, opt_level=3).metadata["functions"]["main"]
        columns.append(found["arguments"][1]["dims"][-1])
    assert columns == [16, 8]


def test_a_compiled_module_tells_its_target_and_computes() -> None:
    assert compile_to_file(TEXT, WIDE) != compile_to_file(TEXT, NARROW)
    executable = relax_mlir.compile(TEXT, NARROW)
    assert executable.metadata["target"] == "x86-64-v3+vector-bytes=16"
    x, w = (np.random.default_rng(n).standard_normal((n, 64)).astype(np.float32) for n in (5, 64))
    exact = np.exp((x.astype(np.float64) @ w) - (x @ w).max(1, keepdims=True))
    expected = exact / exact.sum(1, keepdims=True)
    np.testing.assert_allclose(executable["main"](x, w), expected, rtol=1e-4, atol=1e-7)


def test_it_needs_what_is_left_of_the_features() -> None:
    less = replace(WIDE, host=Target.parse("x86-64-v3+-f16c").host)
    needs = relax_mlir.compile(TEXT, less).metadata["needs"]
    assert set(relax_mlir.compile(TEXT, WIDE).metadata["needs"]) - set(needs) == {"f16c"}


LESS = [
    *("native+-fma", "native+-avx2", "native+-avx512f", "native+-avx512bw", "native+-sse4.1"),
    *("x86-64-v4+-avx2", "x86-64-v4+-fma", "x86-64-v3+-avx"),
]


@pytest.mark.skipif(
    Target.parse("native").host.arch != "x86_64" or lacking(Target.parse("x86-64-v3").host.needs),
    reason="features of x86-64",
)
@pytest.mark.parametrize("name", LESS)
def test_code_without_a_feature_computes(name: str) -> None:
    """Some were taken away alone, which ended LLVM: "Do not know how to split the result"."""
    text = """
      func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
        %0 = "graph.logaddexp"(%x, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
        return %0 : tensor<64xf32>
      }
    """
    executable = relax_mlir.compile(text, name)
    x, y = np.random.default_rng(1).standard_normal((2, 64)).astype(np.float32) * 9
    if not lacking(executable.metadata["needs"]):
        found = executable["main"](x, y)
        exact = np.logaddexp(x.astype(np.float64), y.astype(np.float64))
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("level", [0, 3])
def test_kernels_that_a_cpu_does_not_launch_are_refused(level: int) -> None:
    with pytest.raises(UsageError, match="kernels of 'webgpu' cannot be launched by code for"):
        relax_mlir.compile(TEXT, "native@webgpu", opt_level=level)


def test_the_tool_takes_a_changed_target(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from relax_mlir.tools import relax_compile

    source, made = tmp_path / "m.mlir", tmp_path / "m.so"
    source.write_text(TEXT)
    arguments = [str(source), "-o", str(made)]
    assert relax_compile.main([*arguments, f"--target={NARROW}"]) == 0
    assert relax_mlir.load(made).metadata["target"] == str(NARROW)
    assert relax_compile.main([*arguments, "--target=x86-64-v3+vector-bytes=64"]) == 2
    assert "they may have 4, 8, 16, 32" in capsys.readouterr().err


def test_the_tool_compiles_for_devices_that_are_not_there(tmp_path: Path) -> None:
    from relax_mlir.tools import relax_compile

    source, made = tmp_path / "m.mlir", tmp_path / "m.so"
    source.write_text(TEXT)
    assert relax_compile.main([str(source), "-o", str(made), "--target=cuda:sm_90"]) == 0
    assert b".target sm_90\n" in made.read_bytes()


ROWS = """
!x = tensor<?x?xf32, #graph.shape<["n", "m"]>>
!n = tensor<?xf32, #graph.shape<["n"]>>
!i = tensor<?xi64, #graph.shape<["n"]>>
func.func @main(%x: !x) -> (!x, !i, !n, !n) {
  %0 = "graph.nn_softmax"(%x) {axis = 1 : i64} : (!x) -> !x
  %1 = "graph.argmax"(%x) {axis = 1 : i64, keepdims = false} : (!x) -> !i
  %2 = "graph.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (!x) -> !n
  %3 = "graph.max"(%x) {axes = array<i64: 1>, keepdims = false} : (!x) -> !n
  return %0, %1, %2, %3 : !x, !i, !n, !n
}
"""


@pytest.mark.parametrize("bytes_", [4, 8])
def test_rows_without_vectors(bytes_: int) -> None:
    """Kernels are scalar where a vector holds one element, and right where it holds two."""
    target = f"native+vector-bytes={bytes_}"
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(ROWS)
        Pipeline.parse(f"relax-legalize-ops,relax-schedule{{target={target}}}").run(module)
        assert ("vector<" in str(module)) == (bytes_ > 4)
    run = relax_mlir.compile(ROWS, target)["main"]
    for n, m in ((1, 1), (3, 2), (2, 129), (5, 4097)):
        x = np.random.default_rng(m).standard_normal((n, m)).astype(np.float32)
        softmax, best, total, greatest = run(x)
        exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        np.testing.assert_allclose(softmax, exact / exact.sum(1, keepdims=True), rtol=2e-6)
        np.testing.assert_array_equal(best, x.argmax(1))
        np.testing.assert_array_equal(greatest, x.max(1))
        np.testing.assert_allclose(total, x.astype(np.float64).sum(1), rtol=1e-5, atol=1e-4)
