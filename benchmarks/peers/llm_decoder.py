"""How a program that runs language models is measured: `llm.py`'s cases, made of two operations.

A case is one of

    {"check": FILE, "prompts": [37, ...], "steps": 64}   answers on the tokens of an .npy file
    {"prompt": 512}                                      so many tokens into empty caches
    {"generated": 64, "context": 512}                    single tokens after others

each with "weights" (their type in memory) and "work" (the folder of what was built).
Only the logits of the last token are computed in each call.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from worker import Prepared

CAPACITY = 640
"""The capacity of fixed-size caches, in tokens."""
PAUSE_SECONDS = 0.05  # for the other program's threads to fall asleep


class Decoder(ABC):
    """A model with its caches."""

    @abstractmethod
    def append(self, tokens: Sequence[int]) -> None:
        """Runs the model over new tokens, which stay in the caches."""

    @abstractmethod
    def truncate(self, length: int) -> None:
        """Forgets all tokens but the first `length`."""

    @abstractmethod
    def logits(self) -> np.ndarray:
        """The logits of the last token: float32[vocabulary]."""


class Replayed:
    """Appended tokens, for caches that cannot be truncated: remaining ones are run again."""

    def __init__(self) -> None:
        self.tokens: list[int] = []

    def cut(self, length: int) -> list[int]:
        """Forgets all tokens; returns those that are to be appended again."""
        remaining, self.tokens = self.tokens[:length], []
        return remaining


class Program:
    """Makes the cases out of a decoder, which `load` returns for (weights, work, threads)."""

    version: str

    def __init__(
        self, load: Callable[[str, Path, int], Decoder], version: str, threads: int
    ) -> None:
        self.version = version
        self._load = load
        self._threads = threads
        self._decoder: Decoder | None = None
        self._context = 0

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if self._decoder is None:
            self._decoder = self._load(case["weights"], Path(case["work"]), self._threads)
        decoder = self._decoder
        if "check" in case:
            self._context = 0
            return Prepared(lambda: [_answers(decoder, case)])
        context = case.get("context", 0)
        tokens = fixed_tokens(max(context, case.get("prompt", 0), case.get("generated", 0)))

        def reset() -> None:
            if self._context == context:
                decoder.truncate(context)
            else:
                decoder.truncate(0)
                if context:
                    decoder.append(tokens[:context])
                self._context = context
            time.sleep(PAUSE_SECONDS)

        def prompt() -> list:
            decoder.append(tokens[: case["prompt"]])
            return [decoder.logits()]

        def generate() -> list:
            for token in tokens[: case["generated"]]:
                decoder.append([token])
            return [decoder.logits()]

        return Prepared(prompt if "prompt" in case else generate, reset)


def fixed_tokens(count: int) -> list[int]:
    """Tokens whose choice does not matter: the time does not depend on them."""
    return [(i * 7919 + 13) % 49152 for i in range(count)]


def _answers(decoder: Decoder, case: dict) -> np.ndarray:
    """Logits after each prompt, then, after the first prompt, after each step.

    float32[prompts + steps, vocabulary]
    """
    tokens = np.load(case["check"]).tolist()
    rows = []
    for length in [*case["prompts"][1:], case["prompts"][0]]:
        decoder.truncate(0)
        decoder.append(tokens[:length])
        rows.append(decoder.logits().copy())
    rows.insert(0, rows.pop())  # the first prompt ran last, so that its caches go on
    begin = case["prompts"][0]
    for token in tokens[begin : begin + case["steps"]]:
        decoder.append([token])
        rows.append(decoder.logits().copy())
    decoder.truncate(0)
    return np.stack(rows)
