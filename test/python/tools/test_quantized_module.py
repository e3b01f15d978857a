"""A module with quantised weights: compiled to a file, filled and run by tools and from Python."""

from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import UsageError
from relax_mlir.executable import load
from relax_mlir.tools import relax_compile, relax_run

MODULE = """
!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!h = tensor<?x128xf32, #graph.shape<["n", 128]>>
!y = tensor<?x10xf32, #graph.shape<["n", 10]>>
func.func private @layer(%x: !x, %w: tensor<64x128xf32>) -> !h {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<64x128xf32>) -> !h
  %1 = "graph.nn_relu"(%0) : (!h) -> !h
  return %1 : !h
}
func.func @main(%x: !x {graph.name = "x"}, %w1: tensor<64x128xf32> {graph.name = "w1"},
    %w2: tensor<128x10xf32> {graph.name = "w2"}) -> !y attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.call"(%x, %w1)
      {callee = @layer, operandSegmentSizes = #two, resultSegmentSizes = #one}
      : (!x, tensor<64x128xf32>) -> !h
  %1 = "graph.matmul"(%0, %w2) : (!h, tensor<128x10xf32>) -> !y
  return %1 : !y
}
"""
TWO = "array<i32: " + ", ".join(["1"] * 2 + ["0"] * 30) + ">"
ONE = "array<i32: " + ", ".join(["1"] * 1 + ["0"] * 7) + ">"
TEXT = MODULE.replace("#two", TWO).replace("#one", ONE)


def weights() -> tuple[np.ndarray, np.ndarray]:
    """Values that four bits hold: multiples of a power of two, with the ends in every block."""
    random = np.random.default_rng(0)
    found = []
    for shape in ((64, 128), (128, 10)):
        values = random.integers(-8, 8, shape)
        values[::32] = -8
        found.append((values / 8).astype(np.float32))
    return found[0], found[1]


def expected(x: np.ndarray) -> np.ndarray:
    """The result in float64."""
    w1, w2 = weights()
    return np.maximum(x.astype(np.float64) @ w1, 0) @ w2


@pytest.fixture(scope="module", params=[2, 3])
def module(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shared object of a module whose text is a file."""
    folder = tmp_path_factory.mktemp("quantized")
    (folder / "mlp.mlir").write_text(TEXT)
    out = str(folder / "mlp.so")
    arguments = [str(folder / "mlp.mlir"), "--quantize", "q4_32", f"-O{request.param}", "-o", out]
    assert relax_compile.main(arguments) == 0
    return folder / "mlp.so"


def test_tools_alone(module: Path, tmp_path: Path) -> None:
    names = ["w1.data", "w1.scale", "w2.data", "w2.scale"]
    made = [str(tmp_path / f"{name}.npy") for name in names]
    inputs = []
    for number, weight in enumerate(weights()):
        np.save(tmp_path / f"{number}.npy", weight)
        inputs += ["--input", str(tmp_path / f"{number}.npy")]
    outputs = [part for file in made for part in ("--output", file)]
    assert relax_run.main([str(module), "--function", "main_quantize", *inputs, *outputs]) == 0
    parameters = [part for file in made for part in ("--input", file)]
    for rows in (1, 6, 19):
        x = np.random.default_rng(rows).standard_normal((rows, 64), np.float32)
        np.save(tmp_path / "x.npy", x)
        result = tmp_path / "y.npy"
        call = [str(module), "--input", str(tmp_path / "x.npy"), *parameters]
        assert relax_run.main([*call, "--output", str(result)]) == 0
        np.testing.assert_allclose(np.load(result), expected(x), rtol=1e-4, atol=1e-4)


def test_from_python(module: Path) -> None:
    executable = load(module)
    parameters = executable["main_quantize"](*weights())
    assert [a.name for a in executable["main"].arguments] == [
        "x", "w1.data", "w1.scale", "w2.data", "w2.scale"
    ]  # fmt: skip
    for rows in (0, 1, 2, 31):
        x = np.random.default_rng(rows).standard_normal((rows, 64), np.float32)
        np.testing.assert_allclose(
            executable["main"](x, *parameters), expected(x), rtol=1e-4, atol=1e-4
        )


def test_other_weights_are_packed() -> None:
    """Of what `@main_quantize` returns, `@main_params` lays out the floats."""
    executable = relax_mlir.compile(TEXT, opt_level=3, quantize="q4_32 only=w2")
    assert {"main", "main_quantize", "main_params"} < set(executable.functions)
    quantized = executable["main_quantize"](*weights())
    parameters = executable["main_params"](*quantized)
    assert [array.dtype.name for array in quantized] == ["float32", "int8", "float16"]
    for rows in (1, 5, 40):
        x = np.random.default_rng(rows).standard_normal((rows, 64), np.float32)
        np.testing.assert_allclose(
            executable["main"](x, *parameters), expected(x), rtol=1e-4, atol=1e-4
        )


def test_compile_takes_the_scheme() -> None:
    executable = relax_mlir.compile(TEXT, quantize="q8_32 only=w2")
    names = [argument.name for argument in executable["main"].arguments]
    assert names == ["x", "w1", "w2.data", "w2.scale"]
    for scheme in ("q5_32", ""):
        with pytest.raises(UsageError, match=f"unknown scheme '{scheme}'; accepted are q8_32"):
            relax_mlir.compile(TEXT, quantize=scheme)
