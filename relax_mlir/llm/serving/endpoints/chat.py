"""`/v1/chat/completions`: answers to messages, as text or as calls of tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relax_mlir.llm.batching.request import Event, TokenLogprobs
from relax_mlir.llm.serving.endpoints.jobs import Job, Object
from relax_mlir.llm.serving.endpoints.logprobs import TokenTexts, chat_logprobs
from relax_mlir.llm.serving.endpoints.messages import messages_of, tools_of
from relax_mlir.llm.serving.endpoints.options import (
    MOST_LOGPROBS,
    SHARED,
    limit_of,
    options_of,
    requests_of,
)
from relax_mlir.llm.serving.endpoints.tools import Call, CallReader, call_schema
from relax_mlir.llm.serving.engines import Engine, Served
from relax_mlir.llm.serving.errors import refused
from relax_mlir.llm.serving.fields import Body

FIELDS = (
    *(*SHARED, "messages", "max_completion_tokens", "logprobs", "top_logprobs"),
    *("tools", "tool_choice", "parallel_tool_calls", "response_format", "grammar"),
)
Tools = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class ToolUse:
    """The tools that an answer may call: whether it `must` call one, and may call `several`."""

    tools: Tools
    must: bool
    several: bool


def chat_job(body: Body, served: Served, engine: Engine, client: str, most_tokens: int) -> Job:
    """What a body asks for; raises ApiError, and errors of the model's own checks."""
    body.only(FIELDS)
    model = engine.model
    if model.chat is None:
        raise refused(f"'{served.name}' has no chat template; it has completions", "model")
    options = options_of(body)
    use = _tool_use(body)
    if use.tools and not model.chat.takes_tools:
        raise refused(f"the chat template of '{served.name}' takes no tools", "tools")
    messages, images = messages_of(body, model.config.image_id is not None)
    tokens = model.encode_messages(messages, [dict(t) for t in use.tools.values()] or None)
    prompt, pictures = model.placed(tokens, images)
    if not prompt:
        raise refused("the chat template makes no prompt of the messages", "messages")
    names = ("max_completion_tokens", "max_tokens")
    goes_on = served.keep is not None and not pictures
    room = model.context - len(prompt)
    limit = limit_of(body, names, None, room, most_tokens, goes_on)
    wants_logprobs = body.flag("logprobs")
    most_likely = body.integer("top_logprobs", 0, MOST_LOGPROBS)
    if most_likely is not None and not wants_logprobs:
        raise refused("'top_logprobs' needs 'logprobs'", "top_logprobs")
    logprobs = (most_likely or 0) if wants_logprobs else None
    grammars = served.grammars(*_grammar(body, use), options.choices)
    requests = requests_of(
        body, served, options, prompt, limit, logprobs, grammars, client, pictures
    )
    texts = TokenTexts(model.tokenizer) if wants_logprobs else None
    return Job(
        served,
        requests,
        [ChatChoice(index, texts, use) for index in range(len(requests))],
        "chat.completion",
        "chat.completion.chunk",
        "chatcmpl",
        options.stream,
        options.include_usage,
        lambda index: _choice(index, {"role": "assistant", "content": ""}, None, None),
    )


def _tool_use(body: Body) -> ToolUse:
    """The tools of a body as far as `tool_choice` lets the answer call them."""
    tools = tools_of(body)
    wanted = body.get("tool_choice")
    several = body.get("parallel_tool_calls") is None or body.flag("parallel_tool_calls")
    if isinstance(wanted, dict):
        function = Body(wanted, "tool_choice").table("function")
        name = function.text("name") if function is not None else ""
        if name not in tools:
            raise body.refuse("tool_choice", "the name of one of the tools")
        return ToolUse({name: tools[name]}, True, False)
    choice = body.choice("tool_choice", ("none", "auto", "required"), "auto")
    if choice == "required" and not tools:
        raise refused("'tool_choice' is required, but there are no tools", "tool_choice")
    return ToolUse({} if choice == "none" else tools, choice == "required", several)


def _grammar(body: Body, use: ToolUse) -> tuple[str | None, Any]:
    """The grammar (GBNF) and the schema of answers, of which at most one is there.

    It is that of a call, of `response_format`, or `grammar`.
    """
    form = body.table("response_format")
    schema: Any = None
    if form is not None:
        kind = form.choice("type", ("text", "json_object", "json_schema"), "")
        if kind == "json_object":
            schema = {"type": "object"}
        elif kind == "json_schema":
            outer = form.table("json_schema")
            inner = None if outer is None else outer.table("schema")
            if inner is None:
                raise form.refuse("json_schema", "an object with a 'schema'")
            schema = dict(inner.values)
    grammar = None if body.get("grammar") is None else body.text("grammar")
    if (schema is not None) + (grammar is not None) + use.must > 1:
        raise refused("'response_format', 'grammar' and a required tool exclude each other")
    if use.must:
        schema = call_schema(use.tools)
    return grammar, schema


class ChatChoice:
    """One answer of a chat; `texts` are there if log probabilities are asked for."""

    def __init__(self, index: int, texts: TokenTexts | None, use: ToolUse) -> None:
        self._index = index
        self._texts = texts
        self._several = use.several
        self._reader = CallReader(use.tools) if use.tools else None
        self._pieces: list[str] = []
        self._calls: list[Call] = []
        self._logprobs: list[TokenLogprobs] = []
        self._finish: str | None = None

    def push(self, event: Event) -> Object | None:
        """The choice of a chunk."""
        text = event.text if self._reader is None else self._reader.push(event.text)
        if event.finish and self._reader is not None:
            rest, calls = self._reader.finish()
            text += rest
            self._calls = calls if self._several else calls[:1]
        self._pieces.append(text)
        self._logprobs += event.logprobs
        self._finish = self._reason(event.finish)
        delta: Object = {"content": text} if text else {}
        if self._calls:
            calls_ = enumerate(self._calls)
            delta["tool_calls"] = [{"index": i, **call.object} for i, call in calls_]
        if not (delta or event.logprobs or event.finish):
            return None
        return _choice(self._index, delta, self._as_object(event.logprobs), self._finish)

    def whole(self) -> Object:
        """The choice of a whole response."""
        text = "".join(self._pieces)
        content = None if self._calls and not text else text
        message: Object = {"role": "assistant", "content": content, "refusal": None}
        if self._calls:
            message["tool_calls"] = [call.object for call in self._calls]
        logprobs = self._as_object(self._logprobs)
        return {
            "index": self._index,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": self._finish,
        }

    def _reason(self, finish: str | None) -> str | None:
        return "tool_calls" if finish == "stop" and self._calls else finish

    def _as_object(self, tokens: Any) -> Object | None:
        if self._texts is None:
            return None
        return {"content": chat_logprobs(self._texts, tokens), "refusal": None}


def _choice(index: int, delta: Object, logprobs: Object | None, finish: str | None) -> Object:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
