"""Profiles of a language model: a prompt, and a step of generation after other tokens."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.measurement.benchmark import Case
from relax_mlir.profile import ROUNDS, Profile, record


def profile_cases(
    model: LanguageModel, cases: Sequence[Case], capacity: int, rounds: int = ROUNDS
) -> list[Profile]:
    """The fastest of `rounds` calls for each case; for generation, the first token.

    `capacity` is that of the caches.
    """
    before = model.threads
    try:
        return [_profile(model, case, capacity, rounds) for case in cases]
    finally:
        model.threads = before


def _profile(model: LanguageModel, case: Case, capacity: int, rounds: int) -> Profile:
    model.threads = case.threads
    session = model.session(capacity)
    tokens = np.random.default_rng(0).integers(0, model.config.vocab_size, capacity)
    if case.context:
        session.append(tokens[: case.context])
    new = tokens[: case.prompt or 1].tolist()
    symbols = {"n": len(new), "m": case.context, "c": capacity, "r": 1}  # those of llama.py
    return record(
        model.executable,
        "main",
        lambda: session.append(new),
        symbols,
        str(case) if case.prompt else f"step after {case.context} tokens",
        case.threads,
        rounds,
        lambda: session.truncate(case.context),
    )
