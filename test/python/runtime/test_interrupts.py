"""Interrupts at any moment: the call works afterwards, and each result has one owner."""

from pathlib import Path

import pytest
from c_module import CFunction, Output, Tensor, build_module
from programs import run

# Adds 1; the second result has as many bytes as the interrupted calls must not lose.
ADD = """
  float *out = rx_result(context, results, 0, RX_FLOAT, 32, 2, (int64_t[]){n, m});
  char *large = out ? rx_result(context, results, 1, RX_INT, 8, 1, &(int64_t){200000 + n}) : NULL;
  if (!large) return 1;
  memset(large, 1, (size_t)(200000 + n));
  for (int64_t i = 0; i < n * m; i++) out[i] = ((const float *)args[0].data)[i] + 1;
"""
SLOW = """
  usleep(200000);
  *(int64_t *)args[0].data += 1;
  if (rx_result_alias(context, results, 0, &args[0])) return 1;
"""
FUNCTIONS = [
    CFunction(
        "add",
        [Tensor("x", "f32", ["n", "m"])],
        [Output("f32", ["n", "m"]), Output("i8", ["n + 200000"])],
        body=ADD,
    ),
    CFunction("slow", [Tensor("c", "i64", [1], inout=True)], [Output("i64", [1], 0)], body=SLOW),
]

# An interrupt disarms itself, so that none comes where no call is made.
HEAD = """
import signal, sys, time
import numpy as np
from relax_mlir.executable import load

exe = load(sys.argv[1])
armed = interrupts = 0
def handler(*_):
    global armed, interrupts
    if armed:
        armed, interrupts = 0, interrupts + 1
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)

def peak():  # in KB; `ru_maxrss` has that of the process which started this one
    (line,) = (each for each in open("/proc/self/status") if each.startswith("VmHWM"))
    return int(line.split()[1])

def loop(work, seconds):
    begin = time.time()
    def goes_on():  # a busy machine takes longer
        return time.time() < begin + (seconds if interrupts > 100 else 60)
    def until_interrupted():  # within a function: Python 3.13.0 does not catch all in a loop
        global armed
        armed = 1
        while goes_on():
            work()
        armed = 0
    signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
    while goes_on():
        try:
            until_interrupted()
        except KeyboardInterrupt:
            pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert interrupts > 100, interrupts

def check(results, x):
    small, large = results
    assert small.shape == x.shape and (small == x + 1).all() and large.shape == (200000 + len(x),)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return build_module(FUNCTIONS, tmp_path_factory.mktemp("interrupts"), "#include <unistd.h>")


PROGRAMS = {
    "bound": """
arrays = [np.full((rows, 3), rows, np.float32) for rows in (40, 7, 1)]
call = exe["add"].bind(arrays[0])
def work():
    check(call.run(), arrays[0])
""",
    "other dims": """
arrays = [np.full((rows, 3), rows, np.float32) for rows in (40, 7, 1)]
call = exe["add"].bind(arrays[0])
def work():
    for x in arrays:
        call.set(0, x.copy())  # kept by the call alone
        check(call.run(), x)
""",
    "function": """
x = np.full((40, 3), 5, np.float32)
def work():
    check(exe["add"](x), x)
""",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_interrupts(path, program):
    """Each of a thousand lost results would be 200 KB that are never used again."""
    code = f"""{HEAD}{PROGRAMS[program]}
loop(work, 0.2)
before = peak()
loop(work, 1.2)
assert peak() - before < 20 << 10
work()
"""
    found = run(code, path)
    assert found.stderr == ""
    assert found.returncode == 0


def test_an_interrupt_of_a_long_call_is_not_lost(path):
    code = f"""{HEAD}
count = np.zeros(1, np.int64)
call = exe["slow"].bind(count)
signal.setitimer(signal.ITIMER_REAL, 0.05)
armed, begin = 1, time.time()
try:
    while True: call.run()
except KeyboardInterrupt:
    pass
assert time.time() - begin < 1
assert count == 1
assert call.run() is count
assert count == 2
"""
    found = run(code, path)
    assert found.stderr == ""
    assert found.returncode == 0
