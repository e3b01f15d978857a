"""Rules of timestamps: which tokens may follow, and the parts of a text between them.

Source: `ApplyTimestampRules` of Whisper's code.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from relax_mlir.llm.speech.config import Tokens


@dataclass(frozen=True)
class Rules:
    """What may follow a text; `timed` texts have timestamps around their parts."""

    tokens: Tokens
    timed: bool

    def apply(self, logits: np.ndarray, text: Sequence[int]) -> np.ndarray:
        """The logits float64[vocab] of the next token of a text, -infinity for what must not be."""
        scores = logits.astype(np.float64)
        tokens = self.tokens
        scores[list(tokens.suppressed)] = -np.inf
        if not text:
            scores[list(tokens.suppressed_first)] = -np.inf
        if self.timed:
            self._bound(scores, text)
            self._prefer(scores)
        return scores

    def _bound(self, scores: np.ndarray, text: Sequence[int]) -> None:
        """Timestamps come in pairs, and do not go back."""
        tokens, first = self.tokens, self.tokens.first_timestamp
        scores[tokens.no_timestamps] = -np.inf
        if not text:
            scores[:first] = -np.inf
            if tokens.latest_first is not None:
                scores[first + tokens.latest_first + 1 :] = -np.inf
            return
        ends = text[-1] >= first
        opens = len(text) < 2 or text[-2] >= first
        if ends and opens:
            scores[first:] = -np.inf
        elif ends:
            scores[: tokens.end] = -np.inf
        times = [token for token in text if token >= first]
        if times:
            scores[first : times[-1] + (0 if ends and not opens else 1)] = -np.inf

    def _prefer(self, scores: np.ndarray) -> None:
        """A timestamp is next if all of them together are likelier than any other token."""
        first = self.tokens.first_timestamp
        times, others = scores[first:], scores[:first].max()
        most = times.max()
        if most > -np.inf and most + np.log(np.exp(times - most).sum()) > others:
            scores[:first] = -np.inf


@dataclass(frozen=True)
class Piece:
    """A part of a window's text, in steps of time; `end` is None if no timestamp ends it."""

    start: int
    end: int | None
    tokens: tuple[int, ...]


def whole(text: Sequence[int], tokens: Tokens) -> Piece:
    """A text as one part."""
    return Piece(0, None, tuple(token for token in text if token < tokens.first_timestamp))


def pieces(text: Sequence[int], tokens: Tokens) -> Iterator[Piece]:
    """The parts of a text between timestamps."""
    first = tokens.first_timestamp
    start, part = 0, list[int]()
    for token in text:
        if token < first:
            part.append(token)
            continue
        if part:
            yield Piece(start, token - first, tuple(part))
            part = []
        start = token - first
    if part:
        yield Piece(start, None, tuple(part))


def cut(text: Sequence[int], tokens: Tokens) -> tuple[Sequence[int], int | None]:
    """What is retained of a window's text, and the steps of time after which the next one begins.

    None: after all of this window. A part that the window cuts off is left to the next one: it is
    after the last pair of timestamps.
    """
    first = tokens.first_timestamp
    are_times = [token >= first for token in text]
    pairs = [i for i, pair in enumerate(pairwise(are_times)) if all(pair)]
    if not pairs or (are_times[-1] and not are_times[-2]):
        return text, None
    return text[: pairs[-1] + 1], text[pairs[-1]] - first
