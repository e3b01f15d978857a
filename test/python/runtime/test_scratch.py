"""Kernels that run out of scratch memory: an error of the call, after which all goes on."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from c_module import CFunction, Output, build_module, shape

from relax_mlir.errors import ExecutionError, OutOfMemoryError
from relax_mlir.executable import Executable, load

BEYOND = (1 << 47) + 1  # more than an address space has
MESSAGE = rf"^out of memory: a kernel needs {BEYOND} bytes of scratch memory$"

PRELUDE = f"""
typedef struct {{ int32_t *out; int64_t bad; }} Rows;

/* Pushes twice in each iteration; too much in that of `bad`. */
static void push_rows(void *data, int64_t begin, int64_t end) {{
  Rows *rows = data;
  for (int64_t i = begin; i < end; i++) {{
    char *first = rx_scratch_push(1000 + 997 * i);
    memset(first, 1, (size_t)(1000 + 997 * i));
    char *second = rx_scratch_push(i == rows->bad ? {BEYOND} : 100);
    memset(second, 2, 100);
    __atomic_fetch_add(&rows->out[i], first[i] + second[0], __ATOMIC_RELAXED);
    rx_scratch_pop(second);
    rx_scratch_pop(first);
  }}
}}

static void nest_rows(void *data, int64_t begin, int64_t end) {{
  for (int64_t i = begin; i < end; i++) rx_parallel_for(push_rows, data, 30, 1);
}}
"""
ROWS = """
  int32_t *out = rx_result(context, results, 0, RX_INT, 32, 1, &n);
  if (!out) return 1;
  memset(out, 0, (size_t)n * 4);
  Rows rows = {out, bad};
  char *before = rx_scratch_push(5000);
  memset(before, 3, 5000);
"""
AFTER = """
  if (before[4999] != 3) return rx_fail(context, "scratch memory in use was written to");
  rx_scratch_pop(before);
"""
OUT = [Output("i32", ["n"])]
FUNCTIONS = [
    CFunction(
        "loop",
        [shape("which", ["n", "bad"])],
        OUT,
        body=ROWS + "rx_parallel_for(push_rows, &rows, n, 1);" + AFTER,
    ),
    CFunction(
        "nest",
        [shape("which", ["n", "bad"])],
        OUT,
        body=ROWS + "rx_parallel_for(nest_rows, &rows, 5, 1);" + AFTER,
    ),
    CFunction("alone", [shape("bytes", ["n"])], body="rx_scratch_pop(rx_scratch_push(n));"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return build_module(FUNCTIONS, tmp_path_factory.mktemp("scratch"), PRELUDE)


@pytest.fixture
def exe(path) -> Executable:
    return load(path)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("bad", [0, 1, 50, 99])
def test_a_kernel_that_runs_out_is_an_error_of_its_call(exe, threads, bad):
    exe.threads = threads
    good = exe["loop"].bind((100, 1000), results=[np.zeros(100, np.int32)])
    np.testing.assert_array_equal(good.run(), np.full(100, 3))
    call = exe["loop"].bind((100, bad), results=[np.zeros(100, np.int32)])
    for _ in range(3):
        with pytest.raises(OutOfMemoryError, match=MESSAGE):
            call.run()
        np.testing.assert_array_equal(good.run(), np.full(100, 3))


def test_it_is_both_kinds_of_error(exe):
    assert issubclass(OutOfMemoryError, ExecutionError)
    with pytest.raises(MemoryError, match=MESSAGE):
        exe["alone"]((BEYOND,))
    exe["alone"]((1 << 20,))


@pytest.mark.parametrize("threads", [1, 3])
def test_loops_within_loops(exe, threads):
    exe.threads = threads
    with pytest.raises(OutOfMemoryError, match=MESSAGE):
        exe["nest"]((30, 29))
    np.testing.assert_array_equal(exe["nest"]((30, 30)), np.full(30, 15))


def test_nothing_is_leaked(exe):
    exe.threads = 1
    good = exe["loop"].bind((100, 100), results=[np.zeros(100, np.int32)])
    bad = exe["loop"].bind((100, 70), results=[np.zeros(100, np.int32)])
    for _ in range(3):
        good.run()
    steady = exe.counters()["allocations"]
    for _ in range(50):
        with pytest.raises(OutOfMemoryError):
            bad.run()
        good.run()
    assert exe.counters()["allocations"] == steady


def test_threads_fail_and_succeed_side_by_side(path):
    wrong = []

    def loop(bad: int) -> None:
        exe = load(path)
        for _ in range(100):
            try:
                found = exe["loop"]((64, bad), threads=3)
            except OutOfMemoryError:
                found = None
            if (found is None) != (bad < 64) or (found is not None and not (found == 3).all()):
                wrong.append(bad)

    threads = [threading.Thread(target=loop, args=(bad,)) for bad in (63, 64, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


LIMITED = """
import resource, sys
import numpy as np
from relax_mlir.errors import OutOfMemoryError
from relax_mlir.executable import load

exe = load(sys.argv[1])
exe.threads = 2
exe["loop"]((2, 2))
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), resource.RLIM_INFINITY))
try:
    exe["alone"]((40 << 20,))
except OutOfMemoryError as error:
    print(error)
assert (exe["loop"]((100, 100)) == 3).all()
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
exe["alone"]((40 << 20,))
"""


def run(code: str, path: Path, **environment: str) -> subprocess.CompletedProcess:
    """What Python says of `code` in a process of its own, with the module at `path` as argument."""
    return subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
    )


def test_a_limit_of_the_system(path):
    found = run(LIMITED, path)
    assert found.returncode == 0, found.stderr
    assert found.stdout == "out of memory: a kernel needs 41943040 bytes of scratch memory\n"


@pytest.mark.parametrize("value", ["abc", "0", "-2", "2x", "1.5", "٣"])
def test_a_number_of_threads_that_is_none(path, value):
    code = "import sys; from relax_mlir.executable import load; load(sys.argv[1])"
    found = run(code, path, RELAX_NUM_THREADS=value)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1] == (
        f"relax_mlir.errors.UsageError: RELAX_NUM_THREADS is '{value}'; "
        "expects a thread count of 1 or more"
    )


@pytest.mark.parametrize(("value", "threads"), [("3", 3), ("100000", 256), ("", None)])
def test_a_number_of_threads(path, value, threads):
    code = """
import os, sys
from relax_mlir.executable import load
exe = load(sys.argv[1])
exe["alone"]((8,))
print(exe.threads, len(os.sched_getaffinity(0)))
"""
    found = run(code, path, RELAX_NUM_THREADS=value)
    assert found.returncode == 0, found.stderr
    got, cpus = map(int, found.stdout.split())
    assert got == (cpus if threads is None else threads)
