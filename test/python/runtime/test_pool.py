"""Parallel loops: each iteration runs once, at any number of threads, nested, and after a fork."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from c_module import CFunction, Output, Tensor, build_module, shape

from relax_mlir.executable import Executable, load

PRELUDE = r"""
#include <time.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void visit(void *data, int64_t begin, int64_t end) {
  int32_t *out = data;
  for (int64_t i = begin; i < end; i++) __atomic_fetch_add(&out[i], 1, __ATOMIC_RELAXED);
}

/* Marks the first iteration of each range. */
static void mark(void *data, int64_t begin, int64_t end) {
  (void)end;
  ((int32_t *)data)[begin] = 1;
}

typedef struct { int32_t *out; int64_t inner; } Nest;

static void outer(void *data, int64_t begin, int64_t end) {
  Nest *nest = data;
  for (int64_t i = begin; i < end; i++)
    rx_parallel_for(visit, nest->out + i * nest->inner, nest->inner, 1);
}

/* Uses scratch memory of different sizes in each iteration; checks that it is private. */
static void scratch(void *data, int64_t begin, int64_t end) {
  int32_t *out = data;
  for (int64_t i = begin; i < end; i++) {
    int64_t length = 1 + i * 7919 % 30000;
    int32_t *first = rx_scratch_push(length * 4);
    int32_t *second = rx_scratch_push(length * 4);
    for (int64_t k = 0; k < length; k++) first[k] = (int32_t)i, second[k] = (int32_t)-i;
    int32_t wrong = ((uintptr_t)first | (uintptr_t)second) % 64 != 0;
    for (int64_t k = 0; k < length; k++) wrong += first[k] != i || second[k] != -i;
    rx_scratch_pop(second);
    rx_scratch_pop(first);
    out[i] = wrong;
  }
}

static void nothing(void *data, int64_t begin, int64_t end) { (void)data; (void)begin; (void)end; }

static int64_t nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void wait_first(void *data, int64_t begin, int64_t end) {
  (void)end;
  /* The second range is over at once; the first lasts until another thread has run the second. */
  if (begin) *(volatile int32_t *)data = (int32_t)end;
  else while (!*(volatile int32_t *)data) usleep(10);
}
"""

BUFFER = """
  int32_t *out = rx_result(context, results, 0, RX_INT, 32, 1, &n);
  if (!out) return 1;
  memset(out, 0, (size_t)n * 4);
"""

NESTED = """
  int64_t length = n * m;
  int32_t *out = rx_result(context, results, 0, RX_INT, 32, 1, &length);
  if (!out) return 1;
  memset(out, 0, (size_t)length * 4);
  Nest nest = {out, m};
  rx_parallel_for(outer, &nest, n, 1);
"""

LATENCY = """
  int64_t *out = rx_result(context, results, 0, RX_INT, 64, 1, &n);
  if (!out) return 1;
  for (int64_t i = 0; i < n; i++) {
    if (pause) usleep((useconds_t)pause);
    int64_t start = nanoseconds();
    rx_parallel_for(nothing, NULL, 64, 1);
    out[i] = nanoseconds() - start;
  }
"""

MEET = """
  int32_t seen = 0;
  rx_parallel_for(wait_first, &seen, 2, 1);
"""

COUNT = [shape("count", ["n", "grain"])]
FUNCTIONS = [
    CFunction(
        "visit",
        COUNT,
        [Output("i32", ["n"])],
        body=BUFFER + "rx_parallel_for(visit, out, n, grain);",
    ),
    CFunction(
        "mark", COUNT, [Output("i32", ["n"])], body=BUFFER + "rx_parallel_for(mark, out, n, grain);"
    ),
    CFunction(
        "scratch",
        COUNT,
        [Output("i32", ["n"])],
        body=BUFFER + "rx_parallel_for(scratch, out, n, grain);",
    ),
    CFunction("nested", [shape("count", ["n", "m"])], [Output("i32", ["n*m"])], body=NESTED),
    CFunction("latency", [shape("count", ["n", "pause"])], [Output("i64", ["n"])], body=LATENCY),
    CFunction("meet", body=MEET),
    CFunction("typed", [Tensor("x", "f32", ["n"])]),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return build_module(FUNCTIONS, tmp_path_factory.mktemp("pool"), PRELUDE)


@pytest.fixture
def exe(path) -> Executable:
    return load(path)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 31, 32, 33, 1009, 65537])
@pytest.mark.parametrize("grain", [1, 5, 1000])
def test_visits_each_iteration_once(exe, threads, count, grain):
    got = exe["visit"]((count, grain), threads=threads)
    np.testing.assert_array_equal(got, np.ones(count))


@pytest.mark.parametrize(
    ("count", "grain", "threads", "ranges"),
    [
        (100, 100, 4, 1),
        (101, 100, 4, 2),
        (1000, 1, 1, 1),
        (1000, 1, 2, 32),
        (7, 1, 2, 7),
        (9, 4, 2, 3),
    ],
)
def test_ranges(exe, count, grain, threads, ranges):
    before = exe.counters()["parallel_regions"]
    assert exe["mark"]((count, grain), threads=threads).sum() == ranges
    assert exe.counters()["parallel_regions"] - before == (ranges > 1)


def test_two_threads_work_at_the_same_time(exe):
    exe["meet"](threads=2)


def test_nested_loops_run_in_place(exe):
    before = exe.counters()["parallel_regions"]
    got = exe["nested"]((13, 17), threads=3)
    np.testing.assert_array_equal(got, np.ones(13 * 17))
    assert exe.counters()["parallel_regions"] - before == 1


def test_the_number_of_threads_changes_between_calls(exe):
    for threads in [3, 1, 2, 5, 2, 1, 4] * 20:
        np.testing.assert_array_equal(exe["visit"]((257, 1), threads=threads), np.ones(257))


def test_thread_number_is_kept(exe):
    exe.threads = 3
    exe["visit"]((10, 1), threads=2)
    assert exe.threads == 3
    exe.threads = 100_000
    assert exe.threads == 256
    exe.threads = 0
    assert exe.threads >= 1


def test_contexts_share_the_pool(path):
    executables = [load(path) for _ in range(3)]
    wrong = []

    def loop(exe: Executable) -> None:
        for _ in range(200):
            if not (exe["visit"]((1009, 1), threads=3) == 1).all():
                wrong.append(exe)

    threads = [threading.Thread(target=loop, args=(exe,)) for exe in executables]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_scratch_is_private_and_kept(exe):
    call = exe["scratch"].bind((203, 1), results=[np.zeros(203, np.int32)])
    for _ in range(3):
        np.testing.assert_array_equal(call.run(threads=3), np.zeros(203))
    # Blocks grow until each thread has met its largest iteration; one thread shows it for certain.
    call.run(threads=1)
    steady = exe.counters()["allocations"]
    for _ in range(5):
        call.run(threads=1)
    assert exe.counters()["allocations"] == steady


CHILD = """
import os, sys
import numpy as np
from relax_mlir.executable import load

exe = load(sys.argv[1])
exe.threads = 3
assert exe["visit"]((1000, 1)).all()
child = os.fork()
assert (exe["visit"]((1000, 1)) == 1).all()
exe["meet"]()
assert (exe["scratch"]((100, 1)) == 0).all()
if child == 0:
    del exe
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_fork_and_environment(path):
    run = [sys.executable, "-W", "ignore", "-c"]
    subprocess.run([*run, CHILD, str(path)], check=True, timeout=60)
    code = "import sys; from relax_mlir.executable import load; print(load(sys.argv[1]).threads)"
    done = subprocess.run(
        [*run, code, str(path)],
        check=True,
        capture_output=True,
        text=True,
        env={"RELAX_NUM_THREADS": "5", "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout == "5\n"


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("pause", [0, 20, 1000])
def test_latency(exe, threads, pause):
    number = 20000 if pause == 0 else 200
    exe["latency"]((100, 0), threads=threads)
    times = np.sort(exe["latency"]((number, pause), threads=threads))
    quantiles = ", ".join(f"{q} % {times[number * q // 100]}" for q in (10, 50, 90, 99))
    print(f"fork and join, {threads} threads, every {pause} us: {quantiles} ns")
    # A worker that sleeps or shares the core must not hold the caller up.
    assert times[number // 2] < 200_000
