"""Sequences of any lengths as the arguments of an encoder."""

from collections.abc import Iterator, Sequence

import numpy as np

MOST_SLOTS = 8192
"""Slots of a batch: sequences times the longest."""


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The indices of sequences in batches, those of like lengths together."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) + 1) * lengths[index] > MOST_SLOTS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def arguments(sequences: Sequence[Sequence[int]]) -> tuple[np.ndarray, ...]:
    """The first arguments of `main` of `modules/encoder.py`, for sequences of a token or more."""
    lengths = np.array([len(sequence) for sequence in sequences], np.int32)
    longest = int(lengths.max())
    tokens = np.concatenate([np.asarray(sequence, np.int32) for sequence in sequences])
    positions = np.concatenate([np.arange(length, dtype=np.int32) for length in lengths])
    starts = np.cumsum(lengths) - lengths
    within = np.minimum(np.arange(longest), lengths[:, None] - 1)
    rows = (starts[:, None] + within).astype(np.int32)
    slots = np.repeat(np.arange(len(lengths)) * longest, lengths) + positions
    return tokens, positions, rows, slots.astype(np.int32), lengths
