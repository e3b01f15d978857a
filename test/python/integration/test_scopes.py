"""Facts and symbols where they belong: checked when compiled functions are called."""

import itertools

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import ExecutionError
from relax_mlir.pipelines import OPT_LEVELS

REQUIRED = """
!n = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
func.func @main(%x: !n, %y: !k) -> !n {
  "graph.require"() {any_of = ["k == n", "k == 1", "n == 1"], by = "graph.add"} : () -> ()
  "graph.require"() {any_of = ["n mod 2 == 1"], by = "@odd"} : () -> ()
  %0 = "graph.negative"(%x) : (!n) -> !n
  return %0 : !n
}
"""


def ones(*dims: int) -> np.ndarray:
    return np.ones(dims, np.float32)


@pytest.mark.parametrize("level", OPT_LEVELS)
def test_one_of_the_required_facts_has_to_hold(level):
    main = relax_mlir.compile(REQUIRED, opt_level=level)["main"]
    for n, k in ((3, 3), (3, 1), (1, 7), (1, 0)):
        np.testing.assert_array_equal(main(ones(n), ones(k)), -ones(n))
    with pytest.raises(ExecutionError, match=r"graph\.add requires k == n or k == 1 or n == 1"):
        main(ones(3), ones(2))
    with pytest.raises(ExecutionError, match=r"@odd requires n mod 2 == 1"):
        main(ones(4), ones(4))


SEGMENTS = (
    "operandSegmentSizes = array<i32: 1" + ", 0" * 31 + ">, "
    "resultSegmentSizes = array<i32: 1" + ", 0" * 7 + ">"
)
CALLED = f"""
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!n_half = tensor<?xf32, #graph.shape<["n floordiv 2"]>>
!m_half = tensor<?xf32, #graph.shape<["m floordiv 2"]>>
func.func private @half(%x: !n) -> !n_half attributes {{graph.facts = ["n mod 2 == 0"]}} {{
  %0 = "graph.strided_slice"(%x) {{axes = array<i64: 0>, begin = #graph.shape<[0]>,
      end = #graph.shape<["n floordiv 2"]>, strides = array<i64: 1>}} : (!n) -> !n_half
  return %0 : !n_half
}}
func.func @main(%x: !m) -> !m_half {{
  %0 = "graph.call"(%x) {{callee = @half, {SEGMENTS}}} : (!m) -> !m_half
  return %0 : !m_half
}}
"""


@pytest.mark.parametrize("level", OPT_LEVELS)
def test_facts_of_a_function_are_checked_where_it_is_called(level):
    main = relax_mlir.compile(CALLED, opt_level=level)["main"]
    for n in (0, 2, 34):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(main(x), x[: n // 2])
    with pytest.raises(ExecutionError, match="@half requires m mod 2 == 0"):
        main(ones(5))


BROADCAST = """
!n = tensor<?x4xf32, #graph.shape<["n", 4]>>
!k = tensor<?x4xf32, #graph.shape<["k", 4]>>
!m = tensor<?x1xf32, #graph.shape<["m", 1]>>
!a = tensor<?x2x3xf32, #graph.shape<["a", 2, 3]>>
!b = tensor<?x3x2xf32, #graph.shape<["b", 3, 2]>>
func.func @add(%x: !n, %y: !k) -> tensor<?x4xf32> {
  %0 = "graph.add"(%x, %y) : (!n, !k) -> tensor<?x4xf32>
  %1 = "graph.exp"(%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
func.func @where(%x: !n, %y: !k, %z: !m) -> tensor<?x4xf32> {
  %0 = "graph.greater"(%x, %z) : (!n, !m) -> tensor<?x4xi1>
  %1 = "graph.where"(%0, %x, %y) : (tensor<?x4xi1>, !n, !k) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
func.func @matmul(%x: !a, %y: !b) -> tensor<?x2x2xf32> {
  %0 = "graph.matmul"(%x, %y) : (!a, !b) -> tensor<?x2x2xf32>
  return %0 : tensor<?x2x2xf32>
}
func.func @broadcast_to(%x: !n, %s: !graph.shape_value<["k"]>) -> tensor<3x?x4xf32> {
  %0 = "graph.broadcast_to"(%x) {shape = #graph.shape<[3, "k", 4]>} : (!n) -> tensor<3x?x4xf32>
  return %0 : tensor<3x?x4xf32>
}
"""
REFERENCES = {
    "add": lambda x, y: np.exp(x + y),
    "where": lambda x, y, z: np.where(x > z, x, y),
    "matmul": np.matmul,
}
BESIDE = {"add": ((4,), (4,)), "where": ((4,), (4,), (1,)), "matmul": ((2, 3), (3, 2))}


@pytest.mark.parametrize("level", OPT_LEVELS)
def test_dims_of_unknown_relation_broadcast_at_run_time(level):
    exe = relax_mlir.compile(BROADCAST, opt_level=level)
    random = np.random.default_rng(level)
    for name, reference in REFERENCES.items():
        for dims in itertools.product((0, 1, 2, 17), repeat=len(BESIDE[name])):
            arrays = [
                random.standard_normal((dim, *beside)).astype(np.float32)
                for dim, beside in zip(dims, BESIDE[name])
            ]
            if len({*dims} - {1}) < 2:
                expected = reference(*(array.astype(np.float64) for array in arrays))
                np.testing.assert_allclose(exe[name](*arrays), expected, rtol=1e-5, atol=1e-6)
            else:
                with pytest.raises(ExecutionError, match=r"graph\.\w+ requires \w == \w or "):
                    exe[name](*arrays)


@pytest.mark.parametrize("level", OPT_LEVELS)
def test_one_repeats_to_a_target_that_is_known_at_run_time(level):
    broadcast_to = relax_mlir.compile(BROADCAST, opt_level=level)["broadcast_to"]
    for n, k in ((1, 0), (1, 1), (1, 9), (9, 9), (0, 0)):
        x = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        np.testing.assert_array_equal(broadcast_to(x, [k]), np.broadcast_to(x, (3, k, 4)))
    with pytest.raises(ExecutionError, match=r"graph\.broadcast_to requires n == k or n == 1"):
        broadcast_to(ones(2, 4), [3])
