"""Tokens per second of this project and other programs, measured alternately on one machine.

A case is a prompt of some length into empty caches ("pp512"), or generation after some cached
tokens ("tg64@512"). Programs alternate within each case and round, so that a temporarily slow
machine slows all of them; medians over the rounds are reported.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from platform import processor
from typing import Protocol

import numpy as np
from tqdm import tqdm

import relax_mlir
from relax_mlir.errors import UsageError
from relax_mlir.llm.generation.model import LanguageModel

PAUSE_SECONDS = 0.05  # for the other program's threads to fall asleep


@dataclass(frozen=True)
class Case:
    """`prompt` tokens in one call, or, if that is 0, `generated` tokens after `context` others."""

    threads: int
    prompt: int = 0
    generated: int = 0
    context: int = 0

    @property
    def tokens(self) -> int:
        """The count of tokens that are timed."""
        return self.prompt or self.generated

    def __str__(self) -> str:
        return f"pp{self.prompt}" if self.prompt else f"tg{self.generated}@{self.context}"


@dataclass(frozen=True)
class Plan:
    """The measurements: each thread count with each case, `rounds` times."""

    threads: Sequence[int]
    prompts: Sequence[int]
    generated: int
    contexts: Sequence[int]
    rounds: int

    @property
    def longest(self) -> int:
        """The context that the cases need, in tokens."""
        return max([*self.prompts, *(context + self.generated for context in self.contexts)])

    def cases(self) -> Iterator[Case]:
        """Yields the cases, grouped by thread count."""
        for threads in self.threads:
            for prompt in self.prompts:
                yield Case(threads, prompt=prompt)
            for context in self.contexts if self.generated else ():
                yield Case(threads, generated=self.generated, context=context)

    def check(self, context: int) -> None:
        """Raises UsageError if a value is out of range, or the cases do not fit a context."""
        positive = {"threads": self.threads, "pp": self.prompts, "rounds": [self.rounds]}
        other = {"tg": [self.generated], "context": self.contexts}
        for name, values in {**positive, **other}.items():
            least = int(name in positive)
            for value in values:
                if value < least:
                    raise UsageError(f"--{name} is {value}; expects {least} or more")
        if self.longest > context:
            raise UsageError(
                f"the cases need a context of {self.longest} tokens, but the model has {context}"
            )


class Contender(Protocol):
    """A program that can be measured."""

    name: str
    version: str

    def prepare(self, case: Case) -> None:
        """Brings the caches into the initial state of the case."""

    def run(self, case: Case) -> None:
        """Runs the case; this is timed."""


class Relax:
    """This project."""

    name = "relax-mlir"
    version = relax_mlir.__version__

    def __init__(self, model: LanguageModel, capacity: int) -> None:
        self._model = model
        self._session = model.session(capacity)
        self._tokens = np.random.default_rng(0).integers(0, model.config.vocab_size, capacity)

    def prepare(self, case: Case) -> None:
        """See `Contender`."""
        self._model.threads = case.threads
        session = self._session
        if session.length < case.context:
            session.reset()
            session.append(self._tokens[: case.context])
        session.truncate(case.context)

    def run(self, case: Case) -> None:
        """See `Contender`."""
        if case.prompt:
            self._session.append(self._tokens[: case.prompt])
        for token in self._tokens[: case.generated].tolist():
            self._session.append([token])


def measure(contenders: Sequence[Contender], plan: Plan) -> dict:
    """Measures every case; returns the input of `table`, as JSON values.

    `rates` are medians, in tokens per second; `seconds` are those of each round.
    """
    cases = list(plan.cases())
    seconds: dict[tuple[Case, str], list[float]] = defaultdict(list)
    turns = [(case, each) for case in cases for each in contenders]
    bar = tqdm(total=len(turns) * plan.rounds, desc="measuring", leave=False, disable=None)
    with bar:
        for round_ in range(plan.rounds):
            for case, contender in turns:
                contender.prepare(case)
                if not round_:
                    contender.run(case)  # warm-up
                    contender.prepare(case)
                seconds[case, contender.name].append(_time(contender, case))
                bar.update()
    rows = []
    for case in cases:
        times = {each.name: seconds[case, each.name] for each in contenders}
        rates = {
            name: case.tokens / statistics.median(durations) for name, durations in times.items()
        }
        row = {"case": str(case), "threads": case.threads, "rates": rates, "seconds": times}
        rows.append(row)
    return {
        "versions": {each.name: each.version for each in contenders},
        "python packages": {name: version(name) for name in ("torch-mlir", "llvmlite", "numpy")},
        "processor": _processor(),
        "rounds": plan.rounds,
        "results": rows,
    }


def _time(contender: Contender, case: Case) -> float:
    time.sleep(PAUSE_SECONDS)
    begin = time.perf_counter()
    contender.run(case)
    return time.perf_counter() - begin


def _processor() -> str:
    """The processor's name, from Linux."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else processor()


def table(results: dict) -> str:
    """The rates as text; with several programs, also the ratio of ours to each of the others'."""
    ours, *others = results["versions"]
    heads = [f"{name} {version}" for name, version in results["versions"].items()]
    heads += [f"ratio to {name}" for name in others]
    lines = [f"{'case':10} {'threads':>7}  " + "  ".join(f"{head:>22}" for head in heads)]
    for row in results["results"]:
        rates = row["rates"]
        cells = [f"{rate:>14.1f} tokens/s" for rate in rates.values()]
        cells += [f"{rates[ours] / rates[name]:>22.2f}" for name in others]
        lines.append(f"{row['case']:10} {row['threads']:>7}  " + "  ".join(cells))
    lines.append(f"medians of {results['rounds']} rounds on {results['processor']}")
    return "\n".join(lines)
