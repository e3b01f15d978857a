"""What the server asks of the engines of its models."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from relax_mlir.llm.batching.request import Event, Request
from relax_mlir.llm.generation.grammar import Grammar
from relax_mlir.llm.generation.text_model import TextModel
from relax_mlir.llm.serving.sandbox import Sandbox
from relax_mlir.llm.speech.transcript import Transcript


class Ticket(Protocol):
    """A request that waits or runs."""

    def listen(self, listener: Callable[[Event | None], None]) -> None:
        """Calls `listener`, in any thread, for each event until one has a finish, or with None."""

    def cancel(self) -> None:
        """Ends it within a step."""


class Engine(Protocol):
    """Runs many requests at once."""

    @property
    def model(self) -> TextModel:
        """The model that it runs."""

    def submit(self, request: Request) -> Ticket:
        """Takes a request; raises UsageError if it can never run, Busy if too many wait."""

    def metrics(self) -> Any:
        """A dataclass of counts and times."""

    @property
    def is_working(self) -> bool:
        """Whether it takes requests: false once it is closed, or a bug has ended its thread."""

    def close(self, drain: bool) -> None:
        """Ends its thread; with `drain` after what runs."""


class Embedder(Protocol):
    """A model that maps texts to vectors."""

    def embed(self, texts: Sequence[str | Sequence[int]]) -> tuple[np.ndarray, int]:
        """A row per text, float32, and the count of tokens of all; raises UsageError."""


class Transcriber(Protocol):
    """A model that writes down speech."""

    def transcribe(self, audio: bytes, language: str | None, prompt: str | None) -> Transcript:
        """The text of a file's bytes; raises UsageError if they are no audio that it reads."""


@dataclass(frozen=True)
class Served:
    """A model by its name in requests: it offers what is not None.

    Grammars are compiled by the `sandbox` first, if there is one. With a `base`, it is the engine's
    adapter of its name, and that is the model without. With `keep`, answers go on in a full
    context, but for those on images: see `context_shift.py`.
    """

    name: str
    engine: Engine | None = None
    embedder: Embedder | None = None
    transcriber: Transcriber | None = None
    sandbox: Sandbox | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    base: str | None = None
    keep: int | None = None

    @property
    def adapter(self) -> str | None:
        """The engine's adapter that it is."""
        return None if self.base is None else self.name

    def with_adapters(self) -> "dict[str, Served]":
        """This one, and the adapters of its engine, by their names."""
        names = self.engine.model.adapters if self.engine is not None else ()
        adapters = [replace(self, name=name, base=self.name) for name in names]
        return {each.name: each for each in (self, *adapters)}

    @property
    def is_working(self) -> bool:
        """Whether it answers."""
        return self.engine is None or self.engine.is_working

    def close(self) -> None:
        """Ends what runs."""
        if self.engine is not None:
            self.engine.close(drain=False)

    def grammars(
        self, gbnf: str | None, schema: Mapping[str, Any] | None, count: int
    ) -> list[Grammar | None]:
        """The states of so many answers within a grammar or a schema, if one is given.

        Raises UsageError and ModelError if it is wrong, or takes too much to compile.
        """
        assert self.engine is not None
        if self.sandbox is not None:
            if gbnf is not None:
                self.sandbox.check("gbnf", gbnf)
            if schema is not None:
                self.sandbox.check("json", json.dumps(schema))
        grammar = self.engine.model.grammar(gbnf, schema)
        return [None if grammar is None else grammar.copy() for _ in range(count)]
