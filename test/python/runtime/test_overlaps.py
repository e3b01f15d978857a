"""Memory that a call writes to is that of one array."""

import numpy as np
import pytest
from c_module import CFunction, Output, Tensor, build_module
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_mlir.errors import ExecutionError
from relax_mlir.executable import Executable, load
from relax_mlir.runtime.overlaps import first_overlap, overlap_with

# Adds to c and d in place what x holds; returns both and twice x.
BODY = """
  float *c = args[0].data, *d = args[1].data;
  const float *x = args[2].data;
  float *out = rx_result(context, results, 2, RX_FLOAT, 32, 1, &n);
  if (!out) return 1;
  for (int64_t i = 0; i < n; i++) c[i] += x[i], d[i] += 2 * x[i], out[i] = 2 * x[i];
  if (rx_result_alias(context, results, 0, &args[0])) return 1;
  if (rx_result_alias(context, results, 1, &args[1])) return 1;
"""
F = "f32"
FUNCTIONS = [
    CFunction(
        "step",
        [
            Tensor("c", F, ["n"], inout=True),
            Tensor("d", F, ["n"], inout=True),
            Tensor("x", F, ["n"]),
        ],
        [Output(F, ["n"], 0), Output(F, ["n"], 1), Output(F, ["n"])],
        body=BODY,
    ),
    CFunction(
        "copy",
        [Tensor("x", F, ["n"]), Tensor("", F, ["n"])],
        [Output(F, ["n"]), Output(F, ["n"])],
        body="""
  float *first = rx_result(context, results, 0, RX_FLOAT, 32, 1, &n);
  float *second = first ? rx_result(context, results, 1, RX_FLOAT, 32, 1, &n) : NULL;
  if (!second) return 1;
  memcpy(first, args[0].data, (size_t)n * 4), memcpy(second, args[1].data, (size_t)n * 4);
""",
    ),
]


@pytest.fixture(scope="module")
def exe(tmp_path_factory) -> Executable:
    return load(build_module(FUNCTIONS, tmp_path_factory.mktemp("overlaps")))


def zeros(count: int = 4) -> np.ndarray:
    return np.zeros(count, np.float32)


MEMORY = zeros(9)
END = ", but an array that is written to needs memory of its own"
REFUSED = [
    ("step", lambda m: ((m[:4], m[:4], zeros()), None), "argument 1 'd': argument 0 'c'"),
    ("step", lambda m: ((m[:4], m[3:7], zeros()), None), "argument 1 'd': argument 0 'c'"),
    ("step", lambda m: ((m[3:7], m[:4], zeros()), None), "argument 1 'd': argument 0 'c'"),
    ("step", lambda m: ((m[:4], zeros(), m[:4]), None), "argument 2 'x': argument 0 'c'"),
    ("step", lambda m: ((zeros(), m[:4], m[3:7]), None), "argument 2 'x': argument 1 'd'"),
    (
        "step",
        lambda m: ((m[:4], zeros(), zeros()), [None, None, m[2:6]]),
        "result 2: argument 0 'c'",
    ),
    (
        "step",
        lambda m: ((zeros(), zeros(), m[:4]), [None, None, m[:4]]),
        "result 2: argument 2 'x'",
    ),
    ("copy", lambda m: ((m[:4], zeros()), [m[:4], None]), "result 0: argument 0 'x'"),
    ("copy", lambda m: ((zeros(), m[:4]), [zeros(), m[1:5]]), "result 1: argument 1"),
    ("copy", lambda m: ((zeros(), zeros()), [m[:4], m[:4]]), "result 1: result 0"),
    ("copy", lambda m: ((zeros(1), zeros(1)), [m[:1], m[:4]]), "result 1: result 0"),
]


@pytest.mark.parametrize(("name", "arrays", "pair"), REFUSED)
def test_refuses(exe, name, arrays, pair):
    arguments, results = arrays(zeros(9))
    with pytest.raises(ExecutionError) as error:
        exe[name].bind(*arguments, results=results)
    second, first = pair.split(": ")
    assert str(error.value) == f"{second}: shares memory with {first}{END}"


def test_accepts_neighbours_and_what_is_only_read(exe):
    memory = np.arange(16, dtype=np.float32)
    c, d, x, out = (memory[4 * i : 4 * i + 4] for i in range(4))
    want = c + x, d + 2 * x, 2 * x
    found = exe["step"].bind(c, d, x, results=[c, d, out]).run()
    assert [array is given for array, given in zip(found, (c, d, out), strict=True)] == [True] * 3
    np.testing.assert_array_equal(found, want)
    first, second = exe["copy"](x, x)
    np.testing.assert_array_equal((first, second), (x, x))
    empty = memory[5:5]
    assert [len(array) for array in exe["step"](empty, empty, empty)] == [0, 0, 0]


def test_an_argument_that_is_replaced(exe):
    memory, x = zeros(12), np.ones(4, np.float32)
    call = exe["step"].bind(memory[:4], memory[4:8], x)
    for index, array, pair in (
        (0, memory[5:9], ("argument 1 'd'", "argument 0 'c'")),
        (2, memory[1:5], ("argument 2 'x'", "argument 0 'c'")),
    ):
        with pytest.raises(ExecutionError) as error:
            call.set(index, array)
        assert str(error.value) == f"{pair[0]}: shares memory with {pair[1]}{END}"
        call.run()
    np.testing.assert_array_equal(memory, [2] * 4 + [4] * 4 + [0] * 4)
    call.set(0, memory[8:])
    call.set(2, memory[:4])  # which is updated no more
    np.testing.assert_array_equal(call.run()[0], [2] * 4)
    call.set(0, memory[8:])  # the same again


def test_the_buffer_of_an_argument_that_is_updated(exe):
    c, d, x = zeros(), zeros(), np.ones(4, np.float32)
    for buffer, text in (
        (zeros(), "result 0: is an argument updated in place, so no buffer of its own is expected"),
        (c.reshape(2, 2), "result 0: rank is 2, but 1 is expected"),
        (c.view(np.int32), "result 0: dtype is int32, but float32 is expected"),
    ):
        with pytest.raises(ExecutionError) as error:
            exe["step"].bind(c, d, x, results=[buffer, None, None]).run()
        assert str(error.value) == text
    call = exe["step"].bind(c, d, x, results=[c, None, None])
    found = call.run()
    assert found[0] is c
    assert found[1] is d


spans = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 9), st.booleans()).map(
        lambda t: (t[0], t[0] + t[1], t[2])
    ),
    max_size=8,
)


@settings(max_examples=500, deadline=None)
@given(spans)
def test_finds_an_overlap_if_there_is_one(found):
    numbered = [(*span, number) for number, span in enumerate(found)]

    def overlap(a: int, b: int) -> bool:
        (begin, end, written, _), (other, other_end, other_written, _) = numbered[a], numbered[b]
        return max(begin, other) < min(end, other_end) and (written or other_written)

    pairs = {(a, b) for b in range(len(found)) for a in range(b) if overlap(a, b)}
    pair = first_overlap(numbered)
    assert (pair is None) == (not pairs)
    assert pair is None or tuple(sorted(pair)) in pairs
    for new in numbered:
        other = overlap_with(new, numbered)
        others = {number for _, _, _, number in numbered if number != new[3]}
        assert (other is None) == (not any(overlap(new[3], number) for number in others))
