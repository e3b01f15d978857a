"""Results, arena and counters."""

import gc

import numpy as np
import pytest
from c_module import CFunction, Output, Tensor, build_module, shape

from relax_mlir.errors import ExecutionError, OutOfMemoryError
from relax_mlir.executable import Executable, load

ADD_ONE = """
  float *out = rx_result(context, results, 0, RX_FLOAT, 32, 2, (int64_t[]){n, m});
  if (!out) return 1;
  for (int64_t i = 0; i < n * m; i++) out[i] = ((const float *)args[0].data)[i] + 1;
  rx_count_kernels(1);
"""

# Writes through the arena, whose old contents may be anything.
ARENA = """
  float *arena = rx_arena(context, n * 4);
  if (!arena) return 1;
  if ((uintptr_t)arena % 64) return rx_fail(context, "arena is not aligned");
  for (int64_t i = 0; i < n; i++) arena[i] = ((const float *)args[0].data)[i] * 2;
  float *out = rx_result(context, results, 0, RX_FLOAT, 32, 1, &n);
  if (!out) return 1;
  memcpy(out, arena, n * 4);
"""

TWO = """
  int64_t *out = rx_result(context, results, 0, RX_INT, 64, 0, NULL);
  if (!out) return 1;
  *out = n;
  if (n != 3) return rx_fail(context, "the length is not 3");
  uint8_t *flags = rx_result(context, results, 1, RX_BOOL, 8, 1, &n);
  if (!flags) return 1;
  for (int64_t i = 0; i < n; i++) flags[i] = i == 1;
"""

UPDATE = """
  float *cache = args[0].data;
  for (int64_t i = 0; i < n; i++) cache[i] += 1;
  if (rx_result_alias(context, results, 0, &args[0])) return 1;
"""

HUGE = """
  if (!rx_result(context, results, 0, RX_INT, 8, 2, (int64_t[]){n, m})) return 1;
"""

HUGE_EMPTY = """
  if (!rx_result(context, results, 0, RX_INT, 8, 3, (int64_t[]){n, m, k})) return 1;
"""

SHRUNK = """
  if (!rx_result(context, results, 0, RX_INT, 8, 2, (int64_t[]){0, n - 4})) return 1;
"""

HUGE_ARENA = """
  if (!rx_arena(context, n)) return 1;
"""

HALVES = """
  uint16_t *half = rx_result(context, results, 0, RX_FLOAT, 16, 1, &(int64_t){2});
  uint16_t *brain = half ? rx_result(context, results, 1, RX_BFLOAT, 16, 1, &(int64_t){2}) : NULL;
  if (!brain) return 1;
  half[0] = 0x3c00, half[1] = 0xc000;
  brain[0] = 0x3f80, brain[1] = 0xc000;
"""

FUNCTIONS = [
    CFunction("add", [Tensor("x", "f32", ["n", "m"])], [Output("f32", ["n", "m"])], body=ADD_ONE),
    CFunction("arena", [Tensor("x", "f32", ["n"])], [Output("f32", ["n"])], body=ARENA),
    CFunction(
        "two", [Tensor("x", "f32", ["n"])], [Output("i64", []), Output("i1", None)], body=TWO
    ),
    CFunction(
        "update", [Tensor("c", "f32", ["n"], inout=True)], [Output("f32", ["n"], 0)], body=UPDATE
    ),
    CFunction("huge", [shape("dims", ["n", "m"])], [Output("i8", ["n", "m"])], body=HUGE),
    CFunction(
        "huge_empty",
        [shape("dims", ["n", "m", "k"])],
        [Output("i8", ["n", "m", "k"])],
        body=HUGE_EMPTY,
    ),
    CFunction("shrunk", [shape("dims", ["n"])], [Output("i8", [0, "n - 4"])], body=SHRUNK),
    CFunction("huge_arena", [shape("dims", ["n"])], body=HUGE_ARENA),
    CFunction("halves", [], [Output("f16", [2]), Output("bf16", [2])], body=HALVES),
    CFunction("nothing"),
]


@pytest.fixture(scope="module")
def exe(tmp_path_factory) -> Executable:
    return load(build_module(FUNCTIONS, tmp_path_factory.mktemp("results")))


@pytest.mark.parametrize("dims", [(0, 3), (1, 1), (2, 7), (31, 33)])
def test_allocates_a_result(exe, dims):
    x = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    y = exe["add"](x)
    np.testing.assert_array_equal(y, x + 1)
    assert y.dtype == np.float32
    assert y.flags.c_contiguous
    assert y.flags.writeable
    assert y.__array_interface__["data"][0] % 64 == 0


def test_a_result_outlives_its_executable(tmp_path):
    exe = load(build_module(FUNCTIONS, tmp_path))
    y = exe["add"](np.zeros((100, 100), np.float32))
    row = y[3]
    del exe, y
    gc.collect()
    np.testing.assert_array_equal(row, np.ones(100))


def test_fills_a_given_buffer(exe):
    x = np.ones((2, 3), np.float32)
    buffer = np.zeros((2, 3), np.float32)
    call = exe["add"].bind(x, results=[buffer])
    call.run()  # the first call of a thread makes what the runtime has of it
    before = exe.counters()
    for step in range(5):
        x[:] = step
        assert call.run() is buffer
        np.testing.assert_array_equal(buffer, x + 1)
    after = exe.counters()
    assert after["allocations"] == before["allocations"]
    assert after["kernels"] == before["kernels"] + 5


@pytest.mark.parametrize(
    ("buffer", "text"),
    [
        (np.zeros((2, 4), np.float32), "result 0: dim 1 is 4, but 3 is expected"),
        (np.zeros(6, np.float32), "result 0: rank is 1, but 2 is expected"),
        (np.zeros((2, 3)), "result 0: dtype is float64, but float32 is expected"),
        (
            np.zeros((3, 2), np.float32).T,
            "result 0: is written to, so a contiguous row-major array is expected, "
            "but its strides are (4, 8) bytes",
        ),
        ([1.0], "result 0: an array (NumPy or DLPack) is expected, but got list"),
        (
            np.broadcast_to(np.float32(0), (2, 3)),
            "result 0: an array that can be written to is expected, but it is read-only",
        ),
    ],
)
def test_refuses_a_buffer(exe, buffer, text):
    with pytest.raises(ExecutionError) as raised:
        exe["add"].bind(np.zeros((2, 3), np.float32), results=[buffer]).run()
    assert str(raised.value) == text


def test_several_results_of_unknown_rank(exe):
    length, flags = exe["two"](np.zeros(3, np.float32))
    assert length.shape == ()
    assert length == 3
    assert flags.dtype == np.bool_
    np.testing.assert_array_equal(flags, [False, True, False])


def test_a_failure_after_a_result(exe):
    call = exe["two"].bind(np.zeros(4, np.float32))
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"^the length is not 3$"):
            call.run()
    call.set(0, np.zeros(3, np.float32))
    assert call.run()[0] == 3


def test_updates_in_place(exe):
    cache, other = np.zeros(5, np.float32), np.zeros(7, np.float32)
    call = exe["update"].bind(cache)
    assert call.run() is cache
    assert call.run() is cache
    np.testing.assert_array_equal(cache, np.full(5, 2))
    call.set(0, other)
    assert call.run() is other
    np.testing.assert_array_equal(other, np.ones(7))
    with pytest.raises(ExecutionError, match=r"^result 0: is an argument updated in place, so no "):
        exe["update"].bind(cache, results=[np.zeros(5, np.float32)]).run()
    np.testing.assert_array_equal(exe["update"].bind(cache, results=[cache]).run(), np.full(5, 4))


def test_no_results(exe):
    assert exe["nothing"]() is None


def test_halves(exe):
    half, brain = exe["halves"]()
    np.testing.assert_array_equal(half, np.array([1, -2], np.float16))
    np.testing.assert_array_equal(brain.view(np.uint16), [0x3F80, 0xC000])


def test_out_of_memory(exe):
    with pytest.raises(
        ExecutionError, match=r"^out of memory: result 0 of dims \[1048576, .*\], \d{19} bytes$"
    ):
        exe["huge"]((1 << 20, 1 << 40))
    for dims in ((1 << 40, 1 << 40), (0, 1 << 40, 1 << 40), (1 << 62, 2)):
        named = ", ".join(map(str, dims))
        with pytest.raises(OutOfMemoryError) as error:
            exe["huge" if len(dims) == 2 else "huge_empty"](dims)
        assert str(error.value) == (
            f"out of memory: result 0 of dims [{named}], more than 2^63 - 1 bytes"
        )
    assert exe["huge_empty"]((0, 1 << 40, 1 << 22)).shape == (0, 1 << 40, 1 << 22)
    with pytest.raises(OutOfMemoryError, match=r"^out of memory: the function needs 72\d* bytes"):
        exe["huge_arena"]((1 << 56,))


def test_a_negative_dim_of_a_result(exe):
    with pytest.raises(ExecutionError) as error:
        exe["shrunk"]((3,))
    assert type(error.value) is ExecutionError
    assert str(error.value) == "result 0: dim 1 is -1, but a dim must not be negative"
    assert exe["shrunk"]((4,)).shape == (0, 0)


def test_the_arena_is_kept(tmp_path):
    exe = load(build_module(FUNCTIONS, tmp_path))
    out = np.zeros(1000, np.float32)
    sizes = [1000, 10, 1000, 999]
    for size in sizes:
        x = np.arange(size, dtype=np.float32)
        exe["arena"].bind(x, results=[out[:size]]).run()
        np.testing.assert_array_equal(out[:size], 2 * x)
    # The context and one arena, nothing later.
    assert exe.counters()["arena_bytes"] == 4000
    steady = exe.counters()["allocations"]
    call = exe["arena"].bind(np.ones(1000, np.float32), results=[out])
    for _ in range(100):
        call.run()
    assert exe.counters()["allocations"] == steady
    exe["arena"](np.ones(2_000_000, np.float32))
    assert exe.counters()["arena_bytes"] == 8_000_000
