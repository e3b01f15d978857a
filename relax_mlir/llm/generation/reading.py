"""Runs many tokens on a session, which may have some of them."""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from relax_mlir.llm.decoder.pictures import Picture
from relax_mlir.llm.generation.session import Session

PROMPT_CHUNK = 512
"""Tokens of a prompt per call: bounds memory, and the latency of interrupts."""


def read(session: Session, tokens: Sequence[int], pictures: Sequence[Picture] = ()) -> np.ndarray:
    """Appends tokens, chunk by chunk; returns the logits after the last: float32[1, vocabulary].

    Rows of `pictures`, by their positions in the session, replace those of tokens. No tokens give
    no rows. Raises UsageError, with the session unchanged, if they do not fit.
    """
    if not tokens:
        return np.empty((0, 0), np.float32)
    session.check_room(len(tokens))
    *chunks, last = range(0, len(tokens), PROMPT_CHUNK)
    for start in chunks:
        session.append(tokens[start : start + PROMPT_CHUNK], 1, pictures)
    return session.append(list(tokens[last:]), 1, pictures)


def known_prefix(session: Session, tokens: Sequence[int], pictures: Sequence[Picture]) -> int:
    """The count of leading tokens, and images instead of them, that a session has."""
    count = common_prefix(session.tokens, tokens)
    for own, other in zip_longest(session.pictures, pictures):
        if own is None or other is None or (own.begin, own.key) != (other.begin, other.key):
            return min(count, *(each.begin for each in (own, other) if each is not None))
    return count


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """The count of equal leading tokens."""
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return index
    return min(len(a), len(b))
