"""Many clients of a server at once: right answers, no lost pages, times and tokens per second.

    python benchmarks/serving.py
    python benchmarks/serving.py --model FOLDER --clients 32 --requests 2000 --check 200
    python benchmarks/serving.py --vs llama.cpp --vs vllm --peers-python PYTHON --vllm-python PYTHON

Clients are OpenAI's own, in one process; each sends a request after the other, and streams the
answer. A share of the requests is cancelled midway. README.md says more.
"""

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import openai
from serving_peers import PEERS

from relax_mlir import llm
from relax_mlir.errors import UsageError
from relax_mlir.tools.cli import described, guard

NAME = "model"
TEXT = " ".join(str(part.__doc__) for part in (argparse, asyncio, json, np, random, statistics))
READY_SECONDS = 600
HEADS = (
    *("server", "answered", "cancelled", "failed", "first token p50, s", "p95, s"),
    *("tokens of answers per second", "with those of prompts"),
)
TIE = 0.02
"""The share of the spread of logits below which another order of sums may choose another token."""
CANDIDATES = 50
"""The likeliest tokens, among which another one is looked for."""


@dataclass(frozen=True)
class Query:
    """A prompt, the most tokens of its answer, and after how many pieces it is cancelled."""

    prompt: str
    max_tokens: int
    cancel_after: int | None


@dataclass
class Record:
    """What became of a request: seconds to the first piece and in all, tokens, and the text."""

    query: Query
    first: float | None = None
    seconds: float = 0.0
    prompt_tokens: int = 0
    tokens: int = 0
    text: str = ""
    error: str | None = None


@dataclass
class Outcome:
    """The records of all requests, and the seconds that they took together."""

    records: list[Record] = field(default_factory=list)
    seconds: float = 0.0


def main() -> int:
    """Runs the command."""
    args = _options()
    model = llm.load(args.model, weights=args.weights, threads=args.threads)
    queries = plan(model, args)
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    with relax_server(args) as url:
        warm(url, queries)
        outcome = run(url, queries, args.clients)
        left = pages_left(url)
    print(row("relax-llm", outcome), flush=True)
    for name in args.vs:
        with PEERS[name](args, NAME) as url:
            warm(url, queries)
            print(row(name, run(url, queries, args.clients)), flush=True)
    gaps = differences(model, outcome, args.check)
    different, ties = sum(gap > 0 for gap in gaps), sum(map(is_tie, gaps))
    print(f"pages in use at the end: {left}")
    print(
        f"of {len(gaps)} answers, {different} differ from those alone, {ties} of them by rounding"
    )
    failed = sum(record.error is not None for record in outcome.records)
    return int(bool(left or failed or any(gap > 0 and not is_tie(gap) for gap in gaps)))


def _options() -> argparse.Namespace:
    parser = described(__doc__)
    add = parser.add_argument
    add("--model", default="smollm2", help="a model, as for relax-llm (default: smollm2)")
    add("--weights", default="native", help="as for relax-llm (default: native)")
    add("--threads", type=int, default=2, help="threads of a step (default: 2)")
    add("--clients", type=int, default=32, help="requests at once (default: 32)")
    add("--requests", type=int, default=2000, help="of all clients (default: 2000)")
    add("--longest", type=int, default=900, help="tokens of a prompt (default: 900)")
    add("--answer", type=int, default=64, help="most tokens of an answer (default: 64)")
    add("--cancelled", type=float, default=1 / 3, help="share of requests (default: 1/3)")
    add("--check", type=int, default=100, help="answers to compare (default: 100)")
    add("--seed", type=int, default=0)
    add("--vs", choices=PEERS, action="append", default=[], help="measure it too; of a GGUF file")
    add("--peers-python", default=sys.executable, help="an interpreter with llama.cpp's server")
    add("--vllm-python", default=sys.executable, help="an interpreter with vLLM")
    return parser.parse_args()


def plan(model: llm.LanguageModel, args: argparse.Namespace) -> list[Query]:
    """Requests of random lengths, from pieces of a text."""
    source = random.Random(args.seed)
    ids = model.tokenizer.encode(TEXT)
    longest = min(args.longest, len(ids) - 1, model.context - args.answer - 2)
    if longest < 1:
        raise UsageError(f"--answer {args.answer} fills the context of {model.context} tokens")
    queries = []
    for _ in range(args.requests):
        length = source.randint(1, longest)
        start = source.randint(0, len(ids) - length)
        is_cancelled = source.random() < args.cancelled
        queries.append(
            Query(
                model.tokenizer.decode(ids[start : start + length]) or "a",
                source.randint(1, args.answer),
                source.randint(0, args.answer // 2) if is_cancelled else None,
            )
        )
    return queries


def run(url: str, queries: Sequence[Query], clients: int) -> Outcome:
    """Sends all requests, as many at a time as there are clients."""

    async def all_clients() -> list[Record]:
        records: list[Record] = []
        waiting = iter(queries)

        async def one_client() -> None:
            async with openai.AsyncOpenAI(
                base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=READY_SECONDS
            ) as client:
                for query in waiting:
                    records.append(await ask(client, query))

        await asyncio.gather(*(one_client() for _ in range(clients)))
        return records

    begin = time.perf_counter()
    records = asyncio.run(all_clients())
    return Outcome(records, time.perf_counter() - begin)


async def ask(client: openai.AsyncOpenAI, query: Query) -> Record:
    """Streams one answer, as far as it is wanted."""
    record, begin, pieces = Record(query), time.perf_counter(), 0
    try:
        stream = await client.completions.create(
            model=NAME,
            prompt=query.prompt,
            max_tokens=query.max_tokens,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
        async with stream:
            async for chunk in stream:
                if record.first is None:
                    record.first = time.perf_counter() - begin
                if chunk.usage is not None:
                    record.prompt_tokens = chunk.usage.prompt_tokens
                    record.tokens = chunk.usage.completion_tokens
                record.text += "".join(choice.text for choice in chunk.choices)
                if query.cancel_after is not None and pieces >= query.cancel_after:
                    record.tokens = pieces
                    break
                pieces += 1
    except openai.OpenAIError as error:
        record.error = str(error)
    record.seconds = time.perf_counter() - begin
    return record


def warm(url: str, queries: Sequence[Query]) -> None:
    """A few requests that are not measured."""
    run(url, [Query(query.prompt, 2, None) for query in queries[:4]], 2)


@contextmanager
def relax_server(args: argparse.Namespace) -> Iterator[str]:
    """Our server, in a process of its own; its address."""
    command = [sys.executable, "-m", "relax_mlir.tools.relax_llm", "serve"]
    command += [f"{NAME}={args.model}", "--port", "0", "--weights", args.weights]
    command += ["--threads", str(args.threads), "--max-sequences", str(max(args.clients, 1))]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            for line in server.stderr:
                if " at http://" in line:
                    yield line.rstrip().rpartition(" ")[2]
                    break
                print(line, end="", file=sys.stderr)
        finally:
            server.terminate()
            if server.wait(60):
                print(f"the server ended with status {server.returncode}", file=sys.stderr)


def pages_left(url: str) -> int:
    """Pages that are in use by nobody's request, once all have ended."""
    end = time.monotonic() + 10
    while True:
        with urllib.request.urlopen(f"{url}/metrics") as response:
            lines = response.read().decode().splitlines()
        values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        used = int(float(values[f'relax_engine_pages_used{{model="{NAME}"}}']))
        if used == 0 or time.monotonic() > end:
            return used
        time.sleep(0.1)


def differences(model: llm.LanguageModel, outcome: Outcome, most: int) -> list[float]:
    """How far `most` of the answers that ended are from those of `generate`: 0 for the same text.

    Else by how much the logit of the token that was chosen is below the largest one, where the
    texts part, as a share of the spread of all logits.
    """
    ended = [each for each in outcome.records if each.query.cancel_after is None and not each.error]
    chosen = random.Random(0).sample(ended, min(most, len(ended)))
    return [_difference(model, record) for record in chosen]


def _difference(model: llm.LanguageModel, record: Record) -> float:
    query = record.query
    alone = model.generate(query.prompt, max_tokens=query.max_tokens, raw=True)
    if "".join(alone) == record.text:
        return 0.0
    prompt = model.encode(query.prompt, raw=True)
    common = 0
    while common < len(alone.tokens) and record.text.startswith(
        model.tokenizer.decode(alone.tokens[: common + 1])
    ):
        common += 1
    logits = model.logits(prompt + alone.tokens[:common])[len(prompt) - 1 :]
    return (
        min(_parting(model, record.text, alone.tokens, i, logits[i]) for i in range(common + 1))
        or TIE
    )


def _parting(
    model: llm.LanguageModel, text: str, alone: Sequence[int], i: int, logits: np.ndarray
) -> float:
    """How far below the largest logit the likeliest token is that parts at token i, 1 if none does.

    Tokens before the first character that differs may have parted: one may begin as another.
    """
    own = alone[i] if i < len(alone) else None
    for token in np.argsort(-logits)[:CANDIDATES]:
        if token != own and text.startswith(model.tokenizer.decode([*alone[:i], int(token)])):
            return float((logits.max() - logits[token]) / np.ptp(logits))
    return 1.0


def is_tie(gap: float) -> bool:
    """Whether rounding alone explains a difference."""
    return 0 < gap <= TIE


def row(name: str, outcome: Outcome) -> str:
    """The line of a server in the table."""
    records = outcome.records
    failed = sum(each.error is not None for each in records)
    cancelled = sum(each.query.cancel_after is not None for each in records)
    firsts = [each.first for each in records if each.first is not None] or [0.0]
    answers = sum(each.tokens for each in records) / outcome.seconds
    prompts = sum(each.prompt_tokens for each in records) / outcome.seconds
    cells = [name, len(records) - failed - cancelled, cancelled, failed]
    cells += [f"{np.quantile(firsts, q):.2f}" for q in (0.5, 0.95)]
    cells += [f"{answers:.1f}", f"{answers + prompts:.1f}"]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    sys.exit(guard("serving.py", main))
