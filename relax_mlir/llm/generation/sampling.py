"""Samples the next token from logits.

The order is fixed, since the filters do not commute:

    1. repetition penalty   on the logits of tokens seen before
    2. top-k                keep the k largest logits
    3. temperature          divide by it (0: the largest logit was taken before step 2)
    4. top-p                keep the most probable tokens, up to total probability p
    5. draw                 from the rest, by renormalised probabilities

Temperature preserves the ranking, so top-k may come first, and the rest works on k logits. Filters
are pure functions from logits to the indices that they keep. Of equal logits the lower index comes
first, so that results do not depend on the tie-breaking of a sort.

Source: Keskar et al. 2019 (repetition penalty); Fan et al. 2018 (top-k); Holtzman et al. 2020
(top-p); the defaults switch each of them off.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from relax_mlir.errors import ExecutionError, UsageError


@dataclass(frozen=True)
class Sampler:
    """Draws tokens; two samplers with equal fields and a `seed` draw equal sequences.

    `temperature` 0 is greedy; `top_k` 0 and `top_p` 1 keep all tokens; `repetition_penalty` 1
    is none, more than 1 makes seen tokens less likely. Without a `seed` draws differ from run to
    run. Raises UsageError if a field is out of range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    _generator: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _require(self.temperature >= 0, "temperature", self.temperature, "a number >= 0")
        _require(self.top_k >= 0, "top_k", self.top_k, "an integer >= 0")
        _require(0 < self.top_p <= 1, "top_p", self.top_p, "a number > 0 and <= 1")
        penalty = self.repetition_penalty
        _require(penalty > 0, "repetition_penalty", penalty, "a number > 0")
        _require(self.seed is None or self.seed >= 0, "seed", self.seed, "an integer >= 0")
        object.__setattr__(self, "_generator", np.random.default_rng(self.seed))

    def sample(self, logits: np.ndarray, history: Sequence[int] = ()) -> int:
        """The next token for `logits` (1-D, floating point) after the tokens in `history`.

        Raises ExecutionError if a logit is NaN or none is finite.
        """
        # One pass over the logits also detects NaN, which compares as the largest.
        likeliest = int(logits.argmax()) if logits.size else 0
        _check_largest(logits[likeliest] if logits.size else -np.inf)
        if self.repetition_penalty != 1:
            logits = penalize_repetition(logits, history, self.repetition_penalty)
            likeliest = int(logits.argmax())
        if self.temperature == 0:
            return likeliest
        tokens = top_k_indices(logits, self.top_k)
        scaled = logits[tokens].astype(np.float64)
        scaled -= scaled.max()
        with np.errstate(over="ignore"):  # a tiny temperature makes all others -inf
            scaled /= self.temperature
        likely = top_p_indices(scaled, self.top_p)
        chosen = draw(softmax(scaled[likely]), self._generator.random())
        return int(tokens[likely[chosen]])


def penalize_repetition(logits: np.ndarray, history: Sequence[int], penalty: float) -> np.ndarray:
    """Divides positive and multiplies negative logits of the tokens in `history` by `penalty`."""
    if penalty == 1 or len(history) == 0:
        return logits
    seen = np.unique(np.asarray(history, dtype=np.int64))
    penalized = logits.copy()
    values = logits[seen]
    penalized[seen] = np.where(values > 0, values / penalty, values * penalty)
    return penalized


def top_k_indices(logits: np.ndarray, k: int) -> np.ndarray:
    """The indices of the `k` largest logits, ascending (int64); 0 keeps all."""
    if k == 0 or k >= logits.size:
        return np.arange(logits.size)
    smallest_kept = np.partition(logits, -k)[-k]
    larger = np.flatnonzero(logits > smallest_kept)
    ties = np.flatnonzero(logits == smallest_kept)
    return np.sort(np.concatenate([larger, ties[: k - larger.size]]))


def top_p_indices(logits: np.ndarray, p: float) -> np.ndarray:
    """The fewest tokens whose probabilities sum to `p` or more, most probable first.

    Keeps at least one (int64 indices); 1 keeps all, in their order.
    """
    if p == 1:
        return np.arange(logits.size)
    probabilities = softmax(logits)
    # All tokens below this bound sum to less than 1 - p, so the rest reaches p: sort the rest only.
    candidates = np.flatnonzero(probabilities >= (1 - p) / probabilities.size)
    order = candidates[np.argsort(-probabilities[candidates], kind="stable")]
    reached = np.searchsorted(np.cumsum(probabilities[order]), p)
    return order[: reached + 1]


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities of `logits`, in the same dtype; -inf has probability 0."""
    exponentials = logits - logits.max()
    np.exp(exponentials, out=exponentials)
    exponentials /= exponentials.sum()
    return exponentials


def draw(probabilities: np.ndarray, uniform: float) -> int:
    """The index that `uniform`, a number in [0, 1), selects; never one of probability 0."""
    sums = np.cumsum(probabilities)
    last = np.searchsorted(sums, sums[-1])  # rounding must not select past the last positive one
    return int(min(np.searchsorted(sums, uniform * sums[-1], side="right"), last))


def _check_largest(largest: float) -> None:
    if not np.isfinite(largest):
        raise ExecutionError(f"the largest logit is {largest}; expects a finite number")


def _require(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise UsageError(f"{name} is {value}; expects {expected}")
