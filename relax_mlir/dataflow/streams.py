"""Streams: stages that run at once, each in a thread, with bounded queues of the runtime between.

    with Stream(stages_of(compiled, "edges"), depth=4) as stream:
        stream.push(frame)
        stream.pop()

A compiled function releases Python's lock, so stages overlap. Source: HPVM, arXiv 1611.00860,
section 3.2 (launch, push, pop, wait).
"""

from __future__ import annotations

import functools
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Thread
from types import TracebackType
from typing import Any

from relax_mlir.compiler import compile
from relax_mlir.dialects.graph import stage_name
from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.executable import Executable, Function
from relax_mlir.runtime.calls import natural
from relax_mlir.runtime.queues import Busy, Closed, Queue

from .scheduler import MappedStage, Scheduler
from .timeline import Timeline, name_of

Stage = Callable[[Any], Any]
"""Takes an item, or the results of the stage before; several are a tuple."""


def stages_of(executable: Executable | Scheduler, name: str) -> list[Stage]:
    """The stages of a compiled graph function with streams, each a function of one item.

    Those of a scheduler choose a device for each item. An item is the argument, or a tuple of
    several. Raises UsageError if it has no streams.
    """
    names = [stage_name(name, index) for index in range(len(executable.functions))]
    known = executable.functions
    stages: list[Stage] = [_Unpacked(executable[each]) for each in names if each in known]
    if not stages:
        raise UsageError(f"'{name}' has no stages; an edge of it is streamed(each(x)) then")
    return stages


@dataclass(frozen=True)
class _Unpacked:
    """A function of a tuple of its arguments, if there are several."""

    function: Function | MappedStage

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.name

    def __call__(self, item: Any) -> Any:
        """The result, or a tuple of several."""
        return self.function(*item) if isinstance(item, tuple) else self.function(item)


@dataclass(frozen=True)
class _Failure:
    """What a stage made of an item that it could not compute."""

    stage: int
    error: BaseException


@functools.cache
def _runtime() -> Executable:
    """A module that is nothing but the runtime, whose queues streams have."""
    return compile("module {}")


class Stream:
    """Stages that compute items in order; at most `depth` items wait for each, and at the end.

    Any threads push and pop. Every call that may block takes a limit in seconds, and raises
    ExecutionError beyond it. A stream that nobody has any more ends.
    """

    def __init__(
        self, stages: Sequence[Stage], depth: int = 4, timeline: Timeline | None = None
    ) -> None:
        """Launches the stages; raises UsageError without any, or for a depth below 1.

        A timeline gets a track for each stage, and a span for each item, as long as there are any.
        """
        if not stages or natural("depth", depth) < 1:
            raise UsageError(
                f"a stream of {len(stages)} stages with queues of {depth} runs nothing"
            )
        self.depth = natural("depth", depth)
        library = _runtime()._library
        self._queues = [Queue(library, self.depth) for _ in range(len(stages) + 1)]
        self._results: deque[Any] = deque()  # that `wait` has taken so far
        self._is_closed, self._process = False, os.getpid()
        # The threads have no reference to the stream, only to its queues.
        weakref.finalize(self, _close, self._queues).atexit = False
        for index, (stage, (source, sink)) in enumerate(zip(stages, pairwise(self._queues))):
            work = _computed(stage, index, timeline)
            Thread(target=_serve, args=(work, index, source, sink), daemon=True).start()

    def push(self, item: Any, timeout: float = 60) -> None:
        """Passes an item to the first stage; blocks while its queue is full."""
        self._check_process()
        try:
            self._queues[0].push(item, timeout)
        except Closed:
            raise UsageError("a stream takes no item after wait") from None
        except Busy:
            raise ExecutionError(f"no stage took an item within {timeout} s") from None

    def pop(self, timeout: float = 60) -> Any:
        """The next result, in the order of items; blocks until there is one.

        Raises ExecutionError if a stage could not compute it, UsageError after the last one.
        """
        self._check_process()
        try:
            item = self._next(timeout)
        except Closed:
            raise UsageError("a stream has no result after its end") from None
        except Busy:
            raise ExecutionError(f"no result within {timeout} s") from None
        if isinstance(item, _Failure):
            raise _described(item) from item.error
        return item

    def _next(self, timeout: float) -> Any:
        """The next result or failure; raises Closed or Busy."""
        try:
            return self._results.popleft()
        except IndexError:
            return self._queues[-1].pop(timeout)

    def wait(self, timeout: float = 60) -> list[Any]:
        """Ends the stream: the results that nobody has taken, as soon as all stages are done.

        Raises ExecutionError, when all are, if one of them could not be computed. Beyond the limit
        the results so far can still be popped, or waited for again.
        """
        self._check_process()
        self._is_closed = True
        self._queues[0].close()
        end = time.monotonic() + timeout
        try:
            while True:
                self._results.append(self._queues[-1].pop(end - time.monotonic()))
        except Busy:
            raise ExecutionError(f"a stream has not ended within {timeout} s") from None
        except Closed:
            results, self._results = list(self._results), deque()
        for item in results:
            if isinstance(item, _Failure):
                raise _described(item) from item.error
        return results

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise UsageError("a stream belongs to the process that launched it")

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Waits for the end; after an error, items that no stage has taken are dropped."""
        if kind is not None:
            _close(self._queues)
        elif not self._is_closed:
            self.wait()


def _close(queues: Sequence[Queue]) -> None:
    for each in queues:
        each.close()


def _computed(stage: Stage, index: int, timeline: Timeline | None) -> Stage:
    """A stage that notes its spans, if anybody reads them."""
    if timeline is None:
        return stage
    name = name_of(stage, f"stage {index}")

    def compute(item: Any) -> Any:
        with timeline.span(index, name):
            return stage(item)

    return compute


def _serve(stage: Stage, index: int, source: Queue, sink: Queue) -> None:
    """Computes what comes until there is nothing more, or nobody takes the results."""
    try:
        while True:
            sink.push(_result(stage, index, source.pop()))
    except Closed:
        source.close()
        sink.close()


def _result(stage: Stage, index: int, item: Any) -> Any:
    if isinstance(item, _Failure):
        return item
    try:
        return stage(item)
    except BaseException as error:  # the thread goes on, whatever a stage raises
        return _Failure(index, error)


def _described(failure: _Failure) -> ExecutionError:
    error = failure.error
    text = str(error) or type(error).__name__
    return ExecutionError(f"stage {failure.stage} of a stream: {text}")
