"""Runs step after step of the decoder in a thread, and sends what each adds to the answers.

The lock guards the scheduler, the tickets and the counts. Only the worker's thread changes what
runs: other threads add requests, and say which ones to end.
"""

import threading
import time
from collections.abc import Iterable

import numpy as np

from relax_mlir.errors import RelaxError
from relax_mlir.llm.batching.batch import Batch, Run
from relax_mlir.llm.batching.metrics import Counts, Metrics
from relax_mlir.llm.batching.request import Busy
from relax_mlir.llm.batching.scheduler import Scheduler, Step
from relax_mlir.llm.batching.sequence import Sequence
from relax_mlir.llm.batching.ticket import Ticket


class Worker:
    """Works on tickets, of which up to `max_waiting` wait, and sequences of up to `capacity`."""

    def __init__(self, batch: Batch, scheduler: Scheduler, max_waiting: int, capacity: int) -> None:
        self._batch = batch
        self._capacity = capacity
        self._scheduler = scheduler
        self._max_waiting = max_waiting
        self._tickets: dict[Sequence, Ticket] = {}
        self._cancelled: list[Ticket] = []
        self._counts = Counts()
        self._takes_more = True
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="relax-engine", daemon=True)
        self._thread.start()

    def add(self, ticket: Ticket) -> None:
        """Takes a ticket; raises Busy if too many wait, or no more are taken."""
        with self._changed:
            if not self._takes_more:
                raise Busy("the engine is being closed")
            if self._scheduler.waiting >= self._max_waiting:
                raise Busy(f"{self._scheduler.waiting} requests wait; expects fewer")
            self._counts.requests += 1
            self._scheduler.add(ticket.sequence)
            self._tickets[ticket.sequence] = ticket
            self._changed.notify_all()

    def cancel(self, ticket: Ticket) -> None:
        """Removes a ticket before the next step."""
        with self._changed:
            self._cancelled.append(ticket)
            self._changed.notify_all()

    def metrics(self) -> Metrics:
        """The present state, and counts since the start."""
        with self._changed:
            counts = vars(self._counts)
            pages = self._scheduler.pages
            return Metrics(
                running=len(self._scheduler.running),
                waiting=self._scheduler.waiting,
                pages_free=pages.free,
                pages_used=pages.used,
                pages_cached=pages.cached,
                **{**counts, "last_steps": tuple(self._counts.last_steps)},
            )

    @property
    def is_working(self) -> bool:
        """See `Engine.is_working`."""
        return self._takes_more and self._thread.is_alive()

    def close(self, drain: bool, timeout: float | None) -> None:
        """See `Engine.close`."""
        with self._changed:
            self._takes_more = False
            if drain:
                self._changed.wait_for(lambda: not self._tickets, timeout)
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        try:
            self._run_steps()
        finally:  # nobody waits for answers, whatever went wrong
            with self._changed:
                self._takes_more = False
                self._fail(list(self._tickets.values()), Busy("the engine was closed"))

    def _run_steps(self) -> None:
        while (step := self._next_step()) is not None:
            begin = time.perf_counter()
            try:
                rows = self._run(step)
            except Exception as error:  # those in the step fail, others go on
                with self._changed:
                    self._fail([self._tickets[sequence] for sequence, _ in step.parts], error)
                continue
            with self._changed:
                self._scheduler.complete(step)
                self._count(step, len(rows), time.perf_counter() - begin)
            self._send(rows)

    def _next_step(self) -> Step | None:
        """Waits for something to do; None once the worker is closed."""
        with self._changed:
            while True:
                cancelled, self._cancelled = self._cancelled, []
                self._remove(cancelled)
                if self._is_closed:
                    return None
                if self._tickets:
                    return self._scheduler.plan()
                self._changed.wait()

    def _run(self, step: Step) -> dict[Sequence, np.ndarray]:
        """Runs the decoder; returns the logits of the sequences whose next token follows."""
        for source, target in step.copies:
            self._batch.copy(source, target)
        runs = [
            Run(
                sequence.tokens[sequence.length : sequence.length + count],
                sequence.length,
                sequence.pages,
                int(count == sequence.remaining),
                sequence.pictures,
                sequence.adapter,
            )
            for sequence, count in step.parts
        ]
        ready = [sequence for sequence, count in step.parts if count == sequence.remaining]
        return dict(zip(ready, self._batch.step(runs), strict=True))

    def _send(self, rows: dict[Sequence, np.ndarray]) -> None:
        """Adds a token to the answer of each row, and ends those that it completes."""
        for sequence, logits in rows.items():
            ticket = self._tickets[sequence]
            try:
                event = ticket.advance(logits)
            except Exception as error:  # such as logits that are not finite: others go on
                with self._changed:
                    self._fail([ticket], error)
                continue
            if event.finish is not None:
                with self._changed:
                    self._remove([ticket])
            elif (shorter := ticket.shift(self._capacity)) is not None:
                with self._changed:
                    self._scheduler.replace(sequence, shorter)
                    self._tickets[shorter] = self._tickets.pop(sequence)
            ticket.send(event)

    def _count(self, step: Step, tokens: int, seconds: float) -> None:
        counts = self._counts
        counts.steps += 1
        counts.step_seconds += seconds
        counts.last_steps.append(seconds)
        counts.tokens_out += tokens
        counts.tokens_in += step.prompt_tokens
        counts.tokens_reused += step.reused_tokens
        counts.preemptions += step.preemptions

    def _fail(self, tickets: Iterable[Ticket], error: Exception) -> None:
        """Ends answers with an error."""
        text = str(error) if isinstance(error, RelaxError) else f"{type(error).__name__}: {error}"
        self._remove(tickets)
        for ticket in tickets:
            self._counts.failures += 1
            ticket.fail(text)

    def _remove(self, tickets: Iterable[Ticket]) -> None:
        for ticket in tickets:
            if self._tickets.pop(ticket.sequence, None) is not None:
                self._scheduler.remove(ticket.sequence)
        if not self._tickets:
            self._changed.notify_all()
