"""Processes that check batches one after the other, and may crash or hang."""

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

from .batch import Outcome, Work, check, check_programs
from .check import Failure
from .program import Program

Check = Callable[[Work, Callable[[str], None]], Outcome]
"""What a worker does with a batch, as `check` does."""
STARTING = "starting"
HANG = "hang: it takes too long"
SECONDS = 120.0, 30.0
"""The time limit of what a worker begins, and what each program of its batch adds to it."""


def _serve(pipe: Connection, check: Check) -> None:
    """Checks what comes until the other end closes."""
    sys.stderr = open("/dev/null", "w")  # remarks on each program
    while True:
        try:
            work, programs = pipe.recv()
        except EOFError:
            return
        pipe.send(
            check(work, lambda what: pipe.send(what))
            if programs is None
            else check_programs(programs, work, Outcome(), lambda what: pipe.send(what))
        )


class _Worker:
    """A process, the batch that it has, and what it last began."""

    def __init__(self, check: Check = check) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, check), daemon=False)
        self.process.start()
        other.close()
        self.work: Work | None = None
        self.began, self.since = "", 0.0

    def give(self, work: Work, programs: Sequence[Program] | None = None) -> None:
        """Hands it a batch, whose programs it writes if none are given."""
        self.work = work
        self.begins(STARTING)
        self.pipe.send((work, programs))

    def begins(self, what: str) -> None:
        """Notes what it begins, and when."""
        self.began, self.since = what, time.monotonic()

    def is_late(self, seconds: tuple[float, float]) -> bool:
        """Whether what it began takes too long."""
        if self.work is None or self.began == STARTING:
            return False
        return time.monotonic() - self.since > seconds[0] + seconds[1] * self.work.count

    def end(self) -> int | None:
        """Ends the process; returns how it ended if it had."""
        self.pipe.close()
        self.process.join(5)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
        return code


class Tester:
    """Checks one program after the other in a process of its own, which is replaced if it ends."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None

    def failures(self, program: Program, work: Work, seconds: float) -> list[Failure]:
        """How a program fails under the settings of a batch; one that takes too long hangs."""
        worker = self._worker = self._worker or _Worker()
        worker.give(work, [program])
        try:
            while worker.pipe.poll(seconds):
                found = worker.pipe.recv()
                if isinstance(found, Outcome):
                    return found.failures
                worker.began = found
            kind = HANG
            worker.process.kill()
        except (EOFError, ConnectionResetError):
            kind = "crash: the process ends"
        self.end()
        return [Failure(program.seed, worker.began, kind)]

    def end(self) -> None:
        """Ends the process."""
        if self._worker is not None:
            self._worker.end()
        self._worker = None


def checked(
    batches: Sequence[Work],
    jobs: int,
    check: Check = check,
    seconds: tuple[float, float] = SECONDS,
) -> Iterator[tuple[Work, Outcome]]:
    """The outcome of each batch; programs that end the process are found one by one.

    Those that take too long are ended.
    """
    waiting = list(reversed(batches))
    workers: dict[Any, _Worker] = {}
    try:
        while waiting or any(worker.work for worker in workers.values()):
            while waiting and len(workers) < jobs:
                worker = _Worker(check)
                workers[worker.pipe] = worker
            for worker in workers.values():
                if worker.work is None and waiting:
                    worker.give(waiting.pop())
            for pipe in wait([w.pipe for w in workers.values() if w.work], seconds[0] / 2):
                yield from _received(workers, pipe, waiting, seconds)
            for worker in workers.values():
                if worker.is_late(seconds):
                    worker.process.kill()
    finally:
        for worker in workers.values():
            worker.end()


def _received(
    workers: dict[Any, _Worker], pipe: Any, waiting: list[Work], seconds: tuple[float, float]
) -> Iterator[tuple[Work, Outcome]]:
    """What a worker says: an outcome, what it begins, or that it is gone."""
    worker = workers[pipe]
    work = worker.work
    assert work is not None
    try:
        found = pipe.recv()
    except (EOFError, ConnectionResetError):
        code = worker.end()
        del workers[pipe]
        if work.count > 1:
            half = work.count // 2
            waiting.append(replace(work, count=half))
            waiting.append(replace(work, first=work.first + half, count=work.count - half))
            return
        text = HANG if worker.is_late(seconds) else f"crash: the process ends with {code}"
        yield work, Outcome([Failure(work.first, worker.began, text)], programs=1)
        return
    if isinstance(found, str):
        worker.begins(found)
        return
    worker.work = None
    yield work, found
