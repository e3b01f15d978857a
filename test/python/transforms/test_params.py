"""Parameters laid out ahead of the calls: `@main_params`, then `@main`, against float64."""

import numpy as np
import pytest

from relax_mlir.compiler import compile

MODULE = """
!x = tensor<?x{k}xf32, #graph.shape<["n", {k}]>>
!y = tensor<?x{m}xf32, #graph.shape<["n", {m}]>>
!w = tensor<{m}x{k}xf32>
!t = tensor<{k}x{m}xf32>
!b = tensor<{m}xf32>
func.func @main(
    %x: !x {{graph.name = "x"}}, %w: !w {{graph.name = "w"}}, %b: !b {{graph.name = "b"}}
) -> !y attributes {{graph.num_inputs = 1 : i64}} {{
  %t = "graph.permute_dims"(%w) {{axes = array<i64: 1, 0>}} : (!w) -> !t
  %0 = "graph.matmul"(%x, %t) : (!x, !t) -> !y
  %1 = "graph.add"(%0, %b) : (!y, !b) -> !y
  return %1 : !y
}}
"""


@pytest.mark.parametrize(("m", "k"), [(1, 1), (31, 7), (32, 64), (33, 100), (97, 65)])
@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
def test_packed_parameters(m, k, target):
    executable = compile(MODULE.format(m=m, k=k), target, opt_level=3)
    assert set(executable.functions) == {"main", "main_params"}
    random = np.random.default_rng(0)
    weight = random.standard_normal((m, k), dtype=np.float32)
    bias = random.standard_normal(m, dtype=np.float32)
    parameters = executable["main_params"](weight, bias)
    names = [argument.name for argument in executable["main"].arguments]
    assert names[0] == "x"
    assert "b" in names
    assert any(name.startswith("w.") for name in names)
    for n in (0, 1, 2, 7, 8, 9, 13, 14, 15, 33):
        x = random.standard_normal((n, k), dtype=np.float32)
        expected = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
        result = executable["main"](x, *parameters)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5 * k)


def test_lower_levels_keep_the_signature():
    executable = compile(MODULE.format(m=3, k=5), opt_level=2)
    assert executable.functions == ("main",)
    assert [argument.name for argument in executable["main"].arguments] == ["x", "w", "b"]
