"""What the modules of a process share, and how it forks and ends."""

from pathlib import Path

import pytest
from c_module import CFunction, Output, build_module, shape
from programs import run

PRELUDE = r"""
#include <unistd.h>

static void visit(void *data, int64_t begin, int64_t end) {
  int32_t *out = data;
  for (int64_t i = begin; i < end; i++) __atomic_fetch_add(&out[i], 1, __ATOMIC_RELAXED);
}

/* Ends when so many threads are in it at the same time. */
static void meet(void *data, int64_t begin, int64_t end) {
  int32_t *missing = data;
  for (int64_t i = begin; i < end; i++) __atomic_fetch_sub(missing, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(missing, __ATOMIC_SEQ_CST) > 0) usleep(10);
}
"""
VISIT = """
  int32_t *out = rx_result(context, results, 0, RX_INT, 32, 1, &n);
  if (!out) return 1;
  memset(out, 0, (size_t)n * 4);
  rx_parallel_for(visit, out, n, 1);
"""
MEET = """
  int32_t missing = (int32_t)n;
  rx_parallel_for(meet, &missing, n, 1);
"""
FUNCTIONS = [
    CFunction("visit", [shape("count", ["n"])], [Output("i32", ["n"])], body=VISIT),
    CFunction("meet", [shape("count", ["n"])], body=MEET),
]
HEAD = """
import os, sys, threading, time
from relax_mlir.executable import load
def threads():
    return len(os.listdir("/proc/self/task"))
modules = [load(path) for path in sys.argv[1:]]
"""


@pytest.fixture(scope="module")
def paths(tmp_path_factory) -> list[Path]:
    """Four modules, each a file of its own."""
    built = build_module(FUNCTIONS, tmp_path_factory.mktemp("process"), PRELUDE)
    copies = [built.with_name(f"module{i}.so") for i in range(4)]
    for copy in copies:
        copy.write_bytes(built.read_bytes())
    return copies


def check(code: str, *paths: Path, **options: float) -> None:
    """Runs a program that must end well and say nothing."""
    found = run(HEAD + code, *paths, **options)
    assert found.stderr == ""
    assert found.returncode == 0


def test_modules_share_their_threads(paths):
    check(
        """
before = threads()
for module in modules:
    assert (module["visit"]((1000,), threads=4) == 1).all()
    module["meet"]((4,), threads=4)
    assert threads() == before + 3, threads() - before
del module, modules[1:]
assert (modules[0]["visit"]((1000,), threads=4) == 1).all()
assert threads() == before + 3
""",
        *paths,
    )


def test_overlapping_loops_have_threads_of_their_own(paths):
    """Two modules at the same time: no loop gets a thread that another one uses."""
    check(
        """
cpus = len(os.sched_getaffinity(0))
before = threads()
callers = [threading.Thread(target=lambda m=m: [m["visit"]((997,), threads=3) for _ in range(300)])
           for m in modules]
for caller in callers: caller.start()
for caller in callers: caller.join()
time.sleep(0.1)  # the system counts threads for a while that have ended
assert threads() - before <= max(2, cpus - 1)
modules[0]["meet"]((3,), threads=3)
""",
        *paths,
    )


def test_a_module_is_unloaded_while_others_use_the_pool(paths):
    check(
        """
import _ctypes
handles = [module._library._handle for module in modules]
for module in modules:
    module["meet"]((3,), threads=3)
rest = modules.pop()
del modules[:], module
for handle in handles[:3]:
    _ctypes.dlclose(handle)
for _ in range(3):
    rest["meet"]((3,), threads=3)
    time.sleep(0.01)
""",
        *paths,
    )


@pytest.mark.parametrize("is_same", [True, False], ids=["same call", "other call"])
def test_children_of_a_process_that_is_in_calls(paths, is_same):
    """The child has no thread that the parent had, and locks that nobody holds."""
    check(
        f"""
module, is_same = modules[0], {is_same}
call = module["visit"].bind((5000,))
stop = []
def work():
    own = call if is_same else module["visit"].bind((5000,))
    while not stop:
        assert (own.run(3) == 1).all()
        own.set(0, (5000,))
workers = [threading.Thread(target=work, daemon=True) for _ in range(2)]
for worker in workers: worker.start()
children = []
for i in range(20):
    time.sleep(0.002 * i / 10)
    child = os.fork()
    if not child:
        for _ in range(3):
            assert (call.run(3) == 1).all()
            module["meet"]((3,), threads=3)
        own = threading.Thread(target=lambda: call.run(2))
        own.start(); own.join()
        os._exit(0)
    children.append(child)
end = time.time() + 30
while children and time.time() < end:
    done, status = os.waitpid(-1, os.WNOHANG)
    assert not status
    if done: children.remove(done)
    else: time.sleep(0.01)
stop.append(1)
for worker in workers: worker.join()
for child in children: os.kill(child, 9)
assert not children, f"{{len(children)}} children hang"
""",
        paths[0],
    )


@pytest.mark.parametrize("is_changed", [False, True], ids=["begun", "changed"])
def test_children_of_a_process_that_changes_an_argument(paths, is_changed):
    """The child has the argument of before, whatever the parent's thread has written of it."""
    check(
        f"""
call = modules[0]["visit"].bind((5000,))
assert (call.run(3) == 1).all()
state, argument = call._call, call._args[0]
# As another thread leaves it while it is in `rx_exchange_argument`.
state.before, state.changing, state.lock = argument, 1, 2
if {is_changed}:
    argument.ndim, argument.shape = -1, None
child = os.fork()
if not child:
    assert (call.run(3) == 1).all()
    call.set(0, (40,))
    assert call.run(3).shape == (40,) and (call.run() == 1).all()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
        paths[0],
    )


def test_children_of_children(paths):
    check(
        """
def fork(depth):
    assert (modules[0]["visit"]((1000,), threads=3) == 1).all()
    modules[1]["meet"]((3,), threads=3)
    child = depth and os.fork()
    if depth and not child:
        fork(depth - 1)
        os._exit(0)
    if child: assert os.waitpid(child, 0)[1] == 0
fork(4)
""",
        *paths,
    )


def test_the_end_of_a_process_with_threads_in_calls(paths):
    code = """
for module in modules:
    def work(module=module):
        while True: module["visit"]((20000,), threads=3)
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""
    for _ in range(5):
        check(code, *paths, timeout=20)


def test_the_threads_of_a_call(paths):
    """Those of the run, or of the executable, of which a module may have several."""
    check(
        """
one, other = modules[0], load(sys.argv[1])
one.threads = 3
other.threads = 1
regions = lambda: one.counters()["parallel_regions"]
one["meet"]((3,))
assert (one.threads, other.threads, regions()) == (3, 1, 1)
other["visit"]((100,))
assert regions() == 1
other["visit"]((100,), threads=2)
one["visit"]((100,), threads=1)
one["visit"]((100,), threads=0)
assert regions() == 3
one.threads = 0
assert one.threads == len(os.sched_getaffinity(0)), one.threads
one.threads = 2 ** 70
assert one.threads == 256
""",
        paths[0],
    )


def test_workers_do_not_inherit_what_a_thread_is_bound_to(paths):
    check(
        """
first = min(os.sched_getaffinity(0))
def work():
    os.sched_setaffinity(0, {first})
    modules[0]["meet"]((3,), threads=3)
caller = threading.Thread(target=work)
caller.start(); caller.join()
modules[0]["meet"]((3,), threads=3)
for task in os.listdir("/proc/self/task"):
    assert os.sched_getaffinity(int(task)) == os.sched_getaffinity(0)
assert load(sys.argv[2]).threads == len(os.sched_getaffinity(0))
""",
        *paths,
    )


def test_everything_at_the_same_time(paths):
    """Calls in threads, interrupts, children that call, and an end while threads are in calls."""
    check(
        """
import signal
armed = interrupts = 0
def handler(*_):
    global armed, interrupts
    if armed:
        armed, interrupts = 0, interrupts + 1
        raise KeyboardInterrupt
def work(module):
    while True:
        assert (module["visit"]((997,), threads=3) == 1).all()
for module in modules[1:]:
    threading.Thread(target=work, args=(module,), daemon=True).start()
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
call, end = modules[0]["visit"].bind((499,)), time.time() + 1.5
while time.time() < end:
    try:
        armed = 1
        for _ in range(50):
            assert (call.run(2) == 1).all()
        armed = 0
    except KeyboardInterrupt:
        pass
    armed, child = 0, os.fork()
    if not child:
        assert (call.run(3) == 1).all() and (modules[3]["visit"]((99,), threads=3) == 1).all()
        os._exit(0)
    assert not os.waitpid(child, 0)[1]
signal.setitimer(signal.ITIMER_REAL, 0)
assert interrupts > 3, interrupts
assert (call.run() == 1).all()
""",
        *paths,
    )
