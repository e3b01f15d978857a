"""A thread that works for the main thread, which meanwhile runs the handlers of signals."""

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_Job = Callable[[], Any]


class Helper:
    """The thread, which waits for work; it belongs to the `process` that made it."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._jobs: SimpleQueue[tuple[_Job, SimpleQueue] | None] = SimpleQueue()
        threading.Thread(target=_serve, args=(self._jobs,), daemon=True).start()

    def run(self, job: _Job, stop: Callable[[bool], None]) -> Any:
        """The result of a job.

        If a handler raises an exception, `stop(True)` has the job end soon; that is over when the
        exception is raised here.
        """
        outcome: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        try:
            self._jobs.put((job, outcome))
            result, error = outcome.get()
        except BaseException:
            self._finish(stop)
            raise
        if error is not None:
            raise error
        return result

    def _finish(self, stop: Callable[[bool], None]) -> None:
        """Ends the job, if the thread has one: it takes the next one only then."""
        fence: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        while True:
            try:
                stop(True)
                self._jobs.put((lambda: stop(False), fence))
                fence.get()
                return
            except BaseException:  # of another signal; one is raised
                continue

    def end(self) -> None:
        """Ends the thread."""
        self._jobs.put(None)


def _serve(jobs: "SimpleQueue[tuple[_Job, SimpleQueue] | None]") -> None:
    while (given := jobs.get()) is not None:
        job, outcome = given
        try:
            outcome.put((job(), None))
        except BaseException as error:
            outcome.put((None, error))
        del given, job, outcome
