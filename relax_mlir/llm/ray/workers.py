"""Answers jobs on a cluster of Ray: each worker has an engine of its own.

Ray starts a worker again that was killed, and repeats what it was asked: an answer arrives once.

Source: Ray's documentation, "Fault tolerance of actors".
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from relax_mlir.errors import ExecutionError, RelaxError
from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.offline.answering import Answers, answers_of
from relax_mlir.llm.offline.jobs import Job, begin
from relax_mlir.llm.ray.cluster import connected


class EngineWorker:
    """What runs in a process of Ray: an engine, which `options` are for.

    It is loaded when it is needed first: also once the process was started again.
    """

    def __init__(self, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self._options = options
        self._defaults = defaults
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def load(self) -> str | None:
        """Loads the engine; the error if that fails."""
        try:
            with self._lock:
                self._loaded()
        except RelaxError as error:
            return str(error)
        return None

    def answer(self, job: Job) -> dict[str, Any]:
        """See `jobs.begin`; waits for the answer."""
        with self._lock:
            wait = begin(job, self._loaded(), self._defaults)
        return wait()

    def _loaded(self) -> Engine:
        if self._engine is None:
            self._engine = Engine.load(**self._options)
        return self._engine


@contextmanager
def ray_answers(
    address: str,
    workers: int | None,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any],
    at_once: int,
) -> Iterator[Answers]:
    """Starts `workers`, by default one for each machine of the cluster, of `at_once` answers each.

    `address` is one of `connected`. Workers load the model by its path, which must be the same
    everywhere.

    Raises UsageError and ExecutionError as `connected` does, and ExecutionError if a worker cannot
    start.
    """
    with connected(address):
        import ray  # once an address without a cluster is refused

        count = workers or max(sum(node["Alive"] for node in ray.nodes()), 1)
        actor = ray.remote(
            num_cpus=0, max_restarts=-1, max_task_retries=-1, max_concurrency=at_once
        )(EngineWorker)
        actors = [actor.remote(dict(options), dict(defaults)) for _ in range(count)]
        for reason in filter(None, ray.get([each.load.remote() for each in actors])):
            raise ExecutionError(f"a worker of Ray cannot start: {reason}")
        yield answers_of(_Dispatch(actors).begin, at_once * count)


class _Dispatch:
    """Gives each job to the worker that has the fewest."""

    def __init__(self, actors: list[Any]) -> None:
        self._actors = actors
        self._running: Counter[int] = Counter()
        self._lock = threading.Lock()

    def begin(self, job: Job) -> Callable[[], dict[str, Any]]:
        """Sends a job; the result waits for its answer."""
        with self._lock:
            index = min(range(len(self._actors)), key=lambda i: self._running[i])
            self._running[index] += 1
        answer = self._actors[index].answer.remote(job)
        return lambda: self._wait(answer, index)

    def _wait(self, answer: Any, index: int) -> dict[str, Any]:
        import ray

        try:
            given: dict[str, Any] = ray.get(answer)
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]  # after the worker's traceback
            raise ExecutionError(f"a worker of Ray fails: {reason}") from None
        with self._lock:
            self._running[index] -= 1
        return given
