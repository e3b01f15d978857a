"""Products inside of branches and loops: fused, packed, quantised and dispatched as outside."""

from typing import Any

import numpy as np
import pytest

import relax_mlir

X = 'tensor<?x64xf32, #graph.shape<["n", 64]>>'
W = "tensor<64x64xf32>"
MODULE = f"""
func.func @main(%x: {X}, %k: index, %w: {W}) -> {X} attributes {{graph.num_inputs = 2 : i64}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %k step %one iter_args(%a = %x) -> {X} {{
    %c = arith.cmpi ne, %i, %one : index
    %s = scf.if %c -> {X} {{
      %0 = "graph.permute_dims"(%w) {{axes = array<i64: 1, 0>}} : ({W}) -> {W}
      %1 = "graph.matmul"(%a, %0) : ({X}, {W}) -> {X}
      %2 = "graph.nn_relu"(%1) : ({X}) -> {X}
      scf.yield %2 : {X}
    }} else {{
      scf.yield %a : {X}
    }}
    scf.yield %s : {X}
  }}
  return %r : {X}
}}"""


@pytest.mark.parametrize(
    ("options", "calls", "accuracy"),
    [
        ({}, {"fused_permute_dims_matmul_relu": 1}, 1e-6),
        ({"opt_level": 3}, {"fused_permute_dims_matmul_relu_packed": 1}, 1e-6),
        ({"quantize": "q8_32"}, {"fused_dequantize_permute_dims_matmul_relu": 1}, 5e-3),
        ({"libraries": ["openblas"]}, {"openblas.sgemm_nt": 1, "relu": 1}, 1e-6),
    ],
)
def test_a_product_in_a_branch_of_a_loop(
    options: dict[str, Any], calls: dict[str, int], accuracy: float
) -> None:
    exe = relax_mlir.compile(MODULE, **options)
    assert exe.metadata["functions"]["main"]["calls"] == calls
    random = np.random.default_rng(0)
    w = random.standard_normal((64, 64), np.float32) / 8
    weights: Any = w
    for maker in {"main_quantize", "main_params"} & set(exe.functions):
        weights = exe[maker](weights)
    weights = weights if isinstance(weights, tuple) else (weights,)
    for n in (0, 1, 5):
        x = random.standard_normal((n, 64), np.float32)
        want = np.maximum(np.maximum(x @ w.T, 0) @ w.T, 0)
        np.testing.assert_allclose(exe["main"](x, 3, *weights), want, atol=accuracy * 10)
