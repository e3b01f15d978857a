"""Calls of one executable from several threads: at the same time, each with memory of its own."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from c_module import CFunction, Output, Tensor, build_module, shape

from relax_mlir.errors import ExecutionError, OutOfMemoryError
from relax_mlir.executable import Executable, load

PRELUDE = """
#include <unistd.h>

static int32_t arrived;

static void nothing(void *data, int64_t begin, int64_t end) { (void)data, (void)begin, (void)end; }
"""

# Returns when n calls are in it.
MEET = """
  __atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; __atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < n; i++) {
    if (i > 1000000) return rx_fail(context, "the others do not come");
    usleep(10);
  }
"""

# Twice x, through the arena, where another call's values would be seen.
TWICE = """
  int64_t *arena = rx_arena(context, n * 8 + 64);
  if (!arena) return 1;
  const int64_t *x = args[0].data;
  for (int64_t i = 0; i < n; i++) arena[i] = 2 * x[i];
  rx_span_begin(0);
  rx_parallel_for(nothing, NULL, 64, 1);
  if (n % 7 == 0) usleep(50);
  rx_span_end();
  int64_t *out = rx_result(context, results, 0, RX_INT, 64, 1, &n);
  if (!out) return 1;
  memcpy(out, arena, (size_t)n * 8);
"""
SLOW = """
  if (((int64_t *)args[0].data)[0]++ % 2) return rx_fail(context, "a run is within another");
  usleep(50000);
  ((int64_t *)args[0].data)[0]++;
  if (rx_result_alias(context, results, 0, &args[0])) return 1;
"""
LACK = """
  if (n % 2) rx_scratch_pop(rx_scratch_push((int64_t)1 << 60 | n));
"""
FUNCTIONS = [
    CFunction("meet", [shape("count", ["n"])], body=MEET),
    CFunction(
        "twice", [Tensor("x", "i64", ["n"])], [Output("i64", ["n"])], ["n <= 5000"], body=TWICE
    ),
    CFunction(
        "slow", [Tensor("c", "i64", ["n"], inout=True)], [Output("i64", ["n"], 0)], body=SLOW
    ),
    CFunction("lack", [shape("count", ["n"])], body=LACK),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return build_module(FUNCTIONS, tmp_path_factory.mktemp("threads"), PRELUDE)


@pytest.fixture
def exe(path) -> Executable:
    return load(path)


def at_once(*works: Callable[[], object]) -> None:
    """Runs each in a thread of its own; raises what one of them raises."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


def test_calls_overlap(exe):
    """Each returns only when all are in it."""
    at_once(*[lambda: exe["meet"]((5,))] * 5)


def test_each_call_has_an_arena(exe):
    def loop(lengths: Sequence[int]) -> None:
        rng = np.random.default_rng(lengths[0])
        for round_ in range(60):
            x = rng.integers(-99, 99, lengths[round_ % len(lengths)])
            np.testing.assert_array_equal(exe["twice"](x, threads=round_ % 4), 2 * x)

    at_once(*[lambda lengths=lengths: loop(lengths) for lengths in ((0, 1, 7), (4999, 49), (343,))])
    # There are as many arenas as calls overlapped, and no more.
    held = exe.counters()["arena_bytes"]
    assert held <= 3 * (5000 * 8 + 64)
    steady = exe.counters()["allocations"]
    call = exe["twice"].bind(np.arange(4999), results=[np.zeros(4999, np.int64)])
    call.run(threads=1)
    for _ in range(10):
        call.run(threads=1)
    assert (
        exe.counters()["allocations"] <= steady + 2
    )  # one arena grew, and the scratch of a thread


def test_errors_are_those_of_the_thread(exe):
    def loop(length: int) -> None:
        x = np.zeros(length, np.int64)
        for _ in range(200):
            with pytest.raises(
                ExecutionError, match=f"but n = {length} from argument 0 'x', dim 0$"
            ):
                exe["twice"](x)

    def lack(count: int) -> None:
        for _ in range(200):
            text = rf"a kernel needs {1 << 60 | count} bytes of scratch memory$"
            with pytest.raises(OutOfMemoryError, match=text):
                exe["lack"]((count,))
            exe["lack"]((2,))

    at_once(lambda: loop(5001), lambda: loop(7000), lambda: lack(1), lambda: lack(77))


def test_one_call_in_two_threads_is_made_twice(exe):
    count = np.zeros(1, np.int64)
    call = exe["slow"].bind(count)

    def replace() -> None:
        call.set(0, count)

    at_once(call.run, call.run, replace, call.run)
    assert count == 6


def test_an_argument_is_replaced_while_others_run(exe):
    arrays = [np.full(length, length) for length in (1, 500, 5000)]
    call = exe["twice"].bind(arrays[0].copy())

    def run() -> None:
        for _ in range(200):
            found = call.run(threads=1)
            assert (found == 2 * len(found)).all()

    def replace() -> None:
        for index in range(200):
            call.set(0, arrays[index % 3].copy())  # which nothing else keeps

    at_once(run, run, replace, replace)
    assert len(call._referents) == 1


def test_spans_tell_calls_apart(exe):
    exe.record(1000)
    at_once(*[lambda: [exe["twice"](np.zeros(7, np.int64)) for _ in range(100)]] * 3)
    spans = exe.spans()
    exe.record(0)
    assert len(spans) == 300
    assert sorted(spans["call"]) == list(range(300))
    assert (spans["end"] > spans["begin"]).all()
    assert (np.diff(spans["end"]) >= -50_000_000).all()


def test_recording_begins_and_ends_while_others_run(exe):
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            exe["twice"](np.zeros(5, np.int64), threads=1)

    def record() -> None:
        for index in range(300):
            exe.record((100, 1, 0)[index % 3])
            assert len(exe.spans()) <= 100
        exe.record(0)
        done.set()

    at_once(run, record, run)
    assert len(exe.spans()) == 0


def test_spans_beyond_the_capacity_are_not_recorded(exe):
    exe.record(3)
    for _ in range(5):
        exe["twice"](np.zeros(2, np.int64))
    assert list(exe.spans()["call"]) == [0, 1, 2]
    exe.record(0)
    exe["twice"](np.zeros(2, np.int64))
    assert len(exe.spans()) == 0
