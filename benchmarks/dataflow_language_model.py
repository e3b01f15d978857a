"""A language model as a stream: tokenise, prefill, sample, detokenise; requests follow each other.

    python benchmarks/dataflow_language_model.py
    python benchmarks/dataflow_language_model.py --requests 12 --rounds 5 --tokens 24

Compared with a plain loop over the same stages; both have to give the tokens of `generate`. The
process is limited to two cores, and each call to one thread. README.md says more.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relax_mlir import llm
from relax_mlir.dataflow import Stream, Timeline
from relax_mlir.llm.generation.session import Session
from relax_mlir.tools.cli import described, guard

CORES, DEPTH = 2, 2
WORDS = (
    "rain river bridge village notebook schoolmaster evening government flood barn water stick "
    "church news dam summer letter garden train winter kitchen harbour music island clock"
).split()


@dataclass
class Request:
    """What the stages pass on: each adds its part."""

    prompt: str
    ids: list[int] = field(default_factory=list)
    session: Session | None = None
    row: np.ndarray | None = None
    """Logits after the prompt."""
    tokens: list[int] = field(default_factory=list)
    text: str = ""


class Stages:
    """The four stages of a model, whose answers are the likeliest tokens, at most so many."""

    def __init__(self, model: Any, most: int) -> None:
        self.model, self.most = model, most
        self.all = (self.tokenise, self.prefill, self.sample, self.detokenise)

    def tokenise(self, request: Request) -> Request:
        """The tokens of the prompt, within the template of the chat."""
        request.ids = self.model.encode(request.prompt)
        return request

    def prefill(self, request: Request) -> Request:
        """Caches of the prompt, and the logits after it."""
        request.session = self.model.session(len(request.ids) + self.most)
        request.row = request.session.append(request.ids)
        return request

    def sample(self, request: Request) -> Request:
        """The answer, token by token, until the model ends it."""
        session, row = request.session, request.row
        assert session is not None
        assert row is not None
        while len(request.tokens) < self.most:
            token = int(row.argmax())
            if token in self.model.config.eos_ids:
                break
            request.tokens.append(token)
            if len(request.tokens) < self.most:
                row = session.append([token])
        request.session = request.row = None
        return request

    def detokenise(self, request: Request) -> Request:
        """The text of the answer."""
        request.text = self.model.tokenizer.decode(request.tokens)
        return request


def streamed(
    stages: Sequence[Callable[[Any], Any]], requests: Sequence[Request], timeline: Timeline
) -> list[Request]:
    """All requests through stages that run at once."""
    with Stream(stages, depth=DEPTH, timeline=timeline) as stream:
        results: list[Request] = []
        for index, request in enumerate(requests):
            stream.push(request, timeout=600)
            if index >= DEPTH:
                results.append(stream.pop(timeout=600))
        return results + stream.wait(timeout=600)


def looped(stages: Sequence[Callable[[Any], Any]], requests: Sequence[Request]) -> list[Request]:
    """All requests, one after the other."""
    for request in requests:
        for stage in stages:
            stage(request)
    return list(requests)


def prompts_of(count: int, words: int) -> list[str]:
    """Fresh questions of about so many words."""
    draw = np.random.default_rng()
    return [
        f"Write a story with these words: {' '.join(draw.choice(WORDS, words))}."
        for _ in range(count)
    ]


def check(results: Sequence[Request], prompts: Sequence[str], model: Any, most: int) -> None:
    """Compares tokens, texts and their order with what `generate` gives."""
    assert [result.prompt for result in results] == list(prompts)
    for result in results:
        generation = model.generate(result.prompt, max_tokens=most, temperature=0)
        assert result.text == "".join(generation)
        assert result.tokens == generation.tokens


def measured(options: Any) -> list[str]:
    """The lines of the table."""
    model = llm.load("smollm2")
    model.threads = 1
    stages = Stages(model, options.tokens)
    prompts = prompts_of(options.requests, options.words)
    times: list[tuple[float, float]] = []
    timeline = Timeline()
    for index in range(options.rounds + 1):
        begin = time.perf_counter()
        plain = looped(stages.all, [Request(prompt) for prompt in prompts])
        middle = time.perf_counter()
        results = streamed(stages.all, [Request(prompt) for prompt in prompts], timeline)
        if index:
            times.append((middle - begin, time.perf_counter() - middle))
            continue
        check(results, prompts, model, options.tokens)
        check(plain, prompts, model, options.tokens)
        timeline.spans.clear()
    loop, stream = (statistics.median(column) for column in zip(*times, strict=True))
    ratios = sorted(a / b for a, b in times)
    tokens = sum(len(result.tokens) for result in results)
    parts = ", ".join(f"{name} {1e3 * each:.0f}" for name, each in timeline.medians().items())
    return [
        "| requests | tokens/s, loop | tokens/s, stream | ratio | least to most |",
        "|---|---|---|---|---|",
        f"| {len(prompts)} of {len(results[0].ids)} tokens, {tokens} generated | "
        f"{tokens / loop:.1f} | {tokens / stream:.1f} | {statistics.median(ratios):.2f} | "
        f"{ratios[0]:.2f} to {ratios[-1]:.2f} |",
        f"\nms of a request in a stage of the stream: {parts}",
    ]


def main() -> int:
    """Runs the command."""
    parser = described(__doc__)
    for name, default in (("requests", 8), ("rounds", 3), ("tokens", 16), ("words", 80)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"(default: {default})")
    options = parser.parse_args()
    for name, value in vars(options).items():
        if value < 1:
            parser.error(f"--{name} is {value}; expects 1 or more")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])

    def body() -> int:
        print("\n".join(measured(options)))
        return 0

    return guard("dataflow_language_model", body)


if __name__ == "__main__":
    sys.exit(main())
