"""Tasks that do not depend on each other, at the same time.

edges, histogram = together([lambda: f(image), lambda: g(image)])

A compiled function releases Python's lock, so tasks overlap. `executable.threads` are those of each
call: 1 leaves the other cores to the other tasks. Source: HPVM, arXiv 1611.00860, section 3.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

from relax_mlir.errors import ExecutionError

from .timeline import Timeline, name_of


def together(
    tasks: Sequence[Callable[[], Any]], timeout: float = 60, timeline: Timeline | None = None
) -> list[Any]:
    """Runs each task in a thread; the results in the order of the tasks, when all have ended.

    Raises ExecutionError if a task fails, or has not ended within so many seconds: then it goes on.
    """
    noted = Timeline() if timeline is None else timeline
    results: list[Any] = [None] * len(tasks)
    errors: dict[int, Exception] = {}

    def run(index: int, task: Callable[[], Any]) -> None:
        try:
            with noted.span(index, name_of(task, f"task {index}")):
                results[index] = task()
        except Exception as error:
            errors[index] = error

    threads = [Thread(target=run, args=item, daemon=True) for item in enumerate(tasks)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + timeout
    for index, thread in enumerate(threads):
        thread.join(max(0.0, end - time.monotonic()))
        if thread.is_alive():
            raise ExecutionError(f"task {index} has not ended within {timeout} s")
    for index, error in sorted(errors.items()):
        raise ExecutionError(f"task {index}: {error}") from error
    return results
