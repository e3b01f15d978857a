"""Compiles LLVM IR text to objects in worker processes, which LLVM may abort without harm.

Workers start on demand and are reused; each compiles one module at a time, so several modules use
several cores.
"""

import atexit
import hashlib
import io
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from relax_mlir.codegen.bounded_pipe import BoundedPipe
from relax_mlir.codegen.llvm_bfloat import move_as_integers
from relax_mlir.codegen.llvm_floats import spell_floats
from relax_mlir.errors import CompileError
from relax_mlir.target import WASM, Target

MAX_WORKERS = 16  # each takes some 100 MB
IDLE_SECONDS = 60.0  # after which a worker exits
EXIT_SECONDS = 2.0  # for a process to end after it closed its pipe
PIPE_SECONDS = 60.0  # timeout of a pipe once a job or an answer has begun
MAX_STARTS = 3  # of workers in a row that exit before they complete a job
_WORKER = Path(__file__).with_name("worker.py")
_MODES = {"preservesign": "preserve-sign", "positivezero": "positive-zero"}


@dataclass(frozen=True)
class Source:
    """A module for LLVM 22 to compile: its text, and bitcode that is linked into it.

    With `quick`, compilation takes a third of the time; the code is good enough for straight-line
    calls, not for loops. Bitcode without text is taken to be optimised.
    """

    text: str
    bitcode: bytes | None = None
    quick: bool = False


def compile_llvm(
    text: str, target: Target, opt_level: int = 3, bitcode: bytes | None = None
) -> bytes:
    """The relocatable ELF object of a module of LLVM IR, position-independent.

    `opt_level` is 0 to 3; `bitcode` is a module to link in first. Raises CompileError if LLVM
    refuses the text, does not know an intrinsic, or stops.
    """
    return compile_sources([Source(to_llvm_22(text, target), bitcode)], target, opt_level)[0]


def compile_sources(sources: Sequence[Source], target: Target, opt_level: int = 3) -> list[bytes]:
    """The objects of several modules, compiled at the same time on the machine's cores."""
    # The largest first: the last to finish should be a small one.
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i].text))
    with compiling(target, opt_level) as start:
        objects = {i: start(sources[i]) for i in order}
        return [objects[i].result() for i in range(len(sources))]


@contextmanager
def compiling(target: Target, opt_level: int = 3) -> Iterator[Callable[[Source], Future[bytes]]]:
    """Yields a function that starts to compile a module and returns a future of its object.

    When the `with` block ends, jobs that have not started are dropped, and it waits for the others.
    """
    pool = _pool()
    threads = ThreadPoolExecutor(max_workers=pool.size)
    try:
        yield lambda source: threads.submit(_compile_one, pool, source, target, opt_level)
    finally:
        threads.shutdown(cancel_futures=True)


def _compile_one(pool: "_Pool", source: Source, target: Target, opt_level: int) -> bytes:
    job = {
        "text": source.text,
        "triple": target.host.triple,
        "cpu": target.host.cpu,
        "features": target.host.llvm_features,
        "level": opt_level,
        "quick": source.quick,
        "bitcode": source.bitcode,
        "assembly": False,
    }
    return _object(pool.run(job), source.text, target.name)


def compile_assembly(text: str, triple: str, cpu: str, opt_level: int) -> bytes:
    """The assembly of a module of LLVM IR, as LLVM 22 reads it, for a device.

    Raises CompileError if LLVM refuses the text, does not know an intrinsic, or stops.
    """
    job = {
        **{"text": text, "triple": triple, "cpu": cpu, "features": "", "level": opt_level},
        **{"quick": False, "bitcode": None, "assembly": True},
    }
    return _object(_pool().run(job), text, cpu)


def version() -> str:
    """A key for what objects depend on besides their sources: LLVM, and how it is run."""
    return metadata.version("llvmlite") + hashlib.sha256(_WORKER.read_bytes()).hexdigest()


def start_workers(count: int = 2) -> None:
    """Starts workers up to `count`, so that they are ready when they are needed."""
    _pool().start(count)


def to_llvm_22(text: str, target: Target) -> str:
    """Translates LLVM IR that LLVM 24 prints to what LLVM 22 reads, and compiles for a target."""
    text = spell_floats(text.replace(" nocreateundeforpoison", ""))
    is_sve = target.host.arch == "aarch64" and target.host.vector_length > 0
    text = move_as_integers(text, calls=is_sve or target.host.arch == WASM)

    def denormals(match: re.Match[str]) -> str:
        mode = match[1].split(",")[0].split("|")[0].strip()
        mode = _MODES.get(mode, mode)
        return f'"denormal-fp-math"="{mode},{mode}"'

    return re.sub(r"denormal_fpenv\(([^)]*)\)", denormals, text)


def _object(answer: dict[str, Any], text: str, target: str) -> bytes:
    if "error" in answer:
        raise CompileError(
            f"LLVM cannot compile {_functions(text)} for {target}: {answer['error']}"
        )
    if answer["unknown"]:
        raise CompileError(
            f"LLVM does not know the intrinsic '{answer['unknown'][0]}', used in "
            f"{_functions(text)}, on {target}"
        )
    return answer["object"]


def _functions(text: str) -> str:
    names = re.findall(r"^define [^@]*@([^(]+)\(", text, re.MULTILINE)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"'{name}'" for name in names[:3]) + more


class _Worker:
    """One worker process and the pipes to it."""

    def __init__(self) -> None:
        self.log: IO[bytes] = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, str(_WORKER), str(IDLE_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.jobs = io.BufferedWriter(BoundedPipe(self.process.stdin, PIPE_SECONDS))
        self.from_worker = BoundedPipe(self.process.stdout, PIPE_SECONDS)
        self.answers = io.BufferedReader(self.from_worker)

    def ask(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a job: an error with LLVM's last output if it stops.

        None if the idle worker had exited before this job came.
        """
        try:
            pickle.dump(job, self.jobs, protocol=pickle.HIGHEST_PROTOCOL)
            self.jobs.flush()
            self.from_worker.patient = True
            return pickle.load(self.answers)
        except Exception as error:  # pickle raises anything on incomplete or foreign input
            return self._failure(error)

    def _failure(self, error: Exception) -> dict[str, Any] | None:
        """The reason why there is no answer; None if the process exited, as idle ones do."""
        try:
            status = self.process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return {"error": f"the process did not answer as expected: {error!r}"[:300]}
        if status == 0 and isinstance(error, EOFError | BrokenPipeError):
            return None
        return {"error": f"the process stopped with status {status}: {self._last_output()}"}

    def _last_output(self) -> str:
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        for line in lines:
            if "LLVM ERROR" in line or "Assertion" in line:
                return line
        return lines[-1] if lines else "no message"

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.jobs, self.answers, self.log):
            try:
                stream.close()
            except (
                BrokenPipeError,
                TimeoutError,
            ):  # unsent data has no reader any more
                continue


class _Pool:
    """Workers that wait for jobs; safe to use from several threads."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.lock = threading.Lock()
        self.idle: list[_Worker] = []
        self.size = min(_num_cpus(), MAX_WORKERS)

    def start(self, count: int) -> None:
        with self.lock:
            while len(self.idle) < min(count, self.size):
                self.idle.append(_Worker())

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        """The answer to a job, from an idle worker or a new one."""
        answer, starts = None, 0
        while answer is None:
            with self.lock:
                worker = self.idle.pop() if self.idle else None
            if worker is None:
                if starts == MAX_STARTS:
                    return {"error": f"{starts} processes in a row stopped without an answer"}
                worker, starts = _Worker(), starts + 1
            try:
                answer = worker.ask(job)
            except BaseException:
                worker.close()
                raise
            if worker.alive:
                with self.lock:
                    self.idle.append(worker)
            else:
                worker.close()
        return answer

    def close(self) -> None:
        with self.lock:
            while self.idle:
                self.idle.pop().close()


def _num_cpus() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_current: list[_Pool] = []


def _pool() -> _Pool:
    """The pool of this process; a forked child makes its own, since pipes cannot be shared."""
    if not _current or _current[0].owner != os.getpid():
        _current[:] = [_Pool()]
    return _current[0]


@atexit.register
def _close_pool() -> None:
    if _current and _current[0].owner == os.getpid():
        _current[0].close()
