"""What an engine is asked for, and the events of its answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from relax_mlir.errors import RelaxError
from relax_mlir.llm.decoder.pictures import Picture
from relax_mlir.llm.generation.grammar import Grammar
from relax_mlir.llm.generation.sampling import Sampler


class Busy(RelaxError):
    """An engine takes no request now: its queue is full, or it is being closed."""


@dataclass(frozen=True)
class Request:
    """One answer to the tokens of a prompt.

    `sampling` says how tokens are drawn; with a `seed`, it is drawn with that one. Of each token,
    its log-probability and those of the `logprobs` most probable ones are in the events, unless
    that is None. `grammar` is the state of this answer alone. `client` names whom requests are
    from: clients get equal shares of an engine. Rows of `pictures` replace tokens of the prompt.
    `adapter` is the name of one of the engine's. With `keep`, the answer goes on in a full context:
    see `context_shift.py`.

    Several samples of a prompt are as many requests, which share the run of the prompt.
    """

    prompt: Sequence[int]
    sampling: Sampler = field(default_factory=Sampler)
    max_tokens: int = 256
    stop: Sequence[str] = ()
    seed: int | None = None
    logprobs: int | None = None
    grammar: Grammar | None = None
    client: str = ""
    pictures: Sequence[Picture] = ()
    adapter: str | None = None
    keep: int | None = None


@dataclass(frozen=True)
class TokenLogprobs:
    """The log-probability of a token, and of the most probable ones instead of it, in order.

    They are of the model's own distribution, before biases, penalties, temperature and grammar.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Event:
    """What a step adds to an answer: text, and the tokens, which may have no complete text yet.

    The last event of an answer has `finish`: "stop" (the model or a stop text ended it), "length"
    (`max_tokens`, the context or all pages are full) or "error", with its text in `error`.
    """

    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprobs, ...] = ()
    finish: Literal["stop", "length", "error"] | None = None
    error: str | None = None
