"""Operators of transformer blocks."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import exact as read
from relax_mlir.interpreter.elements import round_to, widen

from .nn import softmax_of

__all__ = ["read"]


def nn_rotary(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Rotates feature j with feature j + d/2 of each head."""
    first, second = np.split(x, 2, -1)
    cos, sin = cos[:, None], sin[:, None]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def nn_kv_append(
    keys: np.ndarray,
    values: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    *,
    position: Sequence[int],
) -> list[np.ndarray]:
    """The caches with the new tokens at `position`."""
    results = []
    for cache, new in ((keys, key), (values, value)):
        updated = cache.copy()
        updated[:, position[0] : position[0] + len(new)] = np.swapaxes(new, 0, 1)
        results.append(updated)
    return results


def nn_attention(
    query: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    *,
    position: Sequence[int],
    scale: float,
    causal: bool,
    element: str,
) -> np.ndarray:
    """Each query over the tokens visible to it; the contents of others do not matter."""
    shared = query.shape[1] // max(len(keys), 1)
    keys, values = (np.repeat(cache, shared, 0) for cache in (keys, values))
    result = np.zeros((*query.shape[:2], values.shape[2]))
    for row, heads in enumerate(query):
        count = position[0] + (row + 1 if causal else len(query))
        scores = scale * np.einsum("hd,htd->ht", heads, keys[:, :count])
        result[row] = np.einsum("ht,htd->hd", weights_of(scores, element), values[:, :count])
    return result


def nn_batched_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    scale: float,
    causal: bool,
    element: str,
) -> np.ndarray:
    """Each query of each sequence over its keys; 0 without any."""
    shared = query.shape[2] // max(key.shape[2], 1)
    key, value = (np.repeat(x, shared, 2) for x in (key, value))
    batch, rows, heads, _ = query.shape
    result = np.zeros((batch, rows, heads, value.shape[3]))
    for row in range(rows if key.shape[1] else 0):
        seen = slice(row + 1 if causal else None)
        scores = scale * np.einsum("bhd,bthd->bht", query[:, row], key[:, seen])
        if mask is not None:
            at = row if mask.shape[2] > 1 else 0
            scores = scores + mask[:, :, at, seen if mask.shape[3] > 1 else slice(None)]
        weights = weights_of(scores, element)
        result[:, row] = np.einsum("bht,bthd->bhd", weights, value[:, seen])
    return result


def weights_of(scores: np.ndarray, element: str) -> np.ndarray:
    """The softmax, as bf16 if that is the element type."""
    weights = softmax_of(scores, -1)
    return widen(round_to(weights, element), element) if element == "bf16" else weights
