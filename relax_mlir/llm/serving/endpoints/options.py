"""The options of an answer, which completions and chat completions share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relax_mlir.llm.batching.request import Request
from relax_mlir.llm.decoder.pictures import Picture
from relax_mlir.llm.generation.grammar import Grammar
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.generation.text_model import TextModel
from relax_mlir.llm.serving.engines import Served
from relax_mlir.llm.serving.errors import refused
from relax_mlir.llm.serving.fields import Body

REALS = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
    "min_p": (0.0, 1.0),
    "typical_p": (0.0, 1.0),
    "repetition_penalty": (0.01, 100.0),
    "xtc_probability": (0.0, 1.0),
    "xtc_threshold": (0.0, 1.0),
    "dry_multiplier": (0.0, 100.0),
    "dry_base": (1.0, 100.0),
}
"""Options of `Sampler` with their bounds; those from min_p on are not OpenAI's."""
INTEGERS = {"top_k": (0, 1 << 31), "dry_allowed_length": (1, 1 << 31)}
SAMPLING = (*REALS, *INTEGERS, "seed", "logit_bias")
SHARED = (
    *("model", "stream", "stream_options", "n", "stop", "max_tokens", *SAMPLING),
    *("user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"),
)
"""Fields of both; those of the second line change no answer, and are ignored."""
MOST_CHOICES = 128
MOST_STOPS = 16
LONGEST_STOP = 1000
"""In characters: each token is compared with all beginnings of stop texts."""
MOST_BIASES = 1024
MOST_LOGPROBS = 20
BIGGEST_BIAS = 100.0


@dataclass(frozen=True)
class Options:
    """How an answer is given, apart from its prompt and the rules of its sampling."""

    choices: int
    stop: tuple[str, ...]
    stream: bool
    include_usage: bool
    seed: int | None


def options_of(body: Body) -> Options:
    """The options of a body; raises ApiError for wrong ones."""
    stream = body.flag("stream")
    usage = False
    if (streaming := body.table("stream_options")) is not None:
        if not stream:
            raise refused("'stream_options' needs 'stream'", "stream_options")
        streaming.only(("include_usage", "include_obfuscation"))
        usage = streaming.flag("include_usage")
    stop = tuple(body.texts("stop", MOST_STOPS))
    if not all(1 <= len(text) <= LONGEST_STOP for text in stop):
        raise body.refuse("stop", f"strings of 1 to {LONGEST_STOP} characters")
    seed = body.integer("seed", -(1 << 63), (1 << 63) - 1)
    return Options(
        choices=body.integer("n", 1, MOST_CHOICES) or 1,
        stop=stop,
        stream=stream,
        include_usage=usage,
        seed=None if seed is None else seed % (1 << 64),
    )


def asks_for_grammar(body: Body) -> bool:
    """Whether a grammar is to be compiled for the answers, which may take seconds."""
    has_to_call = body.get("tool_choice") not in (None, "none", "auto")
    has_form = body.get("response_format") not in (None, {"type": "text"})
    return has_to_call or has_form or bool(body.get("grammar"))


def sampler_of(body: Body, model: TextModel, seed: int | None) -> Sampler:
    """The sampler of a body, by default of temperature 1 as OpenAI's."""
    sampling: dict[str, Any] = {"temperature": 1.0}
    for name, bounds in REALS.items():
        if (value := body.real(name, *bounds)) is not None:
            sampling[name] = value
    for name, (least, most) in INTEGERS.items():
        if (count := body.integer(name, least, most)) is not None:
            sampling[name] = count
    if sampling.get("top_p") == 0:  # OpenAI's range has it; only the likeliest token is left
        sampling["top_p"], sampling["temperature"] = 1.0, 0.0
    bias = _biases(body, model.config.vocab_size)
    return model.sampler(seed=seed, logit_bias=bias, **sampling)


def requests_of(
    body: Body,
    served: Served,
    options: Options,
    prompt: Sequence[int],
    limit: int,
    logprobs: int | None,
    grammars: Sequence[Grammar | None],
    client: str,
    pictures: Sequence[Picture] = (),
) -> list[Request]:
    """A request for each answer to a prompt: as many as there are `grammars`, with seeds in turn.

    `limit` is the most tokens of each, `logprobs` the most likely ones that are told.
    """
    assert served.engine is not None
    keep = None if pictures else served.keep
    requests = []
    for sample, grammar in enumerate(grammars):
        seed = None if options.seed is None else options.seed + sample
        sampler = sampler_of(body, served.engine.model, seed)
        stop, adapter = options.stop, served.adapter
        requests.append(
            Request(
                *(prompt, sampler, limit, stop, seed, logprobs, grammar, client),
                pictures=pictures,
                adapter=adapter,
                keep=keep,
            )
        )
    return requests


def _biases(body: Body, vocab_size: int) -> dict[int, float]:
    table = body.table("logit_bias")
    if table is None:
        return {}
    if len(table.values) > MOST_BIASES:
        raise refused(f"'logit_bias' has over {MOST_BIASES} tokens", "logit_bias")
    biases: dict[int, float] = {}
    for name in table.values:
        is_token = name.isascii() and name.isdigit() and len(name) < 10 and int(name) < vocab_size
        if not is_token:
            raise body.refuse("logit_bias", f"ids of tokens from 0 to {vocab_size - 1} as names")
        bias = table.real(name, -BIGGEST_BIAS, BIGGEST_BIAS)
        biases[int(name)] = 0.0 if bias is None else bias
    return biases


def limit_of(
    body: Body,
    names: tuple[str, ...],
    default: int | None,
    room: int,
    most: int,
    goes_on: bool = False,
) -> int:
    """The most tokens of an answer, of the first of the fields `names` that there is.

    `room` tokens are left in the context after the prompt, and `most` is the server's limit. Raises
    ApiError if more are asked for than there is room, unless the answer `goes_on` then, or than the
    limit.
    """
    if room < 1:
        raise refused(
            f"the prompt is {1 - room} tokens longer than the context allows, which has to "
            "have room for an answer",
            code="context_length_exceeded",
        )
    for name in names:
        asked = body.integer(name, 1, 1 << 31)
        if asked is None:
            continue
        if asked > room and not goes_on:
            raise refused(
                f"'{name}' is {asked}, but the context has room for {room} tokens after the prompt",
                name,
                "context_length_exceeded",
            )
        if asked > most:
            raise refused(f"'{name}' is {asked}; this server's limit is {most}", name)
        return asked
    return min(room, most, room if default is None else default)
