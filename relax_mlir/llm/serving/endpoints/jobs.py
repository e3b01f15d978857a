"""What a generation request asks for, whatever its endpoint, and the parts of its response."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from relax_mlir.llm.batching.request import Event, Request
from relax_mlir.llm.serving.engines import Served

Object = dict[str, Any]


class Choice(Protocol):
    """One answer of a response while it grows."""

    def push(self, event: Event) -> Object | None:
        """The choice of a chunk for an event; None if there is nothing to tell yet."""

    def whole(self) -> Object:
        """The choice of a whole response, after its last event."""


@dataclass
class Job:
    """Requests to the engine of a model, one for each of `choices`, and the form of the response.

    `object` and `chunk` are the types of the response and of parts of a stream, `prefix` that of
    its id.
    """

    served: Served
    requests: Sequence[Request]
    choices: Sequence[Choice]
    object: str
    chunk: str
    prefix: str
    stream: bool
    include_usage: bool
    opening: Callable[[int], Object] | None = None
    tokens: int = 0
    _id: str = field(default_factory=lambda: secrets.token_hex(12))
    _created: int = field(default_factory=lambda: int(time.time()))

    def opening_chunks(self) -> Iterator[Object]:
        """What a stream says before the first event."""
        if self.opening is not None:
            for index in range(len(self.choices)):
                yield self._chunk([self.opening(index)])

    def push(self, index: int, event: Event) -> Object | None:
        """The chunk for an event of a choice, if there is anything to tell."""
        self.tokens += len(event.tokens)
        choice = self.choices[index].push(event)
        return None if choice is None else self._chunk([choice])

    def closing_chunk(self) -> Object | None:
        """What a stream says after the last event, before its end."""
        return {**self._chunk([]), "usage": self._usage()} if self.include_usage else None

    def whole(self) -> Object:
        """The response without streaming."""
        choices = [choice.whole() for choice in self.choices]
        return {**self._head(self.object), "choices": choices, "usage": self._usage()}

    def _chunk(self, choices: list[Object]) -> Object:
        chunk = {**self._head(self.chunk), "choices": choices}
        return {**chunk, "usage": None} if self.include_usage else chunk

    def _head(self, kind: str) -> Object:
        return {
            "id": f"{self.prefix}-{self._id}",
            "object": kind,
            "created": self._created,
            "model": self.served.name,
        }

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompts; samples share one."""
        prompts = {id(request.prompt): len(request.prompt) for request in self.requests}
        return sum(prompts.values())

    def _usage(self) -> Object:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.tokens,
            "total_tokens": self.prompt_tokens + self.tokens,
        }
