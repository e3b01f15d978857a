"""A child's end is told, whatever it does, and what it writes arrives."""

import os
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from relax_mlir.child_process import FAILED, Ended, run_in_child


def test_status_and_bytes():
    assert run_in_child(lambda result: result.write(b"abc"), 5) == Ended(3, None, b"abc")


def fail(result):
    result.write(b"half")
    raise ValueError


def test_an_exception_is_a_status():
    assert run_in_child(fail, 5).status == FAILED


def test_a_signal_is_named():
    ended = run_in_child(lambda result: os.kill(os.getpid(), signal.SIGSEGV), 5)
    assert (ended.status, ended.signal) == (None, signal.SIGSEGV)


def test_time_is_bounded():
    begin = time.monotonic()
    assert run_in_child(lambda result: time.sleep(60), 1).signal == signal.SIGALRM
    assert time.monotonic() - begin < 30


def take(size: int) -> int:
    try:
        bytearray(size)
    except MemoryError:
        return 1
    return 0


def test_memory_is_bounded():
    assert run_in_child(lambda result: take(1 << 20), 5, 1 << 26).status == 0
    assert run_in_child(lambda result: take(1 << 28), 5, 1 << 26).status == 1


def test_prints_nothing(capfd):
    run_in_child(lambda result: os.write(1, b"out") * 0 + os.write(2, b"err") * 0, 5)
    assert capfd.readouterr() == ("", "")


def children() -> set[str]:
    """The processes that this one has started and not waited for."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_interrupts_end_the_child():
    def interrupt(*_):
        raise KeyboardInterrupt

    before = children()
    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(1)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_in_child(lambda result: time.sleep(60), 60)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    assert children() == before


def test_threads_leave_filters_of_warnings_alone(monkeypatch):
    fork, before = os.fork, list(warnings.filters)

    def slow_fork() -> int:
        time.sleep(0.02)  # other threads come here meanwhile
        return fork()

    monkeypatch.setattr(os, "fork", slow_fork)
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(lambda i: run_in_child(lambda file: i, 10).status, range(8)))
    assert ends == list(range(8))
    assert warnings.filters == before
