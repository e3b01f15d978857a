"""Samples the next token from logits.

The order is fixed, since the steps do not commute:

    1. logit bias           added to the logits of some tokens
    2. repetition penalty   on the logits of tokens seen before
    3. presence, frequency  on the logits of tokens of the answer so far
    4. DRY                  on the logits of tokens that make a repeated sequence longer
    5. top-k                keep the k largest logits
    6. temperature          divide by it (0: the largest logit was taken before step 5)
    7. typical              keep the most typical tokens, up to a total probability
    8. top-p                keep the most probable tokens, up to total probability p
    9. min-p                keep tokens of at least p times the largest probability
    10. XTC                 exclude all but the least of the probable tokens, sometimes
    11. draw                from the rest, by renormalised probabilities

Temperature preserves the ranking, so top-k may come first, and the rest works on k logits. The
defaults switch each step off. Steps 1 to 4 are in `penalties.py`, the others in `filters.py`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.generation.filters import (
    min_p_indices,
    softmax,
    top_k_indices,
    top_p_indices,
    typical_indices,
    xtc_indices,
)
from relax_mlir.llm.generation.penalties import (
    add_bias,
    penalize_answer,
    penalize_repeated_sequences,
    penalize_repetition,
)


@dataclass(frozen=True)
class Sampler:
    """Draws tokens; two samplers with equal fields and a `seed` draw equal sequences.

    `temperature` 0 is greedy; `top_k` 0, `top_p` 1, `min_p` 0 and `typical_p` 1 keep all tokens.
    `repetition_penalty` 1 is none, more than 1 makes seen tokens less likely; so do
    `presence_penalty` and `frequency_penalty` more than 0 of tokens of the answer, the second by
    how often they occur. `xtc_probability` is
    how often XTC applies, to tokens of probability `xtc_threshold` or more. `dry_multiplier` 0 is
    no DRY; see `penalize_repeated_sequences`, whose breakers are the ids `dry_breakers`.
    `logit_bias` maps ids to what is added to their logits. Without a `seed` draws differ from run
    to run. Raises UsageError if a field is out of range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    min_p: float = 0.0
    typical_p: float = 1.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_breakers: frozenset[int] = frozenset()
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    _generator: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, (holds, expected) in _RANGES.items():
            value = getattr(self, name)
            if name not in _INTEGERS:
                value = _as_float(value)
                object.__setattr__(self, name, value)
            if not holds(value):
                raise UsageError(f"{name} is {quoted(value)}; expects {expected}")
        biases = {token: _as_float(bias) for token, bias in self.logit_bias.items()}
        for token, bias in biases.items():
            if token < 0 or not (abs(bias) <= GREATEST or bias == -np.inf):
                raise UsageError(
                    f"logit_bias of token {token} is {bias}; expects a token >= 0, and a value "
                    "from -1e30 to 1e30, or -inf"
                )
        object.__setattr__(self, "logit_bias", biases)
        object.__setattr__(self, "_generator", np.random.default_rng(self.seed))

    @property
    def takes_likeliest(self) -> bool:
        """Whether a token is that of the largest logit, as the model computed it."""
        return self.temperature == 0 and not self.logit_bias and not self.reads_history

    @property
    def reads_history(self) -> bool:
        """Whether the tokens before matter."""
        penalties = (self.dry_multiplier, self.presence_penalty, self.frequency_penalty)
        return self.repetition_penalty != 1 or any(penalties)

    def sample(self, logits: np.ndarray, history: Sequence[int] = (), answer: int = 0) -> int:
        """The next token for `logits` (1-D, floating point) after the tokens in `history`.

        The answer begins at its index `answer`: those before are the prompt.

        Raises ExecutionError if a logit is NaN or none is finite.
        """
        # One pass over the logits also detects NaN, which compares as the largest.
        likeliest = int(logits.argmax()) if logits.size else 0
        _check_largest(logits[likeliest] if logits.size else -np.inf)
        changed = self._changed(logits, history, answer)
        if changed is not logits:
            likeliest = int(changed.argmax())
            _check_largest(changed[likeliest])
        if self.temperature == 0:
            return likeliest
        tokens, scaled = self._candidates(changed)
        chosen = draw(softmax(scaled), self._generator.random())
        return int(tokens[chosen])

    def _changed(self, logits: np.ndarray, history: Sequence[int], answer: int) -> np.ndarray:
        """The logits after biases and penalties."""
        logits = add_bias(logits, self.logit_bias)
        logits = penalize_repetition(logits, history, self.repetition_penalty)
        logits = penalize_answer(
            logits, history[answer:], self.presence_penalty, self.frequency_penalty
        )
        return penalize_repeated_sequences(
            logits,
            history,
            self.dry_multiplier,
            self.dry_base,
            self.dry_allowed_length,
            self.dry_breakers,
        )

    def _candidates(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The tokens that may be drawn, and their logits divided by the temperature."""
        tokens = top_k_indices(logits, self.top_k)
        scaled = logits[tokens].astype(np.float64)
        scaled -= scaled.max()
        with np.errstate(over="ignore"):  # a tiny temperature makes all others -inf
            scaled /= self.temperature
        filters = [
            (typical_indices, self.typical_p, self.typical_p < 1),
            (top_p_indices, self.top_p, self.top_p < 1),
            (min_p_indices, self.min_p, self.min_p > 0),
            (xtc_indices, self.xtc_threshold, self._applies_xtc()),
        ]
        for indices, parameter, applies in filters:
            if applies:
                chosen = indices(scaled, parameter)
                tokens, scaled = tokens[chosen], scaled[chosen]
        return tokens, scaled

    def _applies_xtc(self) -> bool:
        return self.xtc_probability > 0 and self._generator.random() < self.xtc_probability


def _as_float(value: float) -> float:
    """An integer as a float, infinite if there is none: logits are multiplied with floats alone."""
    try:
        return float(value) if isinstance(value, int) else value
    except OverflowError:
        return math.inf if value > 0 else -math.inf


GREATEST = 1e30
"""Of what logits are changed by: float32 represents the outcome."""
_INTEGERS = ("top_k", "seed", "dry_allowed_length")
_SHARE = (lambda x: 0 <= x <= 1, "a number >= 0 and <= 1")
_SOME_SHARE = (lambda x: 0 < x <= 1, "a number > 0 and <= 1")
_PENALTY = (lambda x: abs(x) <= GREATEST, "a value from -1e30 to 1e30")
_RANGES = {
    "temperature": (lambda x: 0 <= x <= GREATEST, "a number >= 0 and <= 1e30"),
    "top_k": (lambda x: x >= 0, "an integer >= 0"),
    "top_p": _SOME_SHARE,
    "repetition_penalty": (
        lambda x: 1 / GREATEST <= x <= GREATEST,
        "a number > 0, from 1e-30 to 1e30",
    ),
    "seed": (lambda x: x is None or x >= 0, "an integer >= 0"),
    "min_p": _SHARE,
    "typical_p": _SOME_SHARE,
    "xtc_probability": _SHARE,
    "xtc_threshold": _SOME_SHARE,
    "dry_multiplier": (lambda x: 0 <= x < np.inf, "a finite value >= 0"),
    "dry_base": (lambda x: 1 <= x < np.inf, "a finite value >= 1"),
    "dry_allowed_length": (lambda x: x >= 1, "an integer >= 1"),
    "presence_penalty": _PENALTY,
    "frequency_penalty": _PENALTY,
}


def draw(probabilities: np.ndarray, uniform: float) -> int:
    """The index that `uniform`, a number in [0, 1), selects; never one of probability 0."""
    sums = np.cumsum(probabilities)
    last = np.searchsorted(sums, sums[-1])  # rounding must not select past the last positive one
    return int(min(np.searchsorted(sums, uniform * sums[-1], side="right"), last))


def _check_largest(largest: float) -> None:
    if not np.isfinite(largest):
        raise ExecutionError(f"the largest logit is {largest}; expects a finite number")
