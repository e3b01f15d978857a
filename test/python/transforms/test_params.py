"""Parameters laid out ahead of the calls: `@main_params`, then `@main`, against float64."""

from collections.abc import Callable

import numpy as np
import pytest

from relax_mlir.compiler import compile
from relax_mlir.errors import ExecutionError
from relax_mlir.executable import Executable

pytestmark = pytest.mark.usefixtures("llvm_turns")

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


@pytest.mark.rotate(2)
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


@pytest.mark.rotate(4)
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


def compare_levels(text: str, reference: Callable, inputs: list, parameters: list) -> Executable:
    """Compares -O0 and -O3 with a reference in float64; returns the executable of -O3."""
    expected = reference(*(array.astype(np.float64) for array in (*inputs, *parameters)))
    for level in (0, 3):
        executable = compile(text, opt_level=level)
        made = parameters
        if "main_params" in executable.functions:
            made = executable["main_params"](*parameters)
            made = made if isinstance(made, tuple) else (made,)
        found = executable["main"](*inputs, *made)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    return executable


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def test_a_weight_times_itself():
    text = """
    !w = tensor<5x5xf32>
    func.func @main(%x: !w, %w: !w) -> !w attributes {graph.num_inputs = 1 : i64} {
      %0 = "graph.matmul"(%w, %w) : (!w, !w) -> !w
      %1 = "graph.matmul"(%x, %0) : (!w, !w) -> !w
      return %1 : !w
    }"""
    compare_levels(text, lambda x, w: x @ w @ w, *([array] for array in arrays((5, 5), (5, 5))))


def test_names_that_are_taken():
    text = """
    !w = tensor<5x5xf32>
    func.func @main(%x: !w, %w: !w) -> !w attributes {graph.num_inputs = 1 : i64} {
      %0 = "graph.matmul"(%x, %w) : (!w, !w) -> !w
      return %0 : !w
    }
    func.func @main_params(%x: !w) -> !w {
      %0 = "graph.negative"(%x) : (!w) -> !w
      return %0 : !w
    }"""
    executable = compile(text, opt_level=3)
    x, w = arrays((5, 5), (5, 5))
    np.testing.assert_array_equal(executable["main_params"](x), -x)
    made = executable["main_params_1"](w)
    np.testing.assert_allclose(executable["main"](x, made), x @ w, rtol=1e-4, atol=1e-5)


def test_constants_that_are_not_folded_are_made_with_the_parameters():
    text = """
    !v = tensor<4xf32>
    func.func @main(%x: !v) -> !v attributes {graph.num_inputs = 1 : i64} {
      %c = arith.constant dense<[0.5, 0.25, 1.0, -1.0]> : !v
      %0 = "graph.exp"(%c) : (!v) -> !v
      %1 = "graph.nn_softmax"(%0) {axis = 0 : i64} : (!v) -> !v
      %2 = "graph.add"(%1, %x) : (!v, !v) -> !v
      return %2 : !v
    }"""
    constant = np.array([0.5, 0.25, 1.0, -1.0])
    folded = compare_levels(text, lambda x: softmax(np.exp(constant)) + x, arrays((4,)), [])
    assert [argument.name for argument in folded["main"].arguments] == ["arg0"]
    executable = compile(text, opt_level=3, without=["fold-constants"])
    assert [argument.name for argument in executable["main"].arguments][1].startswith("constant.")
    (x,) = arrays((4,))
    made = executable["main_params"]()
    np.testing.assert_array_equal(executable["main"](x, made), folded["main"](x))


HIDDEN = """
!n = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!s = tensor<f32>
func.func @main(%x: tensor<1xf32>, %v: !n, %w: !k) -> !n attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.add"(%v, %w) : (!n, !k) -> !n
  %1 = "graph.nn_softmax"(%0) {axis = 0 : i64} : (!n) -> !n
  %2 = "graph.max"(%1) {axes = array<i64: 0>, keepdims = false} : (!n) -> !s
  %3 = "graph.broadcast_to"(%x) {shape = #graph.shape<["n"]>} : (tensor<1xf32>) -> !n
  %4 = "graph.multiply"(%3, %2) : (!n, !s) -> !n
  return %4 : !n
}
"""


def test_a_symbol_that_only_a_parameter_shows():
    def reference(x: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.full(len(v), softmax(v + w).max() * x[0])

    executable = compare_levels(HIDDEN, reference, arrays((1,)), arrays((7,), (7,)))
    with pytest.raises(ExecutionError, match="'main_params' requires n == k"):
        executable["main_params"](*arrays((7,), (6,)))


def test_what_is_updated_in_place_is_no_parameter():
    text = """
    !v = tensor<2x8x4xf32>
    !k = tensor<1x2x4xf32>
    func.func @main(%k: !k, %c: !v {graph.inout = 0 : i64}, %d: !v {graph.inout = 1 : i64})
        -> (!v, !v) attributes {graph.num_inputs = 1 : i64} {
      %0:2 = "graph.nn_kv_append"(%c, %d, %k, %k) {position = #graph.shape<[3]>}
          : (!v, !v, !k, !k) -> (!v, !v)
      return %0#0, %0#1 : !v, !v
    }"""
    executable = compile(text, opt_level=3)
    assert executable.functions == ("main",)
    key, first, second = arrays((1, 2, 4), (2, 8, 4), (2, 8, 4))
    executable["main"](key, first, second)
    np.testing.assert_array_equal(first[:, 3], key[0])
