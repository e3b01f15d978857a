"""Filters of tokens: pure functions from logits to the indices that they keep.

Of equal logits the lower index comes first, so that results do not depend on the tie-breaking of a
sort. Each keeps one token at least.

Source: Fan et al. 2018 (top-k); Holtzman et al. 2020 (top-p); Meister et al. 2023 (locally typical
sampling); Nguyen et al. 2024 (min-p); p-e-w, text-generation-webui #6335 (XTC).
"""

import numpy as np

GROUP = 64
"""Logits of which one maximum is taken first, which is quicker than to order all."""


def top_k_indices(logits: np.ndarray, k: int) -> np.ndarray:
    """The indices of the `k` largest logits, ascending (int64); 0 keeps all."""
    if k == 0 or k >= logits.size:
        return np.arange(logits.size)
    candidates = _candidates(logits, k)
    values = logits[candidates]
    threshold = np.partition(values, -k)[-k]
    larger = candidates[values > threshold]
    ties = candidates[values == threshold]
    return np.sort(np.concatenate([larger, ties[: k - larger.size]]))


def _candidates(logits: np.ndarray, k: int) -> np.ndarray:
    """Ascending indices that have the `k` largest logits among them, few if there are many."""
    groups = logits.size // GROUP
    if groups < 2 * k:
        return np.arange(logits.size)
    peaks = logits[: groups * GROUP].reshape(GROUP, groups).max(axis=0)
    bound = np.partition(peaks, -k)[-k]  # k groups have a logit that is not less
    return np.flatnonzero(logits >= bound)


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


def min_p_indices(logits: np.ndarray, p: float) -> np.ndarray:
    """The tokens that are at least `p` times as probable as the most probable one; 0 keeps all."""
    if p == 0:
        return np.arange(logits.size)
    return np.flatnonzero(logits >= logits.max() + np.log(p))


def typical_indices(logits: np.ndarray, p: float) -> np.ndarray:
    """The fewest tokens whose probabilities sum to `p` or more, the most typical first.

    Typical is a token whose surprisal, -log of its probability, is near the entropy; 1 keeps all.
    """
    if p == 1:
        return np.arange(logits.size)
    probabilities = softmax(logits)
    possible = np.flatnonzero(probabilities)
    surprisal = -np.log(probabilities[possible])
    entropy = probabilities[possible] @ surprisal
    order = possible[np.argsort(np.abs(surprisal - entropy), kind="stable")]
    reached = np.searchsorted(np.cumsum(probabilities[order]), p)
    return order[: reached + 1]


def xtc_indices(logits: np.ndarray, threshold: float) -> np.ndarray:
    """Excludes top choices: of the tokens with probability `threshold` or more all but the last.

    The last is the least probable of them, so nothing is excluded if they are fewer than two.
    """
    probabilities = softmax(logits)
    top = np.flatnonzero(probabilities >= threshold)
    if top.size < 2:
        return np.arange(logits.size)
    last = top[np.flatnonzero(probabilities[top] == probabilities[top].min())[-1]]
    return np.setdiff1d(np.arange(logits.size), top[top != last])


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities of `logits`, in the same dtype; -inf has probability 0."""
    exponentials = logits - logits.max()
    np.exp(exponentials, out=exponentials)
    exponentials /= exponentials.sum()
    return exponentials
