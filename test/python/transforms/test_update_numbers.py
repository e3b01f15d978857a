"""Casts, views and updates in place give the numbers of their functional meaning, at each level."""

import numpy as np
import pytest
from levels import LEVELS
from random_updates import GraphProgram

import relax_mlir

CALLS = ((3, 2, 0), (1, 5, 1), (5, 0, 2))

CAST = """
!n = tensor<?x4xf32, #graph.shape<["n", 4]>>
!m = tensor<?x4xf32, #graph.shape<["m", 4]>>
func.func @main(%x: !n, %y: !m, %w: tensor<4x4xf32>) -> !m {
  %0 = "graph.matmul"(%x, %w) : (!n, tensor<4x4xf32>) -> !n
  %c = "graph.match_cast"(%0) : (!n) -> !m
  %1 = "graph.matmul"(%y, %w) : (!m, tensor<4x4xf32>) -> !m
  %2 = "graph.matmul"(%1, %w) : (!m, tensor<4x4xf32>) -> !m
  %3 = "graph.matmul"(%2, %w) : (!m, tensor<4x4xf32>) -> !m
  %4 = "graph.add"(%c, %3) : (!m, !m) -> !m
  return %4 : !m
}"""

CACHE = """
!kv    = tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>
!cache = tensor<2x16x8xf32>
func.func @main(%k: !kv, %v: !kv, %past: !graph.shape_value<["m"]>,
                %ks: !cache {graph.inout = 1 : i64}, %vs: !cache {graph.inout = 2 : i64})
    -> (tensor<256xf32>, !cache, !cache) attributes {graph.facts = ["m + n <= 16"]} {
  %old = "graph.reshape"(%ks) {shape = #graph.shape<[256]>} : (!cache) -> tensor<256xf32>
  %0:2 = "graph.nn_kv_append"(%ks, VALUES, %k, %v) {position = #graph.shape<["m"]>}
    : (!cache, !cache, !kv, !kv) -> (!cache, !cache)
  %1 = "graph.negative"(%old) : (tensor<256xf32>) -> tensor<256xf32>
  return %1, %0#0, %0#1 : tensor<256xf32>, !cache, !cache
}"""

EXCHANGE = """
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !n {graph.inout = 0 : i64}, %y: !n {graph.inout = 1 : i64}) -> (!n, !n) {
  return %y, %x : !n, !n
}"""


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(len(shapes))
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("level", LEVELS)
def test_temporary_under_the_name_of_a_cast(level: int) -> None:
    main = relax_mlir.compile(CAST, opt_level=level)["main"]
    for n in (0, 1, 5):
        x, y, w = arrays((n, 4), (n, 4), (4, 4))
        np.testing.assert_allclose(main(x, y, w), x @ w + y @ w @ w @ w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("values", ["%vs", "%ks"])
@pytest.mark.parametrize("level", LEVELS)
def test_old_contents_of_a_cache(level: int, values: str) -> None:
    """The second cache may be the first one: each result is one update of it."""
    main = relax_mlir.compile(CACHE.replace("VALUES", values), opt_level=level)["main"]
    for n, m in ((3, 5), (0, 16), (16, 0), (1, 15)):
        k, v, ks, vs = arrays((n, 2, 8), (n, 2, 8), (2, 16, 8), (2, 16, 8))
        want = [ks.copy(), (ks if values == "%ks" else vs).copy()]
        old = -ks.ravel()
        for cache, new in zip(want, (k, v)):
            cache[:, m : m + n] = new.transpose(1, 0, 2)
        got = main(k, v, [m], ks, vs)
        np.testing.assert_array_equal(got[0], old)
        for result, argument, expected in zip(got[1:], (ks, vs), want, strict=True):
            np.testing.assert_array_equal(result, expected)
            np.testing.assert_array_equal(argument, expected)


@pytest.mark.parametrize("level", [*LEVELS, "interpreted"])
def test_results_that_trade_places(level: int | str) -> None:
    module = relax_mlir.interpret(EXCHANGE) if level == "interpreted" else None
    main = (module or relax_mlir.compile(EXCHANGE, opt_level=int(level)))["main"]
    x, y = arrays((5,), (5,))
    old = x.copy(), y.copy()
    main(x, y)
    np.testing.assert_array_equal((x, y), (old[1], old[0]))


def check(seed: int) -> None:
    """Results and updated arguments are what the interpreter says, the rest is as it was."""
    program = GraphProgram(seed, 3 + seed % 10)
    reference = relax_mlir.interpret(program.text)["main"]
    compiled = [relax_mlir.compile(program.text, opt_level=level)["main"] for level in LEVELS]
    for call in CALLS:
        want = reference(*program.arrays(*call))
        want = want if isinstance(want, tuple) else (want,)
        for main in compiled:
            arguments, given = program.arrays(*call), program.arrays(*call)
            got = main(*arguments)
            got = got if isinstance(got, tuple) else (got,)
            for value, expected in zip(got, want, strict=True):
                np.testing.assert_allclose(value, expected, rtol=1e-5)
            for index in range(4):
                expected = want[program.inout[index]] if index in program.inout else given[index]
                np.testing.assert_allclose(arguments[index], expected, rtol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int) -> None:
    check(seed)


@pytest.mark.sweep
@pytest.mark.parametrize("start", range(100, 300, 20))
def test_many_random_programs(start: int) -> None:
    for seed in range(start, start + 20):
        check(seed)
