"""Streams: stages that run at once, each in a thread, with bounded queues between them.

    with Stream(stages_of(compiled, "edges"), depth=4) as stream:
        stream.push(frame)
        stream.pop()

A compiled function releases Python's lock, so stages overlap. Source: HPVM, arXiv 1611.00860,
section 3.2 (launch, push, pop, wait).
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from types import TracebackType
from typing import Any

from relax_mlir.dialects.graph import stage_name
from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.executable import Executable, Function

from .scheduler import MappedStage, Scheduler
from .timeline import Timeline, name_of

Stage = Callable[[Any], Any]
"""Takes an item, or the results of the stage before; several are a tuple."""
_END = object()


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
    error: Exception


class Stream:
    """Stages that compute items in order; at most `depth` items wait for each, and at the end.

    Every call that may block takes a limit in seconds, and raises ExecutionError beyond it.
    """

    def __init__(
        self, stages: Sequence[Stage], depth: int = 4, timeline: Timeline | None = None
    ) -> None:
        """Launches the stages; raises UsageError without any, or for a depth below 1.

        A timeline gets a track for each stage, and a span for each item, as long as there are any.
        """
        if not stages or depth < 1:
            raise UsageError(
                f"a stream of {len(stages)} stages with queues of {depth} runs nothing"
            )
        self.depth = depth
        self._timeline = timeline
        self._queues: list[queue.Queue[Any]] = [queue.Queue(depth) for _ in range(len(stages) + 1)]
        self._is_closed = self._is_told = self._has_ended = False
        for index, stage in enumerate(stages):
            Thread(target=self._work, args=(index, stage), daemon=True).start()

    def _work(self, index: int, stage: Stage) -> None:
        source, sink = self._queues[index], self._queues[index + 1]
        item = None
        while item is not _END:
            item = source.get()
            if item is not _END and not isinstance(item, _Failure):
                try:
                    item = self._compute(index, stage, item)
                except Exception as error:
                    item = _Failure(index, error)
            sink.put(item)

    def _compute(self, index: int, stage: Stage, item: Any) -> Any:
        if self._timeline is None:
            return stage(item)
        with self._timeline.span(index, name_of(stage, f"stage {index}")):
            return stage(item)

    def push(self, item: Any, timeout: float = 60) -> None:
        """Passes an item to the first stage; blocks while its queue is full."""
        if self._is_closed:
            raise UsageError("a stream takes no item after wait")
        try:
            self._queues[0].put(item, timeout=timeout)
        except queue.Full:
            raise ExecutionError(f"no stage took an item within {timeout} s") from None

    def pop(self, timeout: float = 60) -> Any:
        """The next result, in the order of items; blocks until there is one.

        Raises ExecutionError if a stage could not compute it, UsageError after the last one.
        """
        if self._has_ended:
            raise UsageError("a stream has no result after its end")
        try:
            item = self._queues[-1].get(timeout=timeout)
        except queue.Empty:
            raise ExecutionError(f"no result within {timeout} s") from None
        if item is _END:
            self._has_ended = True
            raise UsageError("a stream has no result after its end")
        if isinstance(item, _Failure):
            raise ExecutionError(f"stage {item.stage} of a stream: {item.error}") from item.error
        return item

    def wait(self, timeout: float = 60) -> list[Any]:
        """Ends the stream: the results that nobody has taken, as soon as all stages are done.

        Raises ExecutionError, when all are, if one of them could not be computed.
        """
        self._is_closed = True
        end, results, failed = time.monotonic() + timeout, [], None
        while not self._has_ended:
            if time.monotonic() > end:
                raise ExecutionError(f"a stream has not ended within {timeout} s")
            if not self._is_told:
                try:
                    self._queues[0].put_nowait(_END)
                    self._is_told = True
                except queue.Full:
                    pass  # the results below are in the way
            try:
                item = self._queues[-1].get(timeout=0.02)
            except queue.Empty:
                continue
            self._has_ended = item is _END
            if isinstance(item, _Failure):
                failed = failed or item
            elif item is not _END:
                results.append(item)
        if failed is not None:
            raise ExecutionError(f"stage {failed.stage} of a stream: {failed.error}")
        return results

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if not self._has_ended and not self._is_closed:
            self.wait()
