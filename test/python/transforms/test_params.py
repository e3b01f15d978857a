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
    assert set(executable.functions) == {"main", "main_params", "main_params_0"}
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


TWO_WAYS = """
!x = tensor<?x40xf32, #graph.shape<["n", 40]>>
!w = tensor<40x40xf32>
func.func @main(%x: !x, %a: !w, %b: tensor<40xf32>, %c: !w, %d: !w) -> !x
    attributes {graph.num_inputs = 1 : i64} {
  %t = "graph.permute_dims"(%a) {axes = array<i64: 1, 0>} : (!w) -> !w
  %0 = "graph.matmul"(%x, %t) : (!x, !w) -> !x
  %1 = "graph.add"(%0, %b) : (!x, tensor<40xf32>) -> !x
  %2 = "graph.matmul"(%1, %c) : (!x, !w) -> !x
  %3 = "graph.matmul"(%2, %d) : (!x, !w) -> !x
  return %3 : !x
}
"""


def test_parameters_can_be_made_one_by_one():
    executable = compile(TWO_WAYS, opt_level=3)
    random = np.random.default_rng(0)
    shapes = [(40, 40), 40, (40, 40), (40, 40)]
    given = [random.standard_normal(shape, np.float32) for shape in shapes]
    together = executable["main_params"](*given)
    arguments = executable.metadata["functions"]["main"]["arguments"]
    made = [argument["made"] for argument in arguments[1:]]
    assert sorted(place for way in made for place in way["from"]) == [0, 1, 2, 3]
    assert len({way["by"] for way in made}) == 3  # transposed and not, and as it is
    for way, expected in zip(made, together, strict=True):
        sources = [given[place] for place in way["from"]]
        result = executable[way["by"]](*sources) if way["by"] else sources[0]
        np.testing.assert_array_equal(result, expected)


TIED = """
!w = tensor<{rows}x{k}x{element}>
!f = tensor<?x{k}xf32, #graph.shape<["n", {k}]>>
!y = tensor<?x{rows}xf32, #graph.shape<["n", {rows}]>>
!t = tensor<{k}x{rows}xf32>
!i = tensor<?xi32, #graph.shape<["n"]>>
!r = tensor<?x{k}x{element}, #graph.shape<["n", {k}]>>
func.func @main(%ids: !i, %w: !w) -> (!f, !y)
    attributes {{graph.num_inputs = 1 : i64}} {{
  %r = "graph.take"(%w, %ids) {{axis = 0 : i64}} : (!w, !i) -> !r
  %x = "graph.astype"(%r) {{dtype = f32}} : (!r) -> !f
  %c = "graph.astype"(%w) {{dtype = f32}} : (!w) -> tensor<{rows}x{k}xf32>
  %t = "graph.permute_dims"(%c) {{axes = array<i64: 1, 0>}} : (tensor<{rows}x{k}xf32>) -> !t
  %y = "graph.matmul"(%x, %t) : (!f, !t) -> !y
  return %x, %y : !f, !y
}}
"""


@pytest.mark.parametrize(("rows", "k"), [(1, 1), (31, 7), (65, 64), (97, 18)])
@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
def test_a_table_that_is_looked_up_and_multiplied_is_kept_once(rows, k, element, target):
    executable = compile(TIED.format(rows=rows, k=k, element=element), target, opt_level=3)
    assert len(executable["main_params"].results) == 1
    random = np.random.default_rng(rows)
    weight = random.integers(-99, 99, (rows, k)).astype(np.float32)  # bfloat16 holds them
    bits = (weight.view(np.uint32) >> 16).astype(np.uint16)
    packed = executable["main_params"](weight if element == "f32" else bits)
    for n in (0, 1, 5, 33):
        ids = random.integers(0, rows, n, dtype=np.int32)
        x, y = executable["main"](ids, packed)
        np.testing.assert_array_equal(x, weight[ids])
        np.testing.assert_allclose(y, weight[ids].astype(np.float64) @ weight.T, rtol=1e-5)


@pytest.mark.parametrize("width", [7, 64])
def test_rows_of_several_dims_times_packed_weights(width: int) -> None:
    exe = compile(
        f"""
        !x = tensor<?x?x{width}xf32, #graph.shape<["b", "n", {width}]>>
        !y = tensor<?x?x45xf32, #graph.shape<["b", "n", 45]>>
        func.func @main(%x: !x {{graph.name = "x"}},
            %w: tensor<{width}x45xf32> {{graph.name = "w"}},
            %c: tensor<45xf32> {{graph.name = "c"}}) -> !y
            attributes {{graph.num_inputs = 1 : i64}} {{
          %0 = "graph.matmul"(%x, %w) : (!x, tensor<{width}x45xf32>) -> !y
          %1 = "graph.add"(%0, %c) : (!y, tensor<45xf32>) -> !y
          return %1 : !y
        }}""",
        opt_level=3,
    )
    generator = np.random.default_rng(width)
    w, c = (generator.standard_normal(dims).astype(np.float32) for dims in ((width, 45), (45,)))
    parameters = exe["main_params"](w, c)
    for b, n in ((1, 1), (3, 5), (0, 4), (2, 17), (5, 31)):
        x = generator.standard_normal((b, n, width)).astype(np.float32)
        expected = x.astype(np.float64) @ w.astype(np.float64) + c
        np.testing.assert_allclose(exe["main"](x, *parameters), expected, atol=2e-5, rtol=1e-5)
