"""Values given for arguments: the same results as when they are passed, at any level."""

import ml_dtypes
import numpy as np
import pytest
from random_graphs import RandomGraph

import relax_mlir
from relax_mlir.errors import CompileError, UsageError

WEIGHTS = """
!x = tensor<?x?xf32, #graph.shape<["n", "k"]>>
!w = tensor<?x5xf32, #graph.shape<["k", 5]>>
!y = tensor<?x5xf32, #graph.shape<["n", 5]>>
func.func @main(%x: !x {graph.name = "x"}, %w: !w {graph.name = "w"},
    %b: tensor<5xf32> {graph.name = "b"})
    -> !y attributes {graph.num_inputs = 1 : i64, graph.facts = ["k <= 64"]} {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %e = "graph.exp"(%b) : (tensor<5xf32>) -> tensor<5xf32>
  %1 = "graph.add"(%0, %e) : (!y, tensor<5xf32>) -> !y
  return %1 : !y
}
func.func @other(%b: tensor<?xf32> {graph.name = "b"}) -> tensor<?xf32> {
  %0 = "graph.negative"(%b) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("level", [0, 2, 3])
def test_values_are_those_of_each_function(level: int):
    x, w, b = arrays((3, 40), (40, 5), (5,))
    exe = relax_mlir.compile(WEIGHTS, opt_level=level, parameters={"w": w, "b": b})
    assert [(a.name, a.dims) for a in exe["main"].arguments] == [("x", ("n", 40))]
    expected = x.astype(np.float64) @ w + np.exp(b)
    np.testing.assert_allclose(exe["main"](x), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(exe["other"](), -b)


def test_one_value_leaves_the_others_arguments():
    x, w, b = arrays((3, 40), (40, 5), (5,))
    exe = relax_mlir.compile(WEIGHTS, opt_level=3, parameters={"b": b})
    expected = x.astype(np.float64) @ w + np.exp(b)
    found = exe["main"](x, w)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_other_values_are_another_file():
    results = []
    for seed in (1, 2):
        b = np.random.default_rng(seed).standard_normal(5).astype(np.float32)
        results.append((relax_mlir.compile(WEIGHTS, parameters={"b": b})["other"](), -b))
    for found, expected in results:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_with_any_of_their_arguments(seed: int, level: int):
    """What is known is folded at -O3, and so is the whole graph if all is known."""
    graph = RandomGraph(seed, ("i32", "f64")[seed % 2], 14)
    values = graph.arrays(6, 4)
    names = [a.name for a in relax_mlir.interpret(graph.text)["main"].arguments]
    chosen = np.random.default_rng(seed).random(len(values)) < (0.5, 2)[seed // 2]
    known = {name: v for name, v, take in zip(names, values, chosen, strict=True) if take}
    main = relax_mlir.compile(graph.text, opt_level=level, parameters=known)["main"]
    found = main(*(v for v, take in zip(values, chosen, strict=True) if not take))
    found = found if isinstance(found, tuple) else (found,)
    for value, expected in zip(found, graph.reference(values), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ("bf16", np.array([1, 2.5], ml_dtypes.bfloat16)),
        ("bf16", np.array([0x3F80, 0x4020], np.uint16)),
        ("f16", np.array([1, 2.5], np.float16)),
        ("i1", np.array([True, False])),
        ("ui8", np.array([1, 255], np.uint8)),
        ("i64", np.array([-1, 1 << 60])),
    ],
)
def test_elements(element: str, value: np.ndarray):
    text = f"""func.func @main(%x: tensor<2x{element}>) -> tensor<2x{element}> {{
      return %x : tensor<2x{element}>
    }}"""
    found = relax_mlir.compile(text, parameters={"arg0": value})["main"]()
    assert np.asarray(found).tobytes() == value.tobytes()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"v": np.ones(5)}, "no argument is called 'v'; there are 'x', 'w', 'b'"),
        ({"b": np.ones(5)}, "argument 2 'b' of '@main' has elements of float32, but its value of "),
        ({"b": "text"}, "parameter 'b' has dtype <U4, which no tensor has"),
        ({"b": [[1], [1, 2]]}, "parameter 'b' is no array"),
    ],
)
def test_wrong_parameters(parameters: dict, message: str):
    with pytest.raises(UsageError, match=message):
        relax_mlir.compile(WEIGHTS, parameters=parameters)


def test_passes_that_do_not_bind():
    with pytest.raises(UsageError, match="passes do not bind them: begin with relax-bind-params"):
        relax_mlir.compile(WEIGHTS, passes="builtin.module(cse)", parameters={"b": [1.0]})


def test_values_that_do_not_fit():
    for array, message in (
        (np.ones((3, 4), np.float32), "the value of argument 1 'w' has 4 in dim 1, but 5"),
        (np.ones((65, 5), np.float32), "requires k <= 64, but k = 65 from the given values"),
        (np.ones(5, np.float32), "the value of argument 1 'w' has rank 1 instead of 2"),
    ):
        with pytest.raises(CompileError, match=rf":5:.*{message}"):
            relax_mlir.compile(WEIGHTS, parameters={"w": array})
