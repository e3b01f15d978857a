"""Remarks on how something is compiled are made for those who ask for them."""

from pathlib import Path

import pytest

from relax_mlir.tools import relax_compile

MODULE = """
func.func private @transposed(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %out: tensor<4x4xf32>)
    -> tensor<4x4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>)
      outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = linalg.transpose ins(%c : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>)
      permutation = [1, 0]
  %0 = linalg.add ins(%c, %t : tensor<4x4xf32>, tensor<4x4xf32>)
      outs(%out : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = "graph.call_tir"(%x, %w) {
      callee = @transposed, operandSegmentSizes = array<i32: SEGMENTS>,
      resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, sym_args = #graph.shape<[]>}
      : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
""".replace("SEGMENTS", ", ".join("11" + "0" * 30))


@pytest.mark.parametrize("flags", [[], ["--remarks"]])
def test_a_refusal_is_told(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "module.mlir"
    source.write_text(MODULE)
    for _ in range(2):  # the second time everything is in the cache
        assert relax_compile.main([str(source), "-o", str(tmp_path / "m.so"), *flags]) == 0
        told = capsys.readouterr().err
        assert ("kernel 'transposed': matmul: sums are read at two indices" in told) == bool(flags)
