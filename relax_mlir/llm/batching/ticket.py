"""An answer that an engine is working on: its events, from any thread."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import SimpleQueue
from threading import Lock
from typing import Literal

import numpy as np

from relax_mlir.llm.batching.logprobs import token_logprobs
from relax_mlir.llm.batching.request import Event, Request, TokenLogprobs
from relax_mlir.llm.batching.sequence import Sequence
from relax_mlir.llm.generation.answer import Answer
from relax_mlir.llm.generation.context_shift import dropped


class Ticket:
    """The events of one request as they come; iterate to get them, from one thread, or `listen`.

    The last event has `finish`; without it, the ticket was cancelled. `reused` tokens of the prompt
    were in pages of other requests.
    """

    def __init__(
        self,
        request: Request,
        answer: Answer,
        when_cancelled: Callable[["Ticket"], None],
        adapter: int = 0,
    ) -> None:
        self.request = request
        tokens = list(answer.prompt)
        self.sequence = Sequence(tokens, request.client, request.pictures, adapter)
        self._answer = answer
        self._when_cancelled = when_cancelled
        self._is_cancelled = False
        self._events: SimpleQueue[Event | None] = SimpleQueue()
        self._is_over = False
        self._lock = Lock()  # between what sends events and `listen`
        self._listener: Callable[[Event | None], None] | None = None

    @property
    def reused(self) -> int:
        """Tokens of the prompt that were not computed for this request."""
        return self.sequence.reused

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = None if self._is_over else self._events.get()
        self._is_over = event is None or event.finish is not None
        if event is None:
            raise StopIteration
        return event

    def listen(self, listener: Callable[[Event | None], None]) -> None:
        """Calls `listener` for each event, once for those so far, instead of iteration.

        It is called in the engine's thread, which waits for it. None means that the ticket was
        cancelled, and is the last then.
        """
        with self._lock:
            self._listener = listener
            while not self._events.empty():
                listener(self._events.get())

    def cancel(self) -> None:
        """Ends the answer; its pages are free before the next step. Repeated calls do nothing."""
        if not self._is_cancelled:
            self._is_cancelled = True
            self._put(None)
            self._when_cancelled(self)

    def ended(self) -> Event | None:
        """The event of an answer that has no tokens; None if a token follows."""
        return None if self._answer.reason is None else self._event("", (), ())

    def advance(self, logits: np.ndarray) -> Event:
        """Samples the next token of the sequence for its logits (1-D)."""
        answer, count = self._answer, self.request.logprobs
        token = answer.sample(logits)
        known = len(answer.tokens)
        text = answer.push(token)
        tokens = tuple(answer.tokens[known:])  # none if it ends the answer
        self.sequence.tokens += tokens
        logprobs = () if count is None or not tokens else (token_logprobs(logits, token, count),)
        return self._event(text, tokens, logprobs)

    def shift(self, capacity: int) -> Sequence | None:
        """The sequence that follows this one, if it does not fit in the context and goes on."""
        keep, old = self.request.keep, self.sequence
        if keep is None or len(old.tokens) <= capacity:
            return None
        begin = keep + dropped(len(old.tokens), keep)
        tokens = old.tokens[:keep] + old.tokens[begin:]
        self.sequence = replace(old, tokens=tokens, length=0, pages=[], published=0, _keys=[])
        return self.sequence

    def send(self, event: Event) -> None:
        """Adds an event."""
        self._put(event)

    def _put(self, event: Event | None) -> None:
        with self._lock:
            (self._listener or self._events.put)(event)

    def fail(self, error: str) -> None:
        """Ends the answer with an error."""
        self.send(Event("", finish="error", error=error))

    def _event(
        self, text: str, tokens: tuple[int, ...], logprobs: tuple[TokenLogprobs, ...]
    ) -> Event:
        """An event, with the rest of the text if it is the last."""
        finish: Literal["stop", "length"] | None = None
        if self._answer.reason is not None:
            text += self._answer.flush()
            finish = "stop" if self._answer.reason in ("end", "stop") else "length"
        return Event(text, tokens, logprobs, finish)
