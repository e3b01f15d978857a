"""An answer that an engine is working on: its events, from any thread."""

from collections.abc import Callable, Iterator
from queue import SimpleQueue

from relax_mlir.llm.batching.request import Event, Request, TokenLogprobs
from relax_mlir.llm.batching.sequence import Sequence
from relax_mlir.llm.generation.answer import Answer


class Ticket:
    """The events of one request as they come; iterate to get them, from one thread.

    The last event has `finish`; a ticket that is cancelled may end without one. `reused` tokens of
    the prompt were in pages of other requests.
    """

    def __init__(
        self,
        request: Request,
        answer: Answer,
        sequence: Sequence,
        changed: Callable[["Ticket"], None],
    ) -> None:
        self.request = request
        self.answer = answer
        self.sequence = sequence
        self.is_cancelled = False
        self._changed = changed
        self._events: SimpleQueue[Event | None] = SimpleQueue()
        self._is_over = False

    @property
    def reused(self) -> int:
        """Tokens of the prompt that were not computed for this request."""
        return min(self.sequence.reused, len(self.request.prompt))

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = None if self._is_over else self._events.get()
        if event is None or event.finish is not None:
            self._is_over = True
        if event is None:
            raise StopIteration
        return event

    def cancel(self) -> None:
        """Ends the answer; its pages are free before the next step. Repeated calls do nothing."""
        if not self.is_cancelled:
            self.is_cancelled = True
            self._events.put(None)
            self._changed(self)

    def put(self, text: str, token: int | None = None, logprobs: TokenLogprobs | None = None) -> bool:
        """Sends what a step added, with the end of the answer if this is it; returns whether."""
        reason = self.answer.reason
        if reason is not None:
            text += self.answer.flush()
            reason = self.answer.reason  # the rest may complete a stop text
        tokens = () if token is None else (token,)
        if reason is None:
            finish = None
        else:
            finish = "stop" if reason in ("end", "stop") else "length"
        if text or tokens or finish:
            self._events.put(Event(text, tokens, () if logprobs is None else (logprobs,), finish))
        return finish is not None

    def fail(self, error: str) -> None:
        """Ends the answer with an error."""
        self._events.put(Event(self.answer.flush(), finish="error", error=error))
