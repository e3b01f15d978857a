"""A process that runs one program's cases on request, so that programs can be interleaved.

    python benchmarks/worker.py peers.onnxruntime_peer:Kernels 2

Started by `interleaved.py`; exchanges JSON, one line a message, on its original standard output.
Each program has its own process, with its own thread pools and allocators.
"""

import importlib
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

LEAST_SECONDS = 50e-6
"""Less than this is timed together with more of its kind."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Prepared:
    """A prepared case: `run` runs it once and returns its results as arrays.

    `reset`, if given, is called before each run; `finish` converts the first result for the
    comparison; neither is timed. `retained` keeps arrays alive that the program uses by address.
    """

    run: Callable[[], list]
    reset: Callable[[], Any] | None = None
    finish: Callable[[Any], Any] | None = None
    retained: Any = None


class Program(Protocol):
    """A program that can be measured; constructed with a thread count."""

    version: str

    def prepare(self, case: dict) -> Prepared:
        """Prepares a case; raises NotImplementedError, with the reason, if it cannot."""


def timed(prepared: Prepared, seconds: float, runs: int) -> list[float]:
    """Returns the seconds of each run: at least `runs` of them, and at least `seconds` in all.

    Runs that need no reset and are too short for the clock are timed in batches.
    """
    times: list[float] = []
    batch = 1
    total = 0.0
    while len(times) < runs or total < seconds:
        if prepared.reset:
            prepared.reset()
        begin = time.perf_counter()
        for _ in range(batch):
            prepared.run()
        passed = time.perf_counter() - begin
        total += passed
        if passed < LEAST_SECONDS and not prepared.reset:
            batch *= 2
        else:
            times.append(passed / batch)
    return times


class Server:
    """Answers requests for one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._prepared: dict[str, Prepared] = {}

    def answer(self, request: dict) -> dict:
        """Executes a request; the answer has `unsupported` if the program cannot."""
        return getattr(self, "_" + request.pop("do"))(**request)

    def _version(self) -> dict:
        return {"version": self._program.version}

    def _prepare(self, case: dict, check: str | None) -> dict:
        """Prepares a case and runs it once; `check` names a file for its first result."""
        begin = time.perf_counter()
        try:
            prepared = self._program.prepare(case)
        except NotImplementedError as reason:
            return {"unsupported": str(reason)}
        if prepared.reset:
            prepared.reset()
        results = prepared.run()
        if check is not None:
            import numpy as np

            finish = prepared.finish or np.asarray
            np.save(check, finish(results[0]))
        self._prepared[json.dumps(case)] = prepared
        return {"seconds": time.perf_counter() - begin}

    def _time(self, case: dict, seconds: float, runs: int, warm: int = 0) -> dict:
        """Times a case after `warm` warm-up runs."""
        prepared = self._prepared[json.dumps(case)]
        for _ in range(warm):
            if prepared.reset:
                prepared.reset()
            prepared.run()
        times = timed(prepared, seconds, runs)
        return {"median": statistics.median(times), "least": min(times), "runs": len(times)}

    def _forget(self, case: dict) -> dict:
        self._prepared.pop(json.dumps(case), None)
        return {}


def serve(spec: str, threads: int) -> None:
    """Constructs the program `module:Class` and answers requests until the input ends."""
    # What the program prints must not end up among the answers.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, name = spec.split(":")
    try:
        server = Server(getattr(importlib.import_module(module), name)(threads))
        answer = server.answer({"do": "version"})
    except ImportError as error:
        answer = {"absent": str(error)}
    print(json.dumps(answer), file=channel, flush=True)
    if "absent" in answer:
        return
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:  # the other side decides what a failure means
            traceback.print_exc()
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=channel, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
