"""Lines of a file as requests: each is a JSON object with a prompt, options, and an id.

{"id": "a", "prompt": "Why is the sky blue?", "max_tokens": 64}
{"id": "b", "messages": [{"role": "user", "content": "Hello"}], "temperature": 0.7, "seed": 3}
{"id": "c", "prompt": "What is it?", "images": ["cat.png"]}
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relax_mlir.errors import RelaxError, UsageError
from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.batching.request import Request
from relax_mlir.llm.batching.ticket import Ticket
from relax_mlir.llm.generation.text_model import TextModel
from relax_mlir.llm.offline.images import image_at, with_images
from relax_mlir.llm.tokenization.content import asked_of
from relax_mlir.llm.vision.images import ImageSource

Id = str | int

_WHOLE = (lambda x: type(x) is int, "an integer")
_REAL = (lambda x: type(x) in (int, float), "an integer or a float")
_TEXT = (lambda x: isinstance(x, str), "a string")
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "prompt": _TEXT,
    "system": _TEXT,
    "messages": (
        lambda x: isinstance(x, list) and all(isinstance(each, dict) for each in x),
        "a list of objects with role and content",
    ),
    "images": (
        lambda x: isinstance(x, list) and all(isinstance(each, str) for each in x),
        "a list of files, or of data URLs",
    ),
    "raw": (lambda x: type(x) is bool, "true or false"),
    "max_tokens": _WHOLE,
    "stop": (
        lambda x: (
            isinstance(x, str) or (isinstance(x, list) and all(isinstance(each, str) for each in x))
        ),
        "a string or a list of strings",
    ),
    "adapter": _TEXT,
    "grammar": _TEXT,
    "json_schema": (lambda x: isinstance(x, dict | str), "an object"),
    "logit_bias": (
        lambda x: (
            isinstance(x, dict)
            and all(key.isdecimal() and len(key) < 10 for key in x)
            and all(type(value) in (int, float) for value in x.values())
        ),
        "an object from ids of tokens to what is added to their logits",
    ),
    **dict.fromkeys(("seed", "top_k", "dry_allowed_length"), _WHOLE),
    **dict.fromkeys(
        (
            *("temperature", "top_p", "min_p", "typical_p", "xtc_probability", "xtc_threshold"),
            *("repetition_penalty", "presence_penalty", "frequency_penalty"),
            *("dry_multiplier", "dry_base"),
        ),
        _REAL,
    ),
}
FIELDS = tuple(_KINDS)
"""What a job may have, apart from its id."""
_NOT_SAMPLING = (
    "prompt",
    "system",
    "messages",
    "images",
    "raw",
    "max_tokens",
    "stop",
    "adapter",
    "grammar",
    "json_schema",
)


@dataclass(frozen=True)
class Job:
    """A line of the input: its fields, or the error of one that is no job.

    Paths of images are from `folder`.
    """

    id: Id
    fields: Mapping[str, Any]
    error: str | None = None
    folder: Path = Path()


def read_jobs(path: Path) -> Iterator[Job]:
    """The jobs of a file, whose ids are those of their lines unless they are given.

    Empty lines are none. Raises UsageError if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for i, line in enumerate(file, 1):
                if line.strip():
                    yield replace(_job(line, i), folder=path.parent.absolute())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read '{path}': {reason}") from None


def check_ids(path: Path) -> int:
    """The count of the jobs of a file; raises UsageError if two have the same id."""
    seen: set[Id] = set()
    for job in read_jobs(path):
        if job.id in seen:
            raise UsageError(f"{path}: two lines have the id {job.id!r}; expects ids of their own")
        seen.add(job.id)
    return len(seen)


def _job(line: bytes, index: int) -> Job:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Job(index, {}, f"the line is no JSON: {error}")
    if not isinstance(fields, dict):
        return Job(index, {}, f"the line is {type(fields).__name__}; expects an object")
    id = fields.pop("id", index)
    if type(id) not in (str, int):
        return Job(index, {}, "the id is neither a string nor an integer")
    return Job(id, fields)


def check_fields(fields: Mapping[str, Any]) -> None:
    """Raises UsageError for fields that are unknown, or of a wrong type."""
    for name, value in fields.items():
        if name not in _KINDS:
            raise UsageError(f"unknown field {name!r}; accepted are id, {', '.join(_KINDS)}")
        holds, expected = _KINDS[name]
        if not holds(value):
            raise UsageError(f"{name} is of type {type(value).__name__}; expects {expected}")


def request_of(job: Job, model: TextModel, defaults: Mapping[str, Any]) -> Request:
    """The request of a job, with options that it does not have from `defaults`.

    Raises UsageError if a field is wrong, and ModelError if the chat template refuses the messages.
    """
    if job.error is not None:
        raise UsageError(job.error)
    check_fields(job.fields)
    if ("prompt" in job.fields) == ("messages" in job.fields):
        raise UsageError("expects either a prompt or messages")
    fields = {**defaults, **job.fields}
    sampling = {name: value for name, value in fields.items() if name not in _NOT_SAMPLING}
    bias = sampling.get("logit_bias", {})
    sampling["logit_bias"] = {int(token): value for token, value in bias.items()}
    stop = fields.get("stop", ())
    prompt, images = _prompt(fields, job.folder)
    ids = model.encode(prompt, fields.get("raw", False), len(images))
    ids, pictures = model.placed(ids, images)
    return Request(
        ids,
        model.sampler(**sampling),
        fields.get("max_tokens", 256),
        (stop,) if isinstance(stop, str) else tuple(stop),
        grammar=model.grammar(fields.get("grammar"), fields.get("json_schema")),
        pictures=pictures,
        adapter=fields.get("adapter"),
    )


def _prompt(
    fields: Mapping[str, Any], folder: Path
) -> tuple[str | list[dict[str, Any]], list[ImageSource]]:
    """The text, or the messages if there is a system message too; and the images."""
    if "messages" in fields:
        if "images" in fields:
            raise UsageError("images are given with a prompt; in messages they are parts")
        return with_images(fields["messages"], folder)
    images = [image_at(url, folder) for url in fields.get("images", ())]
    if "system" not in fields:
        return fields["prompt"], images
    system = {"role": "system", "content": fields["system"]}
    return [system, dict(asked_of(fields["prompt"], len(images)))], images


def begin(job: Job, engine: Engine, defaults: Mapping[str, Any]) -> Callable[[], dict[str, Any]]:
    """Submits a job; the result waits for its answer, or its error, as a JSON object."""
    try:
        request = request_of(job, engine.model, defaults)
        ticket = engine.submit(request)
    except RelaxError as error:
        failed = {"id": job.id, "error": str(error)}
        return lambda: failed
    return lambda: _answer(job, ticket)


def _answer(job: Job, ticket: Ticket) -> dict[str, Any]:
    events = list(ticket)
    if events[-1].error is not None:
        return {"id": job.id, "error": events[-1].error}
    return {
        "id": job.id,
        "text": "".join(event.text for event in events),
        "finish": events[-1].finish,
        "prompt_tokens": len(ticket.request.prompt),
        "tokens": sum(len(event.tokens) for event in events),
    }
