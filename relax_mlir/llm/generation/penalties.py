"""Changes of logits that depend on the token, or on the tokens before: biases and penalties.

Each is a pure function from logits to logits, which are the same array if nothing changes.

Source: Keskar et al. 2019 (repetition penalty); OpenAI's API (presence and frequency penalties);
p-e-w, text-generation-webui #5677 (DRY).
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

LARGEST_PENALTY = 1e30
"""The bound of a DRY penalty: float32 represents it."""


def add_bias(logits: np.ndarray, bias: Mapping[int, float]) -> np.ndarray:
    """Adds `bias[token]` to the logit of each token; -inf forbids it."""
    if not bias:
        return logits
    biased = logits.copy()
    biased[list(bias)] += np.array(list(bias.values()), logits.dtype)
    return biased


def penalize_repetition(logits: np.ndarray, history: Sequence[int], penalty: float) -> np.ndarray:
    """Divides positive and multiplies negative logits of the tokens in `history` by `penalty`."""
    if penalty == 1 or len(history) == 0:
        return logits
    seen = np.unique(np.asarray(history, dtype=np.int64))
    penalized = logits.copy()
    values = logits[seen]
    penalized[seen] = np.where(values > 0, values / penalty, values * penalty)
    return penalized


def penalize_answer(
    logits: np.ndarray, answer: Sequence[int], presence: float, frequency: float
) -> np.ndarray:
    """Subtracts `presence + frequency * count` from the logit of each token of the answer so far.

    Less than 0, they make those tokens more likely.
    """
    if (presence == 0 and frequency == 0) or len(answer) == 0:
        return logits
    tokens, counts = np.unique(np.asarray(answer, dtype=np.int64), return_counts=True)
    penalized = logits.copy()
    penalized[tokens] -= (presence + frequency * counts).astype(logits.dtype)
    return penalized


def penalize_repeated_sequences(
    logits: np.ndarray,
    history: Sequence[int],
    multiplier: float,
    base: float = 1.75,
    allowed_length: int = 2,
    breakers: Collection[int] = (),
) -> np.ndarray:
    """Subtracts from each token that would make a repeated sequence longer (DRY).

    If the last n tokens of `history` occurred before, the token that followed them there loses
    `multiplier * base ** (n - allowed_length)`, for the largest n that is `allowed_length` or more.
    Sequences do not contain `breakers`.
    """
    if multiplier == 0:
        return logits
    lengths = repeated_lengths(history, breakers)
    repeated = {token: n for token, n in lengths.items() if n >= allowed_length}
    if not repeated:
        return logits
    excess = np.array(list(repeated.values()), np.float64) - allowed_length
    with np.errstate(over="ignore"):
        penalties = np.minimum(multiplier * np.power(base, excess), LARGEST_PENALTY)
    return add_bias(logits, dict(zip(repeated, -penalties, strict=True)))


def repeated_lengths(history: Sequence[int], breakers: Collection[int] = ()) -> dict[int, int]:
    """For each token, the length of the longest end of `history` that it followed before."""
    backwards = list(reversed(history))
    end = next((i for i, token in enumerate(backwards) if token in breakers), len(backwards))
    longest: dict[int, int] = {}
    for i, length in enumerate(_prefix_lengths(backwards)):
        if i and (length := min(length, end)):
            token = backwards[i - 1]
            longest[token] = max(longest.get(token, 0), length)
    return longest


def _prefix_lengths(values: Sequence[int]) -> list[int]:
    """For each index, how many values from there equal those from 0: the Z function, linear."""
    lengths = [0] * len(values)
    begin = end = 0
    for i in range(1, len(values)):
        length = min(end - i, lengths[i - begin]) if i < end else 0
        while i + length < len(values) and values[length] == values[i + length]:
            length += 1
        lengths[i] = length
        if i + length > end:
            begin, end = i, i + length
    return lengths
