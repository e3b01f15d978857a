"""Argument checks and symbol solving: each error's text, and what is accepted."""

import numpy as np
import pytest
from c_module import CFunction, Output, Tensor, build_module, shape

from relax_mlir.errors import ExecutionError
from relax_mlir.executable import Executable, load

SYMBOLS = """
  int64_t *out = rx_result(context, results, 0, RX_INT, 64, 1, &(int64_t){%d});
  if (!out) return 1;
  memcpy(out, symbols, %d * sizeof(int64_t));
"""


def returning_symbols(name: str, arguments: list[Tensor], number: int, facts=()) -> CFunction:
    """A function that returns the values of its symbols in order of appearance."""
    body = SYMBOLS % (number, number)
    return CFunction(name, arguments, [Output("i64", [number])], facts, body)


FUNCTIONS = [
    returning_symbols(
        "matmul", [Tensor("x", "f32", ["n", "k"]), Tensor("weight", "f32", ["k", 4])], 2
    ),
    returning_symbols("double", [Tensor("x", "f32", ["2*n"])], 1),
    returning_symbols("affine", [Tensor("x", "f32", ["3*n + 2", "n*m"])], 2),
    returning_symbols("shifted", [Tensor("x", "f32", ["n - 4"])], 1),
    returning_symbols("late", [Tensor("x", "f32", ["n + m"]), Tensor("y", "f32", ["m"])], 2),
    returning_symbols("derived", [Tensor("x", "f32", ["2*n"]), Tensor("y", "f32", ["n"])], 1),
    returning_symbols(
        "mixed",
        [
            Tensor("x", "f32", ["n", "m"]),
            Tensor("y", "f32", ["min(n, m) + max(n, 3)*2"]),
            Tensor("z", "f32", ["(n + m) // 2", "n % (m + 1)", "n - (m - 1)"]),
        ],
        2,
    ),
    returning_symbols("divide", [Tensor("x", "f32", ["n", "m", "n // m"])], 2),
    returning_symbols("open", [Tensor("x", "f32", ["n + m"])], 2),
    returning_symbols("square", [Tensor("x", "f32", ["n*n"])], 1),
    returning_symbols("coarse", [Tensor("x", "f32", None), Tensor("y", "f32", [None, "n"])], 1),
    returning_symbols("shaped", [shape("dims", ["n", "2*n + 1", 4]), shape("any", None)], 1),
    returning_symbols("anonymous", [Tensor("", "f32", ["n"])], 1),
    returning_symbols(
        "facts",
        [Tensor("x", "f32", ["n", "m"])],
        2,
        ["n <= 16", "n % 4 == 0", "n + m < 20", "m >= 1", "m != 7", "n > 0", "u == 3"],
    ),
    CFunction("typed", [Tensor("x", "f16", []), Tensor("y", "bf16", []), Tensor("z", "i1", [])]),
]


@pytest.fixture(scope="module")
def exe(tmp_path_factory) -> Executable:
    return load(build_module(FUNCTIONS, tmp_path_factory.mktemp("bind")))


def zeros(*dims: int) -> np.ndarray:
    return np.zeros(dims, np.float32)


@pytest.mark.parametrize(
    ("name", "arguments", "symbols"),
    [
        ("matmul", (zeros(3, 5), zeros(5, 4)), [3, 5]),
        ("matmul", (zeros(0, 0), zeros(0, 4)), [0, 0]),
        ("double", (zeros(14),), [7]),
        ("double", (zeros(0),), [0]),
        ("affine", (zeros(17, 35),), [5, 7]),
        ("shifted", (zeros(3),), [7]),
        ("late", (zeros(9), zeros(2)), [7, 2]),
        ("derived", (zeros(6), zeros(3)), [3]),
        ("mixed", (zeros(5, 4), zeros(14), zeros(4, 0, 2)), [5, 4]),
        ("coarse", (zeros(1, 2, 3, 4), zeros(9, 2)), [2]),
        ("coarse", (zeros(), zeros(0, 5)), [5]),
        ("shaped", ((3, 7, 4), ()), [3]),
        ("shaped", (np.array([0, 1, 4]), (1, 2, 3)), [0]),
        ("facts", (zeros(16, 3),), [16, 3, -1]),
    ],
)
def test_binds(exe, name, arguments, symbols):
    got = exe[name](*arguments)
    np.testing.assert_array_equal(got, symbols[: len(got)])


MISMATCHES = [
    (
        "matmul",
        (zeros(3, 4096), zeros(4095, 4)),
        "argument 1 'weight': dim 0 is 4095, but 'k' is 4096 (from argument 0 'x', dim 1)",
    ),
    ("matmul", (zeros(3, 4), zeros(4, 5)), "argument 1 'weight': dim 1 is 5, but 4 is expected"),
    ("matmul", (zeros(3), zeros(4, 4)), "argument 0 'x': rank is 1, but 2 is expected"),
    (
        "matmul",
        (zeros(3, 4), np.zeros((4, 4))),
        "argument 1 'weight': dtype is float64, but float32 is expected",
    ),
    (
        "matmul",
        (zeros(3, 4), np.zeros((4, 4), np.complex64)),
        "argument 1 'weight': dtype is complex64, but float32 is expected",
    ),
    ("anonymous", (np.zeros(3, bool),), "argument 0: dtype is bool, but float32 is expected"),
    (
        "typed",
        (np.float16(1), np.array(1.0, np.float32), np.bool_(True)),
        "argument 1 'y': dtype is float32, but bfloat16 is expected",
    ),
    (
        "typed",
        (np.float16(1), np.array(1, np.uint16), np.uint8(1)),
        "argument 2 'z': dtype is uint8, but bool is expected",
    ),
    (
        "double",
        (zeros(7),),
        "argument 0 'x': dim 0 is 7, but '2*n' cannot be 7 for any integer n >= 0",
    ),
    (
        "affine",
        (zeros(1, 1),),
        "argument 0 'x': dim 0 is 1, but '3*n + 2' cannot be 1 for any integer n >= 0",
    ),
    (
        "affine",
        (zeros(17, 36),),
        "argument 0 'x': dim 1 is 36, but 'n*m' cannot be 36 for any integer m >= 0",
    ),
    (
        "affine",
        (zeros(2, 0),),
        "argument 0 'x': dim 1 is 0, but 'n*m' does not determine its symbols",
    ),
    (
        "derived",
        (zeros(7), zeros(3)),
        "argument 0 'x': dim 0 is 7, but '2*n' is 6 (n = 3 from argument 1 'y', dim 0)",
    ),
    (
        "mixed",
        (zeros(5, 4), zeros(13), zeros(4, 0, 2)),
        "argument 1 'y': dim 0 is 13, but 'min(n, m) + max(n, 3)*2' is 14 "
        "(n = 5 from argument 0 'x', dim 0, m = 4 from argument 0 'x', dim 1)",
    ),
    (
        "mixed",
        (zeros(5, 4), zeros(14), zeros(5, 0, 2)),
        "argument 2 'z': dim 0 is 5, but '(n + m) floordiv 2' is 4 "
        "(n = 5 from argument 0 'x', dim 0, m = 4 from argument 0 'x', dim 1)",
    ),
    (
        "mixed",
        (zeros(5, 4), zeros(14), zeros(4, 1, 2)),
        "argument 2 'z': dim 1 is 1, but 'n mod (m + 1)' is 0 "
        "(n = 5 from argument 0 'x', dim 0, m = 4 from argument 0 'x', dim 1)",
    ),
    (
        "mixed",
        (zeros(5, 4), zeros(14), zeros(4, 0, 3)),
        "argument 2 'z': dim 2 is 3, but 'n - (m - 1)' is 2 "
        "(n = 5 from argument 0 'x', dim 0, m = 4 from argument 0 'x', dim 1)",
    ),
    (
        "divide",
        (zeros(5, 0, 3),),
        "argument 0 'x': dim 2 is 3, but 'n floordiv m' divides by a number that is not positive",
    ),
    (
        "open",
        (zeros(5),),
        "argument 0 'x': dim 0 is 5, but 'n + m' does not determine its symbols",
    ),
    (
        "square",
        (zeros(9),),
        "argument 0 'x': dim 0 is 9, but 'n*n' does not determine its symbols",
    ),
    ("shaped", ((3, 7), ()), "argument 0 'dims': number of values is 2, but 3 is expected"),
    (
        "shaped",
        ((3, 8, 4), ()),
        "argument 0 'dims': value 1 is 8, but '2*n + 1' is 7 "
        "(n = 3 from argument 0 'dims', value 0)",
    ),
    ("shaped", ((3, 7, 5), ()), "argument 0 'dims': value 2 is 5, but 4 is expected"),
    ("shaped", ((-3, 7, 4), ()), "argument 0 'dims': value 0 is -3, but 'n' must not be negative"),
    (
        "shaped",
        (np.array([3, 7, 4], np.int32), ()),
        "argument 0 'dims': dtype is int32, but int64 is expected",
    ),
    ("shaped", (np.array([[3, 7, 4]]), ()), "argument 0 'dims': rank is 2, but 1 is expected"),
    (
        "facts",
        (zeros(20, 1),),
        "'facts' requires n <= 16, but n = 20 from argument 0 'x', dim 0",
    ),
    ("facts", (zeros(5, 1),), "'facts' requires n % 4 == 0, but n = 5 from argument 0 'x', dim 0"),
    (
        "facts",
        (zeros(12, 8),),
        "'facts' requires n + m < 20, but n = 12 from argument 0 'x', dim 0, "
        "m = 8 from argument 0 'x', dim 1",
    ),
    ("facts", (zeros(4, 0),), "'facts' requires m >= 1, but m = 0 from argument 0 'x', dim 1"),
    ("facts", (zeros(4, 7),), "'facts' requires m != 7, but m = 7 from argument 0 'x', dim 1"),
    ("facts", (zeros(0, 2),), "'facts' requires n > 0, but n = 0 from argument 0 'x', dim 0"),
]


@pytest.mark.parametrize(("name", "arguments", "text"), MISMATCHES)
def test_refuses(exe, name, arguments, text):
    with pytest.raises(ExecutionError) as raised:
        exe[name](*arguments)
    assert str(raised.value) == text


def test_a_refused_call_leaves_the_executable_usable(exe):
    with pytest.raises(ExecutionError):
        exe["double"](zeros(7))
    np.testing.assert_array_equal(exe["double"](zeros(8)), [4])


HOSTILE_DIMS = [
    ((3, -4), "dim 1 is -4, but a dim must not be negative"),
    ((0, -(1 << 63)), f"dim 1 is {-(1 << 63)}, but a dim must not be negative"),
    ((1 << 32, 1 << 32), f"dims [{1 << 32}, {1 << 32}] of 32 bits span more than 2^63 - 1 bytes"),
    ((1 << 61, 1), f"dims [{1 << 61}, 1] of 32 bits span more than 2^63 - 1 bytes"),
    ((1 << 62, 0), f"dims [{1 << 62}, 0] of 32 bits span more than 2^63 - 1 bytes"),
]


@pytest.mark.parametrize(("dims", "text"), HOSTILE_DIMS)
def test_refuses_dims_that_no_tensor_has(exe, dims, text):
    call = exe["matmul"].bind(zeros(3, 4), zeros(4, 4))
    call._args[0].shape[0], call._args[0].shape[1] = dims
    with pytest.raises(ExecutionError) as raised:
        call.run()
    assert str(raised.value) == f"argument 0 'x': {text}"


def test_the_greatest_dims_of_an_empty_tensor(exe):
    call = exe["matmul"].bind(zeros(3, 0), zeros(0, 4))
    call._args[0].shape[0] = (1 << 61) - 1
    np.testing.assert_array_equal(call.run(), [(1 << 61) - 1, 0])


@pytest.mark.parametrize("rank", [-1, 33, 1 << 30])
def test_refuses_ranks_that_no_tensor_has(exe, rank):
    call = exe["coarse"].bind(zeros(1, 2), zeros(1, 2))
    call._args[0].ndim = rank
    with pytest.raises(ExecutionError) as raised:
        call.run()
    assert str(raised.value) == f"argument 0 'x': rank is {rank}, but 0 to 32 are supported"
