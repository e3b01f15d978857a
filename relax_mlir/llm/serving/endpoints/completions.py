"""`/v1/completions`: texts that follow prompts."""

from typing import Any

from relax_mlir.llm.batching.request import Event, Request, TokenLogprobs
from relax_mlir.llm.serving.endpoints.jobs import Job, Object
from relax_mlir.llm.serving.endpoints.logprobs import CompletionLogprobs, TokenTexts
from relax_mlir.llm.serving.endpoints.options import (
    MOST_CHOICES,
    MOST_LOGPROBS,
    SHARED,
    limit_of,
    options_of,
    requests_of,
)
from relax_mlir.llm.serving.engines import Engine, Served
from relax_mlir.llm.serving.errors import refused
from relax_mlir.llm.serving.fields import Body

FIELDS = (*SHARED, "prompt", "logprobs", "echo", "suffix", "best_of", "grammar")
DEFAULT_TOKENS = 16


def completion_job(
    body: Body, served: Served, engine: Engine, client: str, most_tokens: int
) -> Job:
    """What a body asks for; raises ApiError, and UsageError of the model's own checks."""
    body.only(FIELDS)
    for name in ("echo", "suffix"):
        if body.get(name) not in (None, False, ""):
            raise body.refuse(name, "nothing, as the server has no such option")
    options = options_of(body)
    body.integer("best_of", options.choices, options.choices)  # all are returned
    model = engine.model
    prompts = _prompts(body, engine)
    if len(prompts) * options.choices > MOST_CHOICES:
        raise refused(f"asks for over {MOST_CHOICES} answers", "n")
    most_likely = body.integer("logprobs", 0, MOST_LOGPROBS)
    grammar = body.get("grammar") and body.text("grammar")
    grammars = served.grammars(grammar or None, None, len(prompts) * options.choices)
    requests: list[Request] = []
    for prompt in prompts:
        room = model.context - len(prompt)
        goes_on = served.keep is not None
        limit = limit_of(body, ("max_tokens",), DEFAULT_TOKENS, room, most_tokens, goes_on)
        own = grammars[len(requests) : len(requests) + options.choices]
        requests += requests_of(body, served, options, prompt, limit, most_likely, own, client)
    texts = TokenTexts(model.tokenizer)
    choices = [CompletionChoice(index, texts, most_likely) for index in range(len(requests))]
    kind = "text_completion"
    return Job(served, requests, choices, kind, kind, "cmpl", options.stream, options.include_usage)


def _prompts(body: Body, engine: Engine) -> list[list[int]]:
    """The tokens of each prompt: a text, its tokens, or an array of either."""
    prompt = body.get("prompt")
    is_one = isinstance(prompt, str) or (
        isinstance(prompt, list) and all(isinstance(token, int) for token in prompt)
    )
    prompts = [prompt] if is_one else prompt
    if not isinstance(prompts, list) or not prompts:
        raise body.refuse("prompt", "a string, its tokens, or an array of either")
    if len(prompts) > MOST_CHOICES:
        raise refused(f"'prompt' has {len(prompts)} texts; expects {MOST_CHOICES} at most")
    return [_tokens(body, each, engine) for each in prompts]


def _tokens(body: Body, prompt: Any, engine: Engine) -> list[int]:
    model = engine.model
    size = model.config.vocab_size
    tokens = model.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
    if not isinstance(tokens, list) or not all(
        isinstance(token, int) and not isinstance(token, bool) and 0 <= token < size
        for token in tokens
    ):
        raise refused(f"'prompt' has what is no text, and no token from 0 to {size - 1}", "prompt")
    if not tokens:
        raise refused("'prompt' has no tokens; expects one or more", "prompt")
    return tokens


class CompletionChoice:
    """One completion; `most_likely` is the count of alternatives to each token, if asked for."""

    def __init__(self, index: int, texts: TokenTexts, most_likely: int | None) -> None:
        self._index = index
        self._parts, self._whole = [
            None if most_likely is None else CompletionLogprobs(texts, most_likely > 0)
            for _ in range(2)
        ]
        self._pieces: list[str] = []
        self._logprobs: list[TokenLogprobs] = []
        self._finish: str | None = None

    def push(self, event: Event) -> Object | None:
        """The choice of a chunk."""
        self._pieces.append(event.text)
        self._logprobs += event.logprobs
        self._finish = event.finish or self._finish
        logprobs = None
        if self._parts is not None and event.logprobs:
            logprobs = self._parts.object(event.logprobs)
        if not (event.text or logprobs or event.finish):
            return None
        return self._choice(event.text, logprobs, event.finish)

    def whole(self) -> Object:
        """The choice of a whole response."""
        logprobs = None if self._whole is None else self._whole.object(self._logprobs)
        return self._choice("".join(self._pieces), logprobs, self._finish)

    def _choice(self, text: str, logprobs: Object | None, finish: str | None) -> Object:
        return {
            "index": self._index,
            "text": text,
            "logprobs": logprobs,
            "finish_reason": finish,
        }
