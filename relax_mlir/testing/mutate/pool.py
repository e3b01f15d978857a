"""Processes that run jobs which may end or hang them: resident, limited in time and memory."""

import faulthandler
import multiprocessing
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from relax_mlir.testing.mutate.trial import Failure

SECONDS = 20.0
MEMORY = 6 << 30
_FRAME = re.compile(r'File "([^"]*relax_mlir/[^"]*)", line \d+ in (\w+)')


@dataclass
class Worker:
    """A process with a pipe to it, a file for its standard error, and one for where it is."""

    run: Callable[[Any, Path], Any]
    folder: Path
    seconds: float = SECONDS
    process: Any = None
    pipe: Connection | None = None
    job: Any = None
    started: float = 0.0

    def start(self, job: Any) -> None:
        """Gives the process a job; makes the process if there is none."""
        if self.process is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            fork = multiprocessing.get_context("fork")
            self.pipe, theirs = fork.Pipe()
            self.process = fork.Process(target=_serve, args=(self, theirs))
            self.process.start()
            theirs.close()
        assert self.pipe is not None
        self.job, self.started = job, time.monotonic()
        self.pipe.send(job)

    def answer(self) -> Any:
        """What came of the job; a Failure if the process ended or took too long."""
        assert self.pipe is not None
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            return self._ended(self.process.exitcode)

    def expire(self) -> Failure | None:
        """Ends a process that takes too long."""
        if time.monotonic() - self.started < self.seconds:
            return None
        self.stop()
        return self._ended(None)

    def _ended(self, status: int | None) -> Failure:
        self.process = None
        text = (self.folder / "stderr").read_text(errors="replace")
        reached = (self.folder / "reached").read_text(errors="replace")
        frame = _FRAME.search(text)
        where = f"{Path(frame[1]).name}:{frame[2]}" if frame else f"after {reached}"
        if status is None:
            return Failure("hang", f"hang in {where}", text[-4000:])
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        said = next(
            (line for line in text.splitlines() if "LLVM ERROR" in line or "ssert" in line), ""
        )
        return Failure("crash", f"{name} in {where} {said[:80]}".strip(), text[-4000:])

    def stop(self) -> None:
        """Ends the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def _limit_memory() -> None:
    """Lets this process take `MEMORY` more than it has: it begins with what its parent mapped."""
    with open("/proc/self/statm") as sizes:
        mapped = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY,) * 2)


def _serve(worker: Worker, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    log = open(worker.folder / "stderr", "w+b", buffering=0)
    os.dup2(log.fileno(), 2)
    sys.stderr = open(2, "w", closefd=False, buffering=1)
    faulthandler.enable(log)
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        os.lseek(2, 0, os.SEEK_SET)
        os.ftruncate(2, 0)
        faulthandler.dump_traceback_later(worker.seconds - 1, file=log)
        answer = worker.run(job, worker.folder)
        faulthandler.cancel_dump_traceback_later()
        pipe.send(answer)


@dataclass
class Pool:
    """Workers that run jobs at the same time; answers come as they are finished."""

    run: Callable[[Any, Path], Any]
    folder: Path
    count: int
    seconds: float = SECONDS
    workers: list[Worker] = field(default_factory=list)

    def __enter__(self) -> "Pool":
        self.workers = [
            Worker(self.run, self.folder / str(number), self.seconds)
            for number in range(self.count)
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()

    def __call__(self, job: Any) -> Any:
        """Runs one job, while no others run."""
        return next(self.map([job]))[1]

    def map(self, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any, Path]]:
        """Runs jobs; yields each with its answer and the folder of the worker that ran it."""
        rest = iter(jobs)
        busy: dict[Any, Worker] = {}
        idle = list(self.workers)
        while True:
            while idle and (job := next(rest, None)) is not None:
                worker = idle.pop()
                worker.start(job)
                busy[worker.pipe] = worker
            if not busy:
                return
            ready = wait(list(busy), timeout=0.5)
            for pipe, worker in list(busy.items()):
                late = None if pipe in ready else worker.expire()
                if pipe not in ready and late is None:
                    continue
                answer = worker.answer() if pipe in ready else late
                idle.append(busy.pop(pipe))
                yield worker.job, answer, worker.folder
