"""Operators of sequences whose keys and values are in pages."""

import numpy as np

from relax_mlir.interpreter.elements import exact as read

from .attention import weights_of

__all__ = ["read"]


def nn_paged_kv_append(
    key_pages: np.ndarray,
    value_pages: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    tables: np.ndarray,
    sequences: np.ndarray,
    positions: np.ndarray,
) -> list[np.ndarray]:
    """The pages with the new tokens, one after another."""
    results = []
    for pages, new in ((key_pages, key), (value_pages, value)):
        updated = pages.copy()
        count, _, size, _ = pages.shape
        for row, sequence, position in zip(new, sequences.tolist(), positions.tolist()):
            inside = 0 <= sequence < len(tables) and 0 <= position < tables.shape[1] * size
            page = int(tables[sequence, position // size]) if inside else -1
            if 0 <= page < count:
                updated[page, :, position % size] = row
        results.append(updated)
    return results


def nn_paged_attention(
    query: np.ndarray,
    key_pages: np.ndarray,
    value_pages: np.ndarray,
    tables: np.ndarray,
    sequences: np.ndarray,
    positions: np.ndarray,
    key_scales: np.ndarray | None = None,
    value_scales: np.ndarray | None = None,
    *,
    scale: float,
    window: int,
    cap: float,
    element: str,
) -> np.ndarray:
    """Each token over the pages of its sequence, gathered."""
    if key_scales is not None and value_scales is not None:
        key_pages = key_pages * np.repeat(key_scales, 32, 3)
        value_pages = value_pages * np.repeat(value_scales, 32, 3)
    count, shared, size, _ = key_pages.shape
    result = np.zeros((*query.shape[:2], value_pages.shape[3]))
    most = tables.shape[1] * size
    if not most or not len(tables) or not count:
        return result
    group = query.shape[1] // max(shared, 1)
    for i, heads in enumerate(query):
        sequence = min(max(int(sequences[i]), 0), len(tables) - 1)
        end = min(max(int(positions[i]), 0), most - 1) + 1
        first = max(end - window, 0) if window else 0
        at = np.arange(first, end)
        pages = np.clip(tables[sequence, at // size], 0, count - 1)
        keys, values = (
            np.repeat(x[pages, :, at % size], group, 1) for x in (key_pages, value_pages)
        )
        scores = scale * np.einsum("hd,thd->ht", heads, keys)
        if cap:
            scores = cap * np.tanh(scores / cap)
        result[i] = np.einsum("ht,thd->hd", weights_of(scores, element), values)
    return result
