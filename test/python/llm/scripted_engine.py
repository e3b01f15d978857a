"""An engine that says what it is told to: it can be slow, full, and fail; and servers for tests."""

import dataclasses
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from tiny_models import TEMPLATE, write_hf_tokenizer

from relax_mlir.errors import UsageError
from relax_mlir.llm.batching.request import Busy, Event, Request, TokenLogprobs
from relax_mlir.llm.generation.text_model import TextModel
from relax_mlir.llm.serving.limits import Limits, State
from relax_mlir.llm.serving.server import bind, configured, url_of
from relax_mlir.llm.tokenization.chat import ChatTemplate
from relax_mlir.llm.tokenization.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class Config:
    vocab_size: int = 300
    eos_ids: frozenset[int] = frozenset({1})
    image_id: int | None = None


class ScriptedModel:
    """The texts of a tiny model, whose template may be another one."""

    def __init__(self, folder: Path, template: str | None = TEMPLATE, context: int = 512) -> None:
        write_hf_tokenizer(folder)
        self.tokenizer = Tokenizer.from_hugging_face(folder)
        self.chat = None if template is None else ChatTemplate(template, "<|begin|>", "<|im_end|>")
        self.config = Config()
        self.context = context
        self.adapters = ()

    encode_messages, placed = TextModel.encode_messages, TextModel.placed

    def sampler(self, **sampling):
        from relax_mlir.llm.generation.sampling import Sampler

        return Sampler(**sampling)

    def grammar(self, gbnf=None, json_schema=None):
        from relax_mlir.llm.generation.grammar import Grammars

        grammars = Grammars(self.tokenizer, self.config.vocab_size, self.config.eos_ids)
        if json_schema is not None:
            return grammars.json(json_schema)
        return None if gbnf is None else grammars.gbnf(gbnf)


@dataclasses.dataclass(frozen=True)
class ScriptedMetrics:
    running: int
    submitted: int


class ScriptedEngine:
    """Answers each request with the tokens of `says`, one after `pause` seconds each.

    `full` refuses requests; `fails` ends them with that text; `is_working` is as it is set.
    `requests` are those submitted, and
    `cancelled` counts the tickets that were.
    """

    def __init__(self, model: ScriptedModel, says: str = "hello world", pause: float = 0) -> None:
        self.model = model
        self.says = says
        self.pause = pause
        self.full = False
        self.is_working = True
        self.fails: str | None = None
        self.requests: list[Request] = []
        self.running: set[Ticket] = set()
        self.cancelled = 0

    def submit(self, request: Request) -> "Ticket":
        if self.full:
            raise Busy("1 request waits already")
        if len(request.prompt) > self.model.context:
            raise UsageError("the prompt is too long")
        self.requests.append(request)
        return Ticket(self, request)

    def metrics(self) -> ScriptedMetrics:
        return ScriptedMetrics(len(self.running), len(self.requests))

    def close(self, drain: bool) -> None:
        for ticket in list(self.running):
            ticket.cancel()


class Ticket:
    def __init__(self, engine: ScriptedEngine, request: Request) -> None:
        self._engine = engine
        self._request = request
        self._is_cancelled = threading.Event()
        engine.running.add(self)

    def listen(self, listener) -> None:
        threading.Thread(target=self._work, args=(listener,), daemon=True).start()

    def cancel(self) -> None:
        if self in self._engine.running:
            self._engine.cancelled += 1
        self._is_cancelled.set()

    def _work(self, listener) -> None:
        tokenizer, request = self._engine.model.tokenizer, self._request
        tokens = tokenizer.encode(self._engine.says)[: request.max_tokens]
        text = tokenizer.stream()
        for token in tokens:
            if self._is_cancelled.wait(self._engine.pause):
                break
            logprobs = ()
            if request.logprobs is not None:
                top = tuple((token + i, -0.5 - i) for i in range(request.logprobs))
                logprobs = (TokenLogprobs(token, -0.5, top),)
            listener(Event(text.push(token), (token,), logprobs))
        self._engine.running.discard(self)
        reason = "length" if len(tokens) == request.max_tokens else "stop"
        if self._engine.fails is not None:
            listener(Event("", finish="error", error=self._engine.fails))
        elif self._is_cancelled.is_set():
            listener(None)
        else:
            listener(Event(text.flush(), finish=reason))


@contextmanager
def running(state: State, proxies: Sequence[str] = ()) -> Iterator[str]:
    """A real server in a thread, on a free port; its address."""
    listener = bind("127.0.0.1", 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)  # soon full, if unread
    server = uvicorn.Server(configured(state, list(proxies)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join(10)
        state.lanes.close()
        assert not thread.is_alive()


def wait_until(holds, seconds: float = 10) -> None:
    """Returns once it holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.005)


def state_of(engine, name: str = "tiny", **options) -> State:
    """The state of a server of one engine; `limits` and `access` are options."""
    from relax_mlir.llm.serving.engines import Served

    options.setdefault("limits", Limits())
    return State({name: Served(name, engine)}, **options)
