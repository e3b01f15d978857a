"""Guesses of the next tokens, which the model checks in one run: speculative decoding.

The model samples after each guess as it would have done without, and guesses are used as long as
they are what was sampled. So the distribution of answers, and with a seed the draws, do not depend
on the guesses, which only change how many runs there are.

Source: Leviathan et al. 2023, for guesses that are certain; Saxena 2023 (prompt lookup).
"""

from collections.abc import Sequence
from typing import Protocol

from relax_mlir.errors import UsageError
from relax_mlir.llm.generation.reading import common_prefix, read
from relax_mlir.llm.generation.session import Session
from relax_mlir.llm.tokenization.tokenizer import Tokenizer


class Draft(Protocol):
    """What guesses tokens."""

    def propose(self, tokens: Sequence[int], most: int) -> list[int]:
        """Guesses of the tokens after `tokens`, `most` at most."""


class PromptLookup:
    """Guesses what followed the last tokens where they occurred before.

    Looks for the last `longest` tokens, then for fewer, and proposes up to `count` tokens. Raises
    UsageError if one of the two is less than 1.
    """

    def __init__(self, count: int = 8, longest: int = 3) -> None:
        _check_count(count)
        if longest < 1:
            raise UsageError(f"the longest text to look up is {longest}; expects 1 token or more")
        self.count = count
        self.longest = longest

    def propose(self, tokens: Sequence[int], most: int) -> list[int]:
        """What followed the latest occurrence."""
        tokens = list(tokens)
        for length in range(min(self.longest, len(tokens) - 1), 0, -1):
            end = tokens[-length:]
            for begin in range(len(tokens) - length - 1, -1, -1):
                if tokens[begin : begin + length] == end:
                    follows = begin + length
                    return tokens[follows : follows + min(self.count, most)]
        return []


class DraftModel:
    """Guesses the most probable tokens of a smaller model, on its `session`.

    Proposes up to `count` tokens. Raises UsageError if `count` is less than 1, or if the tokenizers
    of the two models differ.
    """

    def __init__(
        self, session: Session, tokenizer: Tokenizer, of_target: Tokenizer, count: int = 4
    ) -> None:
        _check_count(count)
        if tokenizer.inner.get_vocab() != of_target.inner.get_vocab():
            raise UsageError(
                "the draft model has another vocabulary than the model; expects the same"
            )
        self.count = count
        self._session = session

    def propose(self, tokens: Sequence[int], most: int) -> list[int]:
        """The greedy continuation; no tokens once the context of the smaller model is full."""
        session = self._session
        count = min(self.count, most, session.capacity - len(tokens) + 1)
        if count < 1:
            return []
        known = min(common_prefix(session.tokens, tokens), len(tokens) - 1)
        session.truncate(known)
        guesses = [int(read(session, tokens[known:])[0].argmax())]
        while len(guesses) < count:
            guesses.append(int(session.append(guesses[-1:])[0].argmax()))
        return guesses


def _check_count(count: int) -> None:
    if count < 1:
        raise UsageError(f"the count of draft tokens is {count}; expects an integer >= 1")
