"""Facts and symbols where they belong: checked when compiled functions are called."""

import itertools

import numpy as np
import pytest
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import ExecutionError

pytestmark = pytest.mark.usefixtures("llvm_turns")

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


@pytest.mark.parametrize("level", LEVELS)
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
TWO = SEGMENTS.replace("1, 0", "1, 1", 1)
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


@pytest.mark.parametrize("level", LEVELS)
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


@pytest.mark.parametrize("level", LEVELS)
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


@pytest.mark.parametrize("level", LEVELS)
def test_one_repeats_to_a_target_that_is_known_at_run_time(level):
    broadcast_to = relax_mlir.compile(BROADCAST, opt_level=level)["broadcast_to"]
    for n, k in ((1, 0), (1, 1), (1, 9), (9, 9), (0, 0)):
        x = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        np.testing.assert_array_equal(broadcast_to(x, [k]), np.broadcast_to(x, (3, k, 4)))
    with pytest.raises(ExecutionError, match=r"graph\.broadcast_to requires n == k or n == 1"):
        broadcast_to(ones(2, 4), [3])


COARSE = f"""
!u = tensor<?xf32>
!uu = tensor<?x?xf32>
!k = tensor<?xf32, #graph.shape<["k"]>>
!kk = tensor<?xf32, #graph.shape<["2*k"]>>
func.func private @same(%x: !k, %y: !k) -> !u {{
  %0 = "graph.subtract"(%x, %y) : (!k, !k) -> !u
  return %0 : !u
}}
func.func @finer(%x: !u {{graph.name = "x"}}, %y: !u {{graph.name = "y"}}) -> !u {{
  %0 = "graph.call"(%x, %y) {{callee = @same, {TWO}}} : (!u, !u) -> !u
  return %0 : !u
}}
func.func @chain(%x: !uu, %w: !uu, %b: !u) -> !uu {{
  %0 = "graph.matmul"(%x, %w) : (!uu, !uu) -> !uu
  %1 = "graph.add"(%0, %b) : (!uu, !u) -> !uu
  %2 = "graph.nn_softmax"(%1) {{axis = 1 : i64}} : (!uu) -> !uu
  %3 = "graph.multiply"(%2, %1) : (!uu, !uu) -> !uu
  return %3 : !uu
}}
func.func @even(%x: !u) -> !k {{
  %0 = "graph.match_cast"(%x) : (!u) -> tensor<*xf32>
  %1 = "graph.match_cast"(%0) : (tensor<*xf32>) -> !graph.object
  %2 = "graph.match_cast"(%1) : (!graph.object) -> !kk
  %3 = "graph.strided_slice"(%2) {{axes = array<i64: 0>, begin = #graph.shape<[0]>,
      end = #graph.shape<["k"]>, strides = array<i64: 1>}} : (!kk) -> !k
  return %3 : !k
}}
"""


@pytest.fixture(scope="module", params=LEVELS, ids=lambda level: f"O{level}")
def coarse(request: pytest.FixtureRequest) -> relax_mlir.Executable:
    return relax_mlir.compile(COARSE, opt_level=request.param)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("n", "k", "m"), [(0, 3, 5), (1, 1, 1), (17, 0, 3), (7, 33, 15)])
def test_functions_of_coarse_arguments(coarse, n, k, m):
    random = np.random.default_rng(n)
    x, w = (random.standard_normal(dims).astype(np.float32) for dims in ((n, k), (k, m)))
    for length in {1, m}:
        b = random.standard_normal(length).astype(np.float32)
        total = x.astype(np.float64) @ w + b
        np.testing.assert_allclose(coarse["chain"](x, w, b), softmax(total) * total, 1e-4, 1e-5)


def test_coarse_arguments_have_to_fit(coarse):
    with pytest.raises(ExecutionError, match=r"graph\.add requires arg1_1 == arg2_0 or"):
        coarse["chain"](ones(2, 3), ones(3, 4), ones(6))
    with pytest.raises(ExecutionError, match="'chain' requires arg0_1 == arg1_0"):
        coarse["chain"](ones(2, 3), ones(4, 4), ones(4))


def test_parameters_finer_than_arguments_are_checked(coarse):
    for n in (0, 1, 9):
        np.testing.assert_array_equal(coarse["finer"](ones(n), ones(n)), 0 * ones(n))
    with pytest.raises(ExecutionError, match="dim 0 is 3, but 'k' is 2"):
        coarse["finer"](ones(2), ones(3))


def test_symbols_that_casts_bind(coarse):
    for k in (0, 1, 5):
        x = np.arange(2 * k, dtype=np.float32)
        np.testing.assert_array_equal(coarse["even"](x), x[:k])
    with pytest.raises(ExecutionError, match=r"'2\*k'"):
        coarse["even"](ones(5))


BRANCHES = """
!u = tensor<?xf32>
!k = tensor<?xf32, #graph.shape<["k"]>>
func.func @main(%x: !u, %y: !u) -> !u {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %n = tensor.dim %x, %zero : !u
  %is_short = arith.cmpi slt, %n, %four : index
  %r = scf.if %is_short -> !u {
    %0 = "graph.match_cast"(%x) : (!u) -> !k
    %1 = "graph.exp"(%0) : (!k) -> !k
    %2 = "graph.concat"(%1, %0) {axis = 0 : i64, TWO} : (!k, !k) -> !u
    scf.yield %2 : !u
  } else {
    %0 = "graph.match_cast"(%y) : (!u) -> !k
    %1 = "graph.exp"(%0) : (!k) -> !k
    %2 = "graph.add"(%1, %x) : (!k, !u) -> !k
    %3 = "graph.match_cast"(%2) : (!k) -> !u
    scf.yield %3 : !u
  }
  %s = "graph.negative"(%r) : (!u) -> !u
  return %s : !u
}
""".replace("TWO", TWO)


@pytest.mark.parametrize("level", LEVELS)
def test_branches_have_symbols_and_facts_of_their_own(level):
    main = relax_mlir.compile(BRANCHES, opt_level=level)["main"]
    random = np.random.default_rng(level)
    for n, m in ((0, 7), (3, 0), (3, 9), (4, 4), (17, 17)):
        x, y = (random.standard_normal(size).astype(np.float32) for size in (n, m))
        expected = np.concatenate([np.exp(x), x]) if n < 4 else np.exp(y) + x
        np.testing.assert_allclose(main(x, y), -expected, rtol=1e-5)
    with pytest.raises(ExecutionError, match=r"graph\.add requires \w+ == arg0_0, but .*5.*6"):
        main(ones(5), ones(6))
