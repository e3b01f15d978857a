"""Beam search: the likeliest answers, of those that stay among the likeliest at each token.

    candidates = every token after every running beam, by the sum of log-probabilities
    of the best (1 + end tokens) * count:   those that end are finished, if among the first `count`
                                            the first `count` others run on

The score of a finished beam is its sum divided by its length to the power of `length_penalty`. The
`count` best are kept, until none that runs can be better, by an estimate of `early_stopping`.

Source: transformers, `GenerationMixin._beam_search`, whose answers these are.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.llm.generation.session import Session

EarlyStopping = bool | Literal["never"]

MOST_PENALTY = 20
"""Powers of the longest length with more would leave the range of float64."""


@dataclass(frozen=True)
class Beams:
    """Options of a search for `count` answers.

    A positive `length_penalty` prefers long ones. With `early_stopping` the search ends once there
    are `count` answers; without it, once none that runs has a better score now; "never" is once
    none can get one, up to the longest answer. Raises UsageError if an option is out of range.
    """

    count: int
    length_penalty: float = 1.0
    early_stopping: EarlyStopping = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UsageError(f"the count of beams is {self.count}; expects an integer >= 1")
        if not abs(self.length_penalty) <= MOST_PENALTY:
            raise UsageError(
                f"length_penalty is {self.length_penalty}; expects a value from -{MOST_PENALTY} "
                f"to {MOST_PENALTY}"
            )
        if self.early_stopping not in (True, False, "never"):
            raise UsageError(
                f"early_stopping is {self.early_stopping!r}; expects True, False or 'never'"
            )


@dataclass(frozen=True)
class Beam:
    """Tokens of an answer, with the one that ends it, and the score."""

    tokens: tuple[int, ...]
    score: float


def beam_search(
    session: Session,
    last: int,
    end_ids: Collection[int],
    max_tokens: int,
    options: Beams,
) -> list[Beam]:
    """The best answers first, after the tokens of a session and the `last` one of the prompt.

    Raises UsageError if the vocabulary has too few tokens, ExecutionError for logits without a
    largest one that is finite, and what `Session.append` does.
    """
    if max_tokens == 0:
        return [Beam((), 0.0)]
    logits = session.append([last])[0]
    most = max(2, 1 + len(end_ids)) * options.count
    if most > logits.size:
        raise UsageError(
            f"{options.count} beams need a vocabulary of {most} tokens; this one has {logits.size}"
        )
    running, finished = [_Running((), 0.0, session, _log_softmax(logits))], list[Beam]()
    while True:
        candidates = _best(running, most)
        length = len(candidates[0].tokens)
        ends = [length == max_tokens or each.tokens[-1] in end_ids for each in candidates]
        finished += [
            Beam(each.tokens, each.total / length**options.length_penalty)
            for each, is_over in zip(candidates[: options.count], ends)
            if is_over
        ]
        finished = sorted(finished, key=lambda beam: -beam.score)[: options.count]
        going = [each for each, is_over in zip(candidates, ends) if not is_over][: options.count]
        if not going or _is_over(going[0].total, length, finished, max_tokens, options):
            return finished
        running = _advanced(going)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A beam with one token more, which is not in the session of its parent yet."""

    tokens: tuple[int, ...]
    total: float
    session: Session


@dataclass(frozen=True, eq=False)
class _Running(_Candidate):
    """A beam whose tokens are in its own session; `logprobs` are those of the next token."""

    logprobs: np.ndarray


def _best(running: Sequence[_Running], most: int) -> list[_Candidate]:
    """The likeliest beams of a token more, in order; of equal ones the first comes first."""
    totals = np.concatenate([beam.total + beam.logprobs for beam in running])
    bound = np.partition(totals, -most)[-most]
    indices = np.flatnonzero(totals >= bound)
    order = indices[np.argsort(-totals[indices], kind="stable")][:most]
    size = running[0].logprobs.size
    chosen = [(running[index // size], int(index % size), totals[index]) for index in order]
    return [
        _Candidate((*beam.tokens, token), float(total), beam.session)
        for beam, token, total in chosen
    ]


def _is_over(
    best: float, length: int, finished: Sequence[Beam], max_tokens: int, options: Beams
) -> bool:
    """Whether no beam that runs can be better than those that are finished."""
    if len(finished) < options.count:
        return False
    if options.early_stopping is True:
        return True
    longest = max_tokens if options.early_stopping and options.length_penalty > 0 else length
    return best / longest**options.length_penalty <= finished[-1].score


def _advanced(going: Sequence[_Candidate]) -> list[_Running]:
    """The beams with their last tokens computed; the first of a parent takes its session."""
    taken: set[Session] = set()
    sessions = []
    for beam in going:
        sessions.append(beam.session.fork() if beam.session in taken else beam.session)
        taken.add(beam.session)
    return [
        _Running(beam.tokens, beam.total, own, _log_softmax(own.append([beam.tokens[-1]])[0]))
        for beam, own in zip(going, sessions)
    ]


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities, float64."""
    largest = logits.max()
    if not np.isfinite(largest):
        raise ExecutionError(f"the largest logit is {largest}; expects a finite value")
    shifted = logits.astype(np.float64) - largest
    return shifted - np.log(np.exp(shifted).sum())
