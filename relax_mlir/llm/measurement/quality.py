"""How well a model predicts a text, and how far its predictions are from those of another model.

A text is cut into windows, which the model sees each by itself. The first token of each has no
prediction, so it is not counted.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from relax_mlir.errors import UsageError
from relax_mlir.llm.generation.model import LanguageModel

ROWS = 64
"""Logits that are compared at once, in float64."""


@dataclass(frozen=True)
class Perplexity:
    """The exponential of the mean surprisal, in nats, of `tokens` tokens."""

    perplexity: float
    tokens: int

    def __str__(self) -> str:
        return f"perplexity {self.perplexity:.4f} of {self.tokens} tokens"


@dataclass(frozen=True)
class Comparison:
    """How often the most probable token is that of the other model, and the mean divergence.

    `divergence` is KL(other || model) in nats.
    """

    agreement: float
    divergence: float
    tokens: int

    def __str__(self) -> str:
        return (
            f"top-1 agreement {100 * self.agreement:.2f} %, "
            f"divergence {self.divergence:.3e} nats, of {self.tokens} tokens"
        )


def perplexity(model: LanguageModel, text: str, window: int = 512) -> Perplexity:
    """The perplexity of a text; raises UsageError if it or the window has less than two tokens."""
    total, tokens = 0.0, 0
    for ids in windows(model, text, window):
        for begin, rows in _parts(model.logits(ids)[:-1]):
            following = ids[begin + 1 : begin + 1 + len(rows)]
            total -= float(rows[np.arange(len(rows)), following].sum())
            tokens += len(rows)
    return Perplexity(float(np.exp(total / tokens)), tokens)


def compare(model: LanguageModel, other: LanguageModel, text: str, window: int = 512) -> Comparison:
    """Compares the predictions of a model with those of `other`, which is the reference.

    Raises UsageError as `perplexity` does, and if the vocabularies differ.
    """
    if model.tokenizer.inner.get_vocab() != other.tokenizer.inner.get_vocab() or (
        model.config.vocab_size != other.config.vocab_size
    ):
        raise UsageError("the models have different vocabularies; expects the same")
    equal, divergence, tokens = 0, 0.0, 0
    for ids in windows(model, text, min(window, other.context)):
        pairs = zip(_parts(model.logits(ids)[:-1]), _parts(other.logits(ids)[:-1]), strict=True)
        for (_, rows), (_, expected) in pairs:
            equal += int((rows.argmax(-1) == expected.argmax(-1)).sum())
            divergence += float((np.exp(expected) * (expected - rows)).sum())
            tokens += len(rows)
    return Comparison(equal / tokens, divergence / tokens, tokens)


def as_json(result: Perplexity | Comparison) -> dict[str, float]:
    """The fields of a result."""
    return asdict(result)


def windows(model: LanguageModel, text: str, window: int) -> list[list[int]]:
    """The tokens of a text in parts of `window`; a last part of one token is left out."""
    if window < 2:
        raise UsageError(f"window is {window}; expects 2 tokens or more")
    ids = model.encode(text, raw=True)
    length = min(window, model.context)
    parts = [ids[begin : begin + length] for begin in range(0, len(ids), length)]
    parts = [part for part in parts if len(part) > 1]
    if not parts:
        raise UsageError(f"the text has {len(ids)} tokens; expects 2 or more")
    return parts


def _parts(logits: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Logarithms of probabilities, some rows at once, with the index of the first."""
    for begin in range(0, len(logits), ROWS):
        rows = logits[begin : begin + ROWS].astype(np.float64)
        rows -= rows.max(-1, keepdims=True)
        yield begin, rows - np.log(np.exp(rows).sum(-1, keepdims=True))
